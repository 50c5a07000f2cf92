"""Connected producers and consumers by group, from their heartbeats. The tables do no I/O: time and channels are
arguments.

    producers: group -> channel id -> client
    consumers: group -> settings, topic -> subscription, channel id -> client

A client leaves its groups by unregistering, by its channel closing, or after 120 s without a heartbeat. Methods return
the consumer groups that they changed; the caller sends NOTIFY_CONSUMER_IDS_CHANGED to the groups' members. The table of
locks says which client of a group may consume a queue in order. A queue lock lasts 60 s; the client locks the queue
again to renew it. Upstream: `ConsumerManager`, `ConsumerGroupInfo`, `ProducerManager`, `RebalanceLockManager`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...remoting.bodies.client import ConsumerData, HeartbeatData, SubscriptionData
from ...remoting.codes import LanguageCode
from ...remoting.message import MessageQueue
from ...remoting.transport import Connection

CHANNEL_EXPIRED_MS = 120_000


@dataclass(slots=True)
class Client:
    """One client on one channel."""

    client_id: str
    channel: Connection
    language: LanguageCode | None
    version: int
    seen_ms: int


@dataclass(slots=True)
class ConsumerGroup:
    """A consumer group with at least one connected consumer. The group has the settings of the newest heartbeat."""

    name: str
    consume_type: str = "CONSUME_PASSIVELY"
    message_model: str = "CLUSTERING"
    consume_from_where: str = "CONSUME_FROM_LAST_OFFSET"
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)
    clients: dict[int, Client] = field(default_factory=dict)

    @property
    def client_ids(self) -> tuple[str, ...]:
        return tuple(client.client_id for client in self.clients.values())

    def subscribe(self, subscriptions: tuple[SubscriptionData, ...]) -> bool:
        """Take over the heartbeat's subscriptions: topics that the heartbeat lacks are removed, and a known topic's
        subscription is replaced if the heartbeat's subVersion is higher. Returns whether the group's set of topics
        changed."""
        before = set(self.subscriptions)
        for subscription in subscriptions:
            old = self.subscriptions.get(subscription.topic)
            if old is None or subscription.sub_version > old.sub_version:
                self.subscriptions[subscription.topic] = subscription
        for topic in before - {subscription.topic for subscription in subscriptions}:
            del self.subscriptions[topic]
        return before != set(self.subscriptions)


class ClientManager:
    """The broker's producers and consumers, by group."""

    def __init__(self) -> None:
        self.producers: dict[str, dict[int, Client]] = {}
        self.consumers: dict[str, ConsumerGroup] = {}

    def register_producers(self, heartbeat: HeartbeatData, client: Client) -> list[str]:
        """Register the producer groups of a heartbeat. Returns the groups that are new on this channel."""
        new = []
        for data in heartbeat.producer_data_set:
            clients = self.producers.setdefault(data.group_name, {})
            if client.channel.id not in clients:
                new.append(data.group_name)
            clients[client.channel.id] = client
        return new

    def register_consumer(self, data: ConsumerData, client: Client) -> tuple[bool, bool]:
        """Register the client in a consumer group, as its heartbeat says. Returns whether the channel is new in the
        group, and whether the group's members must be notified."""
        group = self.consumers.setdefault(data.group_name, ConsumerGroup(data.group_name))
        group.consume_type = data.consume_type
        group.message_model = data.message_model
        group.consume_from_where = data.consume_from_where
        new = client.channel.id not in group.clients
        group.clients[client.channel.id] = client
        subscribed = group.subscribe(data.subscription_data_set)
        return new, new or subscribed

    def unregister(self, channel_id: int, *, producer_group: str | None, consumer_group: str | None) -> list[str]:
        """Remove a client that unregisters. Returns the consumer groups whose members must be notified."""
        if producer_group:
            self._remove_producer(producer_group, channel_id)
        if consumer_group and self._remove_consumer(consumer_group, channel_id):
            return [consumer_group]
        return []

    def channel_lost(self, channel_id: int) -> list[str]:
        """Remove every client on a closed channel. Returns the consumer groups whose members must be notified."""
        for group in list(self.producers):
            self._remove_producer(group, channel_id)
        return [group for group in list(self.consumers) if self._remove_consumer(group, channel_id)]

    def expire(self, *, now_ms: int) -> list[tuple[str, Client]]:
        """Remove clients that were silent for more than 120 s. Returns (consumer group, client) for each removed
        consumer and ("", client) for each removed producer."""
        gone: list[tuple[str, Client]] = []
        for name, group in list(self.consumers.items()):
            late = [client for client in group.clients.values() if now_ms - client.seen_ms > CHANNEL_EXPIRED_MS]
            gone += [(name, client) for client in late]
            for client in late:
                self._remove_consumer(name, client.channel.id)
        for producer_group, clients in list(self.producers.items()):
            late = [client for client in clients.values() if now_ms - client.seen_ms > CHANNEL_EXPIRED_MS]
            gone += [("", client) for client in late]
            for client in late:
                self._remove_producer(producer_group, client.channel.id)
        return gone

    def on_channel(self, channel_id: int) -> Client | None:
        """Return the client named by the channel's last heartbeat; None if no client is registered on the channel."""
        groups = (*self.producers.values(), *(group.clients for group in self.consumers.values()))
        return next((clients[channel_id] for clients in groups if channel_id in clients), None)

    def groups_of(self, channel_id: int) -> list[str]:
        """Return the consumer groups with a client on this channel."""
        return [name for name, group in self.consumers.items() if channel_id in group.clients]

    def channels_of(self, group: str) -> list[Connection]:
        found = self.consumers.get(group)
        return [] if found is None else [client.channel for client in found.clients.values()]

    def producer_channel(self, client_id: str) -> Connection | None:
        groups = self.producers.values()
        found = (client for clients in groups for client in clients.values() if client.client_id == client_id)
        return max((client.channel for client in found), key=lambda channel: channel.id, default=None)

    def consumer(self, group: str, client_id: str) -> Client | None:
        found = self.consumers.get(group)
        clients = () if found is None else found.clients.values()
        return next((client for client in clients if client.client_id == client_id), None)

    def client_id(self, group: str, channel_id: int) -> str | None:
        found = self.consumers.get(group)
        client = None if found is None else found.clients.get(channel_id)
        return None if client is None else client.client_id

    def _remove_consumer(self, name: str, channel_id: int) -> bool:
        group = self.consumers.get(name)
        if group is None or group.clients.pop(channel_id, None) is None:
            return False
        if not group.clients:
            del self.consumers[name]
        return True

    def _remove_producer(self, name: str, channel_id: int) -> None:
        clients = self.producers.get(name)
        if clients is not None and clients.pop(channel_id, None) is not None and not clients:
            del self.producers[name]


LEASE_MS = 60_000


@dataclass(slots=True)
class _Lease:
    client_id: str
    renewed_ms: int


class QueueLocks:
    """The locks of queues: group -> queue -> lock."""

    def __init__(self) -> None:
        self._leases: dict[str, dict[MessageQueue, _Lease]] = {}

    def lock(self, group: str, queues: Iterable[MessageQueue], client_id: str, *, now_ms: int) -> list[MessageQueue]:
        """Lock for the client each of these queues that is unlocked, that the client itself has locked, or whose lock
        has expired. Returns the queues that the client has locked now."""
        leases = self._leases.setdefault(group, {})
        held = []
        for queue in queues:
            lease = leases.get(queue)
            if lease is None or lease.client_id == client_id or now_ms - lease.renewed_ms > LEASE_MS:
                leases[queue] = _Lease(client_id, now_ms)
                held.append(queue)
        if not leases:
            del self._leases[group]
        return held

    def unlock(self, group: str, queues: Iterable[MessageQueue], client_id: str) -> None:
        """Release the client's own locks of the given queues."""
        leases = self._leases.get(group)
        if leases is None:
            return
        for queue in queues:
            lease = leases.get(queue)
            if lease is not None and lease.client_id == client_id:
                del leases[queue]
        if not leases:
            del self._leases[group]

    def expire(self, *, now_ms: int) -> None:
        """Delete expired locks, because the locks of clients that never return would fill memory."""
        for group in list(self._leases):
            leases = self._leases[group]
            for queue in [q for q, lease in leases.items() if now_ms - lease.renewed_ms > LEASE_MS]:
                del leases[queue]
            if not leases:
                del self._leases[group]

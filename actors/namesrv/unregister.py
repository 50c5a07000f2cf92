"""The route tables, and how brokers leave the tables: by unregistering, by a lost channel, or after too long a silence.

RocketMQ 4.9 removes a broker at once. RocketMQ 5.x puts an unregister request into a bounded queue, which one worker
empties in batches. The worker in server.py calls `run_unregistrations` for each batch.

                         4.9                                   5.x
    UNREGISTER_BROKER    unregister: by broker id              submit_unregister, then by address
    channel lost         on_channel_destroy: first live entry  the same, submitted; no entry, nothing
                         of the channel, else the remote
                         address as the broker's address
    scan                 live entry goes, then as above        submitted; the live entry stays until the batch

Upstream: `RouteInfoManager.unregisterBroker/unRegisterBroker/onChannelDestroy/scanNotActiveBroker`,
`BatchUnregistrationService`.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from logging import DEBUG, INFO, WARNING

from ...remoting.bodies.register_rows import NO_PIECES, Pieces
from ...remoting.bodies.route import QueueData
from ...remoting.codes import MASTER_ID, PERM_WRITE
from ...remoting.node.profile import Profile
from .tables import (
    BrokerGroup,
    Dropped,
    DropReason,
    LiveInfo,
    LiveKey,
    MinBrokerIdChanged,
    Registration,
    RouteOptions,
    Say,
    SayEach,
    Shown,
    Unregistration,
    one_by_one,
    silent,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """The result of a scan: channels to close, and the brokers that have left the tables (4.9 only; in 5.x expired
    brokers leave with the next batch)."""

    channel_ids: tuple[int, ...] = ()
    dropped: tuple[Dropped, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The result of one run of the 5.x worker that removes brokers."""

    dropped: tuple[Dropped, ...] = ()
    notifications: tuple[MinBrokerIdChanged, ...] = ()


class Tables:
    """The route tables with every rule that removes a broker. The tables note every topic whose route may have changed
    since the last call of `take_changed_topics`."""

    def __init__(
        self,
        profile: Profile,
        *,
        options: RouteOptions | None = None,
        say: Say = silent,
        say_each: SayEach | None = None,
    ) -> None:
        self.profile = profile
        self.options = RouteOptions() if options is None else options
        self._say = say
        self._say_each = one_by_one(say) if say_each is None else say_each
        self.topic_queue_table: dict[str, dict[str, QueueData]] = {}
        self.broker_addr_table: dict[str, BrokerGroup] = {}
        self.cluster_addr_table: dict[str, set[str]] = {}
        self.broker_live_table: dict[LiveKey, LiveInfo] = {}
        self.filter_server_table: dict[LiveKey, tuple[str, ...]] = {}
        self.topic_queue_mapping_info_table: dict[str, dict[str, Mapping[str, object]]] = {}
        self.mappings_size = 0
        """Bytes of mapping infos ever taken in; nothing removes them, as upstream."""
        self._changed_topics: set[str] = set()
        self._rows_version = 0
        self._unregister_queue: deque[Unregistration] = deque()

    def set_options(self, options: RouteOptions) -> None:
        """Use `options` from now on. Every topic then counts as changed, because a change of options may change any
        route."""
        if options != self.options:
            self.options = options
            self._changed_topics.update(self.topic_queue_table)

    def take_changed_topics(self) -> set[str]:
        """Return the topics whose route may have changed since the last call."""
        if not self._changed_topics:
            return set()
        changed, self._changed_topics = self._changed_topics, set()
        return changed

    def _live_key(self, cluster_name: str, broker_addr: str) -> LiveKey:
        return ("", broker_addr) if self.profile is Profile.V4_9 else (cluster_name, broker_addr)

    def live_key(self, registration: Registration) -> LiveKey:
        """Return the key of the broker's LiveInfo (last update, data version, channel) in the table of live brokers."""
        return self._live_key(registration.cluster_name, registration.broker_addr)

    def _live_text(self, key: LiveKey) -> str:
        if self.profile is Profile.V4_9:
            return key[1]
        return f"BrokerIdentityInfo [clusterName={key[0]}, brokerAddr={key[1]}]"

    def _touch_broker(self, broker_name: str) -> None:
        """Note that every topic with a row of `broker_name` may have a new route."""
        self._changed_topics.update(topic for topic, rows in self.topic_queue_table.items() if broker_name in rows)

    def standing(self, cluster_name: str, broker_name: str, broker_addr: str, broker_id: int) -> Pieces:
        """Return this master's last registration body, in pieces, if the table still has every topic as registered;
        else no piece. Topics in a piece that comes again unchanged need not be decoded and registered again."""
        live = self.broker_live_table.get(self._live_key(cluster_name, broker_addr))
        group = self.broker_addr_table.get(broker_name)
        if (
            broker_id != MASTER_ID
            or live is None
            or group is None
            or group.addrs.get(broker_id) != broker_addr
            or group.rows_version != live.rows_version
            or self.options.delete_topic_with_broker_registration
        ):
            return NO_PIECES
        return live.pieces

    def _row_changed(self, broker_name: str) -> None:
        group = self.broker_addr_table.get(broker_name)
        if group is not None:
            self._rows_version += 1
            group.rows_version = self._rows_version

    def _put_row(self, topic: str, row: QueueData) -> None:
        self.topic_queue_table.setdefault(topic, {})[row.broker_name] = row
        self._row_changed(row.broker_name)
        self._changed_topics.add(topic)

    def _remove_row(self, topic: str, broker_name: str) -> QueueData | None:
        rows = self.topic_queue_table[topic]
        removed = rows.pop(broker_name, None)
        if removed is not None:
            self._row_changed(broker_name)
            self._changed_topics.add(topic)
        if not rows:
            del self.topic_queue_table[topic]
            self._changed_topics.add(topic)
        return removed

    # -- 4.9: at once ------------------------------------------------------------------------------------------------

    def unregister(self, request: Unregistration) -> tuple[Dropped, ...]:
        """In 4.9, remove the broker's live entry, and whatever address is stored under its broker name and id. Returns
        the removed brokers."""
        key = self._live_key(request.cluster_name, request.broker_addr)
        live = self.broker_live_table.pop(key, None)
        self._say(INFO, "unregisterBroker, remove from brokerLiveTable %s, %s", _ok(live), request.broker_addr)
        self._drop_filter_servers(key, request.broker_name)
        group = self.broker_addr_table.get(request.broker_name)
        if group is None:
            return ()
        address = group.addrs.pop(request.broker_id, None)
        self._say(INFO, "unregisterBroker, remove addr from brokerAddrTable %s, %s", _ok(address), request.broker_addr)
        if address is not None:
            self._touch_broker(request.broker_name)
        if not group.addrs:
            self._remove_broker_name(request)
            self._remove_topics_of(request.broker_name)
        if address is None:
            return ()
        return (
            Dropped(
                broker_name=request.broker_name, broker_id=request.broker_id, address=address, reason=request.reason
            ),
        )

    # -- lost channels -----------------------------------------------------------------------------------------------

    def on_channel_destroy(self, channel_id: int, remote_address: str, reason: DropReason) -> tuple[Dropped, ...]:
        """Remove the first broker found on the closed channel, and no other. 4.9 removes and returns the broker at
        once; 5.x queues the removal."""
        found = next((key for key, live in self.broker_live_table.items() if live.channel_id == channel_id), None)
        if self.profile is Profile.V5_X:
            if found is not None:
                self._submit_for(found, reason)
            return ()
        if found is not None:
            self._say(INFO, "the broker's channel destroyed, %s, clean it's data structure at once", found[1])
        return self._destroy(remote_address if found is None else found[1], reason)

    def _destroy(self, address: str, reason: DropReason) -> tuple[Dropped, ...]:
        """4.9: remove `address` from the first group that holds it, then the group and rows that nothing holds any
        more."""
        key = ("", address)
        self.broker_live_table.pop(key, None)
        self.filter_server_table.pop(key, None)
        holder = self._holder(address)
        if holder is None:
            return ()
        group, broker_id = holder
        name = group.broker_name
        self._touch_broker(name)
        del group.addrs[broker_id]
        why = "because channel destroyed"
        self._say(INFO, "remove brokerAddr[%s, %s] from brokerAddrTable, %s", broker_id, address, why)
        if not group.addrs:
            del self.broker_addr_table[name]
            self._say(INFO, "remove brokerName[%s] from brokerAddrTable, %s", name, why)
            self._destroy_cluster_entry(name)
            for topic in list(self.topic_queue_table):
                row = self._remove_row(topic, name)
                self._say(INFO, "remove topic[%s %s], from topicQueueTable, %s", topic, Shown(row), why)
                if topic not in self.topic_queue_table:
                    self._say(INFO, "remove topic[%s] all queue, from topicQueueTable, %s", topic, why)
        return (Dropped(broker_name=name, broker_id=broker_id, address=address, reason=reason),)

    def _destroy_cluster_entry(self, name: str) -> None:
        for cluster, names in self.cluster_addr_table.items():
            if name not in names:
                continue
            names.discard(name)
            self._say(
                INFO,
                "remove brokerName[%s], clusterName[%s] from clusterAddrTable, because channel destroyed",
                name,
                cluster,
            )
            if not names:
                del self.cluster_addr_table[cluster]
                self._say(
                    INFO,
                    "remove the clusterName[%s] from clusterAddrTable, because channel destroyed and no broker in"
                    " this cluster",
                    cluster,
                )
            return

    # -- the scan ----------------------------------------------------------------------------------------------------

    def expire(self, *, now_ms: int) -> Expired:
        """Find every broker silent for longer than its timeout. 4.9 drops expired brokers at once; 5.x queues them for
        the next batch."""
        silent_keys = [
            key
            for key, live in self.broker_live_table.items()
            if live.last_update_ms + live.heartbeat_timeout_ms < now_ms
        ]
        if self.profile is Profile.V5_X:
            self._say(INFO, "start scanNotActiveBroker")
        channels: list[int] = []
        dropped: list[Dropped] = []
        for key in silent_keys:
            live = self.broker_live_table.get(key)
            if live is None:  # an earlier one of this scan took it along: they shared a channel
                continue
            channels.append(live.channel_id)
            self._say(WARNING, "The broker channel expired, %s %sms", self._live_text(key), live.heartbeat_timeout_ms)
            if self.profile is Profile.V5_X:
                self._submit_for(key, DropReason.EXPIRED)
            else:
                del self.broker_live_table[key]
                dropped += self.on_channel_destroy(live.channel_id, key[1], DropReason.EXPIRED)
        return Expired(channel_ids=tuple(channels), dropped=tuple(dropped))

    # -- 5.x: queued -------------------------------------------------------------------------------------------------

    @property
    def unregistrations_waiting(self) -> int:
        return len(self._unregister_queue)

    def submit_unregister(self, request: Unregistration) -> bool:
        """In 5.x, queue `request` for the next batch of removals. Returns False if the queue is full."""
        if len(self._unregister_queue) >= self.options.unregister_queue_capacity:
            return False
        self._unregister_queue.append(request)
        return True

    def _submit_for(self, key: LiveKey, reason: DropReason) -> None:
        """Queue the removal of a live entry, unless no group holds its address (upstream's ghost entry stays)."""
        cluster, address = key
        holder = self._holder(address, cluster)
        if holder is None:
            return
        group, broker_id = holder
        request = Unregistration(
            cluster_name=cluster, broker_name=group.broker_name, broker_addr=address, broker_id=broker_id, reason=reason
        )
        self._say(
            INFO,
            "the broker's channel destroyed, submit the unregister request at once, broker info: %s, submit result: %s",
            request,
            "true" if self.submit_unregister(request) else "false",
        )

    def run_unregistrations(self) -> Batch:
        """In 5.x, remove all queued brokers as one batch. Returns the removed brokers, and the notifications to
        send."""
        if not self._unregister_queue:
            return Batch()
        requests, self._unregister_queue = list(self._unregister_queue), deque()
        dropped: list[Dropped] = []
        removed: set[str] = set()
        reduced: set[str] = set()
        offline: dict[str, str] = {}
        for request in requests:
            dropped += self._unregister_by_address(request, removed, reduced, offline)
        self._clean_topics(removed, reduced)
        notifications = []
        for name, address in offline.items():
            group = self.broker_addr_table.get(name)
            if self.options.notify_min_broker_id_changed and group is not None and group.enable_acting_master:
                notifications.append(
                    MinBrokerIdChanged(
                        broker_name=name,
                        min_broker_id=group.min_id,
                        min_broker_addr=group.addrs[group.min_id],
                        offline_broker_addr=address,
                        ha_broker_addr=None,
                        notify=tuple(group.addrs.values()),
                    )
                )
        return Batch(dropped=tuple(dropped), notifications=tuple(notifications))

    def _unregister_by_address(
        self, request: Unregistration, removed: set[str], reduced: set[str], offline: dict[str, str]
    ) -> list[Dropped]:
        """Take the address out of its group whatever its id; note the group as removed or reduced."""
        name = request.broker_name
        key = self._live_key(request.cluster_name, request.broker_addr)
        live = self.broker_live_table.pop(key, None)
        text = self._live_text(key)
        self._say(INFO, "unregisterBroker, remove from brokerLiveTable %s, %s", _ok(live), text)
        self._drop_filter_servers(key, name)
        group = self.broker_addr_table.get(name)
        if group is None:
            reduced.add(name)
            return []
        min_leaves = bool(group.addrs) and request.broker_id == group.min_id
        ids = [id_ for id_, held in group.addrs.items() if held == request.broker_addr]
        for id_ in ids:
            del group.addrs[id_]
        self._say(INFO, "unregisterBroker, remove addr from brokerAddrTable %s, %s", _ok(ids or None), text)
        if ids:
            self._touch_broker(name)
        if not group.addrs:
            self._remove_broker_name(request)
            removed.add(name)
        else:
            reduced.add(name)
            if min_leaves:
                offline[name] = request.broker_addr
        return [
            Dropped(broker_name=name, broker_id=id_, address=request.broker_addr, reason=request.reason) for id_ in ids
        ]

    def _clean_topics(self, removed: set[str], reduced: set[str]) -> None:
        """Drop the rows of brokers that are gone; a group left without a master loses its write bit (acting master)."""
        read_only = set()
        for name in reduced:
            group = self.broker_addr_table.get(name)
            if group is not None and group.enable_acting_master and group.min_id > 0:
                read_only.add(name)
        if not removed and not read_only:
            return
        for name in removed:
            self._remove_topics_of(name)
        for topic, rows in self.topic_queue_table.items():
            for name in read_only & rows.keys():
                row = rows[name]
                if row.perm & PERM_WRITE:
                    self._put_row(topic, replace(row, perm=row.perm & ~PERM_WRITE))

    # -- shared ------------------------------------------------------------------------------------------------------

    def _holder(self, address: str, cluster: str | None = None) -> tuple[BrokerGroup, int] | None:
        for group in self.broker_addr_table.values():
            if cluster is None or group.cluster == cluster:
                for broker_id, held in group.addrs.items():
                    if held == address:
                        return group, broker_id
        return None

    def _drop_filter_servers(self, key: LiveKey, broker_name: str) -> None:
        if self.filter_server_table.pop(key, None) is not None:
            self._touch_broker(broker_name)

    def _remove_broker_name(self, request: Unregistration) -> None:
        """Remove a group without addresses from broker_addr_table and from its cluster's set."""
        name, cluster = request.broker_name, request.cluster_name
        self._touch_broker(name)
        del self.broker_addr_table[name]
        self._say(INFO, "unregisterBroker, remove name from brokerAddrTable OK, %s", name)
        names = self.cluster_addr_table.get(cluster)
        if names is None:
            return
        was_there = name in names
        names.discard(name)
        self._say(INFO, "unregisterBroker, remove name from clusterAddrTable %s, %s", _ok(was_there or None), name)
        if not names:
            del self.cluster_addr_table[cluster]
            self._say(INFO, "unregisterBroker, remove cluster from clusterAddrTable %s", cluster)

    def _remove_topics_of(self, broker_name: str) -> None:
        level = INFO if self.profile is Profile.V4_9 else DEBUG
        for topic in [topic for topic, rows in self.topic_queue_table.items() if broker_name in rows]:
            row = self._remove_row(topic, broker_name)
            self._say(level, "removeTopicByBrokerName, remove one broker's topic %s %s", topic, Shown(row))
            if topic not in self.topic_queue_table:
                self._say(level, "removeTopicByBrokerName, remove the topic all queue %s", topic)


def _ok(found: object) -> str:
    return "Failed" if found is None else "OK"

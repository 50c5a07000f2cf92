"""Makes the history's rows of a broker that is observed from outside: registrations, clients, commits.

    client fronts      103 and its answer    register; topic, if the broker's row of it has changed
                       217 (5.x: one topic)  the same; without dataVersion: the row has one between two known ones
                       no answer in time     register, info; failed by the log: register, fail
    server front       34, 35, closed        client_heartbeat, client_gone
                       15, 11, 361           commit, if the offset differs from the last
                       222, and 220 pushed   offset_reset
    broker.log         boot success          boot
                       SCAN: remove expired  client_gone, expired: the group's client that was silent for longest

Frames show neither what the store recovered, nor the broker's own timers (`scheduled_task`), nor the order in which its
threads executed concurrent requests. Commits are recorded in the order in which their requests arrived.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from ...actors.broker.client_manager import CHANNEL_EXPIRED_MS, Client, ClientManager
from ...remoting import fastjson
from ...remoting.bodies.admin import ResetOffsetBody
from ...remoting.bodies.client import HeartbeatData, said_of
from ...remoting.bodies.register import RegisterBrokerBody
from ...remoting.bodies.route import TopicRouteData
from ...remoting.codes import MASTER_ID, RequestCode, ResponseCode
from ...remoting.errors import RocketMQError
from ...remoting.headers.broker import (
    PullMessageRequestHeader,
    ResetOffsetRequestHeader,
    UnregisterClientRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from ...remoting.node.network import Address
from ..fronts.observed import Answered, Asked, By, Closed, Observation, Opened, Pushed
from ..fronts.rows import PULLS
from .server_rows import Put, ServerAbout, ServerRows

_ALWAYS = "SELF_TEST_TOPIC"
"""Topics of every broker, in every full registration."""
_COMMIT_OFFSET = 1
"""The bit of a pull's sysFlag that commits."""
_SERVED = frozenset(
    {int(ResponseCode.SUCCESS), *range(ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_OFFSET_MOVED + 1)}
)
REFUSED_MS = 100.0
"""Machine time after which an unanswered pull counts as held by the broker, not refused."""
_REGISTERS = frozenset({int(RequestCode.REGISTER_BROKER), int(RequestCode.REGISTER_TOPIC_IN_NAMESRV)})
_EARLY_MS = 5_000.0
"""A heartbeat may reach the broker this much before its answer reaches the front."""
_BETWEEN_VERSIONS = 1 / 1024
_SAME_MS = 1_000.0
"""Machine time between a log line and the same event on the wire."""


@dataclass(slots=True)
class _Channel:
    id: int
    remote_address: Address


@dataclass(slots=True)
class _Connection:
    channel: _Channel
    waiting: dict[int, Asked] = field(default_factory=dict)


class _Sent(NamedTuple):
    at_ms: float
    name_server: str
    topics: int
    version: float
    id_: int


class _Pull(NamedTuple):
    at_ms: float
    place: tuple[str, str, int]
    offset: int


class BrokerRows(ServerRows):
    def __init__(self, put: Put, about: ServerAbout) -> None:
        super().__init__(put, about)
        self._connections: dict[int, _Connection] = {}
        self._clients = ClientManager()
        self._offsets: dict[tuple[str, str, int], int] = {}
        self._topics: dict[str, tuple[int, int, int]] = {}
        self._version = 0.0
        self._pulls: dict[tuple[int, int], _Pull] = {}
        self._sent: dict[tuple[int, int], _Sent] = {}
        self._id = about.broker_id
        """With which it registered last: where brokers elect their master it changes."""
        self._registered_ms: dict[str, float] = {}
        """NameServer → when the last row said how a registration there ended."""
        self._told_ms: dict[str, float] = {}
        """Group → when its consumers were last told to go elsewhere (220)."""

    def recovered(self, consumer_offsets: str | bytes | None) -> None:
        """Take the offsets with which the broker starts, from its consumerOffset.json; None: there is no such file."""
        self._offsets |= _offsets_of(consumer_offsets or "{}")

    def saw(self, one: Observation) -> None:
        front = getattr(one, "front", None)
        if front == self._about.name:
            self._at_server(one)
        elif front in self._about.name_servers:
            self._at_name_server(one, str(front))
        self._decide(one.at_ms)

    def _decide(self, now_ms: float) -> None:
        for held in [key for key, pull in self._pulls.items() if now_ms - pull.at_ms >= REFUSED_MS * self._about.scale]:
            self._held(held)
        for key, sent in [*self._sent.items()]:
            due_ms = sent.at_ms + self._about.register_timeout_ms
            if now_ms >= due_ms:
                del self._sent[key]
                self._register(due_ms, "info", sent)

    # --- what it registers --------------------------------------------------------------------------------------------

    def _at_name_server(self, one: Observation, name_server: str) -> None:
        match one:
            case Asked() if one.code in _REGISTERS:
                self._registers(one, name_server)
            case Answered():
                sent = self._sent.pop((one.connection, one.opaque), None)
                if sent is not None:
                    is_ok = one.code == ResponseCode.SUCCESS
                    self._register(one.at_ms, "ok" if is_ok else "fail", sent, code=one.code)
            case Closed():
                for key in [key for key in self._sent if key[0] == one.connection]:
                    self._register(one.at_ms, "info", self._sent.pop(key))
            case _:
                pass

    def _registers(self, one: Asked, name_server: str) -> None:
        try:
            topics, version = self._said(one)
        except RocketMQError:
            return
        is_whole, id_ = _ALWAYS in topics, one.fields.get("brokerId", "")
        if is_whole and id_.lstrip("-").isdigit() and int(id_) != self._id:
            self._id = int(id_)
            self._topics.clear()  # a master brings what it has, whoever it was before
        for topic, row in topics.items():
            if self._topics.get(topic) != row:
                self._topic(one.at_ms, topic, row, version)
        for topic in [topic for topic in self._topics if is_whole and topic not in topics]:
            self._topic(one.at_ms, topic, None, version)
        self._version = max(self._version, version)
        sent = _Sent(one.at_ms, name_server, len(topics), version, self._id)
        if one.oneway:
            self._register(one.at_ms, "info", sent)
        else:
            self._sent[one.connection, one.opaque] = sent

    def _said(self, one: Asked) -> tuple[dict[str, tuple[int, int, int]], float]:
        if one.code == RequestCode.REGISTER_BROKER:
            body = RegisterBrokerBody.decode(one.body, version=one.version)
            rows = {t.topic_name: (t.read_queue_nums, t.write_queue_nums, t.perm) for t in body.topics}
            return rows, float(body.data_version.counter)
        route, topic = TopicRouteData.decode(one.body), one.fields.get("topic", "")
        mine = next((row for row in route.queue_datas if row.broker_name == self._about.broker_name), None)
        rows = {} if mine is None else {topic: (mine.read_queue_nums, mine.write_queue_nums, mine.perm)}
        is_new = any(self._topics.get(topic) != row for row in rows.values())
        return rows, self._version + (_BETWEEN_VERSIONS if is_new else 0.0)

    def _topic(self, at_ms: float, topic: str, row: tuple[int, int, int] | None, version: float) -> None:
        value: dict[str, object] | None = None
        if row is None:
            self._topics.pop(topic, None)
        else:
            self._topics[topic] = row
            value = {
                **dict(zip(("read", "write", "perm"), row, strict=True)),
                "version": _plain(version),
                "learnt": "wire",
            }
        if self._id == MASTER_ID:  # of a slave NameServers take no topics
            self._put(at_ms, "topic", topic=topic, value=value)

    def _register(self, at_ms: float, type_: str, sent: _Sent, code: int | None = None, learnt: str = "wire") -> None:
        self._registered_ms[sent.name_server] = at_ms
        self._put(
            at_ms,
            "register",
            type=type_,
            name_server=self._about.name_servers[sent.name_server],
            code=code,
            duration_ms=at_ms - sent.at_ms,
            value={
                "topics": sent.topics,
                "version": _plain(sent.version),
                **({"id": sent.id_} if self._about.elects else {}),
                "learnt": learnt,
            },
        )

    # --- its clients --------------------------------------------------------------------------------------------------

    def _at_server(self, one: Observation) -> None:
        match one:
            case Opened():
                self._connections[one.connection] = _Connection(_Channel(one.connection, one.peer))
            case Asked():
                self._asked(one)
            case Answered() if one.by is By.SERVER:
                connection = self._connections.get(one.connection)
                asked = connection.waiting.pop(one.opaque, None) if connection else None
                if connection is not None and asked is not None:
                    self._answered(one, asked, connection.channel)
            case Pushed() if one.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET:
                self._told_ms[one.fields.get("group", "")] = one.at_ms
            case Closed():
                for key in [key for key in self._pulls if key[0] == one.connection]:
                    self._held(key)
                if self._connections.pop(one.connection, None) is not None:
                    self._lost(one)
            case _:
                pass

    def _asked(self, one: Asked) -> None:
        connection = self._connections.get(one.connection)
        if connection is None:
            return
        if not one.oneway:
            connection.waiting[one.opaque] = one
        try:
            if one.code in PULLS:
                pull = PullMessageRequestHeader.from_ext_fields(one.fields)
                if pull.sys_flag & _COMMIT_OFFSET and pull.commit_offset >= 0 and self._id == MASTER_ID:
                    place = pull.consumer_group, pull.topic, pull.queue_id
                    self._pulls[one.connection, one.opaque] = _Pull(one.at_ms, place, pull.commit_offset)
            elif one.code == RequestCode.UPDATE_CONSUMER_OFFSET and one.oneway:
                self._update(one, one.at_ms)
        except RocketMQError:
            pass  # it is refused

    def _answered(self, one: Answered, asked: Asked, channel: _Channel) -> None:
        pull = self._pulls.pop((one.connection, one.opaque), None)
        if pull is not None and one.code in _SERVED:
            self._commit(pull.at_ms, "pull", one.connection, pull.place, pull.offset)
        try:
            if one.code != ResponseCode.SUCCESS:
                return
            if asked.code == RequestCode.HEART_BEAT:
                self._heartbeat(one.at_ms, HeartbeatData.decode(asked.body), asked, channel)
            elif asked.code == RequestCode.UNREGISTER_CLIENT:
                self._unregister(one.at_ms, UnregisterClientRequestHeader.from_ext_fields(asked.fields), channel)
            elif asked.code == RequestCode.UPDATE_CONSUMER_OFFSET:
                self._update(asked, one.at_ms)
            elif asked.code == RequestCode.INVOKE_BROKER_TO_RESET_OFFSET:
                self._reset(one, asked)
        except RocketMQError:
            pass  # nobody can read it, and the broker could not either

    def _heartbeat(self, at_ms: float, said: HeartbeatData, asked: Asked, channel: _Channel) -> None:
        # of a channel the table reads no more than _Channel has
        client = Client(said.client_id, cast(Any, channel), None, asked.version, int(at_ms))
        self._of_client(
            at_ms, "client_heartbeat", client, said_of(said, asked.version), duration_ms=at_ms - asked.at_ms
        )
        for data in said.consumer_data_set:
            self._clients.register_consumer(data, client)
        self._clients.register_producers(said, client)

    def _unregister(self, at_ms: float, header: UnregisterClientRequestHeader, channel: _Channel) -> None:
        client = self._clients.on_channel(channel.id)
        groups = self._clients.unregister(
            channel.id, producer_group=header.producer_group, consumer_group=header.consumer_group
        )
        if client is not None and self._clients.on_channel(channel.id) is None:
            self._client_gone(at_ms, "unregistered", client, groups)

    def _lost(self, one: Closed) -> None:
        client = self._clients.on_channel(one.connection)
        groups = self._clients.channel_lost(one.connection)
        if client is not None:
            self._client_gone(one.at_ms, "closed", client, groups)

    def _expired(self, at_ms: float, group: str, *, consumes: bool) -> None:
        """Return the client that a log line about an expired channel means: the group's client that was silent for
        longest.

        The line has only the group and the broker's end of the channel. If no client was silent for long enough, the
        channel ended before the broker handled its heartbeat; Apache's brokers keep such a channel until it expires.
        """
        if consumes:
            found = self._clients.consumers.get(group)
            clients = dict(found.clients) if found is not None else {}
        else:
            clients = dict(self._clients.producers.get(group) or {})
        client = min(clients.values(), key=lambda one: one.seen_ms, default=None)
        if client is None or at_ms - client.seen_ms < CHANNEL_EXPIRED_MS - _EARLY_MS:
            return
        of = {"consumer_group": group, "producer_group": None} if consumes else {"producer_group": group}
        self._clients.unregister(client.channel.id, **{"consumer_group": None, **of})
        at_ms = self._inexact.between(self._inexact.written_ms(at_ms), at_ms)
        self._client_gone(at_ms, "expired", client, [group] if consumes else [], learnt="log")

    def _client_gone(self, at_ms: float, how: str, client: Client, groups: list[str], learnt: str = "wire") -> None:
        more = {"groups": groups}
        silent_ms = at_ms - client.seen_ms
        self._of_client(at_ms, "client_gone", client, more, f=how, duration_ms=silent_ms, learnt=learnt)

    def _of_client(
        self, at_ms: float, event: str, client: Client, more: Mapping[str, object], learnt: str = "wire", **fields: Any
    ) -> None:
        value = {"client": client.client_id, **more, "learnt": learnt}
        channel = {"op_id": str(client.channel.id), "address": str(client.channel.remote_address)}
        self._put(at_ms, event, **channel, value=value, **fields)

    # --- what they commit ---------------------------------------------------------------------------------------------

    def _update(self, asked: Asked, at_ms: float) -> None:
        header = UpdateConsumerOffsetRequestHeader.from_ext_fields(asked.fields)
        place = header.consumer_group, header.topic, header.queue_id
        self._commit(at_ms, "update", asked.connection, place, header.commit_offset)

    def _commit(self, at_ms: float, f: str, connection: int, place: tuple[str, str, int], offset: int) -> None:
        group, topic, queue_id = place
        for key in [key for key, pull in self._pulls.items() if pull.place == place and pull.at_ms <= at_ms]:
            self._held(key)
        before = self._offsets.get(place, -1)
        self._offsets[place] = offset
        if before == offset:
            return
        client = self._clients.client_id(group, connection)
        value = {"group": group, "client": client, "before": before, "learnt": "wire"}
        where = {"topic": topic, "broker_name": self._about.broker_name, "queue_id": queue_id}
        self._put(at_ms, "commit", f=f, **where, offset=offset, value=value)

    def _held(self, key: tuple[int, int]) -> None:
        """Note that the broker makes the pull wait for messages; a waiting pull commits its offset."""
        pull = self._pulls.pop(key)
        self._commit(pull.at_ms, "pull", key[0], pull.place, pull.offset)

    def _reset(self, one: Answered, asked: Asked) -> None:
        header = ResetOffsetRequestHeader.from_ext_fields(asked.fields)
        offsets = {queue.queue_id: at for queue, at in ResetOffsetBody.decode(one.body).offset_table.items()}
        is_told = self._told_ms.get(header.group, -math.inf) >= asked.at_ms
        value = {"group": header.group, "offsets": {str(id_): at for id_, at in offsets.items()}, "learnt": "wire"}
        where = {"topic": header.topic, "broker_name": self._about.broker_name}
        self._put(one.at_ms, "offset_reset", f="by_consumers" if is_told else "here", **where, value=value)
        for queue_id, at in () if is_told else offsets.items():
            self._commit(one.at_ms, "reset", asked.connection, (header.group, header.topic, queue_id), at)

    # --- the log ------------------------------------------------------------------------------------------------------

    def _told(self, at_ms: float, event: str, fields: Mapping[str, str]) -> None:
        if event == "broker_boot":
            self._put(at_ms, "boot", value={"learnt": "log"})
        elif event in ("consumer_expired", "producer_expired"):
            self._expired(at_ms, fields["group"], consumes=event == "consumer_expired")
        elif event == "register_failed":
            self._not_registered(at_ms, fields["name_server"])

    def _not_registered(self, at_ms: float, said: str) -> None:
        """Record a registration that failed by the log alone, because nothing listened at the NameServer."""
        name = self._about.fronts.get(said) or next((n for n, at in self._about.name_servers.items() if at == said), "")
        is_sent = any(sent.name_server == name for sent in self._sent.values())
        if name and not is_sent and at_ms - self._registered_ms.get(name, -math.inf) > _SAME_MS * self._about.scale:
            sent = _Sent(at_ms, name, len(self._topics), self._version, self._id)
            self._register(at_ms, "fail", sent, learnt="log")


def _plain(version: float) -> float:
    return int(version) if version == int(version) else version


def _offsets_of(text: str | bytes) -> dict[tuple[str, str, int], int]:
    """Return the offset by (group, topic, queue) in a consumerOffset.json; empty if it cannot be read."""
    found: dict[tuple[str, str, int], int] = {}
    try:
        read: Any = fastjson.loads(text.encode() if isinstance(text, str) else text)
        for key, queues in (read.get("offsetTable") or {}).items():
            topic, _, group = str(key).partition("@")
            found |= {(group, topic, int(queue_id)): int(at) for queue_id, at in queues.items()}
    except (RocketMQError, ValueError, AttributeError, TypeError):
        return {}
    return found

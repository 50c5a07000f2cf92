"""Turns observations of one outside client into rows of the history, so that checks can judge the client. Does no I/O.

    Observation ─► ClientRows.saw ─┬─► NameServerRows   name_server_list, name_server_chosen, name_server_call,
                                   │   (look_ups.py)    route_answer, channel
                                   └─► here             send, send_attempt, pull, scheduled_task (heartbeats), channel

What cannot be seen from outside is inferred (docs/clients-under-test.md).

    a send     all tries have one UNIQ_KEY; it failed if no other try follows a failed one within SEND_ENDS_MS
    a pull     got no answer if its connection closed first
    the rest   look_ups.py

A row that needs a later observation (that no further try followed) has the time `at_ms` of the event itself. Message
keys, bodies and offsets are left out, because the messages are not part of the run's workload.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...remoting.codes import RequestCode, ResponseCode
from ...remoting.errors import RocketMQError
from ...remoting.headers.broker import SendMessageRequestHeader
from ...remoting.message_properties import parse_properties
from ..topology import broker_name
from .behaviour import Dials
from .look_ups import LookUps, Rules
from .observed import Answered, Asked, Behaved, Closed, Dialled, GaveUp, Observation, Opened

SENDS = frozenset({10, 310, 320})
PULLS = frozenset({int(RequestCode.PULL_MESSAGE), int(RequestCode.LITE_PULL_MESSAGE)})
SEND_ENDS_MS = 4_000.0
"""Longer than any client waits before it tries another broker."""
ROUND_MS = 5_000.0
"""Heartbeats to several brokers within this time are one round."""
STORED = frozenset((0, 10, 11, 12))
"""Answers to a send that was stored: SUCCESS; flush to disk or slave timed out; no slave."""


class TimedRow(NamedTuple):
    at_ms: float
    event: str
    fields: dict[str, Any]


class _Begun(NamedTuple):
    """A pull, or an attempt to send, that has no answer yet."""

    began_ms: float
    fields: dict[str, Any]


@dataclass(slots=True)
class _Send:
    topic: str
    began_ms: float
    tries: int = 0
    unsure: int = 0
    failed_ms: float | None = None
    """When its last try failed. None while one is under way."""
    code: int | None = None
    where: dict[str, Any] = field(default_factory=dict)


class ClientRows:
    """Makes the rows of one client. `name_servers` and `brokers` map each front's name to the server's address in the
    history. `put` gets the rows, which are not in order of time. `seen`: whether connects are observed (dials.py).
    `told`: whether the client is a node of the run that reports its own sends.
    """

    def __init__(
        self,
        put: Callable[[TimedRow], None],
        rules: Rules,
        name_servers: Mapping[str, str],
        brokers: Mapping[str, str],
        *,
        seen: bool = True,
        told: bool = False,
    ) -> None:
        self._sink, self._told = put, told
        self._brokers = dict(brokers)
        self._look_ups = LookUps(self._put, rules, name_servers, seen=seen)
        self._open: dict[int, str] = {}
        self._dials = Counter[str]()
        self._refusing: set[str] = set()
        self._asked_for: dict[int, set[int]] = {}
        self._attempts: dict[tuple[int, int], _Begun] = {}
        self._sends: dict[str, _Send] = {}
        self._pulls: dict[tuple[int, int], _Begun] = {}
        self._made = 0
        self._beat_ms = float("-inf")
        self.is_consumer = False
        """Whether the client has pulled, or has sent a heartbeat with a consumer group."""
        self.is_producer = False

    def saw(self, one: Observation) -> None:
        """Take an observation of this client, or a front's change of behaviour; call in order of time."""
        self.passed(one.at_ms)
        front = getattr(one, "front", None)
        if self._told:
            self._asks_and_answers(one)
        if isinstance(one, Behaved) or front in self._look_ups.name_servers:
            self._look_ups.saw(one)
        if front in self._brokers:
            self._of_broker(one, str(front))

    def passed(self, now_ms: float) -> None:
        self._look_ups.passed(now_ms)
        for op_id, send in [*self._sends.items()]:
            if send.failed_ms is not None and now_ms - send.failed_ms >= SEND_ENDS_MS:
                self._end_of(op_id, send, send.failed_ms, "info" if send.unsure else "fail")

    def end(self, now_ms: float) -> None:
        """End the observations. Requests without an answer by now are recorded as unanswered."""
        self.passed(now_ms)
        for key in [*self._attempts]:
            self._no_answer(key, now_ms)
        for op_id, send in [*self._sends.items()]:
            self._end_of(op_id, send, send.failed_ms or now_ms, "info" if send.unsure else "fail")
        self._look_ups.end(now_ms)

    def _put(self, at_ms: float, event: str, **fields: Any) -> None:
        self._sink(TimedRow(at_ms, event, fields))

    # --- brokers ------------------------------------------------------------------------------------------------------

    def _of_broker(self, one: Observation, broker: str) -> None:
        address = self._brokers[broker]
        match one:
            case Behaved():
                refuses = one.behaviour.dials is Dials.REFUSED
                (self._refusing.add if refuses else self._refusing.discard)(broker)
            case Opened():
                del self._dials[broker]
                self._open[one.connection] = broker
                self._put(one.at_ms, "channel", f="open", address=address, value={"reason": ""})
            case Closed():
                if self._open.pop(one.connection, None) is not None:
                    self._put(
                        one.at_ms, "channel", f="close", address=address, value={"reason": f"{one.how} by {one.by}"}
                    )
                for key in [key for key in (*self._attempts, *self._pulls) if key[0] == one.connection]:
                    self._no_answer(key, one.at_ms)
            case Dialled():
                self._dials[broker] += 1
                if broker in self._refusing:
                    self._in_vain(broker, one.at_ms)
            case GaveUp():
                self._in_vain(broker, one.at_ms)
            case Asked():
                self._asked(one, broker, address)
            case Answered():
                self._answered(one)
            case _:
                pass

    def _in_vain(self, broker: str, at_ms: float) -> None:
        if self._dials[broker]:
            self._dials[broker] -= 1
            value = {"reason": "nobody let it in"}
            self._put(at_ms, "channel", f="connect_failed", address=self._brokers[broker], value=value)

    def _asks_and_answers(self, one: Observation) -> None:
        """Record an answer that no request of its connection waits for. Connections that were not seen to open, or have
        closed, are left out, because their requests may be unknown."""
        match one:
            case Opened():
                self._asked_for[one.connection] = set()
            case Asked() if not one.oneway and one.connection in self._asked_for:
                self._asked_for[one.connection].add(one.opaque)
            case Answered() if (asked_for := self._asked_for.get(one.connection)) is not None:
                if one.opaque not in asked_for:
                    address = self._brokers.get(one.front) or self._look_ups.name_servers.get(one.front)
                    value = {"reason": f"code {one.code} to opaque {one.opaque}"}
                    self._put(one.at_ms, "unasked_answer", address=address, value=value)
                asked_for.discard(one.opaque)
            case Closed():
                self._asked_for.pop(one.connection, None)
            case _:
                pass

    def _asked(self, one: Asked, broker: str, address: str) -> None:
        key = one.connection, one.opaque
        if one.code in SENDS:
            self.is_producer = True
            if not self._told:
                self._sent(one, broker, address)
        elif one.code in PULLS:
            self.is_consumer = True
            fields = {
                "broker_name": broker_name(broker),
                "address": address,
                "topic": one.fields.get("topic"),
                "queue_id": number_of(one.fields.get("queueId")),
                "offset": number_of(one.fields.get("queueOffset")),
            }
            self._pulls[key] = _Begun(one.at_ms, fields)
            self._put(one.at_ms, "pull", type="invoke", **fields)
        elif one.code == RequestCode.HEART_BEAT:
            self.is_consumer = self.is_consumer or consumes(one.body)
            if one.at_ms - self._beat_ms > ROUND_MS:
                self._put(one.at_ms, "scheduled_task", f="sendHeartbeatToAllBroker", duration_ms=0.0)
                self._beat_ms = one.at_ms

    def _sent(self, one: Asked, broker: str, address: str) -> None:
        try:
            header = SendMessageRequestHeader.for_code(one.code, one.fields)
            unique = parse_properties(header.properties).get("UNIQ_KEY")
            topic, queue_id = header.topic, header.queue_id
        except RocketMQError:
            unique, topic, queue_id = None, one.fields.get("b") or one.fields.get("topic") or "", -1
        self._made += 1
        op_id = unique or f"{one.connection}-{one.opaque}-{self._made}"
        send = self._sends.get(op_id)
        if send is None:
            send = self._sends[op_id] = _Send(topic, one.at_ms)
            self._put(one.at_ms, "send", type="invoke", op_id=op_id, topic=topic)
        number, send.tries, send.failed_ms = send.tries, send.tries + 1, None
        where = {"broker_name": broker_name(broker), "queue_id": queue_id if queue_id >= 0 else None}
        attempt = _Begun(one.at_ms, {"op_id": op_id, "attempt": number, "address": address, **where})
        self._put(one.at_ms, "send_attempt", type="invoke", **attempt.fields)
        if one.oneway:
            send.unsure += 1
            self._ended(attempt, one.at_ms, "info", None)
            self._end_of(op_id, send, one.at_ms, "info")
        else:
            self._attempts[one.connection, one.opaque] = attempt

    def _answered(self, one: Answered) -> None:
        key = one.connection, one.opaque
        if (pull := self._pulls.pop(key, None)) is not None:
            fields = {**pull.fields, "code": one.code, "duration_ms": one.at_ms - pull.began_ms}
            self._put(one.at_ms, "pull", type="ok", **fields)
        elif (attempt := self._attempts.pop(key, None)) is not None:
            type_ = "ok" if one.code == ResponseCode.SUCCESS else "info"
            send = self._ended(attempt, one.at_ms, type_, one.code)
            if send is None:
                return
            send.code = one.code
            if one.code in STORED:
                send.unsure += 1
                self._end_of(attempt.fields["op_id"], send, one.at_ms, type_)
            else:
                send.failed_ms = one.at_ms

    def _no_answer(self, key: tuple[int, int], at_ms: float) -> None:
        if (pull := self._pulls.pop(key, None)) is not None:
            self._put(at_ms, "pull", type="info", **pull.fields, duration_ms=at_ms - pull.began_ms)
        elif (attempt := self._attempts.pop(key, None)) is not None:
            send = self._ended(attempt, at_ms, "info", None)
            if send is not None:
                send.unsure += 1
                send.code, send.failed_ms = None, at_ms

    def _ended(self, attempt: _Begun, at_ms: float, type_: str, code: int | None) -> _Send | None:
        """Return the attempt's send; None if the send has ended before."""
        fields, send = attempt.fields, self._sends.get(attempt.fields["op_id"])
        if send is not None:
            send.where = {"broker_name": fields["broker_name"], "queue_id": fields["queue_id"]}
        self._put(at_ms, "send_attempt", type=type_, **fields, code=code, duration_ms=at_ms - attempt.began_ms)
        return send

    def _end_of(self, op_id: str, send: _Send, at_ms: float, type_: str) -> None:
        self._sends.pop(op_id, None)
        fields = {"attempt": send.unsure, "duration_ms": at_ms - send.began_ms, "code": send.code}
        self._put(at_ms, "send", type=type_, op_id=op_id, topic=send.topic, **fields, **send.where)


def consumes(heartbeat: bytes) -> bool:
    return b'"consumerDataSet":[{' in heartbeat.replace(b" ", b"")


def number_of(text: str | None) -> int | None:
    """Return the number in a request's field; None if the field is no number."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return None

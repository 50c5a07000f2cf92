"""Turns lines that Workload.java prints about Apache's client into rows of the history. Does no I/O.

    send, sent          the application's call            ─► send
    try, tried          the client's hook, at each broker ─► send_attempt
    taken, dropped      its table of queues               ─► queue_taken, queue_dropped, assigned
    received            its listener                      ─► receive
    kept                its own file of offsets           ─► commit (broadcasting)
    route               its table of routes               ─► route_changed
    lag                 a thread that sleeps              ─► timer_lag

The client's other rows come from the observed frames (chaos/fronts/rows.py). Each printed line has the JVM's own time.
"""

import base64
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...remoting.codes import ResponseCode
from ...remoting.errors import ResponseError
from ...remoting.message_properties import message_digest
from ..fronts.answers import readdressed
from ..fronts.look_ups import route_value
from ..fronts.rows import TimedRow

_NEVER_SENT = frozenset({"RemotingConnectException", "RemotingTooMuchRequestException"})
_CODES = {
    "SEND_OK": ResponseCode.SUCCESS,
    "FLUSH_DISK_TIMEOUT": ResponseCode.FLUSH_DISK_TIMEOUT,
    "FLUSH_SLAVE_TIMEOUT": ResponseCode.FLUSH_SLAVE_TIMEOUT,
    "SLAVE_NOT_AVAILABLE": ResponseCode.SLAVE_NOT_AVAILABLE,
}


@dataclass(slots=True)
class _Send:
    topic: str
    key: str
    digest: int
    began_ms: float
    tries: int = 0
    unsure: int = 0
    """The number of its tries that may have stored the message."""
    under_way: tuple[float, dict[str, Any]] | None = None


@dataclass(slots=True)
class WorkloadRows:
    """Makes the history's rows of one JVM. `put` is called with each row; the rows are not in order of time."""

    put: Callable[[TimedRow], None]
    group: str
    addresses: Mapping[str, str]
    """Brokers' addresses as the JVM connects to them, to the advertised ones."""
    _sends: dict[str, _Send] = field(default_factory=dict)
    _held: dict[str, set[tuple[str, int]]] = field(default_factory=lambda: defaultdict(set))
    _routes: dict[str, object] = field(default_factory=dict)

    def heard(self, at_ms: float, line: Mapping[str, Any]) -> None:
        """Process one line that the JVM printed at `at_ms`. A line without an event is ignored."""
        match line.get("f"):
            case "send":
                self._send(at_ms, line)
            case "try":
                self._try(at_ms, line)
            case "tried":
                self._tried(at_ms, line)
            case "sent":
                self._sent(at_ms, line)
            case "taken" | "dropped":
                self._holding(at_ms, line)
            case "received":
                self._received(at_ms, line)
            case "kept":
                value = {"group": self.group, "before": line["before"]}
                self._put(at_ms, "commit", f="persist", **_queue(line), offset=line["offset"], value=value)
            case "route":
                self._route(at_ms, line)
            case "lag":
                self._put(at_ms, "timer_lag", lag_ms=line["late_ns"] / 1e6, duration_ms=line["lasted_ns"] / 1e6)

    def _put(self, at_ms: float, event: str, **fields: Any) -> None:
        self.put(TimedRow(at_ms, event, fields))

    # --- sends --------------------------------------------------------------------------------------------------------

    def _send(self, at_ms: float, line: Mapping[str, Any]) -> None:
        send = _Send(line["topic"], line["key"], _digest(line), at_ms)
        self._sends[line["id"]] = send
        self._put(at_ms, "send", type="invoke", op_id=line["id"], topic=send.topic, msg_key=send.key)

    def _try(self, at_ms: float, line: Mapping[str, Any]) -> None:
        send = self._sends.get(line["id"])
        if send is None:
            return
        self._try_over(at_ms, send, "info", None)
        address = line.get("address")
        where = {
            "op_id": line["id"],
            "attempt": send.tries,
            "broker_name": line["broker"],
            "address": None if address is None else self.addresses.get(address, address),
            "queue_id": line["queue"],
        }
        send.tries, send.under_way = send.tries + 1, (at_ms, where)
        self._put(at_ms, "send_attempt", type="invoke", **where)

    def _tried(self, at_ms: float, line: Mapping[str, Any]) -> None:
        send = self._sends.get(line["id"])
        if send is None:
            return
        error, status, code = line.get("error"), line.get("status"), line.get("code")
        if status is not None:
            self._try_over(at_ms, send, "ok" if status == "SEND_OK" else "info", _CODES.get(status))
        elif code is not None:
            self._try_over(at_ms, send, "fail" if ResponseError.for_code(code, None).definite else "info", code)
        else:
            self._try_over(at_ms, send, "fail" if error in _NEVER_SENT else "info", None)

    def _try_over(self, at_ms: float, send: _Send, type_: str, code: int | None) -> None:
        if send.under_way is None:
            return
        (began_ms, where), send.under_way = send.under_way, None
        send.unsure += type_ != "fail"
        self._put(at_ms, "send_attempt", type=type_, code=code, duration_ms=at_ms - began_ms, **where)

    def _sent(self, at_ms: float, line: Mapping[str, Any]) -> None:
        send = self._sends.pop(line["id"], None)
        if send is None:
            return
        self._try_over(at_ms, send, "info", None)
        fields: dict[str, Any] = {"op_id": line["id"], "topic": send.topic, "msg_key": send.key}
        fields |= {"attempt": send.unsure, "duration_ms": at_ms - send.began_ms}
        if (status := line.get("status")) is not None:
            where = {"broker_name": line["broker"], "queue_id": line["queue"], "offset": line["offset"]}
            self._put(at_ms, "send", type=line["type"], digest=send.digest, code=_CODES.get(status), **where, **fields)
        else:
            self._put(at_ms, "send", type="info" if send.unsure else "fail", code=line.get("code"), **fields)

    # --- queues -------------------------------------------------------------------------------------------------------

    def _holding(self, at_ms: float, line: Mapping[str, Any]) -> None:
        queue, held = (line["broker"], line["queue"]), self._held[line["topic"]]
        is_taken = line["f"] == "taken"
        (held.add if is_taken else held.discard)(queue)
        event = "queue_taken" if is_taken else "queue_dropped"
        self._put(at_ms, event, op_id=_holding(line), **_queue(line), offset=line.get("offset"))
        self._put(at_ms, "assigned", topic=line["topic"], value=[list(each) for each in sorted(held)])

    def _received(self, at_ms: float, line: Mapping[str, Any]) -> None:
        fields = {"msg_key": line.get("key"), "offset": line["offset"], "digest": _digest(line)}
        self._put(at_ms, "receive", op_id=_holding(line), **_queue(line), **fields)

    def _route(self, at_ms: float, line: Mapping[str, Any]) -> None:
        value = route_value(readdressed(line["route"].encode(), self.addresses))
        if self._routes.get(line["topic"]) != value:
            self._routes[line["topic"]] = value
            self._put(at_ms, "route_changed", topic=line["topic"], value=value)


def _holding(line: Mapping[str, Any]) -> str | None:
    return None if line.get("holding") is None else f"take-{line['holding']}"


def _queue(line: Mapping[str, Any]) -> dict[str, Any]:
    return {"topic": line["topic"], "broker_name": line["broker"], "queue_id": line["queue"]}


def _digest(line: Mapping[str, Any]) -> int:
    return message_digest(line.get("listened", line["topic"]), base64.b64decode(line["body"]), line["properties"])

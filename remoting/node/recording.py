"""How a node records events, without knowing the history.

A node calls `record("route", topic=..., value=...)`; the harness's recorder adds time, node and sequence number and
appends the row. The events and their fields are listed in docs/history.md.
"""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from ..codes import TABLES_OF_SLAVES, RequestCode
from .network import Address

_WITHOUT_ROWS = {
    RequestCode.QUERY_CONSUMER_OFFSET,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
    RequestCode.GET_MAX_OFFSET,
    RequestCode.GET_MIN_OFFSET,
    RequestCode.HEART_BEAT,
    RequestCode.UNREGISTER_CLIENT,
    RequestCode.UNREGISTER_BROKER,
    RequestCode.GET_BROKER_MEMBER_GROUP,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP,
    RequestCode.LOCK_BATCH_MQ,
    RequestCode.UNLOCK_BATCH_MQ,
    *TABLES_OF_SLAVES,
}
"""Requests whose refusal no other row tells."""


class Recorder(Protocol):
    def __call__(self, event: str, /, **fields: object) -> None:
        """Append one event of this node. Field names are the history's columns (docs/history.md)."""


def ignore(event: str, /, **fields: object) -> None:
    """Record nothing, for a node without a history, such as a stand-alone NameServer."""


@runtime_checkable
class RecordsAt(Protocol):
    """A recorder that accepts events with an earlier time, for events that are noticed later."""

    def at(self, at_ms: float, event: str, /, **fields: object) -> None: ...


def recorded_at(record: Recorder, at_ms: float, event: str, fields: Mapping[str, object]) -> None:
    """Record an event at `at_ms` milliseconds of RocketMQ time, or now if the recorder accepts no times."""
    if isinstance(record, RecordsAt):
        record.at(at_ms, event, **fields)
    else:
        record(event, **fields)


def record_timed_out(
    record: Recorder, address: Address | str, code: int | None, waited_s: float, **more: object
) -> None:
    """Record that a request with this code (None: a connect) got no answer within `waited_s`."""
    name = "connect" if code is None else _name(code)
    record("timed_out", f=name, address=str(address), duration_ms=waited_s * 1000, **more)


def record_refused(record: Recorder, address: Address, request_code: int, code: int) -> None:
    """Record that a request was answered with this code, if no other row tells that."""
    if request_code in _WITHOUT_ROWS:
        record("refused", f=_name(request_code), address=str(address), code=code)


def _name(code: int) -> str:
    try:
        return RequestCode(code).name
    except ValueError:
        return str(code)

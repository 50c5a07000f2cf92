"""Records one send call in the history: its begin, each attempt, and exactly one outcome. The error of a failed send
call is `definite` only if no attempt can have stored the message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ...remoting.codes import ResponseCode
from ...remoting.errors import RequestTimeout, ResponseError, RocketMQError
from ...remoting.message import MessageQueue
from ...remoting.message_properties import DELAY, message_digest
from ...remoting.node.network import Address
from ...remoting.node.node import NodeContext
from .send_request import SendRequest
from .send_result import STATUS_BY_CODE, SendError, SendResult, SendStatus

_CODE_OF_STATUS = {status: code for code, status in STATUS_BY_CODE.items()}


def outcome(error: RocketMQError) -> str:
    """Return the history's outcome for an error: fail (certainly not stored) or info (unknown)."""
    return "fail" if error.definite else "info"


class SendRecord:
    """Records a send call's events: `send` (begin and outcome) and `send_attempt`, both with the call's `op_id`."""

    def __init__(self, context: NodeContext, request: SendRequest, op_id: str) -> None:
        self._context = context
        self._message = request.message
        self._op_id = op_id
        self.begin_s = context.clock.monotonic_s()
        """The send's time-out counts from here."""
        self._attempts = 0
        self._address: Address | None = None
        self.maybe_stored = 0
        """How many of its attempts may have stored the message: each of them stores the message once at most."""

    def invoked(self) -> None:
        self._context.record("send", type="invoke", **self._call)

    def returned(self, result: SendResult) -> None:
        """Record outcome `ok` if the broker stored the message as safely as configured, `info` for other statuses. The
        answered offset and id of a delayed message are of SCHEDULE_TOPIC_XXXX."""
        is_delayed = DELAY in self._message.properties
        self._ended(
            "ok" if result.status is SendStatus.SEND_OK else "info",
            broker_name=result.queue.broker_name,
            address=None if self._address is None else str(self._address),
            queue_id=result.queue.queue_id,
            offset=None if is_delayed else result.queue_offset,
            msg_id=None if is_delayed else result.offset_msg_id,
            digest=message_digest(self._message.topic, self._message.body, self._message.properties),
            code=int(_CODE_OF_STATUS[result.status]),
            attempt=self.maybe_stored,
            **({"value": {"tries": self._attempts}} if self._attempts > 1 else {}),
        )

    def failed(self, error: RocketMQError) -> None:
        """Record that the call failed. `error.definite` becomes false if an earlier try may have stored the message."""
        error.definite = error.definite and not self.maybe_stored
        self._ended(outcome(error), attempt=self.maybe_stored, code=_code_of(error))

    def unknown(self) -> None:
        """Record that the outcome is unknown, as after a cancelled call."""
        attempts = max(1, self.maybe_stored)  # one that is cut off right now is not counted yet
        self._ended("info", attempt=attempts)

    @contextmanager
    def attempt(self, queue: MessageQueue, address: Address | None) -> Iterator[Attempt]:
        """Record one try at one broker: its begin, and its result when the block, which calls the broker, ends."""
        context, tried, type_ = self._context, Attempt(), "info"
        where = {"op_id": self._op_id, "attempt": self._attempts, "address": None if address is None else str(address)}
        fields = {**where, "broker_name": queue.broker_name, "queue_id": queue.queue_id}
        self._attempts, self._address = self._attempts + 1, address
        begin_s = context.clock.monotonic_s()
        context.record("send_attempt", type="invoke", **fields)
        try:
            yield tried
            type_ = "ok" if tried.code == ResponseCode.SUCCESS else "info"
        except RocketMQError as error:
            type_, tried.code = outcome(error), _code_of(error)
            if isinstance(error, RequestTimeout):  # in the time that the send call had left
                value = {"attempt_ms": (context.clock.monotonic_s() - begin_s) * 1000}
                context.record_ended(self.begin_s, "timed_out", f="send", value=value, **where)
            raise
        finally:
            self.maybe_stored += type_ != "fail"
            context.record_ended(begin_s, "send_attempt", type=type_, code=tried.code, **fields)

    def _ended(self, type_: str, **fields: object) -> None:
        self._context.record_ended(self.begin_s, "send", type=type_, **self._call, **fields)

    @property
    def _call(self) -> dict[str, object]:
        message = self._message
        call: dict[str, object] = {"op_id": self._op_id, "topic": message.topic}
        call["msg_key"] = message.keys or message.uniq_key
        if DELAY in message.properties:
            call["f"] = message.properties[DELAY]
        return call


@dataclass(slots=True)
class Attempt:
    code: int | None = None
    """The broker's answer to this try, which the block of `SendRecord.attempt` sets."""


def _code_of(error: RocketMQError) -> int | None:
    if isinstance(error, SendError):
        return error.code
    return int(error.code) if isinstance(error, ResponseError) else None

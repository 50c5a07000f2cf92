"""How a send ends: a result with a status, or an error that says whether anything may have been stored. Upstream:
`SendResult`, `SendStatus`, `MQClientAPIImpl.processSendResponse`, `MQClientException`."""

from dataclasses import dataclass
from enum import StrEnum

from ...remoting.codes import ResponseCode
from ...remoting.command import RemotingCommand
from ...remoting.errors import ClientError, ResponseError, RocketMQError
from ...remoting.headers.broker import SendMessageResponseHeader
from ...remoting.message import MessageQueue


class SendStatus(StrEnum):
    """A send's status; all but SEND_OK mean that the message is stored, but not as safely as configured."""

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


STATUS_BY_CODE = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    status: SendStatus
    msg_id: str
    """The client's own id (UNIQ_KEY)."""
    offset_msg_id: str
    """The broker's id, which names its store address and position."""
    queue: MessageQueue
    queue_offset: int


class SendError(RocketMQError):
    """The error of a send whose tries all failed, as Java's MQClientException "Send [3] times, still failed".

    `definite` is true if no try can have stored the message. `code` is the last broker's response code; None without an
    answer. `__cause__` is the last try's error.
    """

    def __init__(self, text: str, *, code: int | None, definite: bool, retriable: bool) -> None:
        super().__init__(text)
        self.code = code
        self.definite = definite
        self.retriable = retriable


class RouteQueryFailed(ClientError):
    """The NameServer gave no answer to the route query that a send needed; the send fails without a retry (Java's
    IllegalStateException)."""

    retriable = True


def parse_send_response(response: RemotingCommand, msg_id: str, topic: str, broker_name: str) -> SendResult:
    """Return the result of a send from a broker's response to request 310. Raises ResponseError for a code that
    is no send status, HeaderError for an incomplete header."""
    try:
        status = STATUS_BY_CODE[ResponseCode(response.code)]
    except (KeyError, ValueError):
        raise ResponseError.for_code(response.code, response.remark) from None
    header = SendMessageResponseHeader.from_ext_fields(response.ext_fields)
    return SendResult(
        status=status,
        msg_id=msg_id,
        offset_msg_id=header.msg_id,
        queue=MessageQueue(topic, broker_name, header.queue_id),
        queue_offset=header.queue_offset,
    )

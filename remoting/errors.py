"""All errors of the protocol and the transport.

`definite` is true if the operation certainly had no effect; workloads record `fail` for a definite error, else `info`
(unknown). `retriable` is true if trying again can help. Upstream: `remoting/.../exception/*`, `MQBrokerException`,
`MQClientException`.
"""

from __future__ import annotations

from .codes import ResponseCode

_DEFINITE = frozenset(
    {
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        ResponseCode.MESSAGE_ILLEGAL,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.NO_PERMISSION,
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.QUERY_NOT_FOUND,
        ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
        ResponseCode.INVALID_PARAMETER,
    }
)
_RETRIABLE = frozenset(
    {
        ResponseCode.SYSTEM_ERROR,  # not definite: the broker may have stored before it failed
        ResponseCode.SYSTEM_BUSY,  # TIMEOUT_CLEAN_QUEUE would be definite, PCBUSY is not; the code cannot tell
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.NO_PERMISSION,
        ResponseCode.TOPIC_NOT_EXIST,
    }
)


class RocketMQError(Exception):
    """Base class of all errors between two RocketMQ nodes."""

    retriable: bool = False
    definite: bool = False


class ProtocolError(RocketMQError):
    """The error of bytes that do not follow RocketMQ's remoting protocol."""


class LocalProtocolError(ProtocolError):
    """A value could not be expressed in the protocol; nothing was sent."""

    definite = True


class RemoteProtocolError(ProtocolError):
    """The peer sent bytes that cannot be read. If the bytes are no frame, the connection is closed."""


class TransportError(RocketMQError):
    """An error of the connection, not an answer of the peer."""

    retriable = True


class ConnectError(TransportError):
    """No connection could be made, so nothing was sent."""

    definite = True


class ConnectionLost(TransportError):
    """The connection closed before or while an answer was awaited; the peer may have acted."""


class RequestTimeout(TransportError):
    """No answer came in time; the peer may have executed the request, or may still execute it."""


class TooManyRequests(TransportError):
    """The request was not sent, because the call's time was used up or too many requests are in flight
    (`RemotingTooMuchRequestException`)."""

    definite = True


class ClientError(RocketMQError):
    """The client itself refused a call, for example because of a missing route (`MQClientException`); nothing was
    sent."""

    definite = True


class ResponseError(RocketMQError):
    """The peer answered with a code other than SUCCESS. `code` and `remark` come from the peer's response.

    A ResponseError is definite only for codes that mean that nothing was stored. FLUSH_DISK_TIMEOUT,
    SLAVE_NOT_AVAILABLE and FLUSH_SLAVE_TIMEOUT mean that the message is stored, and an unknown code can mean so.
    """

    def __init__(self, remark: str | None = None, *, code: int = ResponseCode.SYSTEM_ERROR) -> None:
        self.code, self.remark = code, remark
        self.definite, self.retriable = code in _DEFINITE, code in _RETRIABLE
        super().__init__(f"CODE: {int(code)}  DESC: {remark}")

    @staticmethod
    def for_code(code: int, remark: str | None) -> ResponseError:
        """Return the error for a response code: TopicNotExist for code 17, ResponseError for any other code."""
        return (TopicNotExist if code == ResponseCode.TOPIC_NOT_EXIST else ResponseError)(remark, code=code)


class TopicNotExist(ResponseError):
    """The topic has no route, or does not exist at that broker."""

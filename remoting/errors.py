"""Every error of the wire and the transport, on one page.

`definite` says that the operation certainly did not take effect: workloads turn it into `fail` (definite) or `info`
(nobody knows). `retriable` says that trying again may help. Retry loops and workloads read these two and nothing else.
Upstream: `remoting/.../exception/*`, `MQBrokerException`, `MQClientException`.
"""

from __future__ import annotations

from typing import ClassVar

from .codes import ResponseCode


class RocketMQError(Exception):
    """Root of everything that can go wrong between two RocketMQ nodes."""

    retriable: bool = False
    definite: bool = False


class ProtocolError(RocketMQError):
    """Bytes that are not RocketMQ remoting."""


class LocalProtocolError(ProtocolError):
    """We tried to send what the protocol cannot express; nothing was sent."""

    definite = True


class RemoteProtocolError(ProtocolError):
    """The peer sent what cannot be read; its connection is closed."""


class TransportError(RocketMQError):
    """The connection, not the peer's answer, is the problem."""

    retriable = True


class ConnectError(TransportError):
    """No connection could be made, so nothing was sent."""

    definite = True


class ConnectionLost(TransportError):
    """The connection closed while an answer was awaited; the peer may have acted."""


class RequestTimeout(TransportError):
    """No answer in time; the peer may have acted, or may yet act."""


class TooManyRequests(TransportError):
    """The call's time was used up before it was sent (`RemotingTooMuchRequestException`)."""

    definite = True


class ClientError(RocketMQError):
    """The client itself refused, e.g. no route of the topic (`MQClientException`); nothing was sent."""

    definite = True


class ResponseError(RocketMQError):
    """The peer answered with a code other than SUCCESS. `code` and `remark` are the peer's.

    Not definite unless the code says so: FLUSH_DISK_TIMEOUT, SLAVE_NOT_AVAILABLE and FLUSH_SLAVE_TIMEOUT are answers
    about messages that are stored, and a code that nobody here knows may be such an answer too.
    """

    code: int = ResponseCode.SYSTEM_ERROR
    _by_code: ClassVar[dict[int, type[ResponseError]]] = {}

    def __init__(self, remark: str | None = None, *, code: int | None = None) -> None:
        if code is not None:
            self.code = code
        self.remark = remark
        super().__init__(f"CODE: {int(self.code)}  DESC: {remark}")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        ResponseError._by_code[int(cls.code)] = cls

    @staticmethod
    def for_code(code: int, remark: str | None) -> ResponseError:
        """The subclass registered for `code`, or a plain ResponseError that carries it."""
        return ResponseError._by_code.get(code, ResponseError)(remark, code=code)


class SystemError_(ResponseError):
    code = ResponseCode.SYSTEM_ERROR  # the broker may have stored before it failed
    retriable = True


class SystemBusy(ResponseError):
    code = ResponseCode.SYSTEM_BUSY  # TIMEOUT_CLEAN_QUEUE would be definite, PCBUSY is not; the code cannot tell
    retriable = True


class RequestCodeNotSupported(ResponseError):
    code = ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    definite = True


class ServiceNotAvailable(ResponseError):
    code = ResponseCode.SERVICE_NOT_AVAILABLE
    definite = True
    retriable = True


class NoPermission(ResponseError):
    code = ResponseCode.NO_PERMISSION
    definite = True
    retriable = True


class TopicNotExist(ResponseError):
    code = ResponseCode.TOPIC_NOT_EXIST
    definite = True
    retriable = True


class MessageIllegal(ResponseError):
    code = ResponseCode.MESSAGE_ILLEGAL
    definite = True


class QueryNotFound(ResponseError):
    code = ResponseCode.QUERY_NOT_FOUND
    definite = True


class SubscriptionGroupNotExist(ResponseError):
    code = ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    definite = True


class InvalidParameter(ResponseError):
    code = ResponseCode.INVALID_PARAMETER
    definite = True

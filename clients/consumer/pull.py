"""One pull from one broker: the request, and the meaning of each answer.

| code | status | what the caller does |
|---|---|---|
| 0 | FOUND | consume, pull again from `next_begin_offset` |
| 19 | NO_NEW_MESSAGE | pull again from there: the broker held the request already |
| 20 | NO_MATCHED_MESSAGE | pull again from there |
| 21 | OFFSET_ILLEGAL | drop the queue, commit `next_begin_offset`, take the queue anew |
| other | ResponseError | pause, then try again |

Upstream: `MQClientAPIImpl.processPullResponse`, `PullAPIWrapper`, `PullSysFlag`.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from ...remoting.codes import RequestCode, ResponseCode
from ...remoting.command import RemotingCommand
from ...remoting.errors import ResponseError
from ...remoting.headers.broker import PullMessageRequestHeader, PullMessageResponseHeader
from ...remoting.message import StoredMessage
from ...remoting.node.network import Address
from ...remoting.transport import RemotingClient


class PullStatus(Enum):
    FOUND = ResponseCode.SUCCESS
    NO_NEW_MESSAGE = ResponseCode.PULL_NOT_FOUND
    NO_MATCHED_MESSAGE = ResponseCode.PULL_RETRY_IMMEDIATELY
    OFFSET_ILLEGAL = ResponseCode.PULL_OFFSET_MOVED


_STATUS_BY_CODE = {int(status.value): status for status in PullStatus}


@dataclass(frozen=True, slots=True, kw_only=True)
class PullResult:
    status: PullStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    suggest_which_broker_id: int
    messages: list[StoredMessage]
    """As stored, tags not filtered yet; empty unless FOUND."""


def pull_sys_flag(*, commit_offset: bool = False, suspend: bool = False, subscription: bool = False) -> int:
    """Return the bits of a pull request's sysFlag."""
    return commit_offset | suspend << 1 | subscription << 2


def parse_pull_response(response: RemotingCommand, *, strict: bool = False) -> PullResult:
    """Return the status and messages in the broker's answer to a pull. Raises ResponseError for a code that is no pull
    status, HeaderError for a bad header. As in Java's client, the messages after a damaged record are silently left
    out; with `strict`, a damaged record raises RemoteProtocolError."""
    status = _STATUS_BY_CODE.get(response.code)
    if status is None:
        raise ResponseError.for_code(response.code, response.remark)
    header = PullMessageResponseHeader.from_ext_fields(response.ext_fields)
    return PullResult(
        status=status,
        next_begin_offset=header.next_begin_offset,
        min_offset=header.min_offset,
        max_offset=header.max_offset,
        suggest_which_broker_id=header.suggest_which_broker_id,
        messages=_decode(response.body, header.offset_delta or 0, strict) if status is PullStatus.FOUND else [],
    )


def _decode(body: bytes, offset_delta: int, strict: bool) -> list[StoredMessage]:
    messages = StoredMessage.decode_all(body, strict=strict)
    if not offset_delta:
        return messages
    return [replace(message, queue_offset=message.queue_offset + offset_delta) for message in messages]


def matching_tags(messages: Iterable[StoredMessage], tags: Collection[str]) -> list[StoredMessage]:
    """Return the messages whose tag is in `tags`; the broker has compared only hashes of tags. If `tags` is empty,
    return all messages."""
    return [message for message in messages if not tags or message.tags in tags]


async def pull(
    remoting: RemotingClient,
    address: Address,
    header: PullMessageRequestHeader,
    *,
    timeout_s: float,
    strict: bool = False,
) -> PullResult:
    """Send one pull and return the broker's answer. Raises TransportError, and the errors of `parse_pull_response`. A
    time-out leaves the channel open, because a pull is an asynchronous call in Java."""
    request = RemotingCommand.request(RequestCode.PULL_MESSAGE, header)
    response = await remoting.invoke(address, request, timeout_s=timeout_s, close_on_timeout=False)
    return parse_pull_response(response, strict=strict)

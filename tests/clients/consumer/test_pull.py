"""A pull's flags, what each answer means, and the exact tag test."""

import pytest

from nemesrv.clients.consumer.pull import PullStatus, matching_tags, parse_pull_response, pull_sys_flag
from nemesrv.remoting.codes import ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import RemoteProtocolError, ResponseError
from nemesrv.remoting.headers.broker import PullMessageResponseHeader
from nemesrv.remoting.headers.fields import HeaderError

from ..records import stored


def response(code: int, body: bytes = b"", *, offset_delta: int | None = None) -> RemotingCommand:
    header = PullMessageResponseHeader(
        suggest_which_broker_id=1, next_begin_offset=7, min_offset=2, max_offset=9, offset_delta=offset_delta
    )
    return RemotingCommand.response(code, header=header, body=body)


def test_each_flag_has_its_bit() -> None:
    assert pull_sys_flag() == 0
    assert pull_sys_flag(suspend=True) == 2, "what a push consumer without an offset sends"
    assert pull_sys_flag(suspend=True, commit_offset=True) == 3
    assert pull_sys_flag(subscription=True) == 4


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (0, PullStatus.FOUND),
        (19, PullStatus.NO_NEW_MESSAGE),
        (20, PullStatus.NO_MATCHED_MESSAGE),
        (21, PullStatus.OFFSET_ILLEGAL),
    ],
)
def test_every_pull_status_carries_the_next_offset(code: int, status: PullStatus) -> None:
    result = parse_pull_response(response(code))
    assert (result.status, result.next_begin_offset, result.min_offset, result.max_offset) == (status, 7, 2, 9)
    assert result.suggest_which_broker_id == 1


def test_messages_are_decoded_only_when_found() -> None:
    records = stored(5).encode() + stored(6).encode()
    assert parse_pull_response(response(0, records)).messages == [stored(5), stored(6)]
    assert parse_pull_response(response(20, records)).messages == []


def test_an_offset_delta_moves_the_messages() -> None:
    records = stored(5).encode()
    assert parse_pull_response(response(0, records, offset_delta=100)).messages[0].queue_offset == 105


def test_a_damaged_record_ends_the_messages_unless_reading_is_strict() -> None:
    damaged = bytearray(stored(5).encode() + stored(6).encode())
    damaged[len(stored(5).encode()) + 4] ^= 0xFF
    assert parse_pull_response(response(0, bytes(damaged))).messages == [stored(5)]
    with pytest.raises(RemoteProtocolError):
        parse_pull_response(response(0, bytes(damaged)), strict=True)


def test_any_other_code_is_an_error_of_that_code() -> None:
    with pytest.raises(ResponseError) as caught:
        parse_pull_response(RemotingCommand.response(ResponseCode.FLOW_CONTROL, "slow down"))
    assert caught.value.code == 215


def test_a_status_without_its_fields_is_a_bad_header() -> None:
    with pytest.raises(HeaderError):
        parse_pull_response(RemotingCommand.response(19, "PULL_NOT_FOUND"))


def test_tags_are_compared_whole() -> None:
    # "AaAa" and "BBBB" have one Java hash, so a broker's hash filter lets both through.
    messages = [stored(0, TAGS="AaAa"), stored(1, TAGS="BBBB"), stored(2)]
    assert matching_tags(messages, {"AaAa"}) == messages[:1]
    assert matching_tags(messages, set()) == messages

"""How long held pulls waited, as a broker says it from one check to the next."""

from nemesrv.actors.broker.processors.pull_processor import HoldTimes
from nemesrv.remoting.codes import ResponseCode
from nemesrv.remoting.command import RemotingCommand
from tests.clients.records import stored

STORED_MS = 1_700_000_000_001
FOUND = RemotingCommand.response(ResponseCode.SUCCESS, body=stored(7).encode())
NOTHING = RemotingCommand.response(ResponseCode.PULL_NOT_FOUND)


def test_a_woken_pull_counts_from_when_its_message_was_stored_and_not_from_when_it_was_held() -> None:
    times = HoldTimes()
    times.answered(FOUND, held_ms=STORED_MS - 9_000, wait_ms=15_000, now_ms=STORED_MS + 3)
    times.answered(FOUND, held_ms=STORED_MS - 5_000, wait_ms=15_000, now_ms=STORED_MS + 40)
    assert times.taken() == {"notified": 2, "slowest_ms": 40}


def test_a_pull_that_was_held_after_the_message_came_counts_from_then() -> None:
    times = HoldTimes()
    times.answered(FOUND, held_ms=STORED_MS + 100, wait_ms=15_000, now_ms=STORED_MS + 110)
    assert times.taken()["slowest_ms"] == 10


def test_a_pull_that_found_nothing_counts_from_the_end_of_its_own_time() -> None:
    times = HoldTimes()
    for waited_ms in (17_000, 15_000, 14_000):
        times.answered(NOTHING, held_ms=0, wait_ms=15_000, now_ms=waited_ms)
    assert times.taken() == {"timed_out": 3, "shortest_ms": -1_000, "longest_ms": 2_000}


def test_what_was_said_is_not_said_again_and_what_cannot_be_read_took_no_time() -> None:
    times = HoldTimes()
    times.answered(RemotingCommand.response(body=b"short"), held_ms=0, wait_ms=15_000, now_ms=5)
    assert times.taken() == {"notified": 1, "slowest_ms": 0}
    times.answered(RemotingCommand.response(ResponseCode.PULL_OFFSET_MOVED), held_ms=0, wait_ms=15_000, now_ms=5)
    assert times.taken() == {}

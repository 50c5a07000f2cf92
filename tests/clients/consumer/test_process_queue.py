"""What may be committed while messages finish out of order, and when pulling pauses."""

import pytest

from nemesrv.clients.consumer.process_queue import PULL_MAX_IDLE_MS, FlowLimits, ProcessQueue

from ..records import stored


def holding(*offsets: int) -> ProcessQueue:
    queue = ProcessQueue(now_ms=0)
    queue.put([stored(offset) for offset in offsets])
    return queue


def test_the_smallest_unfinished_offset_is_committed() -> None:
    queue = holding(10, 11, 12)
    assert queue.finish([11]) == 10
    assert queue.finish([10]) == 12


def test_when_all_are_finished_the_next_offset_is_committed() -> None:
    queue = holding(10, 11, 12)
    assert queue.finish([12, 10, 11]) == 13
    assert (len(queue), queue.size_bytes, queue.span) == (0, 0, 0)


def test_finishing_with_nothing_in_flight_commits_nothing() -> None:
    assert holding().finish([5]) is None


def test_a_gap_left_by_the_tag_filter_is_not_waited_for() -> None:
    queue = holding(3, 9)
    assert queue.finish([3]) == 9
    assert queue.finish([9]) == 10


def test_a_message_pulled_twice_counts_once() -> None:
    queue = holding(4, 4)
    assert (len(queue), queue.size_bytes) == (1, len(stored(4).body))
    assert queue.in_flight == (4, 4)


def test_an_unknown_offset_changes_nothing() -> None:
    queue = holding(4, 5)
    assert queue.finish([99]) == 4
    assert len(queue) == 2


@pytest.mark.parametrize(
    ("offsets", "limits", "paused"),
    [
        (range(3), FlowLimits(messages=3), False),
        (range(4), FlowLimits(messages=3), True),
        (range(2), FlowLimits(size_bytes=2 * len(stored(0).body)), False),
        (range(3), FlowLimits(size_bytes=2 * len(stored(0).body)), True),
        ((0, 2000), FlowLimits(), False),
        ((0, 2001), FlowLimits(), True),
    ],
)
def test_pulling_pauses_only_above_a_limit(offsets: range, limits: FlowLimits, paused: bool) -> None:
    assert holding(*offsets).over_limit(limits) is paused


def test_a_queue_not_pulled_for_two_minutes_has_expired() -> None:
    queue = holding()
    assert not queue.is_pull_expired(now_ms=PULL_MAX_IDLE_MS)
    assert queue.is_pull_expired(now_ms=PULL_MAX_IDLE_MS + 1)
    queue.last_pull_ms = 60_000
    assert not queue.is_pull_expired(now_ms=PULL_MAX_IDLE_MS + 1)

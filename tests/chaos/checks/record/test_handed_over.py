"""A queue is given up only when what was worked off of it is committed: by hand-written histories."""

from typing import Any

from nemesrv.chaos.verdict import Validity
from tests.chaos.builder import HistoryBuilder, route_of
from tests.chaos.checks.messages.test_commits_follow_work import AT, committed, kinds, story, verdict, worked


def routed(*brokers: str, **workload: Any) -> HistoryBuilder:
    """Three messages are received, and the broker has been told of two."""
    builder = story(**workload)
    builder.event("consumer-0", "route_changed", topic="orders", value=route_of(*brokers or ("broker-a", "broker-b")))
    return committed(worked(builder, 3), 102.5, 2, -1)


def given_up(builder: HistoryBuilder, at_s: float = 104, offset: int | None = 3) -> HistoryBuilder:
    return builder.at(at_s).event("consumer-0", "queue_dropped", op_id="take-0", offset=offset, **AT)


def test_what_is_committed_before_the_queue_is_given_up_is_right_and_so_is_what_is_under_way() -> None:
    assert verdict(given_up(committed(routed(), 103.9, 3, 2))).verdict is Validity.VALID
    assert verdict(committed(given_up(routed()), 104.01, 3, 2)).verdict is Validity.VALID


def test_nothing_is_asked_of_who_has_worked_off_nothing_or_cannot_reach_its_broker() -> None:
    cut = ("f2", "black_hole", "timeout", "consumer-0", "broker-a")
    assert verdict(given_up(routed(), 102.6, offset=None)).verdict is Validity.VALID
    assert verdict(given_up(routed(), 102.6, offset=9)).verdict is Validity.VALID  # it skipped what nobody wants
    assert verdict(given_up(routed("broker-b"))).verdict is Validity.VALID
    assert verdict(given_up(routed().at(103).fault(*cut))).verdict is Validity.VALID
    assert verdict(given_up(routed()).at(104.5).fault("f2", "kill", "sigkill", "broker-a")).verdict is Validity.VALID


def test_the_last_commit_for_a_queue_may_be_on_its_way_as_long_as_its_link_is_slow() -> None:
    slow = ("slow", "latency", "latency", "consumer-0", "broker-a")
    late = committed(given_up(routed()), 104.08, 3, 2)
    assert "committed without the queue" in kinds(verdict(late))
    slowed = routed().at(103).fault(*slow, value={"latency_ms": 50.0, "jitter_ms": 0.0})
    assert verdict(committed(given_up(slowed), 104.08, 3, 2)).verdict is Validity.VALID


def test_with_broadcasting_nobody_else_takes_the_queue() -> None:
    assert "left" not in [kind for kind in kinds(verdict(given_up(routed(broadcasting=True))))]

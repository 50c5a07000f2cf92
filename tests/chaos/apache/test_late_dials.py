"""A dial that is told of after its front has let it in is no dial in vain."""

from nemesrv.chaos.apache.client import LateDials
from nemesrv.chaos.fronts.behaviour import PASSES, REFUSES
from nemesrv.chaos.fronts.observed import Behaved, Dialled, GaveUp, Opened
from nemesrv.remoting.node.network import Address

AT = Address("127.0.0.1", 9876)


def dialled(at_ms: float, front: str | None = "ns-0") -> Dialled:
    return Dialled(at_ms=at_ms, address=AT, front=front, process=1)


def opened(at_ms: float, front: str = "ns-0") -> Opened:
    return Opened(at_ms=at_ms, front=front, connection=1, peer=AT)


def test_a_dial_comes_before_what_came_of_it_and_both_are_heard() -> None:
    late = LateDials()
    assert all(late.is_news(one) for one in (dialled(1), opened(2), dialled(3), opened(4)))


def test_a_dial_that_is_told_late_is_heard_no_more() -> None:
    late = LateDials()
    assert late.is_news(opened(2))
    assert not late.is_news(dialled(1.5))
    assert late.is_news(dialled(5))  # the next one is a dial of its own
    assert late.is_news(opened(6))
    assert late.is_news(dialled(7))


def test_one_of_another_front_or_after_it_is_not_taken_for_it() -> None:
    late = LateDials()
    assert late.is_news(opened(2))
    assert late.is_news(dialled(1.5, "ns-1"))
    assert late.is_news(dialled(2.5))


def test_a_dial_that_was_refused_waits_for_nothing() -> None:
    late = LateDials()
    assert late.is_news(Behaved(at_ms=0, front="ns-0", behaviour=REFUSES))
    assert late.is_news(dialled(1))
    assert late.is_news(Behaved(at_ms=2, front="ns-0", behaviour=PASSES))
    assert late.is_news(opened(4))
    assert not late.is_news(dialled(3))


def test_what_was_given_up_is_over_and_what_goes_to_no_front_is_nothing() -> None:
    late = LateDials()
    assert not late.is_news(dialled(0, None))
    assert not late.is_news(GaveUp(at_ms=1, address=AT, front="ns-0"))
    assert late.is_news(dialled(2))
    assert late.is_news(GaveUp(at_ms=3_002, address=AT, front="ns-0"))
    assert late.is_news(opened(3_010))
    assert not late.is_news(dialled(3_009))

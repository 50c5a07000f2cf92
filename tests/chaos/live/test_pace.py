"""A growing history is judged soon after a change, then ever more rarely."""

from nemesrv.chaos.live.changes import Pace

NOTHING = float("-inf")


def judged(pace: Pace, until_s: int, changed_s: float = NOTHING) -> list[int]:
    """When it is judged until then, the last change being of this second."""
    return [now_s for now_s in range(until_s) if pace.due(now_s, changed_s)]


def test_the_next_judging_is_as_far_away_as_the_change_is_ago_and_never_further_than_rarely() -> None:
    assert judged(Pace(every_s=10, rarely_s=100), 500, 0) == [0, 10, 20, 40, 80, 160, 260, 360, 460]


def test_a_change_is_judged_at_once_but_many_are_judged_together() -> None:
    pace = Pace(every_s=10, rarely_s=100)
    assert judged(pace, 200, 0) == [0, 10, 20, 40, 80, 160]
    assert [now_s for now_s in range(201, 230) if pace.due(now_s, min(now_s, 219))] == [201, 211, 221]


def test_without_any_change_it_is_judged_rarely() -> None:
    assert judged(Pace(every_s=10, rarely_s=100), 250) == [0, 100, 200]

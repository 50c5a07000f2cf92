"""A growing history is judged soon after a change, then ever more rarely."""

from __future__ import annotations

from nemesrv.chaos.live.changes import Pace


def judged(pace: Pace, until_s: int, since_s: int = 0) -> list[int]:
    return [now_s for now_s in range(since_s, until_s) if pace.due(now_s)]


def test_the_next_judging_is_as_far_away_as_the_change_is_ago_and_never_further_than_rarely() -> None:
    pace = Pace(every_s=10, rarely_s=100)
    pace.changed(0)
    assert judged(pace, 500) == [0, 10, 20, 40, 80, 160, 260, 360, 460]


def test_a_change_is_judged_at_once_but_many_are_judged_together() -> None:
    pace = Pace(every_s=10, rarely_s=100)
    pace.changed(0)
    assert judged(pace, 200) == [0, 10, 20, 40, 80, 160]
    pace.changed(201)
    assert pace.due(201)
    for now_s in range(202, 220):
        pace.changed(now_s)
    assert judged(pace, 230, 202) == [211, 221]


def test_without_any_change_it_is_judged_rarely() -> None:
    assert judged(Pace(every_s=10, rarely_s=100), 250) == [0, 100, 200]


def test_what_begins_is_judged_a_period_later_not_at_once() -> None:
    pace = Pace(every_s=10, rarely_s=100)
    pace.begins(0)
    pace.changed(0)
    assert judged(pace, 45) == [10, 20, 40]

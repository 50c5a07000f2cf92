"""Thinning joins what cannot be told apart, and hides nothing that was over."""

from hypothesis import given
from hypothesis import strategies as st

from nemesrv.chaos.reports.html.stretches import SEVERITY, LaneStretch, thin

KINDS = st.sampled_from(["held", "missing", "over", "late", "partly"])


def stretch(start_ms: float, end_ms: float, kind: str = "held") -> LaneStretch:
    return LaneStretch(start_ms=start_ms, end_ms=end_ms, kind=kind, text=kind)


def test_few_stretches_stay_as_they_are() -> None:
    few = [stretch(0, 10), stretch(10, 20, "missing")]
    assert thin(few, 2) == few


def test_one_short_violation_among_ten_thousand_stretches_is_still_drawn() -> None:
    many = [stretch(i, i + 1, "missing" if i % 2 else "held") for i in range(10_000)]
    many[7001] = stretch(7001, 7001.2, "over")
    thinned = thin(many, 200)
    assert len(thinned) <= 210
    (over,) = [s for s in thinned if s.kind == "over"]
    assert over.start_ms <= 7001 <= over.end_ms
    assert over.count == sum(over.start_ms <= s.start_ms < over.end_ms for s in many)


def test_a_long_stretch_is_not_swallowed_by_short_ones_beside_it() -> None:
    many = [*(stretch(i, i + 0.5) for i in range(1000)), stretch(100, 900, "over")]
    assert stretch(100, 900, "over") in thin(many, 50)


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0.001, 1e5), KINDS), min_size=1, max_size=200), st.integers(1, 40)
)
def test_every_violation_lies_within_one_that_is_drawn(spans: list[tuple[float, float, str]], most: int) -> None:
    stretches = [stretch(start, start + length, kind) for start, length, kind in spans]
    drawn = thin(stretches, most)
    assert sum(s.count for s in drawn) == len(stretches)
    for s in stretches:
        if s.kind == "over":
            assert any(d.kind == "over" and d.start_ms <= s.start_ms and d.end_ms >= s.end_ms for d in drawn)


@given(st.lists(st.tuples(st.floats(0, 1e6), KINDS), min_size=1, max_size=300), st.integers(1, 40))
def test_marks_keep_their_number_and_the_gravest_of_each_moment(told: list[tuple[float, str]], most: int) -> None:
    marks = [LaneStretch.mark(kind, at_ms, kind) for at_ms, kind in told]
    drawn = thin(marks, most)
    assert len(drawn) <= max(most, 1)
    assert sum(mark.count for mark in drawn) == len(marks)
    worst = max((m.kind for m in marks), key=lambda kind: SEVERITY.get(kind, 0))
    assert any(SEVERITY.get(m.kind, 0) == SEVERITY.get(worst, 0) for m in drawn)

"""The fronts' benchmark measures what it says."""

import io
from contextlib import suppress

import pytest
from rich.console import Console

from tests.bench import fronts
from tests.bench.figures import Figures
from tests.bench.measure import BenchError, compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")


def measured() -> tuple[str, Figures]:
    """What is printed, and the figures; as quickly as a busy machine allows."""
    for seconds in (0.1, 1, 5):
        text = io.StringIO()
        with suppress(BenchError):  # no look-up was answered in so short a time
            figures = fronts.run(seconds, rounds=1, console=Console(file=text, width=160))
            return text.getvalue(), figures
    raise AssertionError("no look-up was answered in 5 s")


@pytest.mark.nightly
@pytest.mark.toxiproxy
def test_a_front_is_measured_beside_toxiproxy_and_nothing_and_judged() -> None:
    text, figures = measured()
    assert set(figures.servers()) == {fronts.NOTHING, fronts.PASS_THROUGH, fronts.FRONT, fronts.TOXIPROXY, fronts.BOTH}
    assert all(figures.ratio(aim) is not None for aim in figures.aims)
    assert [of for of in figures.rows if of.startswith("CPU µs a frame")]
    assert all(fronts.NOTHING not in row for of, row in figures.rows.items() if of.startswith("CPU"))
    for what in ("look-ups/s", "CPU µs a frame", "≤ 30", "≥ 0.85"):
        assert what in text

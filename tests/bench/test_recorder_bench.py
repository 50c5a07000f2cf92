"""The recorder's benchmark measures what it says."""

import io
from contextlib import suppress

import pytest
from rich.console import Console

from tests.bench import recorder
from tests.bench.figures import OURS, Figures
from tests.bench.measure import BenchError, compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")


def measured() -> tuple[str, Figures]:
    """What is printed, and the figures; as quickly as a busy machine allows."""
    for seconds in (0.2, 1, 5):
        text = io.StringIO()
        with suppress(BenchError):  # no look-up was answered in so short a time
            figures = recorder.run(seconds, rounds=1, console=Console(file=text, width=160))
            return text.getvalue(), figures
    raise AssertionError("no look-up was answered in 5 s")


def test_events_a_second_and_the_cost_of_recording_are_measured_and_judged() -> None:
    text, figures = measured()
    assert all(figures.ratio(aim) is not None for aim in figures.aims)
    assert figures.rows["events/s recorded, one process"][OURS] > 0
    assert any(what.startswith("events/s of CPU, host") for what in figures.rows)
    assert {recorder.RECORDING, recorder.SILENT} <= set(figures.servers())
    for what in ("look-ups/s", "% of its core that recording takes", "≤ 2"):
        assert what in text


@pytest.mark.nightly
def test_a_machine_too_busy_to_answer_a_look_up_is_told_in_a_sentence() -> None:
    with pytest.raises(BenchError, match=r"the recording NameServer answered no look-up in 1 x 1e-06 s"):
        recorder.run(1e-6, rounds=1, console=Console(file=io.StringIO()))

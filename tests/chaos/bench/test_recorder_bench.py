"""The recorder's benchmark measures what it says."""

from __future__ import annotations

import io

from rich.console import Console

from nemesrv.chaos.bench import recorder
from nemesrv.chaos.bench.figures import OURS


def test_events_a_second_and_the_cost_of_recording_are_measured_and_judged() -> None:
    text = io.StringIO()
    figures = recorder.run(0.2, rounds=1, console=Console(file=text, width=160))
    assert all(figures.ratio(aim) is not None for aim in figures.aims)
    assert figures.rows["events/s recorded, one process"][OURS] > 1000
    assert any(what.startswith("events/s of CPU, host") for what in figures.rows)
    assert {recorder.RECORDING, recorder.SILENT} <= set(figures.servers())
    for what in ("look-ups/s", "% of its core that recording takes", "≤ 2"):
        assert what in text.getvalue()

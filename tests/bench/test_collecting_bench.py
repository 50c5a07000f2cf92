"""The benchmark of collecting from hosts measures what it says."""

import io

import pytest
from rich.console import Console

from tests.bench import collecting


@pytest.mark.nightly
@pytest.mark.ray
def test_what_three_hosts_recorded_is_collected_in_two_ways_and_both_are_timed() -> None:
    text = io.StringIO()
    figures = collecting.run(3_000, rounds=1, console=Console(file=text, width=160))
    assert set(figures.servers()) == {collecting.COLLECTED, collecting.AS_IT_IS}
    assert all(figures.ratio(aim) is not None for aim in figures.aims)
    sent = figures.rows["MB on the way"]
    assert sent[collecting.COLLECTED] < sent[collecting.AS_IT_IS] / 4
    assert "3,000 events of 3 hosts" in text.getvalue()

"""Whatever clocks do, a run in which nothing is wrong is not INVALID: random ones, as three hosts would record them."""

from pathlib import Path

import pytest

from tests.chaos.history.random_hosts import wrong


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [104, 108, 119])  # each has said INVALID once: commits and availability, timers, lives
def test_nothing_is_invalid_for_the_clocks_of_three_hosts(tmp_path: Path, seed: int) -> None:
    assert wrong(seed, tmp_path) == []

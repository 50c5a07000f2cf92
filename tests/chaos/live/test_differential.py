"""A few whole histories against the same in parts; `python -m tests.chaos.live.differential` does a thousand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chaos.live.differential import compare, differences
from tests.chaos.live.histories import random_history

pytestmark = pytest.mark.spark

MESSAGE_CHECKS = ("no_acknowledged_loss",)


@pytest.mark.parametrize("seed", range(2))
def test_parts_come_to_the_verdict_of_the_whole(spark: Any, tmp_path: Path, seed: int) -> None:
    found = compare(spark, seed, MESSAGE_CHECKS, tmp_path)
    assert found.differences == []
    assert found.verdicts.keys() == set(MESSAGE_CHECKS)


def test_a_seed_always_makes_the_same_history() -> None:
    assert random_history(5) == random_history(5)
    assert random_history(5) != random_history(6)


def test_a_difference_is_told_in_words() -> None:
    from nemesrv.chaos.verdict import Validity, Verdict

    one = Verdict(name="routes_converge", verdict=Validity.VALID, examined=3)
    other = Verdict(name="routes_converge", verdict=Validity.INVALID, examined=3, violations=1, why="bad")
    assert differences(one, one) == []
    assert differences(one, other) == [
        "routes_converge: verdict is VALID and INVALID",
        "routes_converge: violations is 0 and 1",
        "routes_converge: why is  and bad",
    ]

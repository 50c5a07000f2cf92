"""What a made-up history is said to come to, the checks find: clean ones nothing, planted ones what was planted.

Each is judged without Spark; through Spark some are every time, and all nightly (tests/nightly). That a clean one of
real size is VALID to every check, spark/test_judge.py says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.history import rows as history
from nemesrv.chaos.verdict import Validity
from nemesrv.remoting.node.profile import Profile
from tests import generate
from tests.chaos.large_plans import planned_as_large

NOTHING_BY_HAND = {"done_by_hand": Validity.UNKNOWN}
"""Nobody does anything by hand in a history that is made up."""


def test_every_check_but_exercised_has_a_defect() -> None:
    found = {check for planted in generate.DEFECTS.values() for check in planted.found_by}
    assert found == set(CHECKS) - {"exercised", *NOTHING_BY_HAND}  # exercised is never INVALID


def test_a_small_clean_history_is_valid_to_every_check(tmp_path: Path) -> None:
    generate.write(tmp_path, events=6_100, seed=1)  # a message a minute for each queue
    assert {v.name: v.verdict for v in verdicts(tmp_path)} == {
        **dict.fromkeys(CHECKS, Validity.VALID),
        **NOTHING_BY_HAND,
    }


@pytest.mark.parametrize("defect", generate.DEFECTS)
def test_a_planted_defect_is_found_by_its_checks_without_spark(defect: str, tmp_path: Path) -> None:
    history.write_parquet(generate.random_rows(3, defect), tmp_path)
    wrong = {v.name for v in verdicts(tmp_path) if v.verdict is Validity.INVALID}
    assert generate.DEFECTS[defect].found_by <= wrong


@pytest.mark.spark
@pytest.mark.parametrize("seed", [10, 11])  # 10: a message of a queue in 15 to 20 s, just before its pull would end
def test_no_check_finds_a_fault_in_a_random_history(seed: int, spark: Any, tmp_path: Path) -> None:
    from nemesrv.chaos.checks.spark.judge import check_run

    history.write_parquet(generate.random_rows(seed), tmp_path)
    assert [v for v in check_run(tmp_path, CHECKS, spark) if v.verdict is Validity.INVALID] == []


@pytest.mark.spark
@pytest.mark.parametrize(
    ("events", "seed", "profile"),
    [
        (20_000, 1, Profile.V4_9),
        (20_000, 2, Profile.V4_9),
        (20_000, 3, Profile.V4_9),
        (20_000, 1, Profile.V5_X),
        (6_100, 1, Profile.V4_9),  # a message a minute for each queue
    ],
)
def test_a_clean_history_of_any_size_is_valid_to_every_check(
    events: int, seed: int, profile: Profile, spark: Any, tmp_path: Path
) -> None:
    from nemesrv.chaos.checks.spark.judge import check_run

    generate.write(tmp_path, events=events, seed=seed, profile=profile)
    assert {v.name: v.verdict for v in check_run(tmp_path, CHECKS, spark)} == {
        **dict.fromkeys(CHECKS, Validity.VALID),
        **NOTHING_BY_HAND,
    }


@pytest.mark.spark
@pytest.mark.parametrize("defect", generate.DEFECTS)
def test_a_planted_defect_is_found_by_its_checks(defect: str, spark: Any, tmp_path: Path) -> None:
    from nemesrv.chaos.checks.spark.judge import check_run

    history.write_parquet(generate.random_rows(3, defect), tmp_path)
    names = sorted(generate.DEFECTS[defect].found_by)
    assert {v.name: v.verdict for v in check_run(tmp_path, names, spark)} == dict.fromkeys(names, Validity.INVALID)


@pytest.mark.spark
def test_a_history_planned_as_a_large_one_gets_the_same_verdicts(spark: Any, tmp_path: Path) -> None:
    from nemesrv.chaos.checks.spark.judge import check_run

    history.write_parquet(generate.random_rows(3, "lost_message"), tmp_path)
    names = ["routes_are_true", "no_acknowledged_loss", "order_kept"]
    small = check_run(tmp_path, names, spark)
    with planned_as_large(spark):
        large = check_run(tmp_path, names, spark)
        assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    assert large == small
    assert [verdict.verdict for verdict in large] == [Validity.VALID, Validity.INVALID, Validity.VALID]

"""Of a generated history the checks find nothing, and by Spark what small and large ones lack."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.history import rows as history
from nemesrv.chaos.verdict import Validity, Verdict
from nemesrv.remoting.node.profile import Profile
from tests import generate

ALL_VALID = dict.fromkeys(CHECKS, Validity.VALID)
OF_SMALL = {
    **ALL_VALID,
    "done_by_hand": Validity.UNKNOWN,  # nobody does anything by hand
    "dead_name_servers_left": Validity.UNKNOWN,  # no NameServer is lost
}
"""A history of fewer than 40,000 rows has a shorter run behind it, in which less happens."""


def said(found: list[Verdict]) -> dict[str, Validity]:
    return {verdict.name: verdict.verdict for verdict in found}


@pytest.mark.parametrize("profile", Profile)
def test_a_small_clean_history_is_valid_to_every_check(profile: Profile, tmp_path: Path) -> None:
    generate.write(tmp_path, events=12_000, seed=1, profile=profile)
    assert said(verdicts(tmp_path)) == OF_SMALL


@pytest.mark.nightly("test_a_small_clean_history_is_valid_to_every_check")
@pytest.mark.spark
def test_a_clean_history_of_200000_events_is_valid_to_every_check_by_spark(spark: Any, tmp_path: Path) -> None:
    from nemesrv.chaos.checks.spark.judge import check_run

    generate.write(tmp_path, events=200_000, seed=1)
    assert said(check_run(tmp_path, CHECKS, spark)) == ALL_VALID


@pytest.mark.spark
def test_a_planned_history_gets_the_same_verdicts(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nemesrv.chaos.checks.spark import settings
    from nemesrv.chaos.checks.spark.judge import check_run

    rows = generate.rows_of(8_000, 3)
    lost = next(row["msg_key"] for row in rows if row["event"] == "receive")
    for row in rows:
        if row["event"] in ("receive", "read") and row["msg_key"] == lost:
            row["msg_key"] = "another"
    history.write_parquet(rows, tmp_path)
    names = ["routes_are_true", "no_acknowledged_loss", "order_kept"]
    small = check_run(tmp_path, names, spark)
    monkeypatch.setattr(settings, "SMALL_BYTES", 0)
    try:
        large = check_run(tmp_path, names, spark)
        assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    finally:  # plans of a large history generate code, which takes longer in the tests that follow
        settings.use(spark, settings.SMALL_PLANS)
    assert large == small
    assert [verdict.verdict for verdict in large] == [Validity.VALID, Validity.INVALID, Validity.VALID]

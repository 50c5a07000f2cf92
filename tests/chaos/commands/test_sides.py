"""`nemesrv compare` of implementations: which scenario each side runs, and what is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesrv.chaos.commands.sides import CompareOptions, is_implementation, refuse_other, scenarios_of
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.history.rows import write_parquet
from tests.chaos.builder import cluster
from tests.chaos.programs import nemesrv


@pytest.mark.parametrize("word", ["ours", "apache", "apache-4.9.7", "apache:/opt/rocketmq"])
def test_a_side_may_be_an_implementation(word: str) -> None:
    assert is_implementation(word)


def test_a_run_folder_is_none(tmp_path: Path) -> None:
    assert not is_implementation(str(tmp_path))
    assert not is_implementation("runs/latest")


def test_both_sides_run_the_same_scenario_under_the_profile_of_apaches_programs() -> None:
    ours, theirs = scenarios_of(("ours", "apache-5.3.3"), CompareOptions(scenario="broker-crash"))
    assert (ours.cluster.profile, theirs.cluster.profile) == ("5.x", "5.x")
    assert (ours.cluster.implementation, theirs.cluster.implementation) == ("ours", "apache-5.3.3")
    assert ours.timers.time_scale == theirs.timers.time_scale
    same = {"cluster": ours.cluster}
    assert theirs.model_copy(update=same) == ours


def test_apache_alone_is_the_version_of_the_scenarios_own_profile() -> None:
    sets = ("settle_s=90",)
    (_, theirs), (_, other) = (
        scenarios_of(("ours", "apache"), CompareOptions(scenario="smoke", sets=each))
        for each in (sets, (*sets, "cluster.profile='5.x'"))
    )
    assert (theirs.cluster.implementation, other.cluster.implementation) == ("apache-4.9.7", "apache-5.3.3")
    assert theirs.settle_s == 90


def test_versions_that_obey_different_windows_are_not_compared() -> None:
    with pytest.raises(ScenarioError, match="versions of one profile"):
        scenarios_of(("apache-4.9.7", "apache-5.3.3"), CompareOptions(scenario="smoke"))


def test_with_a_scenario_both_sides_are_implementations(tmp_path: Path) -> None:
    for words, folders in ((("ours", str(tmp_path)), ()), (("ours",), ()), (("ours", "apache"), (tmp_path,))):
        with pytest.raises(ScenarioError, match="with --scenario two of ours, apache or apache-VERSION"):
            refuse_other(words, folders)


def test_what_is_for_runs_only_is_refused_of_recorded_ones(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_parquet(cluster().end(10).rows, tmp_path / name)
    done = nemesrv("compare", "a", "b", "--runs", "2", cwd=tmp_path)
    assert done.returncode == 2
    assert "compare: --runs: allowed is a scenario, or --scenario, with it" in done.stderr

"""No check finds anything in right nodes, whatever happens to them: a few of the random scenarios."""

from pathlib import Path

import pytest

from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import fixed, load, shipped
from tests.chaos.experiment.virtual.random_scenarios import random_scenario, takes_one_topic_for_all, told, wrong


@pytest.mark.nightly_but("1")
@pytest.mark.parametrize("seed", range(6))
def test_no_check_says_invalid_of_a_random_scenario(tmp_path: Path, seed: int) -> None:
    assert wrong(seed, tmp_path) == [], told(random_scenario(seed))


def test_what_a_name_server_of_4_9_does_wrong_by_itself_is_told_apart(tmp_path: Path) -> None:
    incident = shipped("incidents")["i07-topic-before-the-first-tick"]
    folders = [
        record_virtual(scenario, 1, tmp_path / scenario.cluster.profile).path
        for scenario in (load(incident), fixed(incident))
    ]
    assert [takes_one_topic_for_all(read_rows(folder)) for folder in folders] == [True, False]

"""The incidents on Apache's servers, of which the proof by Apache's own logs consists."""

from pathlib import Path

import pytest

from nemesrv.chaos.apache import libfaketime
from nemesrv.chaos.scenarios.loading import parse
from tests.interop.conftest import need
from tests.interop.jars import Jars

from .apache_incidents import SCENARIOS
from .apache_proof import compared, ran


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_incident_is_one_fault_of_apaches_servers_and_clients(name: str) -> None:
    scenario = parse(SCENARIOS[name], file=f"{name}.yaml")
    assert len(scenario.timeline) == 2
    assert str(scenario.cluster.implementation).startswith("apache-")


@pytest.mark.nightly("operations/importing/test_importing.py::test_apaches_own_logs_are_not_called_wrong")
@pytest.mark.e2e
@pytest.mark.ray
@pytest.mark.spark
@pytest.mark.toxiproxy
@pytest.mark.java
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["one-way-4", "clean-stop-5", "hang-5", "claimed-4"])
def test_the_fault_is_first_by_apaches_own_logs_and_nothing_wrong_is_certain(name: str, tmp_path: Path) -> None:
    """Four of the sixteen of `python -m tests.operations.importing.apache_proof`."""
    need(Jars.SERVERS_4_9, Jars.SERVERS_5_X)
    if libfaketime.found() is None:
        pytest.skip("libfaketime is not installed (apt-get install faketime)")
    ran(name, tmp_path)
    one = compared(name, tmp_path)
    assert one.named_first, one.told()
    assert not one.wrongly_certain, one.told()
    assert one.transitions >= 8, one.told()

"""Legal but odd: what once was a false alarm is none, and what the rule was for is still found in the same scenario."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import found_defect, parse
from nemesrv.chaos.scenarios.model import Scenario
from tests.chaos.judged import found_wrong

ODD: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("odd.yaml").read_text(encoding="utf-8"))
QUICK = (
    "a restart of a broker that still runs",
    "a NameServer lost at the first send",
    "zones that are lost to one another for longer than the expiry",
    "a NameServer that comes back at another address",
)


def scenario(what: str) -> Scenario:
    odd = {key: value for key, value in ODD[what].items() if key != "finds"}
    odd["cluster"] = {"name_servers": 2, "brokers": 2, **odd.get("cluster", {})}
    odd["workload"] = {"client_starts": 0, "sends_per_s": 2, **odd.get("workload", {})}
    return parse({"settle_s": 60, **odd, "checks": ["routes_are_true"]}, file="odd.yaml")


@pytest.mark.nightly_but(*QUICK, *(what for what in ODD if "finds" not in ODD[what]))
@pytest.mark.parametrize("what", ODD)
def test_it_is_no_alarm(what: str, tmp_path: Path) -> None:
    assert found_wrong(record_virtual(scenario(what), 1, tmp_path / "run").path) == {}


@pytest.mark.nightly_but(*QUICK)
@pytest.mark.parametrize("what", [what for what in ODD if "finds" in ODD[what]])
def test_what_the_rule_was_for_is_still_found_there(what: str, tmp_path: Path) -> None:
    ((defect, check),) = ODD[what]["finds"].items()
    folder = record_virtual(scenario(what), 1, tmp_path / "run", found_defect(defect, file="odd.yaml"))
    assert check in found_wrong(folder.path)

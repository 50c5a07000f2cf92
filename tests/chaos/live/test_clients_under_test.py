"""`nemesrv up --client`: a program that knows nothing of us is judged by its profile, and /bin/false is not VALID."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.history.rows import read_rows
from nemesrv.remoting.node.network import Address
from tests.chaos.programs import running

DRIVER = Path(__file__).parents[2] / "clients_matrix" / "drivers" / "ours.py"
CHECKS = "name_server_selection,availability"
BIND = "127.0.0.2"
"""Where programs of other hosts would dial."""
pytestmark = [
    pytest.mark.nightly("chaos/fronts/test_rows.py::test_who_breaks_its_profile_is_invalid_from_outside"),
    pytest.mark.e2e,
    pytest.mark.ray,
    pytest.mark.spark,
    pytest.mark.toxiproxy,
    pytest.mark.timeout(600),
]


def up_with(run: Path, for_s: int, command: list[str]) -> tuple[int, dict[str, Any], dict[str, dict[str, Any]]]:
    """Exit status, first line, and the verdicts by name; the client program is ended before the cluster ends."""
    args = ("up", "--brokers", "2", "--json", "--client", "mine:java-4.9", "--check", CHECKS, "--for", str(for_s))
    with running(*args, "--bind", BIND, "--out", str(run), cwd=run.parent) as up:
        first = json.loads(next(up.stdout))
        told = {"NAMESRV_ADDR": ";".join(first["clients"]["mine"]["name_servers"])}
        told |= {"NEMESRV_TOPIC": "orders", "NEMESRV_GROUP": "g", "NEMESRV_ROLE": "producer"}
        program = subprocess.Popen(command, env=os.environ | told, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        try:
            up.end(within_s=240)
        finally:
            program.kill()
            program.communicate()
    verdicts = json.loads((run / "verdicts.json").read_text())["checks"]
    assert up.process.returncode is not None
    return up.process.returncode, first, {verdict["name"]: verdict for verdict in verdicts}


def test_a_program_is_judged_by_its_profile_without_a_line_in_it(tmp_path: Path) -> None:
    status, first, verdicts = up_with(tmp_path / "run", 25, [sys.executable, str(DRIVER), "4.9"])
    assert status == 0, verdicts
    for verdict in verdicts.values():
        [clients] = verdict["clients"]
        assert (clients["implementation"], clients["profile"], clients["kind"]) == ("mine", "java-4.9", "producer")
        assert verdict["examined"] > 0
    assert sum(verdicts["name_server_selection"]["measured"]["first_choices_of"]["mine"].values()) == 1
    of_all = [*first["name_servers"], *(of["0"] for of in first["brokers"].values())]
    own = [*first["clients"]["mine"]["name_servers"], *(of["0"] for of in first["clients"]["mine"]["brokers"].values())]
    assert {Address.parse(each).host for each in (*of_all, *own)} == {BIND}
    told = {address for row in read_rows(tmp_path / "run") if row["node"] == "mine" if (address := row["address"])}
    assert told <= {*of_all}


def test_a_client_that_is_bin_false_makes_its_checks_unknown(tmp_path: Path) -> None:
    status, _, verdicts = up_with(tmp_path / "run", 5, ["/bin/false"])
    assert status == 3
    assert {verdict["verdict"] for verdict in verdicts.values()} == {"UNKNOWN"}

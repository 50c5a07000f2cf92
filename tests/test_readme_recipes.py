"""README's recipes run as written; `./my-client` is a client of ours, the watched cluster one that is up."""

import json
import re
import shlex
import signal
import sys
from pathlib import Path

import pytest

from tests.chaos.programs import nemesrv, running
from tests.test_tutorial import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.ray, pytest.mark.spark, pytest.mark.toxiproxy, pytest.mark.timeout(1200)]
RECIPES = dict(
    re.findall(
        r"^## Recipe: ([^\n]*)\n\n```sh recipe\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.M
    )
)


def commands(recipe: str) -> list[list[str]]:
    """The words of each line that begins with nemesrv."""
    lines = [shlex.split(line, comments=True) for line in RECIPES[recipe].splitlines()]
    return [words[1:] for words in lines if words[:1] == ["nemesrv"]]


@pytest.mark.nightly("deploy/test_workflows.py::test_the_gate_runs_every_seed_and_then_fails_if_one_was_red")
def test_a_ci_job(tmp_path: Path) -> None:
    for words in commands("a CI job"):
        done = nemesrv(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    assert len([*tmp_path.glob("runs/*/*/junit.xml")]) >= 3 <= len([*tmp_path.glob("runs/*/*/report.html")])


@pytest.mark.nightly("conformance/test_command.py::test_a_run_leaves_every_rule_and_each_processs_output")
def test_your_client(tmp_path: Path) -> None:
    conform, up, *faults = commands("your client")
    client = tmp_path / "my-client"
    client.write_text(f"#!/bin/sh\nexec {sys.executable} {ROOT}/tests/clients_matrix/drivers/ours.py 5.x\n")
    client.chmod(0o755)
    done = nemesrv(*conform, cwd=tmp_path, timeout_s=900)
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    assert "kept in runs/conform/" in done.stdout
    (watch,) = (words for words in commands("last night's incident") if words[0] == "watch")
    with running(*up, cwd=tmp_path) as cluster:
        servers = json.loads(next(cluster.stdout))["name_servers"]
        looked = nemesrv(*[";".join(servers) if ":" in word else word for word in watch], cwd=tmp_path)
        assert looked.returncode == 0, looked.stdout + looked.stderr
        for words in faults:
            told = nemesrv(*words, cwd=tmp_path)
            assert told.returncode == 0, told.stdout + told.stderr
        cluster.end(signal.SIGINT)
    assert cluster.left() == []


@pytest.mark.nightly("operations/importing/test_importing.py::test_the_folder_has_what_a_run_s_has")
def test_last_nights_incident(tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    for words in commands("last night's incident"):
        if words[0] != "watch":
            done = nemesrv(*words, cwd=tmp_path, timeout_s=600)
            assert done.returncode in (0, 3), done.stdout + done.stderr
    assert (tmp_path / "incident" / "incident.json").is_file()
    assert (tmp_path / "again" / "scenario.yaml").is_file()

"""The worked example of a user's project (tests/example), with the built wheel in an environment of its own."""

import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.packaging.wheels import ROOT, environment_with
from tests.ran import ran

EXAMPLE = ROOT / "tests" / "example"

pytestmark = [pytest.mark.e2e, pytest.mark.ray, pytest.mark.spark, pytest.mark.toxiproxy]


def example(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", "--junitxml=junit.xml", *arguments]
    return ran(command, cwd=folder, timeout=280)


def properties(folder: Path) -> dict[str, dict[str, str]]:
    """Test name to its JUnit properties."""
    cases = ET.parse(folder / "junit.xml").getroot().iter("testcase")
    return {
        case.attrib["name"]: {each.attrib["name"]: each.attrib["value"] for each in case.iter("property")}
        for case in cases
    }


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment_with(wheel, tmp_path_factory.mktemp("example"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "orders-service"))


FAILING = """
import pytest

@pytest.mark.nemesrv(clock="virtual", checks=["dead_brokers_avoided"], seed=7)
def test_that_looks_at_nothing(nemesrv_cluster):
    nemesrv_cluster.wait(1)
"""


@pytest.mark.nightly("packaging/test_wheel.py::test_the_wheel_and_a_hosts_own_clients_package_do_not_meet")
def test_the_example_passes_and_its_failing_test_says_how_to_replay_it(python: Path, project: Path) -> None:
    (project / "tests" / "test_wrong.py").write_text(FAILING)
    done = example(python, project, "--nemesrv-summary", "summary.md")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 2 passed" in done.stdout, done.stdout
    assert "NotValid: dead_brokers_avoided is UNKNOWN" in done.stdout
    assert (
        "replay: pytest tests/test_wrong.py::test_that_looks_at_nothing --nemesrv-seed 7 --nemesrv-clock virtual\n"
        in done.stdout
    )
    found = properties(project)
    for name in ("test_the_routes_survive_a_partition", "test_our_own_client_finds_the_broker_again_after_a_crash"):
        run = project / found[name]["nemesrv_run"]
        for file in ("scenario.yaml", "verdicts.json", "junit.xml", "report.html", "history/part-00000.parquet"):
            assert (run / file).is_file(), file
        assert f"seed: {found[name]['nemesrv_seed']}" in (run / "scenario.yaml").read_text()
    summary = (project / "summary.md").read_text()
    assert summary.count("### ✅") == 2
    assert summary.count("### ❔") == 1

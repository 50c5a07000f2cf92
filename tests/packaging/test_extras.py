"""What `pip install nemesrv` installs is enough for what needs no cluster, and says what the rest needs."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from nemesrv.chaos.installation import EXTRAS
from tests import generate
from tests.packaging.wheels import base_environment_with, requirements_of
from tests.ran import ran


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base_environment_with(wheel, tmp_path_factory.mktemp("base"))


def nemesrv(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return ran([str(python), "-m", "nemesrv.chaos", *arguments], cwd=python.parents[2], env={"PATH": "/usr/bin:/bin"})


def pip(wheel: Path, extra: str) -> str:
    """The command that installs the extra."""
    return f'python -m pip install "{wheel}[{extra}]"'


def test_each_optional_part_is_an_extra_of_the_wheel_and_all_is_all_of_them(wheel: Path) -> None:
    requirements = [Requirement(text) for text in requirements_of(wheel)]
    of = {
        extra: {each.name for each in requirements if each.marker and each.marker.evaluate({"extra": extra})}
        - {each.name for each in requirements if each.marker and each.marker.evaluate({"extra": ""})}
        for extra in (*EXTRAS, "all")
    }
    assert of == {
        "ray": {"ray", "requests", "tenacity", "toxiproxy-python"},
        "spark": {"pyspark"},
        "report": {"bokeh"},
        "statistics": {"scipy"},
        "watch": {"prometheus-client"},
        "all": {"nemesrv"},
    }
    for_all = [each for each in requirements if each.marker and each.marker.evaluate({"extra": "all"})]
    (everything,) = [each for each in for_all if each.name == "nemesrv"]
    assert everything.extras == set(EXTRAS)
    always = {each.name for each in requirements if each.marker is None}
    assert not always & {"ray", "pyspark", "bokeh", "scipy", "toxiproxy-python"}


def test_without_extras_a_run_on_the_virtual_clock_is_judged_and_judged_again(python: Path, wheel: Path) -> None:
    """And there is no Java here."""
    assert "broker-partition" in nemesrv(python, "scenarios").stdout
    run = nemesrv(python, "run", "smoke", "--clock", "virtual", "--seed", "1", "--out", "judged")
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.startswith("VALID smoke (seed 1, ")
    assert run.stdout.endswith(f"no report.html, which needs bokeh: {pip(wheel, 'report')}\n")
    folder = python.parents[2] / "judged"
    first = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    assert (first["engine"], first["verdict"]) == ("plain", "VALID")
    assert (folder / "junit.xml").is_file()
    again = nemesrv(python, "check", "judged", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["checks"] == first["checks"]


def test_without_spark_a_history_that_is_too_large_for_plain_python_is_one_sentence(python: Path, wheel: Path) -> None:
    generate.write(python.parents[2] / "large", events=310_000, seed=1)
    done = nemesrv(python, "check", "large")
    said = (
        r"nemesrv: large has \d\d\d,\d\d\d rows, and 300,000 are judged without Spark: "
        rf"{re.escape(pip(wheel, 'spark'))} "
        r"\(it needs a JDK 17 or newer\), and judge it with `nemesrv check large`\n"
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert re.fullmatch(said, done.stderr), done.stderr


@pytest.mark.nightly_but("of all")
@pytest.mark.parametrize("command", ["", "namesrv", "broker", "admin"], ids=lambda command: command or "of all")
def test_without_extras_there_is_help(python: Path, command: str) -> None:
    assert nemesrv(python, *command.split(), "--help").returncode == 0


SENTENCES = {  # each ends in the extra that pip is to install
    "run smoke": "nemesrv run needs ray, which is not installed: ray",
    "run smoke --clock virtual --engine spark": "--engine spark needs pyspark, which is not installed: spark",
    "up": "nemesrv up needs ray, which is not installed: ray",
    "check hdfs://host/run": "hdfs://host/run, which is not on this machine, needs pyspark, which is not installed: "
    "spark",
    "report .": "the report needs bokeh, which is not installed: report",
    "compare . .": "nemesrv compare needs scipy, which is not installed: statistics",
    "watch -n 127.0.0.1:9 --metrics 0": "--metrics needs prometheus_client, which is not installed: watch",
}


@pytest.mark.nightly_but("run smoke", "compare . .")
@pytest.mark.parametrize("command", SENTENCES)
def test_a_command_without_its_extra_says_the_line_for_pip(python: Path, wheel: Path, command: str) -> None:
    done = nemesrv(python, *command.split())
    sentence, _, extra = SENTENCES[command].rpartition(" ")
    assert (done.returncode, done.stdout, done.stderr) == (4, "", f"nemesrv: {sentence} {pip(wheel, extra)}\n")


MARKED = """
import pytest

@pytest.mark.nemesrv(clock="virtual", seed=7)
def test_mine(nemesrv_cluster):
    nemesrv_cluster.wait(40)
    nemesrv_cluster.must_be_valid()

@pytest.mark.nemesrv(clock="real")
def test_on_the_machines_clock(nemesrv_cluster): ...
"""


def test_without_extras_the_plugin_serves_tests_on_the_virtual_clock(python: Path, wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(MARKED)
    done = ran([str(python), "-m", "pytest", "-p", "no:cacheprovider"], cwd=tmp_path, env={"PATH": "/usr/bin:/bin"})
    said = f"nemesrv: nemesrv_cluster on the real clock needs ray, which is not installed: {pip(wheel, 'ray')}"
    assert (done.returncode, said in done.stdout) == (1, True), done.stdout + done.stderr
    assert "1 passed, 1 error" in done.stdout, done.stdout
    assert "pytest_plugin.py" not in done.stdout

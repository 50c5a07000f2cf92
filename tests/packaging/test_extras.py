"""What `pip install nemesrv` installs is enough for what needs no cluster, and says what the rest needs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from nemesrv.chaos.installation import EXTRAS
from tests.packaging.wheels import base_environment_with, requirements_of

RECORDED = """
import sys
from pathlib import Path
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import find
print(len(list(record_virtual(find("smoke"), 1, Path(sys.argv[1])).path.glob("history/*.parquet"))))
"""


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base_environment_with(wheel, tmp_path_factory.mktemp("base"))


def nemesrv(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), "-m", "nemesrv.chaos", *arguments],
        cwd=python.parents[2],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


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
    (everything,) = [each for each in requirements if each.name == "nemesrv"]
    assert everything.extras == set(EXTRAS)
    always = {each.name for each in requirements if each.marker is None}
    assert not always & {"ray", "pyspark", "bokeh", "scipy", "toxiproxy-python"}


def test_without_extras_what_needs_none_works(python: Path) -> None:
    assert "broker-partition" in nemesrv(python, "scenarios").stdout
    done = subprocess.run(
        [str(python), "-c", RECORDED, "run"],
        cwd=python.parents[2],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "1\n", done.stderr


@pytest.mark.parametrize("command", ["", "namesrv", "broker", "admin"], ids=lambda command: command or "of all")
def test_without_extras_there_is_help(python: Path, command: str) -> None:
    assert nemesrv(python, *command.split(), "--help").returncode == 0


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("run smoke", "nemesrv run needs ray and pyspark, which are not installed: pip install 'nemesrv[ray,spark]'"),
        ("run smoke --clock virtual", "nemesrv run needs pyspark, which is not installed: "
         "pip install 'nemesrv[spark]'"),
        ("up", "nemesrv up needs ray, which is not installed: pip install 'nemesrv[ray]'"),
        ("check .", "nemesrv check needs pyspark, which is not installed: pip install 'nemesrv[spark]'"),
        ("report .", "the report needs bokeh, which is not installed: pip install 'nemesrv[report]'"),
        ("compare . .", "nemesrv compare needs scipy, which is not installed: pip install 'nemesrv[statistics]'"),
        ("watch -n 127.0.0.1:9 --metrics 0", "--metrics needs prometheus_client, which is not installed: "
         "pip install 'nemesrv[watch]'"),
    ],
)  # fmt: skip
def test_a_command_without_its_extra_says_the_sentence_and_the_line_for_pip(
    python: Path, command: str, sentence: str
) -> None:
    done = nemesrv(python, *command.split())
    assert (done.returncode, done.stdout, done.stderr) == (4, "", f"nemesrv: {sentence}\n")


MARKED = """
import pytest

@pytest.mark.nemesrv(clock="virtual")
def test_mine(nemesrv_cluster): ...
"""


def test_the_plugin_without_spark_is_one_sentence(python: Path, tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(MARKED)
    done = subprocess.run(
        [str(python), "-m", "pytest", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = "nemesrv: nemesrv_cluster on the virtual clock needs pyspark, which is not installed: pip install"
    assert (done.returncode, said in done.stdout) == (1, True), done.stdout + done.stderr
    assert "pytest_plugin.py" not in done.stdout

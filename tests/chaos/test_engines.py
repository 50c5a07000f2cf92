"""Who judges, and that a history cut into parts is judged as the whole one, down to each example and finding."""

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner

from nemesrv.chaos import judging
from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.checks.spark.judge import check_run
from nemesrv.chaos.commands.options import engine_asked
from nemesrv.chaos.errors import HarnessError, ScenarioError
from nemesrv.chaos.installation import EXTRAS
from nemesrv.chaos.judging import Engine, engine_for, find, judge
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import fixed, load, shipped
from tests import generate
from tests.chaos.builder import said
from tests.chaos.experiment.virtual.random_scenarios import random_scenario
from tests.chaos.parts import verdicts_in_parts
from tests.ran import ran


def no_spark() -> NoReturn:
    raise AssertionError("Spark is not needed for this")


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "has", lambda extra: extra != "spark")

    def lacks(what: str, *extras: str) -> None:
        if "spark" in extras:
            raise HarnessError(f"{what} needs pyspark")

    monkeypatch.setattr(judging, "require_extras", lacks)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    generate.write(tmp_path / "small", events=2_000, seed=1)
    return tmp_path / "small"


def test_spark_judges_but_for_what_is_recorded_on_the_virtual_clock(small: Path) -> None:
    assert engine_for(None) is engine_for(None, where=small) is Engine.SPARK
    assert engine_for(None, virtual=True) is engine_for(None, virtual=True, where=small) is Engine.PLAIN
    assert engine_for("plain", where=small) is Engine.PLAIN
    assert engine_for("spark", virtual=True) is Engine.SPARK


def test_the_help_of_check_says_that_spark_judges_what_the_virtual_clock_recorded_too() -> None:
    said = " ".join(CliRunner().invoke(cli, ["check", "--help"]).output.split())
    assert "Spark judges all histories if Spark is installed, also the small ones of the virtual clock" in said


def test_spark_judges_what_plain_python_cannot_take(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "PLAIN_ROWS_MAX", 1_000)
    assert engine_for(None, virtual=True, where=small) is Engine.SPARK
    with pytest.raises(HarnessError, match=r"rows, and 1,000 are judged without Spark: leave --engine plain out, and"):
        judge(find(str(small), None, no_spark), Engine.PLAIN, no_spark)


@pytest.mark.usefixtures("without_spark")
def test_plain_python_judges_everything_where_spark_is_not_installed(small: Path) -> None:
    assert engine_for(None) is engine_for(None, where=small) is Engine.PLAIN
    with pytest.raises(HarnessError, match="--engine spark needs pyspark"):
        engine_for("spark")
    with pytest.raises(HarnessError, match="hdfs://host/run, which is not on this machine, needs pyspark"):
        engine_for(None, where="hdfs://host/run")


def test_wrong_pairs_of_options_are_refused() -> None:
    assert engine_asked(None, "local[4]") == engine_asked("spark", "local[4]") == "spark"
    with pytest.raises(ScenarioError, match="--spark-master"):
        engine_asked("plain", "local[4]")
    with pytest.raises(ScenarioError, match="--engine: plain is not allowed; expected spark for s3a://bucket/run"):
        engine_for("plain", where="s3a://bucket/run")


def test_a_run_on_the_virtual_clock_is_judged_without_the_parts_that_it_does_not_need(tmp_path: Path) -> None:
    modules = {module for modules in EXTRAS.values() for module in modules} - {"bokeh"}
    program = (
        f"import atexit, sys; atexit.register(lambda: print('parts:', *sorted({modules!r} & set(sys.modules)))); "
        "from nemesrv.chaos.__main__ import main; main()"
    )
    arguments = ["run", "smoke", "--clock", "virtual", "--seed", "1", "--json", "-q", "--out", str(tmp_path / "run")]
    done = ran([sys.executable, "-c", program, *arguments])
    printed = done.stdout.splitlines()
    assert (done.returncode, {*printed[1:]}) == (0, {"parts:"}), (
        done.stderr
    )  # of the command, and of who watches over it
    assert json.loads(printed[0])["engine"] == "plain"
    assert json.loads((tmp_path / "run" / "verdicts.json").read_text(encoding="utf-8"))["engine"] == "plain"
    assert (tmp_path / "run" / "report.html").is_file()


def whole_and_cut_say_the_same(folder: Path) -> None:
    whole = {verdict.name: said(verdict) for verdict in verdicts(folder)}
    assert whole == {verdict.name: said(verdict) for verdict in verdicts_in_parts(folder)}
    assert whole.keys() == CHECKS.keys()


SCENARIOS = {**shipped(), **shipped("drills")}


@pytest.mark.spark
@pytest.mark.parametrize("name", ["broker-partition", "slave-reads"])
def test_spark_says_what_plain_python_says(name: str, spark: Any, tmp_path: Path) -> None:
    folder = record_virtual(load(SCENARIOS[name]), 1, tmp_path / "run").path
    whole = {verdict.name: said(verdict) for verdict in verdicts(folder)}
    assert whole == {verdict.name: said(verdict) for verdict in check_run(folder, list(whole), spark)}


@pytest.mark.nightly_but("broker-crash")
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_shipped_scenario_is_judged_alike_whole_and_cut_into_parts(name: str, tmp_path: Path) -> None:
    whole_and_cut_say_the_same(record_virtual(load(SCENARIOS[name]), 1, tmp_path / "run").path)


@pytest.mark.nightly("test_a_shipped_scenario_is_judged_alike_whole_and_cut_into_parts")
@pytest.mark.parametrize("seed", [9027, 9061])
def test_a_random_scenario_is_judged_alike_whole_and_cut_into_parts(seed: int, tmp_path: Path) -> None:
    whole_and_cut_say_the_same(record_virtual(random_scenario(seed), seed, tmp_path / "run").path)


@pytest.mark.nightly_but("i04-accepts-and-does-not-answer-reported")
@pytest.mark.parametrize("is_fixed", [False, True], ids=["reported", "fixed"])
@pytest.mark.parametrize("name", shipped("incidents"))
def test_an_incident_is_judged_alike_whole_and_in_parts(name: str, is_fixed: bool, tmp_path: Path) -> None:
    file = shipped("incidents")[name]
    whole_and_cut_say_the_same(record_virtual(fixed(file) if is_fixed else load(file), 1, tmp_path / "run").path)

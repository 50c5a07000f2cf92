"""Wrong words and wrong values of options are told in one line, with what is allowed and nothing started."""

import shlex
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.commands import ending
from nemesrv.chaos.commands.ending import explain
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.history.rows import write_parquet
from nemesrv.chaos.history.stored import parquet_files
from tests.chaos.builder import cluster
from tests.chaos.programs import nemesrv as typed
from tests.refusals import is_told

from .servers import Admin

REFUSED: dict[str, str] = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("run",), "SCENARIO"),
        (("namesrv", "-c", "absent.properties"), "absent.properties"),
        (("broker", "-n", "nonsense"), "nonsense"),
        (("repot",), "No such command 'repot'; did you mean report?"),
    ],
)
def test_a_wrong_command_is_one_line_on_stderr_and_exit_status_2(
    args: tuple[str, ...], says: str, nemesrv: Admin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = nemesrv(*args)
    assert (done.status, done.out, len(done.err.splitlines())) == (2, "", 1), done
    assert says in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("words", "sentence"), REFUSED.items())
def test_a_command_that_cannot_be_is_refused_in_this_sentence(
    words: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ending, "_from_a_shell", False)  # whatever another test made of this process
    (tmp_path / "a-file").touch()
    (tmp_path / "empty.yaml").touch()
    with pytest.raises((click.ClickException, ScenarioError)) as told:
        cli.main(shlex.split(words), prog_name="nemesrv", standalone_mode=False)
    status, line = explain(told.value)
    assert status == 2
    assert is_told(sentence, line), line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-file", "empty.yaml"]


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "spark://host:7077", "yarn", "k8s://https://host"])
def test_every_kind_of_sparks_masters_is_taken(master: str) -> None:
    run = cli.commands["run"]
    assert run.make_context("run", ["smoke", "--spark-master", master]).params["spark_master"] == master


def test_what_is_for_runs_only_is_refused_of_recorded_ones(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_parquet(cluster().end(10).rows, tmp_path / name)
    done = typed("compare", "a", "b", "--runs", "2", cwd=tmp_path)
    assert done.returncode == 2
    assert "compare: --runs: expected a scenario with it" in done.stderr


@pytest.mark.parametrize("words", ["compare a b", "compare b a", "replay a", "report a"])
def test_a_history_that_is_cut_off_is_refused_by_its_file(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        write_parquet(cluster().end(10).rows, tmp_path / name)
    (tmp_path / "a" / "scenario.yaml").write_text("checks: [order_kept]")
    (tmp_path / "a" / "verdicts.json").write_text('{"checks": []}')
    (whole,) = parquet_files(tmp_path / "a")
    whole.write_bytes(whole.read_bytes()[:-100])
    error = CliRunner().invoke(cli, shlex.split(words), standalone_mode=False).exception
    assert error is not None
    sentence = f"{whole.relative_to(tmp_path)}: expected a whole Parquet file; this one is cut off, or is none"
    assert explain(error) == (2, sentence)


def test_a_replay_names_the_wrong_key_of_a_scenario_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_parquet(cluster().end(10).rows, tmp_path / "a")
    (tmp_path / "a" / "scenario.yaml").write_text("colour: blue")
    error = CliRunner().invoke(cli, ["replay", "a"], standalone_mode=False).exception
    assert is_told("the scenario of a: colour: 'blue' → one of the keys …", str(error)), error

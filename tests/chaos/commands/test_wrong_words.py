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


def test_a_run_folder_that_cannot_be_made_is_said_before_anything_is_started() -> None:
    error = CliRunner().invoke(cli, ["run", "smoke", "--out", "/proc/x"], standalone_mode=False).exception
    assert error is not None
    status, said = explain(error)
    assert (status, said.partition(": ")[0]) == (4, "the run folder /proc/x cannot be made")


def test_what_is_for_runs_only_is_refused_of_recorded_ones(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_parquet(cluster().end(10).rows, tmp_path / name)
    done = typed("compare", "a", "b", "--runs", "2", cwd=tmp_path)
    assert done.returncode == 2
    assert "compare: --runs: expected a scenario with it" in done.stderr

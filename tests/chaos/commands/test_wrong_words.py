"""Wrong words and wrong values of options are told in one line, with what is allowed and nothing started."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.commands import ending
from nemesrv.chaos.commands.ending import explain
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.history.rows import write_parquet
from tests.chaos.builder import cluster
from tests.chaos.programs import nemesrv as typed

from .servers import Admin


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("run",), "SCENARIO"),
        (("explode",), "explode"),
        (("namesrv", "-c", "absent.properties"), "absent.properties"),
        (("broker", "-n", "nonsense"), "nonsense"),
        (("repot",), "No such command 'repot'; did you mean report?"),
        (("nosuch",), "No such command 'nosuch': see "),
        (("admin", "topiclist"), "No such command 'topiclist'; did you mean topicList?"),
        (("up", "--bind", "192.0.2.1"), "'192.0.2.1' is not allowed; expected an IPv4 address of this machine"),
        (("fault", "kill"), "nemesrv fault: kill: it needs a node"),
        (("fault", "kil", "ns-0"), "did you mean kill?"),
        (("report", "nofolder"), "nofolder: no such run folder"),
        (("explain", "nofile.yaml"), "nofile.yaml: no such file"),
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


def refused(*args: str, expected: str) -> tuple[tuple[str, ...], str]:
    """Arguments of which the last is the value of the one before it, and what is said of that."""
    return args, f"'{args[-2]}': '{args[-1]}' is not allowed; expected {expected}"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        refused("run", "smoke", "--seed", "x", expected="a whole number of at least 0"),
        refused("run", "smoke", "--seed", "1.5", expected="a whole number of at least 0"),
        refused("run", "smoke", "--time-scale", "nan", expected="a number above 0 and at most 100"),
        refused("run", "smoke", "--time-scale", "0", expected="a number above 0 and at most 100"),
        refused(
            "run", "smoke", "--spark-master", "foo", expected="spark://HOST:PORT, yarn, k8s://URL, or local[N] for"
        ),
        refused("run", "smoke", "--summary", "absent/summary.md", expected="a file in a folder that is there"),
        (
            ("run", "smoke", "--defect", "nothing"),
            "--defect: 'nothing' is not allowed; expected a defect that `nemesrv defects` lists",
        ),
        refused("selftest", "--seeds", "7..3", expected="a seed such as 7, or from one to a later one such as 1..12"),
        refused("up", "--for", "0", expected="a number above 0"),
        refused("up", "--for", "inf", expected="a number above 0"),
        refused("up", "--for", "nan", expected="a number above 0"),
        refused("up", "--brokers", "27", expected="a whole number of at least 1 and at most 26"),
        refused("fault", "latency", "--latency-ms", "nan", expected="a number"),
        refused("fault", "bandwidth", "--rate-kb-s", "1.5", expected="a whole number"),
        (
            ("check", "a-file"),
            "check: RUN_DIR: 'a-file' is not allowed; expected a run folder or a folder of Parquet files",
        ),
        (("run", "smoke", "--clock", "virtual", "--time-scale", "2"), "--time-scale"),
        (("run", "smoke", "--seed", "-1"), "'--seed': '-1' is not allowed"),
        (
            ("run", "smoke", "--out", "a-file"),
            "--out: a-file is not allowed; expected an empty or new folder; this is a file",
        ),
        (("up", "--out", "a-file"), "--out: a-file is not allowed; expected an empty or new folder; this is a file"),
        (("up", "--slaves", "4"), "--slaves"),
        (("selftest", "--only", "nothing"), "a defect that `nemesrv defects` lists"),
        (
            ("run", "empty.yaml"),
            "empty.yaml: an empty file is not allowed; expected a mapping with the keys of a scenario",
        ),
        refused("run", "smoke", "--summary", "/proc/x", expected="a file that can be written"),
        (("compare", "one", "two"), "run folder"),
        (("up", "--check", "no_such_check"), "'no_such_check' is not allowed; expected default, all, or some of "),
        (("up", "--client", "go:golang"), "'golang' is not allowed; expected one of "),
        (("check", "."), "a run folder"),
        (("check", "absent"), "absent"),
    ],
)
def test_what_is_allowed_stands_beside_the_value(
    args: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ending, "_from_a_shell", False)  # whatever another test made of this process
    (tmp_path / "a-file").write_text("")
    (tmp_path / "empty.yaml").write_text("")
    with pytest.raises((click.ClickException, ScenarioError)) as told:
        cli.main(list(args), standalone_mode=False)
    status, line = explain(told.value)
    assert status == 2
    assert says in line
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

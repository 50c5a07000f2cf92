"""A wrong option is one sentence with its value and what is allowed, before anything is started."""

from pathlib import Path

import click
import pytest

from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.commands import ending
from nemesrv.chaos.commands.ending import explain
from nemesrv.chaos.errors import ScenarioError


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
            "run",
            "smoke",
            "--spark-master",
            "foo",
            expected="spark://HOST:PORT, yarn, k8s://URL, or local[N] for N threads",
        ),
        refused("run", "smoke", "--summary", "absent/summary.md", expected="a file in a folder that is there"),
        (
            ("run", "smoke", "--defect", "nothing"),
            "--defect: 'nothing' is not allowed; expected a defect that `nemesrv defects` lists",
        ),
        refused("selftest", "--seeds", "7..3", expected="a seed such as 7, or from one to a later one such as 1..12"),
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

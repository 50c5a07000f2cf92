"""The command line: one clear line and the right exit status for whatever is wrong, with nothing started."""

import json
import os
import re
from pathlib import Path

from click.testing import CliRunner

from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.proof.defects import EVERY

from .programs import nemesrv


def test_scenarios_lists_what_ships_one_line_each_and_the_field_drills_apart(tmp_path: Path) -> None:
    done = nemesrv("scenarios", cwd=tmp_path)
    assert done.returncode == 0
    shipped, rest = done.stdout.split("\n\nField drills, which were also run on real clusters (docs/drills.md):\n")
    drills, upgrades = rest.split("\n\nUpgrades of Apache's servers and clients (docs/apache.md):\n")
    upgrades, roles = upgrades.split("\n\nRoles that only Apache's brokers have (docs/apache.md):\n")
    assert [line.split()[0] for line in upgrades.splitlines()] == ["upgrade-clients", "upgrade-servers"]
    roles, own, more = roles.split("\n\n")
    assert [line.split()[0] for line in roles.splitlines()] == [
        "controller-switches-master",
        "leader-election",
        "sync-master-loses-its-slave",
    ]
    assert own.startswith("Scenarios in which planted defects are found (nemesrv defects):\nacts-by-hand ")
    assert more.endswith("reported incidents: nemesrv scenarios --incidents\n")
    assert [line.split()[0] for line in drills.splitlines()] == [
        *("drill-1-hang", "drill-2-stop", "drill-3-power-off", "drill-4-zones-hang"),
        *("drill-5-zones-stop", "drill-6-zones-power-off"),
    ]
    files = (Path(__file__).parents[2] / "chaos" / "scenarios").glob("*.yaml")
    assert [line.split()[0] for line in shipped.splitlines()] == sorted(file.stem for file in files)


def test_scenarios_with_a_name_shows_the_file(tmp_path: Path) -> None:
    done = nemesrv("scenarios", "smoke", cwd=tmp_path)
    assert done.returncode == 0
    assert "checks: [routes_converge" in done.stdout


def test_defects_lists_each_planted_defect_with_what_it_makes_wrong() -> None:
    lines = CliRunner().invoke(cli, ["defects"]).stdout.splitlines()
    (at,) = (at for at, line in enumerate(lines) if re.match(r"broker-forgets-its-last-record: +\S+ .*broker", line))
    assert lines[at + 1].strip() == f"in broker-a: {EVERY['broker-forgets-its-last-record'].command}"
    told = json.loads(CliRunner().invoke(cli, ["defects", "--json"]).stdout)
    assert [one["name"] for one in told] == [*EVERY]
    assert told[0]["found_by"] == ["routes_are_true"]
    assert told[0]["may_find"] == ["answers_are_true", "registrations_are_kept"]


def test_a_missing_java_is_one_line_that_says_how_to_get_it_and_exit_status_4(tmp_path: Path) -> None:
    done = nemesrv("run", "smoke", cwd=tmp_path, env={"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path)})
    assert done.returncode == 4
    assert len(done.stderr.splitlines()) == 1
    assert "java" in done.stderr.lower()


def test_help_of_every_command_is_quick_to_load(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}
    done = nemesrv("run", "--help", cwd=tmp_path, env=env)
    assert done.returncode == 0
    assert "pyspark" not in done.stderr
    assert " ray" not in done.stderr

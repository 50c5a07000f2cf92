"""One door to a verdict: what is judged, by which checks, what is written, and the exit status."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from nemesrv.chaos import judging
from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.judging import (
    Engine,
    History,
    Judged,
    apart,
    exit_status,
    find,
    judge,
    keep,
    named_checks,
    of_run,
    show,
)
from nemesrv.chaos.reporting import read_verdicts, write_reports
from nemesrv.chaos.runner import check_all
from nemesrv.chaos.scenarios.loading import find as find_scenario
from nemesrv.chaos.scenarios.loading import parse, shipped
from nemesrv.chaos.verdict import Finding, Validity, Verdict
from tests import generate
from tests.chaos.reports.recorded import recorded


def no_spark() -> NoReturn:
    raise AssertionError("Spark is not needed for this")


def judged(*said: Validity) -> Judged:
    verdicts = [Verdict(name="routes_converge", verdict=each, examined=1, why="so it is") for each in said]
    return Judged(History(where="a", checks=("routes_converge",)), verdicts, Engine.PLAIN)


def test_the_worst_verdict_is_the_exit_status() -> None:
    valid, unknown, invalid = map(judged, (Validity.VALID, Validity.UNKNOWN, Validity.INVALID))
    assert [exit_status(each) for each in ([valid], [valid, unknown], [unknown, invalid, valid])] == [0, 3, 1]
    assert exit_status([judged()]) == 3, "nothing examined is UNKNOWN"


def test_checks_are_named_with_commas_or_by_all_or_default() -> None:
    assert named_checks(None, "--checks") is None
    assert named_checks("all", "--checks") == tuple(CHECKS)
    assert named_checks("routes_converge, no_acknowledged_loss", "--checks") == (
        "routes_converge",
        "no_acknowledged_loss",
    )
    assert named_checks("timers, availability", "--checks") == ("timers_kept", "availability")
    assert named_checks("default", "--check", ("order_kept",)) == ("order_kept",)


@pytest.mark.parametrize("text", ["no_such_check", "default", "", "routes_converge,no_such_check"])
def test_a_check_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(
        ScenarioError, match=r"--checks: .* is not allowed; expected all, or some of .*routes_converge, "
    ):
        named_checks(text, "--checks")


def test_a_run_folder_is_judged_by_its_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate.write(tmp_path, events=2_000, seed=1)
    scenario = RunFolder(tmp_path).scenario()
    for where in (str(tmp_path), tmp_path.as_uri()):
        found = find(where, None, no_spark)
        assert (found.checks, found.scenario, found.folder) == (scenario.checks, scenario, RunFolder(tmp_path))
        assert found.drawn
    assert find(str(tmp_path), ("order_kept",), no_spark).checks == ("order_kept",)
    monkeypatch.setattr(judging, "SMALL_BYTES", 1_000)
    assert not find(str(tmp_path), None, no_spark).drawn


def test_a_history_without_a_scenario_is_judged_by_named_checks_only_and_nothing_is_written(tmp_path: Path) -> None:
    generate.write(tmp_path, events=2_000, seed=1)
    (tmp_path / "scenario.yaml").unlink()
    found = find(str(tmp_path), ("order_kept",), no_spark)
    assert (found.checks, found.folder) == (("order_kept",), None)
    keep(found, [], Engine.PLAIN)
    assert list(tmp_path.iterdir()) == [tmp_path / "history"]
    with pytest.raises(ScenarioError, match="a scenario beside the history, or --checks"):
        find(str(tmp_path), None, no_spark)


def test_a_path_where_nothing_is_is_wrong_input_and_nothing_is_started(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="a run folder or a folder of Parquet files"):
        check_all([str(tmp_path / "none")], None, None)


def test_a_run_folder_without_an_event_is_wrong_input_and_nothing_is_started(tmp_path: Path) -> None:
    folder = RunFolder.create("smoke", tmp_path / "run")
    shutil.copy(shipped()["smoke"], folder.scenario_file)
    for checks in (None, ("order_kept",)):
        with pytest.raises(ScenarioError, match="there is no event in this one"):
            check_all([str(folder.path)], checks, None)


def recorded_by_the_future(folder: Path, more: str = "") -> Path:
    generate.write(folder, events=2_000, seed=1)
    file = RunFolder(folder).scenario_file
    scenario = RunFolder(folder).scenario().model_copy(update={"versions": {"nemesrv": "99.0.0"}})
    file.write_text(scenario.to_yaml() + more, encoding="utf-8")
    return folder


def test_another_recorder_than_the_judge_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show(keep(find(str(recorded_by_the_future(tmp_path)), None, no_spark), [], Engine.PLAIN))
    assert "recorded by nemesrv 99.0.0, judged by 0.1.0" in " ".join(capsys.readouterr().out.split())


def test_a_key_of_the_future_is_refused_with_the_version_that_knows_it(tmp_path: Path) -> None:
    recorded_by_the_future(tmp_path, "of_the_future: 1\n")
    said = r"what nemesrv 0.1.0 knows; the run was recorded by 99.0.0: judge it with that"
    with pytest.raises(ScenarioError, match=said) as caught:
        find(str(tmp_path), None, no_spark)
    assert caught.value.key == "of_the_future"


def test_a_parquet_file_that_is_cut_off_is_wrong_input(tmp_path: Path) -> None:
    generate.write(tmp_path, events=2_000, seed=1)
    (file,) = (tmp_path / "history").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-1_000])
    with pytest.raises(ScenarioError, match=f"{file.name}: expected a whole Parquet file; this one is cut off"):
        check_all([str(tmp_path)], None, None)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda table: table.drop_columns(["node"]), "node: expected a column that each row has"),
        (
            lambda table: table.set_column(0, "time_ms", table["time_ms"].cast("string")),
            "time_ms: string is not allowed; expected double in each row",
        ),
    ],
    ids=["missing", "text"],
)
def test_a_column_that_is_no_historys_is_named_with_its_file(
    tmp_path: Path, change: Callable[[pa.Table], pa.Table], says: str
) -> None:
    generate.write(tmp_path, events=2_000, seed=1)
    (file,) = (tmp_path / "history").glob("*.parquet")
    pq.write_table(change(pq.read_table(file)), file)
    with pytest.raises(ScenarioError, match=f"{file.name}: {says}"):
        check_all([str(tmp_path)], None, None)


def test_what_is_kept_is_verdicts_junit_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generate.write(tmp_path, events=2_000, seed=1)
    folder = RunFolder(tmp_path)
    scenario = folder.scenario()
    limit = {"formula": "promise", "row": "less; RocketMQ allows 40 s: t_rm + P"}
    wrong = Verdict(
        name="order_kept", verdict=Validity.INVALID, examined=2, violations=1, why="out of order", allowed=limit
    )
    kept = keep(of_run(folder, scenario), [wrong], Engine.PLAIN)
    document: dict[str, Any] = json.loads(folder.verdicts_file.read_text(encoding="utf-8"))
    assert (document["scenario"], document["verdict"], document["engine"]) == (scenario.name, "INVALID", "plain")
    assert document["checks"] == [{**wrong.to_json(), "group": "messages"}]
    assert document["cause"]["sentence"] == "out of order"
    assert b"order_kept" in folder.junit_file.read_bytes()
    assert "order_kept" in folder.report_file.read_text(encoding="utf-8")
    show(kept, tmp_path / "summary.md")
    assert f"1 check, 1 INVALID. Report: {folder.report_file}" in capsys.readouterr().out
    assert "order_kept" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    show(kept, quiet=True)
    _, rule, _, again, settings, _ = capsys.readouterr().out.splitlines()
    assert rule == f"Broken rule: {CHECKS['order_kept'].says} (order_kept)."
    assert again.startswith(f"Repeat it: nemesrv run {folder.scenario_file} --seed 1")
    assert settings.endswith(": --set clients.pollNameServerInterval=30000 (P)")


def test_findings_and_examples_have_the_times_of_the_sentences_too(tmp_path: Path) -> None:
    generate.write(tmp_path, events=2_000, seed=1)
    folder = RunFolder(tmp_path)
    late = Finding(subject="producer-0", object="ns-0", kind="R: poll", from_ms=121_000.0, to_ms=336_000.0, wrong=1)
    wrong = Verdict(
        name="timers_kept",
        verdict=Validity.INVALID,
        examined=1,
        violations=1,
        examples=(late.example,),
        findings=(late,),
        timeline_ms=76_000.0,
        why="late",
    )
    keep(of_run(folder, folder.scenario()), [wrong], Engine.PLAIN)
    document = json.loads(folder.verdicts_file.read_text(encoding="utf-8"))
    (example,) = document["checks"][0]["examples"]
    line = json.loads(folder.findings_file.read_text(encoding="utf-8"))
    for found in (example, line):
        assert (found["from_ms"], found["from_s"], found["to_s"]) == (121_000.0, 45.0, 260.0)
    assert "from 45.0 to 260.0 s" in document["cause"]["sentence"]
    assert read_verdicts(folder) == [wrong]


def test_the_cost_is_the_same_wherever_it_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run_with_a_lost_broker(tmp_path)
    kept = keep(of_run(folder, folder.scenario()), [VALID], Engine.PLAIN)
    cost = json.loads(folder.verdicts_file.read_text())["cost"]
    assert cost["longest_without_broker_ms"] == 63_000
    assert [(one["client"], one["broker"], one["took_ms"]) for one in cost["without_broker"]] == [
        ("consumer-0", "broker-a", 63_000),
        ("producer-0", "broker-a", 63_000),
    ]
    assert cost["sends"] == {"ok": 78, "failed": 0, "unanswered": 2}
    assert cost["failed_of"] == {"producer-0": 2}
    assert cost["messages"] == {"waited": 0, "longest_ms": 0, "never_received": 0}
    sentence = "2 clients were without broker-a, consumer-0 the longest, for 63.0 s (20.0 to 83.0 s, the end"
    show(kept)
    assert f"Cost: {sentence}" in capsys.readouterr().out
    assert f"<dt>Cost</dt><dd>{sentence}" in folder.report_file.read_text(encoding="utf-8")


def test_nemesrv_explain_is_next_only_where_it_tells_of_the_broken_rule(tmp_path: Path) -> None:
    folder = run_with_a_lost_broker(tmp_path)
    for check, is_next in (("routes_converge", True), ("recovery_time", True), ("living_are_used", False)):
        keep(of_run(folder, folder.scenario()), [replace(VALID, name=check, verdict=Validity.INVALID)], Engine.PLAIN)
        assert ("nemesrv explain" in folder.report_file.read_text(encoding="utf-8")) is is_next


def test_a_history_without_a_report_has_no_cost_and_its_report_has_it(tmp_path: Path) -> None:
    folder = run_with_a_lost_broker(tmp_path)
    keep(replace(of_run(folder, folder.scenario()), drawn=False), [VALID], Engine.PLAIN)
    assert json.loads(folder.verdicts_file.read_text())["cost"] is None
    write_reports(folder)
    assert "consumer-0 the longest, for 63.0 s" in folder.report_file.read_text(encoding="utf-8")


@pytest.mark.skipif(which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize(("longest_ms", "status"), [(119_999.9, 0), (120_000, 1)])
def test_the_jq_line_of_the_tutorial_compares_the_cost(tmp_path: Path, longest_ms: float, status: int) -> None:
    page = (Path(__file__).parents[2] / "docs" / "tutorial" / "5-ci.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^jq .*$", page, re.MULTILINE)
    (tmp_path / "ci").mkdir()
    document = {"cost": {"longest_without_broker_ms": longest_ms}}
    (tmp_path / "ci" / "verdicts.json").write_text(json.dumps(document), encoding="utf-8")
    assert subprocess.run(line, shell=True, cwd=tmp_path, stdout=subprocess.DEVNULL, check=False).returncode == status


def run_with_a_lost_broker(path: Path) -> RunFolder:
    """broker-a is lost from 20 s on."""
    recorded(path)
    (path / "scenario.yaml").write_text(find_scenario("broker-crash").to_yaml(), encoding="utf-8")
    return RunFolder(path)


def said_of_all(**others: Verdict) -> list[Verdict]:
    """A verdict of each check there is: `others`, and of the rest that it had nothing to look at."""
    return [others.get(name, Verdict.nothing_examined("no broker died", name=name)) for name in CHECKS]


VALID = Verdict(name="routes_converge", verdict=Validity.VALID, examined=1)


def test_what_has_nothing_to_look_at_is_left_out_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generate.write(tmp_path, events=2_000, seed=1)
    folder = RunFolder(tmp_path)
    scenario = folder.scenario().model_copy(update={"checks": tuple(CHECKS)})
    judged = keep(of_run(folder, scenario), said_of_all(routes_converge=VALID), Engine.PLAIN)
    assert (exit_status([judged]), len(judged.left_out)) == (0, len(CHECKS) - 1)
    show(judged)
    out = capsys.readouterr().out
    assert ", dead_brokers_avoided, " in out
    assert out.index("(--full says why)\n") < out.index("routes  1 VALID"), "what was not examined comes first"
    assert "\n1 check, 1 VALID. Report: " in out
    show(judged, names_left_out=False)
    assert "left out" not in capsys.readouterr().out
    show(judged, tmp_path / "summary.md", full=True)
    left_out = "left out, because there was nothing to examine: "
    assert "dead_brokers_avoided (no broker died)" in capsys.readouterr().out
    document = json.loads(folder.verdicts_file.read_text())
    assert [check["name"] for check in document["checks"]] == ["routes_converge"]
    assert document["left_out"]["dead_brokers_avoided"] == "no broker died"
    assert f'skipped="{len(CHECKS) - 1}"' in folder.junit_file.read_text()
    assert left_out in (tmp_path / "summary.md").read_text()
    assert left_out.capitalize() in folder.report_file.read_text()


def test_what_failed_what_was_too_short_and_a_run_that_shows_nothing_at_all_stay_unknown() -> None:
    history = History(where="a", checks=tuple(CHECKS))
    failed = Verdict.of_failed_check("order_kept", ValueError("x"))
    short = Verdict.nothing_examined("x", name="availability", undecided={"after the last fault": "settle_s: 97"})
    for each in (failed, short):
        kept = keep(history, said_of_all(routes_converge=VALID, **{each.name: each}), Engine.PLAIN)
        assert ([v.name for v in kept.verdicts if v is each], exit_status([kept])) == ([each.name], 3)
    assert exit_status([keep(history, said_of_all(), Engine.PLAIN)]) == 3
    named = History(where="a", checks=("dead_brokers_avoided", "routes_converge"))
    assert (
        exit_status([keep(named, [VALID, Verdict.nothing_examined("x", name="dead_brokers_avoided")], Engine.PLAIN)])
        == 3
    )


def test_a_group_counts_as_naming_each_of_its_checks() -> None:
    document = yaml.safe_load(shipped()["broker-crash"].read_text(encoding="utf-8"))
    checks = parse({**document, "checks": ["client_routes"]}, file="one.yaml").checks
    assert len(checks) > 1
    nothing = (Verdict.nothing_examined("no broker died", name=name) for name in checks[1:])
    kept = keep(
        History(where="a", checks=checks),
        [Verdict(name=checks[0], verdict=Validity.VALID, examined=1), *nothing],
        Engine.PLAIN,
    )
    assert (exit_status([kept]), kept.left_out) == (3, [])


@pytest.mark.spark
@pytest.mark.parametrize("engine", Engine)
def test_mere_files_get_the_verdict_that_they_get_with_a_scenario(engine: Engine, spark: Any, tmp_path: Path) -> None:
    generate.write(tmp_path, events=3_000, seed=1)
    names = ("routes_converge", "no_acknowledged_loss")
    said: list[str] = []
    whole = judge(find(str(tmp_path), names, no_spark), engine, lambda: spark, said.append)
    assert engine is Engine.PLAIN or [line.partition(",")[0] for line in said] == ["counting events by message"]
    files = judge(find((tmp_path / "history").as_uri(), names, no_spark), engine, lambda: spark)
    assert [v.to_json() for v in whole.verdicts] == [v.to_json() for v in files.verdicts]
    assert json.loads((tmp_path / "verdicts.json").read_text(encoding="utf-8"))["verdict"] == str(files.verdict)


def test_of_all_checks_those_of_consuming_are_left_out_where_nobody_consumes() -> None:
    nothing = Verdict.nothing_examined(
        "nobody was assigned queues", name="queue_ownership", undecided={"after": "too short"}
    )
    fine = Verdict(name="routes_converge", verdict=Validity.VALID, examined=1)
    assert apart(CHECKS, [fine, nothing]) == ([fine, nothing], [])
    assert apart(CHECKS, [fine, nothing], without_consumers=True) == ([fine], [nothing])
    assert apart(["queue_ownership"], [fine, nothing], without_consumers=True) == ([fine, nothing], [])

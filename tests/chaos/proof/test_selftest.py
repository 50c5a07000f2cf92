"""A few planted defects, run on the virtual clock and judged by every check; the whole table is `make selftest`."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.judging import Engine, History, Judged, of_run
from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.proof.selftest import SelftestOutcome, plan_of, run_selftest, scenario_of
from nemesrv.chaos.runner import Options, record_virtual
from nemesrv.chaos.scenarios.model import CHECK_NAMES
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import said
from tests.chaos.checks.consistency import contradictions
from tests.chaos.parts import verdicts_in_parts
from tests.chaos.programs import NEMESRV

FEW = ("broker-answers-oneway", "name-server-expires-the-living")
"""In one scenario, the shortest."""


def test_planted_defects_are_killed_and_their_clean_twin_is_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_selftest(FEW, Options(virtual=True, latest=False, as_json=True), at_once=2) == 0
    said = json.loads(capsys.readouterr().out)
    assert [(each["defect"], each["result"]) for each in said] == [(None, "clean"), *((name, "killed") for name in FEW)]
    folders = {Path(each["run_dir"]) for each in said}
    assert len(folders) == len(said), "runs of one second are beside each other"
    for each in said:
        verdict = json.loads(Path(each["run_dir"], "verdicts.json").read_text(encoding="utf-8"))
        assert (verdict["defect"], verdict["verdict"] == "INVALID") == (each["defect"], each["defect"] is not None)
        assert {check["name"] for check in verdict["checks"]} | verdict["left_out"].keys() == {*CHECK_NAMES}
    assert not Path("runs/latest").exists()


def test_after_ctrl_c_the_table_has_the_runs_that_were_judged(tmp_path: Path) -> None:
    words = ["--clock", "virtual", "--processes", "1", "-v", "--seeds", "1..9", "--only", FEW[0], "--out", "kept"]
    with subprocess.Popen(
        [*NEMESRV, "selftest", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a background job ignores it
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert "smoke, none (clean twin), seed 1: clean\n" in command.stderr
        command.send_signal(signal.SIGINT)
        said = command.stdout.read()
    assert command.returncode == 130
    assert "of 18 runs: 0 of 0 defects found, 1 of 1 twins clean" in " ".join(said.split())
    assert (tmp_path / "kept" / "smoke-clean-1" / "verdicts.json").is_file()


def test_a_twin_is_clean_only_where_every_check_judged_it() -> None:
    history, (first, *others) = History(where="a run", checks=CHECK_NAMES), CHECK_NAMES
    some = [Verdict.nothing_examined("nothing", name=name) for name in others]
    failed = Verdict.of_failed_check(first, ValueError("no"))
    for verdicts_ in (some, [failed, *some]):
        outcome = SelftestOutcome.of(Judged(history, verdicts_, Engine.PLAIN), None)
        assert (outcome.passed, outcome.result) == (False, f"NOT JUDGED by {first}")
    assert (
        SelftestOutcome.of(
            Judged(history, [Verdict.nothing_examined("nothing", name=first), *some], Engine.PLAIN), None
        ).result
        == "clean"
    )


def test_a_defect_that_there_is_not_is_refused_before_anything_runs() -> None:
    with pytest.raises(ScenarioError, match="did you mean broker-answers-oneway"):
        run_selftest(["broker-answers-onway"], Options(virtual=True))


@pytest.mark.nightly("chaos/test_engines.py::test_a_shipped_scenario_is_judged_alike_whole_and_cut_into_parts")
@pytest.mark.parametrize(
    ("defect", "scenario"), [(defect and defect.name, scenario) for defect, scenario in plan_of(DEFECTS)]
)
def test_defect_and_twin_are_judged_alike_whole_and_in_parts(defect: str | None, scenario: str, tmp_path: Path) -> None:
    planted, made = DEFECTS.get(defect or ""), scenario_of(scenario)
    folder = record_virtual(made, 1, tmp_path / "run", planted)
    whole = verdicts(folder.path)
    outcome = SelftestOutcome.of(Judged(of_run(folder, made), whole, Engine.PLAIN), planted)
    assert (outcome.result, outcome.found & outcome.meant) == ("killed" if planted else "clean", outcome.meant)
    assert [text for verdict in whole for text in contradictions(verdict)] == []
    assert [str(v.verdict) for v in whole if v.verdict is Validity.INVALID] or defect is None
    in_parts = {verdict.name: said(verdict) for verdict in verdicts_in_parts(folder.path)}
    assert in_parts == {verdict.name: said(verdict) for verdict in whole}

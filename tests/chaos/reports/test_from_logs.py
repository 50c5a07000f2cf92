"""An import's page says what is thought to have happened before anything else."""

import json
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.reports.ci import read_incident, replay_line
from nemesrv.chaos.reports.html.sections import facts, said
from nemesrv.chaos.verdict import Verdict


def episode(*told: tuple[str, str]) -> dict[str, Any]:
    return {"hypotheses": [{"certainty": certainty, "sentence": sentence} for certainty, sentence in told]}


def test_the_first_hypothesis_of_each_episode_is_told_with_its_certainty() -> None:
    document = {
        "episodes": [
            episode(("likely", "broker-a's process ended"), ("unsure", "its host was lost")),
            episode(("certain", "<ns-0> hung")),
        ]
    }
    verdicts = [Verdict.nothing_examined("availability", "no operation ended")]
    assert said(document, verdicts, 3) == (
        "Likely: broker-a's process ended. Certain: <ns-0> hung. No check found anything wrong. "
        "4 checks cannot be decided by these logs; incident.json says by which."
    )


def test_logs_that_ask_for_no_fault_say_so() -> None:
    assert said({"episodes": []}, [], 0) == "Nothing in these logs asks for a fault. No check found anything wrong."


def test_many_episodes_are_told_by_their_number() -> None:
    told = said({"episodes": [episode(("unsure", f"fault {number}")) for number in range(6)]}, [], 0)
    assert "fault 3" in told
    assert "fault 4" not in told
    assert "And 2 more in incident.json." in told


def test_how_much_of_the_logs_was_understood_stands_beneath() -> None:
    document = {"sources": [{"lines": 1200, "understood": 1000}, {"lines": 300, "understood": 300}]}
    assert facts(document) == [("logs of", "2 processes"), ("lines understood", "1,300 of 1,500")]


@pytest.mark.parametrize("text", [None, "no JSON", "[]", '{"episodes": 3}'])
def test_a_folder_without_an_incident_is_no_import(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "incident.json").write_text(text)
    assert read_incident(tmp_path) is None


def test_an_import_is_repeated_by_a_replay_and_a_run_by_a_run(tmp_path: Path) -> None:
    assert replay_line(tmp_path / "scenario.yaml", 7) == f"nemesrv run {tmp_path / 'scenario.yaml'} --seed 7"
    (tmp_path / "incident.json").write_text(json.dumps({"episodes": []}))
    assert replay_line(tmp_path / "scenario.yaml", 7) == f"nemesrv replay {tmp_path}"

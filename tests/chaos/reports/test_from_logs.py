"""An import's page says what is thought to have happened before anything else."""

import json
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.reports.ci import read_incident, replay_line
from nemesrv.chaos.reports.imported import answer_list, facts, result
from nemesrv.chaos.verdict import Verdict
from tests.chaos.builder import valid

JUDGED = valid("routes_are_true", examined=1)


def episode(*told: tuple[str, str]) -> dict[str, Any]:
    scores = (0.77, 0.23)
    hypotheses = [
        {"certainty": certainty, "sentence": sentence, "score": score}
        for (certainty, sentence), score in zip(told, scores, strict=False)
    ]
    return {"hypotheses": hypotheses, "score": 0.96, "from_ms": 1500.0, "to_ms": 61_500.0}


def test_the_first_hypothesis_of_each_episode_is_told_with_its_certainty() -> None:
    document = {
        "episodes": [
            episode(("likely", "broker-a's process ended"), ("unsure", "its host was lost")),
            episode(("certain", "<ns-0> hung")),
        ]
    }
    verdicts = [JUDGED, Verdict.nothing_examined("no operation ended", name="availability")]
    assert result(document, verdicts, 3) == (
        "Likely (0.96): broker-a's process ended. Certain (0.96): <ns-0> hung. No rule of RocketMQ was broken, as far "
        "as these logs show. 4 checks cannot be decided by these logs."
    )


def test_logs_that_ask_for_no_fault_say_so() -> None:
    assert result({"episodes": []}, [JUDGED], 0) == (
        "Nothing in these logs asks for a fault. No rule of RocketMQ was broken, as far as these logs show."
    )


def test_a_fault_has_its_times_of_day_its_signs_and_what_else_it_may_have_been() -> None:
    of_link = episode(("likely", "nothing passed"), ("likely", "nothing passed one way"))
    of_link["hypotheses"][0]["for"] = [{"says": "21.5 s ns-0: no answer", "file": "broker.log", "line": 7}]
    document = {
        "origin": "2026-11-23T07:42:57.000+08:00",
        "episodes": [of_link],
        "suffered": [{"client": "consumer-0", "says": "a pull failed at 07:43:10"}],
    }
    assert result(document, [], 0).startswith(
        "Likely (0.96): nothing passed (07:42:58 to 07:43:58; the fault took 60.0 s). "
    )
    assert answer_list(document) == [
        ("Times", "Seconds since 2026-11-23 07:42:57 UTC+08:00; times of day are in this zone, too."),
        ("Signs of it", "21.5 s (07:43:18) ns-0: no answer  broker.log:7."),
        ("Not certain", "Or 1=2 (0.23 of the likelihood; the first has 0.77): nothing passed one way."),
        ("Suffered", "consumer-0: a pull failed at 07:43:10."),
    ]


def test_a_likely_cause_in_an_unsure_form_is_called_likely() -> None:
    told = result({"episodes": [episode(("unsure", "nothing passed"), ("unsure", "no packet passed"))]}, [], 0)
    assert told.startswith("Likely (0.96; the fault's exact form is not known): nothing passed. ")


def test_many_episodes_are_told_by_their_number() -> None:
    told = result({"episodes": [episode(("unsure", f"fault {number}")) for number in range(6)]}, [], 0)
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

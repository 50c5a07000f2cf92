"""What docs/clients.md is made of; that the page is made of it is shown by tests/test_readme.py."""

import json
from pathlib import Path
from typing import Any

from nemesrv.conformance.rule_verdicts import names
from nemesrv.conformance.rules import RULES

from .catalogue import CLIENTS, DRIVERS
from .page import keep, measured
from .upstream import CONCERNS, concerns


def rule(name: str = "poll_period_s", value: object = 30.0, why: str = "") -> dict[str, Any]:
    judged = {"count": 8, "expected": 30.0, "verdict": "VALID", "interval": None, "why": why, "examples": []}
    return {"rule": name, "measured": value, "unit": RULES[name].unit, **judged}


def found(*rules: dict[str, Any]) -> dict[str, Any]:
    same = {"profile": "go", "verdict": "VALID", "left_out": {}, "name_servers": 3, "brokers": 2, "starts": 60}
    notes = ["in `closed` the program ended by itself (exit 1); its last output: at /home/somebody"]
    return {**same, "late_ms": 120.0, "notes": notes, "versions": {"nemesrv": "0.1.0"}, "rules": list(rules), "seed": 0}


def test_every_client_has_its_driver_and_a_profile_that_there_is() -> None:
    for client in CLIENTS.values():
        assert (DRIVERS / client.driver).is_file(), client.name
        assert client.profile in names(), client.name


def test_what_is_kept_is_of_rules_that_there_are(tmp_path: Path) -> None:
    (tmp_path / "go-2.1.2.json").write_text(json.dumps(keep(found(rule()), "2026-11-22")), encoding="utf-8")
    (kept,) = measured(tmp_path).values()
    assert kept["notes"] == ["in `closed` the program ended by itself (exit 1)"]
    for name, of in measured().items():
        unknown = {each["rule"] for each in of["rules"]} - set(RULES)
        assert not unknown, f"{name}: measure it again, `make clients CLIENTS={name}`"


def test_upstream_is_told_what_was_measured_and_nothing_else() -> None:
    retries = rule("send_retries", "the same broker", why="18 sends, each at most 4 attempts")
    lost = rule("sends_lost", 0.13, why="91 of 676, as the program tells")
    (said,) = (
        each for each in concerns({"go-2.1.2": keep(found(retries, lost), "2026-11-22")}) if "send_retries" in each
    )
    assert said.endswith("(`send_retries`: 18 sends, each at most 4 attempts; `sends_lost`: 91 of 676).")
    fine = {"go-2.1.2": keep(found(rule("send_retries", "another broker")), "2026-11-22")}
    assert [each for each in concerns(fine) if "send_retries" in each] == []


def test_every_concern_is_a_value_that_its_rule_can_have() -> None:
    for concern in CONCERNS:
        assert set(concern.values) <= set(RULES[concern.rule].words)
        assert set(concern.beside) <= set(RULES)

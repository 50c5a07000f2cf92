"""Sabotaged clients as programs of their own, over TCP, by the command as it is typed: some of test_sabotage.py's."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nemesrv.conformance.rule_verdicts import profile_of
from nemesrv.conformance.rules.rule import plain

RULES = ("start", "leaves_on_refused", "leaves_on_closed_at_accept", "storm", "send_retries")
DEFECTS = ("starts-at-the-first", "stays-refused", "stays-closes-each", "storms", "no-retries")
STORM_MAX = 15
"""Look-ups of a client that sends five times a second, of the topic and of the template, and a poll's."""
ROOT = Path(__file__).parents[2]
LIMIT_S = 280


def started(rules: Sequence[str], profile: Path, out: Path, *defect: str) -> subprocess.Popen[str]:
    client = [sys.executable, "-m", "tests.conformance.client", *defect]
    options = ["--profile", str(profile), "--rules", ",".join(rules), "--starts", "16", "--out", str(out)]
    return subprocess.Popen(
        [sys.executable, "-m", "nemesrv.chaos", "conform", *options, "--", *client],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def verdicts(of: subprocess.Popen[str], out: Path) -> tuple[int, dict[str, Any]]:
    said, _ = of.communicate(timeout=LIMIT_S)
    file = out / "conform.json"
    assert file.exists(), said
    rules = json.loads(file.read_text(encoding="utf-8"))["rules"]
    return of.returncode, {rule["rule"]: rule["verdict"] for rule in rules}


@pytest.mark.nightly  # minutes of RocketMQ's own timers
@pytest.mark.timeout(2 * LIMIT_S)
def test_programs_with_a_defect_are_invalid_by_its_rule_alone_and_the_twin_is_valid(tmp_path: Path) -> None:
    profile = tmp_path / "ours.yaml"
    java = profile_of("java-5.3").rules
    expected = {rule: plain(java[rule]) for rule in RULES if rule in java} | {"storm": {"at_most": STORM_MAX}}
    profile.write_text(json.dumps({"client": "ours", "rules": expected}), encoding="utf-8")
    runs = {"twin": started(RULES, profile, tmp_path / "twin")}
    try:
        for rule, defect in zip(RULES, DEFECTS, strict=True):
            runs[defect] = started((rule,), profile, tmp_path / defect, "--defect", defect)
        found = {name: verdicts(run, tmp_path / name) for name, run in runs.items()}
    finally:
        for run in runs.values():
            run.kill()
            run.wait()
    assert found.pop("twin") == (0, dict.fromkeys(RULES, "VALID"))
    assert found == {defect: (1, {rule: "INVALID"}) for rule, defect in zip(RULES, DEFECTS, strict=True)}

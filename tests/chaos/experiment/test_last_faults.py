"""What a fault proves that the timeline's last entry begins, and that nothing ends."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.verdict import Validity

KILL = {"at_s": 12, "do": "kill", "nodes": ["broker-a"]}
CUT = {"at_s": 12, "do": "cut", "links": ["producer-0 <-> broker-a"]}


@pytest.mark.parametrize(
    ("timeline", "lasted_0_s"),
    [
        ([KILL], "kill-1"),
        ([KILL, {"at_s": 20, "do": "restart", "nodes": ["broker-a"]}], ""),
        ([KILL, {"at_s": 20, "do": "heal"}], ""),  # it lasts until then
        ([{"at_s": 11, "do": "pause", "nodes": ["broker-b"]}, CUT], "cut-1"),
        ([KILL, CUT], "kill-1 cut-1"),
        ([{"at_s": 12, "do": "stop", "nodes": ["consumer-0"]}], ""),
    ],
)
def test_a_run_whose_last_fault_ends_as_it_begins_is_unknown_and_says_what_is_missing(
    timeline: list[dict[str, Any]], lasted_0_s: str, tmp_path: Path
) -> None:
    document = {"name": "last", "cluster": {"name_servers": 1, "brokers": 2}, "timeline": timeline,
                "workload": {"producers": 1, "consumers": 1, "client_starts": 0}, "settle_s": 5,
                "checks": ["exercised"]}  # fmt: skip
    record_virtual(parse(document, file="last.yaml"), 1, tmp_path / "run")
    exercised = {verdict.name: verdict for verdict in verdicts(tmp_path / "run")}["exercised"]
    said = [finding.kind for finding in exercised.findings if "lasted 0 s" in finding.kind]
    assert {one.split()[0] for one in said} == set(lasted_0_s.split())
    if lasted_0_s:
        assert exercised.verdict is Validity.UNKNOWN

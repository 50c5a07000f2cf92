"""`injection: packet`: who may say it, and what is refused before anything starts."""

from __future__ import annotations

from typing import Any

import pytest

from nemesrv.chaos.errors import HarnessError, ScenarioError
from nemesrv.chaos.faults import packet_drop
from nemesrv.chaos.runner import Options, as_run_with
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario

LOSS = {"at_s": 5, "do": "packet_loss", "links": ["broker-a <-> ns-0"], "injection": "packet"}


def scenario(*timeline: dict[str, Any], scale: float = 1) -> Scenario:
    document = {"checks": ["routes_converge"], "timers": {"time_scale": scale}, "timeline": list(timeline)}
    return parse(document, file="x.yaml")


def as_run(of: Scenario, **options: Any) -> Scenario:
    return as_run_with(of, Options(**options))


def test_it_is_written_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packet_drop, "require_packet_drop", lambda: None)
    loss = scenario(LOSS)
    assert "injection: packet" in loss.to_yaml()
    assert "injection" not in scenario({**LOSS, "do": "cut", "injection": None}).to_yaml()
    assert as_run(loss).timeline == loss.timeline


def test_the_virtual_clock_needs_no_rights_and_no_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packet_drop, "require_packet_drop", lambda: pytest.fail("asked for"))
    assert as_run(scenario(LOSS, scale=10), virtual=True).clock == "virtual"


def test_what_cannot_be_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packet_drop, "require_packet_drop", lambda: None)
    with pytest.raises(ScenarioError, match=r"timeline\.0: .*`do: cut` takes no injection: a loss of packets does"):
        scenario({**LOSS, "do": "cut"})
    with pytest.raises(
        ScenarioError, match=r"timeline\.0\.injection: 'tc' is not allowed; expected one of packet, or null"
    ):
        scenario({**LOSS, "injection": "tc"})
    with pytest.raises(
        ScenarioError, match=r"timers\.time_scale: 10 is not allowed; expected 1 beside `injection: packet`"
    ):
        as_run(scenario(LOSS, scale=10))
    with pytest.raises(ScenarioError, match=r"timers\.time_scale: 5 is not allowed"):
        as_run(scenario(LOSS), time_scale=5)
    by_nobody = {key: value for key, value in LOSS.items() if key != "injection"}
    with pytest.raises(ScenarioError, match=r"a fault that a proxy can inject, `injection: packet` beside it, or --cl"):
        as_run(scenario(by_nobody))


def test_without_the_rights_a_run_is_refused_and_no_other_fault_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> None:
        raise HarnessError("injection: packet needs root")

    monkeypatch.setattr(packet_drop, "require_packet_drop", refuse)
    with pytest.raises(HarnessError, match="injection: packet needs root"):
        as_run(scenario(LOSS))

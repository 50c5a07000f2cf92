"""`python -m tests.bench clients`: whom it measures, and what it prints (docs/performance.md)."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from nemesrv.chaos.preflight import MachineNeeds
from nemesrv.chaos.runner import processes_of
from nemesrv.chaos.topology import NodeKind
from tests.bench import clients
from tests.bench.clients import Measured, crowd


def test_a_crowd_is_half_producers_and_half_consumers_in_groups_of_a_topic_each() -> None:
    scenario = crowd(500)
    topology = scenario.topology()
    assert len(topology.of(NodeKind.PRODUCER)) == len(topology.of(NodeKind.CONSUMER)) == 250
    assert {len(nodes) for nodes in topology.processes.values()} == {clients.PER_PROCESS}
    groups = {scenario.group_of(node) for node in topology.of(NodeKind.CONSUMER)}
    assert len(groups) == 250 // clients.GROUP
    assert {scenario.topic_of(node) for node in topology.of(NodeKind.PRODUCER)} <= scenario.topics().keys()
    assert scenario.timers.time_scale == 1


def test_a_machine_needs_a_process_for_each_that_shares_none_and_files_for_every_link() -> None:
    assert processes_of(crowd(500)) == 3 + 8 + 1 + 4 + 1
    needs = MachineNeeds.of_run(crowd(500), spark=False)
    assert needs.open_files < 20_000
    assert needs.memory < 3 * 1024**3
    assert needs.ports == pytest.approx(0.65, abs=0.01)


def test_the_curve_is_printed_with_what_one_client_more_costs() -> None:
    def of(count: int) -> Measured:
        parts = dict.fromkeys(clients.PARTS, 0.0)
        return Measured(
            clients=count,
            proxies=11 * count,
            cores={**parts, "clients": count * 0.0005},
            bytes={**{part: 0 for part in parts}, "clients": count * 3 * 1024 * 1024},
            up_cpu_s=10.0,
            events_per_s=1.0,
            lag_ms=(80.0, 90.0),
            proxy_lag_ms=(80.0, 81.0),
        )

    out = io.StringIO()
    clients._print([of(50), of(500)], Console(file=out, width=120))
    assert "500 clients" in out.getvalue()
    assert "one client more: 0.50 ms of CPU a second, 3.00 MB" in out.getvalue()

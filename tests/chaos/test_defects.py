"""Planted defects: each is sound as data, is planted where it is meant, and changes what its node does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nemesrv.chaos.defects import DEFECTS
from nemesrv.chaos.nodes import NodePlan
from nemesrv.chaos.run_folder import RunFolder
from nemesrv.chaos.scenarios.model import CHECK_NAMES, find
from nemesrv.chaos.selftest import Outcome, _plan
from nemesrv.chaos.workloads.producer import ProducerNode
from nemesrv.remoting.network import Address
from nemesrv.remoting.node import NodeContext
from tests.virtual import MemoryNetwork, VirtualClock, run


def plan(defect: str | None = None) -> NodePlan:
    scenario = find("smoke")
    addresses = {name: Address("127.0.0.1", 20000 + i) for i, name in enumerate(scenario.topology().servers)}
    return NodePlan(scenario=scenario, listen=addresses, told=addresses, defect=(defect and DEFECTS[defect]) or None)


def context(name: str, tmp_path: Path) -> NodeContext:
    return NodeContext(
        name=name, clock=VirtualClock(), network=MemoryNetwork(), rng=random.Random(1), data_dir=tmp_path / name
    )


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_found_by_checks_that_its_scenario_runs(name: str) -> None:
    defect = DEFECTS[name]
    assert defect.caught_by
    assert defect.caught_by <= set(find(defect.scenario).checks)
    assert set(defect.nodes) <= set(find(defect.scenario).topology().nodes)


def test_every_check_has_a_defect_that_it_alone_or_with_others_must_find() -> None:
    assert set().union(*(defect.caught_by for defect in DEFECTS.values())) == set(CHECK_NAMES)


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_can_be_planted_in_each_node_that_it_is_meant_for(name: str, tmp_path: Path) -> None:
    async def body() -> None:
        kinds = find(DEFECTS[name].scenario).topology().kinds
        planted = [node for node, kind in kinds.items() if DEFECTS[name].is_for(node, kind)]
        assert planted
        for node in planted:
            plan(name).factory(node, kinds[node])(context(node, tmp_path))

    run(body)


def test_a_client_that_starts_at_the_first_keeps_the_given_order_and_takes_its_first_entry(tmp_path: Path) -> None:
    async def first_choices(defect: str | None) -> set[tuple[tuple[Address, ...], Address]]:
        found = set()
        for seed in range(20):
            made = plan(defect).factory("producer-0", find("smoke").topology().kinds["producer-0"])
            node = made(
                NodeContext(name="producer-0", clock=VirtualClock(), network=MemoryNetwork(), rng=random.Random(seed))
            )
            assert isinstance(node, ProducerNode)
            node.instance.name_server.start()
            selector = node.instance.name_server.selector
            found.add((selector.addresses, selector.advance(None).new))
        return found

    given = plan().name_servers
    assert run(lambda: first_choices("client-starts-at-the-first")) == {(given, given[0])}
    assert len(run(lambda: first_choices(None))) > 5


def test_the_self_test_runs_each_clean_twin_once_before_its_defects() -> None:
    runs = [(defect.name if defect else None, scenario) for defect, scenario in _plan(DEFECTS)]
    assert [name for name, _ in runs if name] != []
    for scenario in {scenario for _, scenario in runs}:
        names = [name for name, of in runs if of == scenario]
        assert names[0] is None
        assert None not in names[1:]


def test_a_defect_counts_as_caught_only_when_exactly_the_checks_meant_for_it_say_invalid() -> None:
    def outcome(found: set[str]) -> Outcome:
        return Outcome(
            scenario="smoke",
            defect="x",
            meant=frozenset({"routes_are_true"}),
            found=frozenset(found),
            unknown=frozenset(),
            folder=RunFolder(Path("somewhere")),
        )

    assert outcome({"routes_are_true"}).passed
    assert not outcome(set()).passed
    assert not outcome({"routes_are_true", "routes_converge"}).passed

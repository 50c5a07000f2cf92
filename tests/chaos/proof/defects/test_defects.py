"""Planted defects: each is sound as data, is planted where it is meant, and changes what its node does."""

import io
import random
import shlex
from pathlib import Path

import pytest
from rich.console import Console

from nemesrv.actors.broker.server import Broker
from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.check import Group
from nemesrv.chaos.experiment.nodes import NodePlan
from nemesrv.chaos.proof.defects import _ALL, DEFECTS, EVERY
from nemesrv.chaos.proof.selftest import SelftestOutcome, plan_of, print_outcomes, scenario_of
from nemesrv.chaos.scenarios.loading import KINDS_SHIPPED, all_shipped, find, shipped
from nemesrv.chaos.scenarios.model import CHECK_NAMES
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.node import Node, NodeContext
from tests.virtual import MemoryNetwork, VirtualClock, run


def plan(defect: str | None = None) -> NodePlan:
    scenario = scenario_of(DEFECTS[defect].scenario if defect else "smoke")
    addresses = {name: Address("127.0.0.1", 20000 + i) for i, name in enumerate(scenario.topology().servers)}
    return NodePlan(
        scenario=scenario, listen=addresses, advertised=addresses, defect=(defect and DEFECTS[defect]) or None
    )


def context(name: str, tmp_path: Path) -> NodeContext:
    return NodeContext(
        name=name, clock=VirtualClock(), network=MemoryNetwork(), rng=random.Random(1), data_dir=tmp_path / name
    )


def test_there_are_at_least_forty_and_no_two_have_one_name() -> None:
    assert len(DEFECTS) == len(_ALL) >= 40


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_found_by_checks_that_there_are_in_nodes_that_there_are(name: str) -> None:
    defect = DEFECTS[name]
    assert defect.caught_by
    assert not defect.caught_by & defect.also
    assert defect.caught_by | defect.also <= set(CHECK_NAMES)
    assert set(defect.nodes) <= set(scenario_of(defect.scenario).topology().nodes)


def test_every_check_has_a_defect_that_it_alone_or_with_others_must_find() -> None:
    found = set().union(*(defect.caught_by for defect in DEFECTS.values()))
    judging = {name for name, check in CHECKS.items() if check.group is not Group.EXERCISED}
    assert found == judging, f"no planted defect is caught_by {sorted(judging - found)} (chaos/proof/defects/)"


def test_the_self_tests_own_scenarios_are_all_used() -> None:
    own = shipped("selftest").keys()
    assert own <= {defect.scenario for defect in DEFECTS.values()}
    assert len(all_shipped()) == sum(len(shipped(kind)) for kind in KINDS_SHIPPED)  # no name stands for two


@pytest.mark.parametrize("name", EVERY)
def test_the_command_of_a_defect_names_a_scenario_that_run_knows_and_the_defect_fits(name: str) -> None:
    given = cli.commands["run"].make_context("run", shlex.split(EVERY[name].command)[2:]).params
    assert given["defect"] == name
    (of,) = given["scenario"]
    found = find(of, given["sets"], given["implementation"])
    assert EVERY[name].caught_by <= set(found.checks)
    assert any(EVERY[name].is_for(*node) for node in found.topology().kinds.items())


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_can_be_planted_in_each_node_that_it_is_meant_for(name: str, tmp_path: Path) -> None:
    async def body() -> None:
        kinds = scenario_of(DEFECTS[name].scenario).topology().kinds
        planted = [node for node, kind in kinds.items() if DEFECTS[name].is_for(node, kind)]
        assert planted
        for node in planted:
            made: Node = plan(name).factory(node, kinds[node])(context(node, tmp_path))
            if isinstance(made, Broker):  # some of its parts are made when it listens
                await made.listen()
                await made.stop()

    run(body)


def test_the_self_test_runs_each_clean_twin_once_before_its_defects() -> None:
    runs = [(defect.name if defect else None, scenario) for defect, scenario in plan_of(DEFECTS)]
    assert {name for name, _ in runs if name} == set(DEFECTS)
    for scenario in {scenario for _, scenario in runs}:
        names = [name for name, of in runs if of == scenario]
        assert names[0] is None
        assert None not in names[1:]


def test_a_defect_is_killed_when_all_checks_meant_for_it_say_invalid_and_no_stranger_does() -> None:
    def outcome(*found: str, defect: str | None = "x", accused: str | None = None) -> str:
        named = frozenset({"routes_are_true", "no_false_eviction"})
        return SelftestOutcome(
            scenario="smoke",
            defect=defect,
            meant=named if defect else frozenset(),
            also=frozenset({"routes_converge"}) if defect else frozenset(),
            found=frozenset(found),
            unknown=frozenset(),
            accused=accused,
            where="somewhere",
        ).result

    assert outcome("routes_are_true", "no_false_eviction") == "killed"
    assert outcome("routes_are_true", "no_false_eviction", "routes_converge") == "killed"
    assert outcome("routes_are_true", "no_false_eviction", accused="broker-a") == "WRONG"
    assert outcome("routes_are_true") == "SURVIVED"
    assert outcome("routes_are_true", "no_false_eviction", "duplicates") == "WRONG"
    assert outcome(defect=None) == "clean"
    assert outcome("routes_converge", defect=None) == "WRONG"


def test_the_table_of_many_seeds_names_the_weakest_and_what_it_missed() -> None:
    def outcome(seed: int, defect: str | None, *found: str) -> SelftestOutcome:
        meant = frozenset({"routes_are_true"}) if defect else frozenset[str]()
        return SelftestOutcome(
            scenario="smoke",
            seed=seed,
            defect=defect,
            meant=meant,
            found=frozenset(found),
            unknown=frozenset(),
            where=f"runs/{seed}",
        )

    outcomes = [outcome(seed, None) for seed in (1, 2, 3)]
    outcomes += [outcome(1, "x", "routes_are_true"), outcome(2, "x", "duplicates"), outcome(3, "x", "routes_are_true")]
    console = Console(width=150, record=True, file=io.StringIO())
    print_outcomes(console, outcomes)
    said = console.export_text()
    assert "SURVIVED, seed 2: routes_are_true is silent, duplicates says INVALID (runs/2)" in " ".join(said.split())
    assert [one.line.partition(", seed ")[2] for one in outcomes[2:5]] == [
        "3: clean",
        "1: found by routes_are_true",
        "2: SURVIVED, routes_are_true is silent, duplicates says INVALID (runs/2)",
    ]
    assert "weakest of 3 seeds is 2: 0 of 1 defects found, 1 of 1 twins clean" in said

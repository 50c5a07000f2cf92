"""What flaps, rolling restarts and restart storms: what they become."""

from typing import Any

from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario

LINK = {"links": ["broker-a <-> ns-0"]}
STORM: dict[str, Any] = {"at_s": 50, "do": "restart_storm", "nodes": ["name_servers"]}


def scenario(*timeline: dict[str, Any], **more: Any) -> Scenario:
    return parse({"checks": ["routes_are_true"], "timeline": list(timeline), **more}, file="x.yaml")


def planned(*timeline: dict[str, Any], seed: int | None = 1) -> list[tuple[float, str, tuple[str, ...]]]:
    return [(one.at_s, one.action.do, one.action.nodes) for one in scenario(*timeline).plan(seed).actions]


def test_what_flaps_is_on_for_its_part_of_each_period_until_its_heal() -> None:
    flaps = {"at_s": 20, "do": "cut", "name": "loose", "period_s": 10, "duty": 0.3, **LINK}
    other = {"at_s": 5, "do": "latency", "latency_ms": 5, **LINK}
    done = planned(other, flaps, {"at_s": 45, "do": "heal", "faults": ["loose"]}, {"at_s": 60, "do": "heal"})
    assert [(at_s, do) for at_s, do, _ in done] == [
        (5, "latency"), (20, "cut"), (23, "heal"), (30, "cut"), (33, "heal"), (40, "cut"), (43, "heal"),
        (45, "heal"), (60, "heal"),
    ]  # fmt: skip
    world = expected_world(scenario(other, flaps, {"at_s": 60, "do": "heal"})).world
    lasted = [(f.start_ms / 1000, f.end_ms / 1000) for f in world.faults if f.fault_id == "loose"]
    assert lasted == [(20, 23), (30, 33), (40, 43), (50, 53)]


def test_half_of_the_period_is_what_is_not_said() -> None:
    done = planned({"at_s": 20, "do": "cut", "period_s": 10, **LINK}, {"at_s": 40, "do": "heal"})
    assert [at_s for at_s, *_ in done] == [20, 25, 30, 35, 40]


def test_a_rolling_restart_goes_from_node_to_node() -> None:
    rolling = {"at_s": 20, "do": "rolling_restart", "nodes": ["name_servers"], "pause_s": 40}
    assert planned(rolling) == [(20 + 40 * n, "restart", (f"ns-{n}",)) for n in range(3)]
    killed = {**rolling, "nodes": ["broker-b", "broker-a"], "by": "kill", "down_s": 5}
    assert planned(killed) == [
        (20, "kill", ("broker-b",)), (25, "restart", ("broker-b",)),
        (65, "kill", ("broker-a",)), (70, "restart", ("broker-a",)),
    ]  # fmt: skip


def test_a_storm_is_the_seeds_own_and_explain_without_one_says_so() -> None:
    storm = {"at_s": 20, "do": "restart_storm", "nodes": ["brokers", "ns-0"], "restarts": 6, "for_s": 30, "down_s": 4}
    one = planned(storm)
    assert one == planned(storm)
    assert one != planned(storm, seed=2)
    kills = [(at_s, nodes) for at_s, do, nodes in one if do == "kill"]
    assert all(20 <= at_s <= 50 for at_s, _ in kills)
    assert all((at_s + 4, "restart", nodes) in one for at_s, nodes in kills), "and each is back 4 s later"
    assert expected_world(scenario(storm)).unknown == ("restart_storm of brokers, ns-0 at 20 s, which the seed draws",)


def written(*timeline: dict[str, Any]) -> list[tuple[float, str]]:
    return [(entry.at_s, entry.summary) for entry in scenario(*timeline).timeline]


def test_a_fault_that_says_for_how_long_is_ended_by_an_entry_of_its_own() -> None:
    assert written(
        {"at_s": 5, "do": "latency", "latency_ms": 5, **LINK},
        {"at_s": 20, "do": "cut", "for_s": 30, **LINK},
        {"at_s": 25, "do": "kill", "nodes": ["ns-0"], "for_s": 5},
        {"at_s": 28, "do": "pause", "nodes": ["ns-1"], "for_s": 50},
    ) == [
        (5, "latency broker-a <-> ns-0"), (20, "cut cut-2 broker-a <-> ns-0"), (25, "kill ns-0"),
        (28, "pause ns-1"), (30, "restart ns-0"), (50, "heal cut-2"), (78, "resume ns-1"),
    ]  # fmt: skip


def test_what_flaps_for_a_time_is_named_as_it_was() -> None:
    flaps = {"at_s": 20, "do": "cut", "name": "loose", "period_s": 10, "for_s": 30, **LINK}
    assert written(flaps)[-1] == (50, "heal loose")


def test_a_restart_storm_keeps_its_own_time() -> None:
    assert [do for _, do, _ in planned({**STORM, "for_s": 20, "restarts": 1})] == ["kill", "restart"]

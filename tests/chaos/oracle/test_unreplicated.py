"""When a SYNC_MASTER may say that it stored a message on no slave."""

import math

import pytest

from nemesrv.chaos.oracle.intervals import Stretch
from nemesrv.chaos.oracle.slaves import alone, unreplicated, waits_for_slaves
from nemesrv.remoting.codes import ResponseCode
from tests.chaos.builder import HistoryBuilder, cluster

SYNC = {"broker-a": {"brokerRole": "SYNC_MASTER"}}
BROKERS = ("broker-a", "broker-a/1", "broker-b", "broker-b/1")
AGAIN_S = 20 + 5 + 3
"""Housekeeping, a dial each 5 s, and its connecting."""


def told(builder: HistoryBuilder) -> dict[str, list[Stretch]]:
    _, world = builder.end(600).facts()
    return {name: list(stretches) for name, stretches in unreplicated(world).items()}


def seconds(found: list[Stretch]) -> list[tuple[float, float]]:
    return [(round(start_ms / 1000, 1), round(end_ms / 1000, 1)) for start_ms, end_ms in found]


def test_only_a_sync_master_waits_for_slaves() -> None:
    assert told(cluster(brokers=BROKERS, settings=SYNC)).keys() == {"broker-a"}
    assert told(cluster(brokers=BROKERS)) == {}


def test_without_any_slave_it_never_has_one() -> None:
    assert told(cluster(brokers=("broker-a",), settings=SYNC)) == {"broker-a": [Stretch(-math.inf, math.inf)]}


def test_until_its_slave_has_begun_to_copy_and_from_its_death_until_it_copies_again() -> None:
    kill = ("kill-1", "kill", "sigkill", "broker-a/1")
    builder = cluster(brokers=BROKERS, settings=SYNC)
    builder.at(100).fault(*kill, until_s=200, value={"asked_ms": 99_000}).restarted("broker-a/1")
    found = seconds(told(builder)["broker-a"])
    assert found[:2] == [(-math.inf, AGAIN_S), (99, 200 + AGAIN_S)]
    assert all(start_s >= 599 for start_s, _ in found[2:])  # the run is over


def test_a_cut_between_the_two_counts_and_one_to_others_does_not() -> None:
    between = ("cut-1", "black_hole", "toxiproxy", "broker-a/1", "broker-a")
    beside = ("cut-2", "black_hole", "toxiproxy", "broker-a/1", "ns-0")
    builder = cluster(brokers=BROKERS, settings=SYNC)
    for fault, at_s in ((between, 100), (beside, 300)):
        builder.at(at_s).fault(*fault, until_s=at_s + 50, value={"asked_ms": 99_000})
    assert (99, 150 + AGAIN_S) in seconds(told(builder)["broker-a"])
    assert not any(start_s < 340 < end_s for start_s, end_s in seconds(told(builder)["broker-a"]))


def test_of_two_slaves_one_is_enough() -> None:
    kill = ("kill-1", "kill", "sigkill", "broker-a/1")
    builder = cluster(brokers=(*BROKERS, "broker-a/2"), settings=SYNC)
    builder.at(100).fault(*kill, until_s=200).restarted("broker-a/1")
    assert not any(start_s < 150 < end_s for start_s, end_s in seconds(told(builder)["broker-a"]))


def test_it_is_alone_for_certain_while_no_slave_of_its_runs() -> None:
    kill = ("kill-1", "kill", "sigkill", "broker-a/1")
    builder = cluster(brokers=BROKERS, settings=SYNC)
    builder.at(100).fault(*kill, until_s=200).restarted("broker-a/1")
    _, world = builder.end(600).facts()
    assert {name: seconds(list(stretches)) for name, stretches in alone(world).items()} == {"broker-a": [(100, 200)]}
    _, world = cluster(brokers=BROKERS).end(600).facts()
    assert alone(world) == {}


@pytest.mark.parametrize(
    "unheard",
    [("pause-1", "pause", "sigstop", "broker-a/1"), ("hole-1", "black_hole", "toxiproxy", "broker-a/1", "broker-a")],
)
def test_it_is_alone_for_certain_while_it_hears_nothing_of_its_slave(unheard: tuple[str, ...]) -> None:
    builder = cluster(brokers=BROKERS, settings=SYNC).at(100).fault(*unheard, until_s=200)
    _, world = builder.end(600).facts()
    ((start_s, end_s),) = seconds(list(alone(world)["broker-a"]))
    assert (start_s, end_s) == (pytest.approx(100, abs=0.1), 200)


@pytest.mark.parametrize(("beside", "least_ms"), [(False, [399.0]), (True, [])])
def test_it_acknowledges_no_sooner_than_its_slaves_link_lets_the_slave(beside: bool, least_ms: list[float]) -> None:
    of = "latency", "toxiproxy.latency", "broker-a/1", "broker-a"
    builder = cluster(brokers=BROKERS, settings=SYNC)
    builder.at(100).fault("slow-1", *of, until_s=200, value={"latency_ms": 200})
    if beside:
        builder.at(150).fault("slow-2", *of, until_s=160, value={"latency_ms": 200})
    _, world = builder.end(600).facts()
    waits = list(waits_for_slaves(world, "broker-a"))
    assert [one.least_ms for one in waits if one.code is ResponseCode.SUCCESS] == least_ms
    assert [one.least_ms for one in waits if one.code is ResponseCode.FLUSH_SLAVE_TIMEOUT] == [5000.0]
    assert list(waits_for_slaves(world, "broker-b")) == []

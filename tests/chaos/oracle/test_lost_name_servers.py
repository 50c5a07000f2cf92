"""When a client must have left a NameServer that is lost to it, over small worlds. Without Spark."""

from typing import Any

import pytest

from nemesrv.chaos.oracle.lost_name_servers import name_server_losses
from nemesrv.chaos.oracle.world import World
from tests.chaos.builder import HistoryBuilder, cluster

CLIENTS = ("producer-0", "consumer-0")


def lost(builder: HistoryBuilder) -> dict[tuple[str, str], tuple[float, float]]:
    """(client, NameServer) → from when to when it must have left, in seconds."""
    found = name_server_losses(World.of_rows(builder.rows))
    return {(loss.client, loss.name_server): (loss.from_ms / 1000, loss.end_ms / 1000) for loss in found}


@pytest.mark.parametrize(
    ("fault", "from_s"),
    [
        (("f1", "kill", "sigkill", "ns-0", None), 130),
        (("f1", "pause", "sigstop", "ns-0", None), 160),
        (("f1", "cut", "toxiproxy.disabled", "producer-0", "ns-0"), 130),
        (("f1", "black_hole", "toxiproxy.bandwidth.rate=0", "producer-0", "ns-0"), 160),
        (("f1", "packet_loss", "packet_drop", "producer-0", "ns-0"), 163),
    ],
)
def test_a_client_must_leave_a_lost_name_server_by_the_way_it_was_lost(fault: Any, from_s: float) -> None:
    builder = cluster(clients=CLIENTS).at(100).fault(*fault, until_s=300)
    if fault[2] == "sigkill":
        builder.restarted("ns-0")
    only_the_producers = fault[4] is not None
    assert lost(builder.end(400)) == {
        (client, "ns-0"): (from_s, 300) for client in (CLIENTS[:1] if only_the_producers else CLIENTS)
    }


@pytest.mark.parametrize(("apart_s", "must"), [(0.2, True), (2.0, False)])
def test_kills_of_one_act_have_a_moment_each_and_are_one_fault(apart_s: float, must: bool) -> None:
    builder = cluster(3, clients=CLIENTS, time_scale=10)
    builder.at(100).fault("f1", "kill", "sigkill", "ns-0")
    builder.at(100 + apart_s).fault("f2", "kill", "sigkill", "ns-1")
    assert (("producer-0", "ns-0") in lost(builder.end(400))) == must


def test_a_broker_that_hangs_with_it_holds_up_the_poll_by_which_a_client_leaves_its_name_server() -> None:
    pause = ("f1", "pause", "sigstop", "broker-b")
    fault = ("f1", "pause", "sigstop", "ns-0")
    builder = cluster(clients=CLIENTS).at(100).fault(*fault).fault(*pause).at(300).fault(*fault, end=True)
    assert lost(builder.end(400))["producer-0", "ns-0"] == (163, 300)


@pytest.mark.parametrize(("profile", "from_s"), [("go", 136), ("node", 133), ("java-4.9", 160), ("rust", 160)])
def test_round_robin_is_past_a_silent_name_server_after_one_try(profile: str, from_s: float) -> None:
    """Go's never closes a silent connection, so by Java's rules it might stay there for ever."""
    builder = cluster()
    value = {"kind": "producer", "implementation": "go", "client_profile": profile, "dialler": "go"}
    builder.event("harness", "node", source="go", value=value)
    builder.event("go", "started")
    builder.at(100).black_hole("go", "ns-0", until_s=300)
    assert lost(builder.end(400)) == {("go", "ns-0"): (from_s, 300)}


def test_the_only_name_server_may_be_stayed_on_for_ever() -> None:
    fault = ("f1", "pause", "sigstop", "ns-0")
    builder = cluster(name_servers=1, clients=CLIENTS).at(100).fault(*fault, until_s=300)
    assert lost(builder.end(400)) == {}


@pytest.mark.parametrize(("latency_ms", "leaves"), [(1_400, False), (1_600, True)])
def test_a_link_so_slow_that_no_call_ends_in_time_is_a_lost_name_server(latency_ms: float, leaves: bool) -> None:
    fault = ("f1", "latency", "toxiproxy.latency", "producer-0", "ns-0")
    builder = cluster(clients=CLIENTS).at(100).fault(*fault, value={"latency_ms": latency_ms}).at(300)
    told = lost(builder.fault(*fault, end=True).end(400))
    assert told == ({("producer-0", "ns-0"): (160, 300)} if leaves else {})


@pytest.mark.parametrize(("first", "must_leave"), [(["ns-0"], False), (["ns-0", "ns-1"], True)])
def test_a_client_without_another_on_its_list_need_not_leave(first: list[str], must_leave: bool) -> None:
    fault = ("f1", "pause", "sigstop", "ns-0")
    builder = cluster(clients=CLIENTS, name_server_list=first).at(200).fault(*fault, until_s=400)
    builder.at(800).event("harness", "served_list", value=["ns-0", "ns-1"])
    assert (("producer-0", "ns-0") in lost(builder.end(1000))) is must_leave

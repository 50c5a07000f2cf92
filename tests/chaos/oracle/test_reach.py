"""What holds up a client's thread, and when it can ask no NameServer: offset commits and calls whose dials nobody
answers."""

from __future__ import annotations

import pytest

from nemesrv.chaos.oracle.intervals import Stretch
from nemesrv.chaos.oracle.reach import cut_offs, delayed_by_commits
from nemesrv.chaos.oracle.windows import Window
from nemesrv.chaos.oracle.world import World
from tests.chaos.builder import cluster

LOSS = ("f1", "packet_loss", "packet_drop", "consumer-0", "broker-a")
SYN_DROP = ("f1", "syn_drop", "full_accept_queue", "consumer-0", "broker-a")
KILL = ("f2", "kill", "sigkill", "broker-a")
PLAIN = Window(0, 33_000, "P + A", "")


@pytest.mark.parametrize(
    ("fault", "killed", "client", "held_up"),
    [
        (LOSS, False, "consumer-0", True),
        (LOSS, False, "producer-0", False),
        (SYN_DROP, True, "consumer-0", True),
        (SYN_DROP, False, "consumer-0", False),  # what is connected goes on
        (SYN_DROP, True, "producer-0", False),
    ],
)
def test_commits_hold_up_a_consumer_that_must_dial_and_whose_syns_are_dropped(
    fault: tuple[str, ...], killed: bool, client: str, held_up: bool
) -> None:
    builder = cluster(clients=("producer-0", "consumer-0")).at(100).fault(*fault)
    if killed:
        builder.at(110).fault(*KILL).at(120).fault(*KILL, end=True).restarted("broker-a")
    world = World.of_rows(builder.at(300).fault(*fault, end=True).end(400).rows)
    window = delayed_by_commits(world, client, PLAIN, 150_000)
    assert (window.latest_ms > PLAIN.latest_ms, "each commit" in window.formula) == (held_up, held_up)


def test_commits_are_of_the_queues_of_the_consumers_own_topic() -> None:
    def held_up_ms(queues: int) -> float:
        run = {"topics": {"orders": 1, "payments": queues}, "topic_of": {"consumer-0": "payments"}}
        builder = cluster(clients=("consumer-0",), workload={"queues": 1}, **run).at(100).fault(*LOSS)
        world = World.of_rows(builder.at(300).fault(*LOSS, end=True).end(400).rows)
        return delayed_by_commits(world, "consumer-0", PLAIN, 150_000).latest_ms

    assert held_up_ms(4) > held_up_ms(1) > PLAIN.latest_ms


PACKETS, BYTES = ("packet_loss", "packet_drop"), ("black_hole", "timeout")


@pytest.mark.parametrize(
    ("fault", "lost", "profile", "cut_off"),
    [
        (PACKETS, 2, "4.9", [Stretch(100_000, 300_000)]),
        (PACKETS, 1, "4.9", []),  # of three, two live ones are neighbours in every order
        (BYTES, 2, "4.9", []),  # a proxy accepts, so that a dial costs nothing
        (BYTES, 3, "4.9", [Stretch(100_000, 300_000)]),
        (PACKETS, 2, "5.x", []),  # one candidate a call, which has all of its time
    ],
)
def test_a_client_of_4_9_may_reach_nobody_while_dials_to_as_many_are_unanswered_as_live(
    fault: tuple[str, str], lost: int, profile: str, cut_off: list[Stretch]
) -> None:
    builder = cluster(name_servers=3, clients=("producer-0",))
    builder.rows[0]["value"]["profile"] = profile
    for at_s, end in ((100, False), (300, True)):
        builder.at(at_s)
        for number in range(lost):
            builder.fault("f1", *fault, "producer-0", f"ns-{number}", end=end)
    assert list(cut_offs(World.of_rows(builder.end(400).rows), "producer-0")) == cut_off


@pytest.mark.parametrize(("closed", "cut_off"), [(False, []), (True, [Stretch(100_000, 300_000)])])
def test_of_two_name_servers_it_leaves_the_one_behind_lost_packets_unless_it_must_dial_that_one_first(
    closed: bool, cut_off: list[Stretch]
) -> None:
    builder = cluster(clients=("producer-0",)).at(100).fault("f1", *PACKETS, "producer-0", "ns-1")
    if closed:  # the channel to the live one, so that the call begins at the other entry
        builder.at(150).fault("f2", "cut", "toxiproxy.disabled", "producer-0", "ns-0")
        builder.at(151).fault("f2", "cut", "toxiproxy.disabled", "producer-0", "ns-0", end=True)
    world = World.of_rows(builder.at(300).fault("f1", *PACKETS, "producer-0", "ns-1", end=True).end(400).rows)
    assert list(cut_offs(world, "producer-0")) == cut_off

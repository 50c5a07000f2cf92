"""What holds up a client's thread: offset commits, and calls whose dials nobody answers."""

import pytest

from nemesrv.chaos.oracle.link import Troubles
from nemesrv.chaos.oracle.reach import delayed_by_commits, is_reached_too_late
from nemesrv.chaos.oracle.windows import Window
from nemesrv.chaos.oracle.world import World
from tests.chaos.builder import cluster

LOSS = ("f1", "packet_loss", "packet_drop", "consumer-0", "broker-a")
SYN_DROP = ("f1", "syn_drop", "full_accept_queue", "consumer-0", "broker-a")
PLAIN = Window(0, 33_000, "P + A", "")


@pytest.mark.parametrize(
    ("fault", "client", "held_up"),
    [
        (LOSS, "consumer-0", True),
        (LOSS, "producer-0", False),
        (SYN_DROP, "consumer-0", False),  # what is connected goes on
    ],
)
def test_lost_packets_of_commits_hold_a_consumer_up(fault: tuple[str, ...], client: str, held_up: bool) -> None:
    builder = cluster(clients=("producer-0", "consumer-0")).at(100).fault(*fault)
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


@pytest.mark.parametrize(
    ("injected", "lost", "too_late"),
    [(("packet_loss", "packet_drop"), 2, True), (("packet_loss", "packet_drop"), 1, False),
     (("black_hole", "timeout"), 2, False)],
)  # fmt: skip
def test_unanswered_dials_to_two_take_the_time_of_a_call(injected: tuple[str, str], lost: int, too_late: bool) -> None:
    """A proxy accepts, so that a dial to one behind it costs nothing."""
    builder = cluster(name_servers=3, clients=("producer-0",)).at(100)
    for number in range(lost):
        builder.fault("f1", *injected, "producer-0", f"ns-{number}")
    assert is_reached_too_late(World.of_rows(builder.end(400).rows), "producer-0", 150_000, 160_000) is too_late


@pytest.mark.parametrize(("at_ms", "met"), [(99_940.0, False), (99_960.0, True), (100_010.0, True)])
def test_a_call_may_meet_a_fault_of_its_link_from_when_the_harness_asked_for_it(at_ms: float, met: bool) -> None:
    builder = cluster(clients=("consumer-0",)).at(100).fault(*SYN_DROP, value={"asked_ms": 99_950.0})
    troubles = Troubles(World.of_rows(builder.end(400).rows), "consumer-0")
    assert troubles.between("broker-a", at_ms - 10, at_ms) is met

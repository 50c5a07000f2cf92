"""Clients that share one dialler are told apart by process, and by the connections that one client never has twice."""

from __future__ import annotations

from nemesrv.chaos.fronts.behaviour import REFUSES
from nemesrv.chaos.fronts.instances import Instance, Instances
from nemesrv.chaos.fronts.observed import Asked, Behaved, By, Closed, Dialled, Opened
from nemesrv.remoting.node.network import Address

PEER = Address("127.0.0.1", 40_000)


class Story:
    def __init__(self) -> None:
        self.came: list[int | None] = []
        self.went: list[tuple[int, float]] = []
        self.instances = Instances(self._came, lambda one, at_ms: self.went.append((one.number, at_ms)))

    def _came(self, one: Instance) -> None:
        self.came.append(one.process)

    def opened(self, connection: int, front: str, process: int | None) -> int:
        [one] = self.instances.of(
            Opened(at_ms=connection, front=front, connection=connection, peer=PEER, process=process)
        )
        return one.number

    def closed(self, connection: int, front: str) -> None:
        assert self.instances.of(Closed(at_ms=connection, front=front, connection=connection, by=By.CLIENT))


def test_each_process_is_a_client_of_its_own() -> None:
    story = Story()
    assert [story.opened(1, "ns-0", 70), story.opened(2, "ns-1", 70), story.opened(3, "ns-0", 71)] == [0, 0, 1]
    [asker] = story.instances.of(Asked(at_ms=9, front="ns-0", connection=3, opaque=1, code=105))
    assert asker.number == 1
    assert story.came == [70, 71]


def test_a_second_connection_to_one_front_is_a_second_client_of_the_process() -> None:
    story = Story()
    assert [story.opened(1, "ns-0", 70), story.opened(2, "ns-0", 70), story.opened(3, "broker-a", 70)] == [0, 1, 0]
    assert story.opened(4, "broker-a", 70) == 1
    story.closed(2, "ns-0")
    assert story.opened(5, "ns-0", 70) == 1


def test_a_client_has_ended_when_its_process_is_gone_and_nothing_is_connected() -> None:
    story = Story()
    story.opened(1, "ns-0", 70)
    story.instances.look(10, lambda _process: False)
    assert not story.went
    story.closed(1, "ns-0")
    story.instances.look(11, lambda _process: True)
    assert not story.went
    story.instances.look(12, lambda _process: False)
    assert story.went == [(0, 12)]
    assert story.opened(2, "ns-0", 70) == 1


def test_one_whose_process_cannot_be_seen_ends_with_its_last_connection() -> None:
    story = Story()
    story.opened(1, "ns-0", None)
    story.closed(1, "ns-0")
    story.instances.look(5, lambda _process: True)
    assert story.went == [(0, 5)]


def test_a_front_s_behaviour_is_everybody_s_and_a_dial_elsewhere_is_nobody_s() -> None:
    story = Story()
    story.opened(1, "ns-0", 70)
    story.opened(2, "ns-0", 71)
    behaved = story.instances.of(Behaved(at_ms=5, front="ns-0", behaviour=REFUSES))
    assert [one.number for one in behaved] == [0, 1]
    assert story.instances.of(Dialled(at_ms=6, address=PEER, front=None, process=70)) == ()
    assert [one.number for one in story.instances.of(Dialled(at_ms=7, address=PEER, front="ns-1", process=71))] == [1]

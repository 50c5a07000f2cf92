"""Clients that share one dialler are told apart by process, by their names, and by what one client never does."""

from __future__ import annotations

from typing import Any

import pytest

from nemesrv.chaos.fronts.behaviour import REFUSES
from nemesrv.chaos.fronts.instances import Instance, Instances
from nemesrv.chaos.fronts.observed import Answered, Asked, Behaved, By, Closed, Dialled, Observation, Opened
from nemesrv.remoting.node.network import Address

PEER = Address("127.0.0.1", 40_000)


class Story:
    """What is seen at given seconds, and whose it was found to be."""

    def __init__(self, **how: Any) -> None:
        self.came: list[int | None] = []
        self.whose: dict[int, int] = {}
        self.of: list[tuple[int, Observation]] = []
        self.went: list[tuple[int, float]] = []
        self.instances = Instances(
            self._came, self._saw, lambda one, at_ms: self.went.append((one.number, at_ms)), ("ns-0", "ns-1"), **how
        )
        self._opaque = 0

    def _came(self, one: Instance) -> None:
        self.came.append(one.process)

    def _saw(self, one: Instance, seen: Observation) -> None:
        self.of.append((one.number, seen))
        if isinstance(seen, Opened):
            self.whose[seen.connection] = one.number

    def opened(self, connection: int, front: str, process: int | None, at_s: float = 0.0) -> Story:
        at_ms = 1000 * at_s
        self.instances.see(Opened(at_ms=at_ms, front=front, connection=connection, peer=PEER, process=process))
        return self

    def asked(self, connection: int, front: str, at_s: float, topic: str = "orders", **more: Any) -> Story:
        self._opaque += 1
        said = {"code": 105, "fields": {"topic": topic}, **more}
        self.instances.see(Asked(at_ms=1000 * at_s, front=front, connection=connection, opaque=self._opaque, **said))
        answered = Answered(at_ms=1000 * at_s + 1, front=front, connection=connection, opaque=self._opaque, code=0)
        self.instances.see(answered)
        return self

    def beats(self, connection: int, at_s: float, name: str) -> Story:
        body = b'{"clientID":"%s","consumerDataSet":[]}' % name.encode()
        return self.asked(connection, "broker-a", at_s, code=34, fields={}, body=body)

    def closed(self, connection: int, front: str, at_s: float) -> Story:
        self.instances.see(Closed(at_ms=1000 * at_s, front=front, connection=connection, by=By.CLIENT))
        return self

    def dials(self, front: str | None, at_s: float, thread: int | None = None, process: int = 70) -> Story:
        about = {"at_ms": 1000 * at_s, "address": PEER, "front": front, "process": process}
        self.instances.see(Dialled(**about, thread=thread))
        return self

    def refuses(self, front: str, at_s: float) -> Story:
        self.instances.see(Behaved(at_ms=1000 * at_s, front=front, behaviour=REFUSES))
        return self

    def look(self, at_s: float, *, lives: bool = True) -> Story:
        self.instances.look(1000 * at_s, lambda _process: lives)
        return self

    def unclear(self) -> list[bool]:
        return [bool(one.unclear) for one in self.instances.living()]


def test_each_process_is_a_client_of_its_own() -> None:
    story = Story().opened(1, "ns-0", 70).opened(3, "ns-0", 71)
    story.asked(3, "ns-0", 9)
    assert story.came == [70, 71]
    assert [number for number, one in story.of if isinstance(one, Asked)] == [1]


def test_a_second_connection_to_one_name_server_is_a_second_client_of_the_process() -> None:
    story = Story().opened(1, "ns-0", 70).asked(1, "ns-0", 0.1).opened(2, "ns-0", 70, 1).asked(2, "ns-0", 1.1).look(3)
    assert story.whose == {1: 0, 2: 1}
    story.closed(2, "ns-0", 4).opened(5, "ns-1", 70, 5).asked(5, "ns-1", 5.1)
    assert story.whose[5] == 1, "who has lost its own connects"


def test_a_connection_that_closes_a_moment_after_its_successor_was_made_is_of_the_same_client() -> None:
    story = Story().opened(1, "ns-0", 70).asked(1, "ns-0", 0.1)
    story.opened(2, "ns-0", 70, 30).asked(2, "ns-0", 30.1).closed(1, "ns-0", 30.2).look(40)
    assert story.whose == {1: 0, 2: 0}


def test_who_connects_elsewhere_while_the_first_goes_on_asking_is_another_client_where_heartbeats_name_two() -> None:
    story = Story().opened(1, "ns-0", 70).asked(1, "ns-0", 0.1).opened(2, "ns-1", 70, 1).asked(2, "ns-1", 1.1)
    story.opened(3, "broker-a", 70, 2).beats(3, 2.1, "a").opened(4, "broker-a", 70, 2).beats(4, 2.2, "b")
    story.asked(1, "ns-0", 30).asked(2, "ns-1", 31)
    assert (story.whose[1], story.whose[2]) == (0, 1)
    assert story.unclear() == [False, False]


def test_who_moves_about_under_one_name_is_one_client() -> None:
    story = Story().opened(1, "ns-0", 70).asked(1, "ns-0", 0.1).opened(3, "broker-a", 70, 1).beats(3, 1.1, "a")
    story.opened(2, "ns-1", 70, 2).asked(2, "ns-1", 2.1).asked(1, "ns-0", 30).asked(2, "ns-1", 31).look(40)
    assert story.whose == {1: 0, 2: 0, 3: 0}


def test_who_takes_turns_at_every_request_is_one_client_with_a_connection_to_each() -> None:
    story = Story(every_request=True).opened(1, "ns-0", 70).asked(1, "ns-0", 0.1)
    story.opened(2, "ns-1", 70, 1).asked(2, "ns-1", 1.1).asked(1, "ns-0", 2)
    assert story.whose == {1: 0, 2: 0}


def pool(*, beats: bool = True, **how: Any) -> Story:
    """One client with three connections to a NameServer, which it uses in turn (Python's pyrocketmq has four)."""
    story = Story(**how)
    for connection in (1, 2, 3):
        story.opened(connection, "ns-0", 70)
    story.opened(4, "broker-a", 70, 1).asked(1, "ns-0", 0.5)
    if beats:
        story.beats(4, 1.2, "a")
    return story.asked(2, "ns-0", 31).asked(3, "ns-0", 61).asked(1, "ns-0", 91).look(100)


def test_one_that_takes_its_connections_to_a_name_server_in_turn_is_one_client() -> None:
    for story in (pool(), pool(clients=1), pool(beats=False)):
        assert {*story.whose.values()} == {0}
        assert story.unclear() == [False]


def test_a_pool_without_heartbeats_may_be_several_clients_and_is_unclear() -> None:
    story = Story()
    for connection in (1, 2, 3, 4):
        story.opened(connection, "ns-0", 70)
    story.asked(1, "ns-0", 0.1).asked(2, "ns-0", 0.2, "trace").look(50)
    assert {*story.unclear()} == {True}


def test_who_asks_at_two_name_servers_and_sends_no_heartbeat_may_be_one_client_or_two_and_is_unclear() -> None:
    """zjykzk's Go client asks any NameServer at each look-up; without a route it sends no heartbeat."""
    story = Story().opened(1, "ns-0", 70).asked(1, "ns-0", 0.1).opened(2, "ns-1", 70, 1).asked(2, "ns-1", 1.1)
    story.asked(1, "ns-0", 30).asked(2, "ns-1", 31).look(40)
    assert {*story.unclear()} == {True}
    other = Story().opened(1, "ns-0", 70).asked(1, "ns-0", 0.1).opened(2, "ns-1", 70, 1).asked(2, "ns-1", 1.1, "trace")
    other.asked(1, "ns-0", 30).asked(2, "ns-1", 31, "trace").look(40)
    assert other.unclear() == [False, False]


def test_of_two_clients_of_different_topics_the_reason_names_no_topics() -> None:
    story = Story(clients=2).opened(1, "ns-0", 70).asked(1, "ns-0", 0.1)
    story.opened(2, "ns-0", 70, 1).asked(2, "ns-0", 1.1, "trace").opened(3, "ns-0", 70, 2).look(40)
    assert {one.unclear for one in story.instances.living()} == {
        "which of 2 clients of one process connected to ns-0 is not seen"
    }


def test_who_asks_for_other_topics_is_told_by_them() -> None:
    story = Story(clients=2).opened(1, "ns-0", 70).asked(1, "ns-0", 0.1).opened(2, "ns-0", 70, 1)
    story.asked(2, "ns-0", 1.1, "trace").asked(1, "ns-0", 2).closed(1, "ns-0", 3).closed(2, "ns-0", 3)
    story.opened(3, "ns-1", 70, 4).opened(4, "ns-1", 70, 4).asked(3, "ns-1", 5, "trace").asked(4, "ns-1", 5.1)
    assert story.whose == {1: 0, 2: 1, 3: 1, 4: 0}
    assert story.unclear() == [False, False]


def test_two_of_the_same_topics_that_lose_their_name_server_cannot_be_told_apart() -> None:
    story = Story(clients=2).opened(1, "ns-0", 70).asked(1, "ns-0", 0.1).opened(2, "ns-0", 70, 1)
    story.asked(2, "ns-0", 1.1).asked(1, "ns-0", 2).closed(1, "ns-0", 3).closed(2, "ns-0", 3)
    story.opened(3, "ns-1", 70, 4).asked(3, "ns-1", 5)
    assert story.unclear() == [True, True]


def test_a_dial_in_vain_is_of_the_client_that_has_no_connection() -> None:
    story = Story(clients=2).opened(1, "ns-0", 70).asked(1, "ns-0", 0.1).opened(2, "ns-1", 70, 1)
    story.asked(2, "ns-1", 1.1, "trace").asked(1, "ns-0", 1.5).closed(2, "ns-1", 2).refuses("ns-0", 2)
    story.closed(1, "ns-0", 2.1).opened(3, "ns-1", 70, 2.2).asked(3, "ns-1", 2.3).dials("ns-0", 3)
    assert [number for number, one in story.of if isinstance(one, Dialled)] == [1]


@pytest.mark.parametrize(("language", "of"), [("JAVA", [0, 0, 1, 1, 1]), ("GO", [0, 0, 1, 1, 0])])
def test_each_java_client_dials_from_a_thread_of_its_own(language: str, of: list[int]) -> None:
    story = Story(clients=2)
    dials = (("ns-0", 701, 1, ""), ("broker-a", 701, 2, "one"), ("ns-1", 702, 3, ""), ("broker-a", 702, 4, "other"))
    for at_s, (front, thread, connection, name) in enumerate(dials):
        story.dials(front, at_s, thread).opened(connection, front, 70, at_s)
        heart_beat = {"code": 34, "fields": {}, "body": b'{"clientID":"%s"}' % name.encode()} if name else {}
        story.asked(connection, front, at_s + 0.1, language=language, **heart_beat)
        story.asked(1, "ns-0", at_s + 0.2, language=language)
    story.closed(1, "ns-0", 5).closed(3, "ns-1", 5).refuses("ns-0", 5).dials("ns-0", 6, 702)
    assert [number for number, one in story.of if isinstance(one, Dialled)] == of
    assert any(story.unclear()) == (language == "GO")


def test_a_java_client_that_connects_everywhere_before_it_asks_is_one() -> None:
    story = Story(clients=4)
    for thread, connection, front in ((701, 1, "ns-0"), (702, 2, "ns-0"), (703, 3, "ns-0"), (703, 4, "ns-1")):
        story.dials(front, thread / 1000, thread).opened(connection, front, 70, thread / 1000)
        if thread < 703:
            story.asked(connection, front, thread / 1000, language="JAVA")
    story.asked(4, "ns-1", 0.8, language="JAVA")
    assert story.whose == {1: 0, 2: 1, 3: 2, 4: 2}


def test_one_of_three_whose_threads_are_not_all_known_is_not_a_fourth() -> None:
    story = Story(clients=3).dials("ns-0", 0.701, 701).dials("ns-0", 0.702, 702)
    story.opened(1, "ns-0", 70, 1).opened(2, "ns-0", 70, 1).dials("ns-0", 1.1, 703).opened(3, "ns-0", 70, 1.2)
    for at_s, (connection, topic) in enumerate(((1, "orders"), (2, "trace"), (3, "bills"), (1, "orders")), start=2):
        story.asked(connection, "ns-0", at_s, topic, language="JAVA")
    story.dials("ns-1", 7, 702).opened(4, "ns-1", 70, 7).asked(4, "ns-1", 7.1, "trace", language="JAVA")
    story.asked(1, "ns-0", 8).look(50)
    assert story.whose == {1: 0, 2: 1, 3: 2, 4: 1}


def test_of_two_java_clients_that_dial_one_front_at_once_no_thread_is_known() -> None:
    story = Story(clients=2).dials("ns-0", 0.701, 701).dials("ns-0", 0.702, 702)
    for connection in (1, 2):
        story.opened(connection, "ns-0", 70, connection)
    for connection in (1, 2, 1):
        story.asked(connection, "ns-0", 3 + connection, language="JAVA")
    assert story.whose == {1: 0, 2: 1}
    story.closed(2, "ns-0", 7).opened(3, "ns-1", 70, 8).asked(3, "ns-1", 9, language="JAVA").asked(1, "ns-0", 10)
    assert story.whose[3] == 1


def test_the_port_of_its_end_says_which_thread_made_a_connection() -> None:
    story = Story(clients=2)
    for thread in (701, 702):
        dialled = Dialled(at_ms=thread, address=PEER, front="ns-0", process=70, thread=thread, local=40_000 + thread)
        story.instances.see(dialled)
    for connection, thread in ((1, 702), (2, 701)):
        peer = Address("127.0.0.1", 40_000 + thread)
        story.instances.see(Opened(at_ms=800, front="ns-0", connection=connection, peer=peer, process=70))
        story.asked(connection, "ns-0", 1, language="JAVA").asked(connection, "ns-0", 2, language="JAVA")
    story.closed(1, "ns-0", 3).closed(2, "ns-0", 3)
    story.dials("ns-1", 4, 701).opened(3, "ns-1", 70, 4).asked(3, "ns-1", 5, language="JAVA")
    assert story.whose[3] == story.whose[2]
    assert story.unclear() == [False, False]


def test_two_that_have_done_the_same_and_asked_for_nothing_of_their_own_need_not_be_told_apart() -> None:
    story = Story(clients=2).opened(1, "ns-0", 70).opened(2, "ns-0", 70)
    for connection in (1, 2):
        story.asked(connection, "ns-0", connection, "TBW102").closed(connection, "ns-0", connection + 0.1)
    story.opened(3, "ns-1", 70, 4).asked(3, "ns-1", 5).opened(4, "ns-1", 70, 6).asked(4, "ns-1", 7, "trace")
    assert story.whose == {1: 0, 2: 1, 3: 0, 4: 1}
    assert story.unclear() == [False, False]


def test_whose_a_dial_in_vain_was_is_known_once_its_thread_has_connected() -> None:
    story = Story(clients=2).dials("ns-0", 0.701, 701).dials("ns-0", 0.702, 702)
    story.opened(1, "ns-0", 70, 1).opened(2, "ns-0", 70, 1)
    for at_s, (connection, topic) in enumerate(((1, "orders"), (2, "trace"), (1, "orders")), start=2):
        story.asked(connection, "ns-0", at_s, topic, language="JAVA")
    story.refuses("ns-0", 6).closed(1, "ns-0", 6).closed(2, "ns-0", 6).dials("ns-0", 7, 701).dials("ns-1", 7.1, 701)
    story.opened(3, "ns-1", 70, 7.2).asked(3, "ns-1", 7.3, "trace", language="JAVA")
    assert story.whose == {1: 0, 2: 1, 3: 1}
    assert (1, 7_000) in [(number, one.at_ms) for number, one in story.of if isinstance(one, Dialled)]
    assert story.unclear() == [False, False]


def test_a_client_has_ended_when_its_process_is_gone_and_nothing_is_connected() -> None:
    story = Story().opened(1, "ns-0", 70).look(10, lives=False)
    assert not story.went
    story.closed(1, "ns-0", 10.5).look(11)
    assert not story.went
    story.look(12, lives=False)
    assert story.went == [(0, 12_000)]
    assert story.opened(2, "ns-0", 70, 13).whose[2] == 1


def test_one_whose_process_cannot_be_seen_ends_with_its_last_connection() -> None:
    story = Story().opened(1, "ns-0", None).closed(1, "ns-0", 1).look(5)
    assert story.went == [(0, 5_000)]


@pytest.mark.parametrize("front", ["ns-1", None])
def test_a_front_s_behaviour_is_everybody_s_and_a_dial_elsewhere_is_nobody_s(front: str | None) -> None:
    story = Story().opened(1, "ns-0", 70).opened(2, "ns-0", 71).refuses("ns-1", 0.005)
    assert [number for number, one in story.of if isinstance(one, Behaved)] == [0, 1]
    story.dials(front, 0.006, process=71)
    assert [number for number, one in story.of if isinstance(one, Dialled)] == ([1] if front else [])

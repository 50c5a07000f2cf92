"""What is seen of a client from outside becomes rows by which the shipped checks judge it as if it had told them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from nemesrv.chaos.checks.clients.name_server_selection import judge
from nemesrv.chaos.checks.record.control import Control
from nemesrv.chaos.fronts.behaviour import PASSES, REFUSES
from nemesrv.chaos.fronts.instances import Instance, Instances
from nemesrv.chaos.fronts.look_ups import Rules
from nemesrv.chaos.fronts.observed import (
    Answered,
    Asked,
    Behaved,
    By,
    Closed,
    Dialled,
    GaveUp,
    How,
    Observation,
    Opened,
)
from nemesrv.chaos.fronts.rows import ClientRows, TimedRow
from nemesrv.chaos.history.schema import EVENTS
from nemesrv.chaos.oracle.client_profiles import PROFILES, Advance, Attempts, ClientProfile, Order, Outcome
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.verdict import Validity, Verdict
from nemesrv.remoting.headers.broker import SendMessageRequestHeader
from nemesrv.remoting.node.network import Address
from tests.chaos.builder import HistoryBuilder, address_of, cluster
from tests.chaos.reference_clients import ANSWER_S, CONNECT_S, ReferenceClient

NS = {f"ns-{i}": address_of(f"ns-{i}") for i in range(3)}
BROKERS = {"broker-a": address_of("broker-a"), "broker-b": address_of("broker-b")}
ROUTE = (
    b'{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:10911"},"brokerName":"broker-a"}],'
    b'"queueDatas":[{"brokerName":"broker-a","readQueueNums":4,"writeQueueNums":4,"perm":6}]}'
)
PEER = Address("127.0.0.1", 40_000)


def rules_of(profile: ClientProfile) -> Rules:
    return Rules(
        shuffled=profile.order is Order.SHUFFLED,
        start=profile.start.place(len(NS)) or 0,
        every_request=profile.advance is Advance.EVERY_REQUEST,
        tries_max=1 if profile.attempts is Attempts.ONE else None,
        retries=frozenset(map(str, profile.retries)),
    )


@dataclass(kw_only=True)
class ObservedClient(ReferenceClient):
    """The same simulators, but of what they do only dials, connections and frames are seen."""

    seen: list[Observation] = field(default_factory=list)
    connections: dict[str, int] = field(default_factory=dict)
    dials_are_seen: bool = True
    _numbers: int = 0

    def _event(self, at_s: float, event: str, **fields: object) -> None:
        pass

    def _try(self, at_s: float) -> tuple[Outcome, float]:
        address = self._chosen or ""
        front = next(name for name, of in NS.items() if of == address)
        if not self._open and self.profile.advance is Advance.ON_FAILURE:
            self.connections.pop(address, None)
        if address in self.dead or address not in self.connections:
            if self.dials_are_seen:
                dialled = Dialled(at_ms=at_s * 1000, address=Address.parse(address), front=front, process=1)
                self.seen.append(dialled)
            at_s += CONNECT_S
            if address in self.dead:
                return Outcome.CONNECT_FAILED, at_s
            self._numbers += 1
            self.connections[address] = self._numbers
            self.seen.append(Opened(at_ms=at_s * 1000, front=front, connection=self._numbers, peer=PEER))
        self._open = True
        where: dict[str, Any] = {"front": front, "connection": self.connections[address]}
        self._numbers += 1
        opaque = self._numbers
        self.seen.append(Asked(at_ms=at_s * 1000, **where, opaque=opaque, code=105, fields={"topic": "orders"}))
        if address in self.silent:
            at_s += self.profile.try_timeout_ms / 1000 * (9 if self.defect == "waits too long" else 1)
            self.seen.append(Closed(at_ms=at_s * 1000, **where, by=By.CLIENT))
            self._open = False
            del self.connections[address]
            return Outcome.NO_ANSWER, at_s
        at_s += ANSWER_S
        code = 17 if address in self.coded else 0
        body = b"" if code else ROUTE
        self.seen.append(Answered(at_ms=at_s * 1000, **where, opaque=opaque, code=code, body=body))
        return Outcome.ANSWERED, at_s


def with_rows(builder: HistoryBuilder, node: str, rows: Sequence[TimedRow]) -> None:
    for row in sorted(rows, key=lambda row: row.at_ms):
        assert set(row.fields) <= set(EVENTS[row.event].columns), row
        value = row.fields.get("value")
        fields = {**row.fields, "value": json.dumps(value)} if value is not None else row.fields
        builder.at(row.at_ms / 1000).event(node, row.event, **fields)


def judged(profile: ClientProfile, clients: int = 3, *, dials_are_seen: bool = True, **kinds: Any) -> Verdict:
    names = [f"producer-{index}" for index in range(clients)]
    builder = cluster(name_servers=3, clients=names, workload={"client_profile": profile.name})
    for index, name in enumerate(names):
        client = ObservedClient(
            builder=builder,
            node=name,
            profile=profile,
            configured=list(NS.values()),
            rng=random.Random(index),
            dials_are_seen=dials_are_seen,
            **kinds,
        )
        at_s = client.start(2).query(3 + index / 100)
        for _ in range(5):
            at_s = client.query(at_s + 30)
        rows: list[TimedRow] = []
        of = ClientRows(rows.append, rules_of(profile), NS, BROKERS, seen=dials_are_seen)
        for front in NS if kinds.get("dead") and not dials_are_seen else ():
            if NS[front] in kinds["dead"]:
                of.saw(Behaved(at_ms=0.0, front=front, behaviour=REFUSES))
        for one in client.seen:
            of.saw(one)
        of.end(at_s * 1000 + 10_000)
        with_rows(builder, name, rows)
    builder.end(900)
    return judge(Control.of_rows(builder.rows), World.of_rows(builder.rows))


WORLDS: dict[str, dict[str, Any]] = {
    "all well": {},
    "two of three refuse": {"dead": frozenset([*NS.values()][:2])},
    "all refuse": {"dead": frozenset(NS.values())},
    "one is silent": {"silent": frozenset([*NS.values()][1:2])},
    "all are silent": {"silent": frozenset(NS.values())},
    "all answer with a code": {"coded": frozenset(NS.values())},
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", PROFILES)
def test_a_client_that_keeps_its_profile_is_valid_as_seen_from_outside(name: str, world: str) -> None:
    verdict = judged(PROFILES[name], **WORLDS[world])
    assert verdict.verdict is Validity.VALID, verdict.why
    assert verdict.examined >= 3


@pytest.mark.parametrize("name", PROFILES)
def test_where_dials_are_not_seen_entries_that_refused_count_as_tried(name: str) -> None:
    verdict = judged(PROFILES[name], dials_are_seen=False, **WORLDS["two of three refuse"])
    assert verdict.verdict is Validity.VALID, verdict.why


@pytest.mark.parametrize(
    ("name", "defect", "world", "rule"),
    [
        *((name, "starts one further", "all well", "start") for name in ("go", "cpp-2.1", "node")),
        # a shuffled list is not seen: who goes through it two by two goes through another one
        *((name, "skips one", "all refuse", "in order") for name in ("go", "cpp-2.1", "node")),
        *(
            (name, "goes by the other rule", "all well", "sticky")
            for name in ("java-4.9", "java-5.3", "cpp", "cpp-2.1")
        ),
        *((name, "goes by the other rule", "all well", "in order") for name in ("go", "node")),
        *((name, "waits too long", "all are silent", "in time") for name in PROFILES),
    ],
)
def test_who_breaks_its_profile_is_invalid_from_outside(name: str, defect: str, world: str, rule: str) -> None:
    verdict = judged(PROFILES[name], defect=defect, **WORLDS[world])
    assert verdict.verdict is Validity.INVALID
    assert rule in verdict.measured["broken_rules"], verdict.measured["broken_rules"]


def opened(at_ms: float, front: str, connection: int) -> Observation:
    return Opened(at_ms=at_ms, front=front, connection=connection, peer=PEER)


def asked(at_ms: float, front: str, connection: int, opaque: int = 1) -> Observation:
    fields = {"topic": "orders"}
    return Asked(at_ms=at_ms, front=front, connection=connection, opaque=opaque, code=105, fields=fields)


def answered(at_ms: float, front: str, connection: int, opaque: int = 1) -> Observation:
    return Answered(at_ms=at_ms, front=front, connection=connection, opaque=opaque, code=0, body=ROUTE)


def closed(at_ms: float, front: str, connection: int) -> Observation:
    return Closed(at_ms=at_ms, front=front, connection=connection, by=By.CLIENT)


def held_against(
    profile: str, seen: Sequence[Observation], end_ms: float, *more: TimedRow, dials: bool = True
) -> Verdict:
    """A client of which this was seen, in order of time, and then no more."""
    rows: list[TimedRow] = []
    of = ClientRows(rows.append, rules_of(PROFILES[profile]), NS, BROKERS, seen=dials)
    for one in sorted(seen, key=lambda one: one.at_ms):
        of.saw(one)
    of.end(end_ms)
    builder = cluster(name_servers=3, clients=["producer-0"], workload={"client_profile": profile})
    with_rows(builder, "producer-0", [*rows, *more])
    return judge(*builder.end(900).facts())


def closed_after(waited_s: float, gone_s: float) -> Verdict:
    """A Go client asks once, and then, at a silent NameServer, until it closes its channel; its process ends later."""
    ends_ms = 33_000 + 1000 * waited_s
    seen = [opened(2_999, "ns-0", 0), asked(3_000, "ns-0", 0), answered(3_005, "ns-0", 0)]
    seen += [opened(32_999, "ns-1", 1), asked(33_000, "ns-1", 1), closed(ends_ms, "ns-1", 1)]
    gone_ms = ends_ms + 1000 * gone_s
    return held_against("go", seen, gone_ms, TimedRow(gone_ms, "stopped", {}))


def test_a_program_that_ends_while_it_asks_has_not_given_up_and_one_that_lives_on_has() -> None:
    assert closed_after(0.4, gone_s=0.5).verdict is Validity.VALID
    assert closed_after(0.4, gone_s=30).measured["broken_rules"] == {"attempts": 1}
    assert closed_after(6, gone_s=30).measured["broken_rules"] == {"attempts": 1}


def closed_late(seen_ms: float) -> Verdict:
    """A Java client leaves a silent NameServer at 6 s and dials another, which lets it in at 6.5 s; its close of the
    channel is seen when a busy machine comes to it."""
    dialled = Dialled(at_ms=6_000, address=Address.parse(NS["ns-1"]), front="ns-1", process=1)
    left = [opened(2_999, "ns-0", 0), asked(3_000, "ns-0", 0), dialled, closed(seen_ms, "ns-0", 0)]
    taken = [opened(6_500, "ns-1", 1), asked(6_501, "ns-1", 1, 2), answered(6_502, "ns-1", 1, 2)]
    return held_against("java-5.3", [*left, *taken], 60_000)


def test_who_closes_and_dials_another_has_left_though_the_close_is_seen_late() -> None:
    assert closed_late(5_999).violations == 0
    assert closed_late(6_400).violations == 0
    assert closed_late(6_500.5).violations == 0, "after the other let it in"
    assert closed_late(7_000).measured["broken_rules"] == {"sticky": 1}  # it had both


def test_who_chose_another_before_it_asked_had_connected_too_slowly() -> None:
    """As Java does where the machine hardly lets it run: both connections are there before its first request."""
    seen = [opened(3_000, "ns-0", 0), opened(3_015, "ns-1", 1), asked(3_800, "ns-0", 0, 0), asked(3_801, "ns-1", 1)]
    seen += [closed(3_840, "ns-0", 0), answered(3_850, "ns-1", 1)]
    assert held_against("java-4.9", seen, 60_000).violations == 0


def test_a_go_client_is_not_java_and_java_is_not_go() -> None:
    """A client held against another's rules is INVALID: what is inferred fits a profile only where the client does."""
    for is_, held in (("go", "java-4.9"), ("java-4.9", "go"), ("node", "cpp-2.1")):
        client = ObservedClient(
            builder=cluster(name_servers=3, clients=["producer-0"]),
            node="producer-0",
            profile=PROFILES[is_],
            configured=[*NS.values()],
            rng=random.Random(1),
        )
        at_s = client.start(2).query(3)
        for _ in range(5):
            at_s = client.query(at_s + 30)
        verdict = held_against(held, client.seen, at_s * 1000)
        assert verdict.verdict is Validity.INVALID, f"{is_} passed as {held}"


# --- brokers


class Story:
    """One client's frames at brokers."""

    def __init__(self, *, told: bool = False) -> None:
        self.rows: list[TimedRow] = []
        self.of = ClientRows(self.rows.append, Rules(), NS, BROKERS, told=told)
        self._opaque = 0

    def open(self, at_ms: float, connection: int, broker: str) -> Story:
        self.of.saw(Opened(at_ms=at_ms, front=broker, connection=connection, peer=PEER))
        return self

    def send(self, at_ms: float, connection: int, broker: str, key: str, *, oneway: bool = False) -> int:
        header = SendMessageRequestHeader(
            producer_group="g",
            topic="orders",
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=2,
            sys_flag=0,
            born_timestamp=0,
            flag=0,
            properties=f"UNIQ_KEY\x01{key}\x02",
        )
        self._opaque += 1
        asked = {"opaque": self._opaque, "code": 310, "fields": header.to_v2(), "oneway": oneway}
        self.of.saw(Asked(at_ms=at_ms, front=broker, connection=connection, **asked))  # type: ignore[arg-type]
        return self._opaque

    def answer(self, at_ms: float, connection: int, broker: str, opaque: int, code: int = 0) -> Story:
        self.of.saw(Answered(at_ms=at_ms, front=broker, connection=connection, opaque=opaque, code=code))
        return self

    def told(self, event: str) -> list[dict[str, Any]]:
        for row in self.rows:
            assert set(row.fields) <= set(EVENTS[row.event].columns), row
        rows = sorted((row for row in self.rows if row.event == event), key=lambda row: row.at_ms)
        return [{"at": row.at_ms, **{k: v for k, v in row.fields.items() if v is not None}} for row in rows]


def test_a_send_and_its_answer_are_a_send_with_one_attempt() -> None:
    story = Story().open(0, 1, "broker-a")
    story.answer(12, 1, "broker-a", story.send(10, 1, "broker-a", "K1"))
    where = {"broker_name": "broker-a", "queue_id": 2}
    assert story.told("send") == [
        {"at": 10, "type": "invoke", "op_id": "K1", "topic": "orders"},
        {"at": 12, "type": "ok", "op_id": "K1", "topic": "orders", "attempt": 1, "duration_ms": 2, "code": 0, **where},
    ]
    assert [(row["at"], row["type"], row["attempt"], row["broker_name"]) for row in story.told("send_attempt")] == [
        (10, "invoke", 0, "broker-a"),
        (12, "ok", 0, "broker-a"),
    ]
    assert story.of.is_producer


def test_another_broker_after_a_failure_is_the_next_attempt_of_the_same_send() -> None:
    story = Story().open(0, 1, "broker-a").open(0, 2, "broker-b")
    story.send(10, 1, "broker-a", "K1")
    story.of.saw(Closed(at_ms=3_010, front="broker-a", connection=1, by=By.CLIENT))
    story.answer(3_020, 2, "broker-b", story.send(3_012, 2, "broker-b", "K1"))
    story.of.end(60_000)
    assert [(row["at"], row["type"], row.get("attempt")) for row in story.told("send")] == [
        (10, "invoke", None),
        (3_020, "ok", 2),
    ]
    assert [(row["at"], row["type"], row["attempt"]) for row in story.told("send_attempt")] == [
        (10, "invoke", 0),
        (3_010, "info", 0),
        (3_012, "invoke", 1),
        (3_020, "ok", 1),
    ]


def test_a_send_that_nobody_tries_again_has_failed_when_its_last_try_had() -> None:
    story = Story().open(0, 1, "broker-a")
    story.answer(20, 1, "broker-a", story.send(10, 1, "broker-a", "K1"), code=14)
    story.send(30, 1, "broker-a", "K2")
    story.of.saw(Closed(at_ms=500, front="broker-a", connection=1, by=By.SERVER, how=How.RST))
    story.of.passed(10_000)
    ends = [(row["op_id"], row["at"], row["type"]) for row in story.told("send") if row["type"] != "invoke"]
    assert ends == [("K1", 20, "fail"), ("K2", 500, "info")]


def test_nobody_knows_of_a_oneway_send() -> None:
    story = Story().open(0, 1, "broker-a")
    story.send(10, 1, "broker-a", "K1", oneway=True)
    assert [row["type"] for row in story.told("send")] == ["invoke", "info"]


def test_pulls_end_with_their_answer_or_their_connection() -> None:
    story = Story().open(0, 1, "broker-b")
    fields = {"topic": "orders", "queueId": "3", "queueOffset": "17", "consumerGroup": "g"}
    for opaque in (1, 2):
        story.of.saw(Asked(at_ms=opaque * 10, front="broker-b", connection=1, opaque=opaque, code=11, fields=fields))
    story.answer(15_010, 1, "broker-b", 1, code=19)
    story.of.saw(Closed(at_ms=15_020, front="broker-b", connection=1, by=By.CLIENT))
    where = {"broker_name": "broker-b", "address": BROKERS["broker-b"], "topic": "orders", "queue_id": 3, "offset": 17}
    assert story.told("pull") == [
        {"at": 10, "type": "invoke", **where},
        {"at": 20, "type": "invoke", **where},
        {"at": 15_010, "type": "ok", "code": 19, "duration_ms": 15_000, **where},
        {"at": 15_020, "type": "info", "duration_ms": 15_000, **where},
    ]
    assert story.of.is_consumer


def test_heartbeats_to_all_brokers_are_one_round() -> None:
    story = Story().open(0, 1, "broker-a").open(0, 2, "broker-b")
    body = b'{"clientID":"c","consumerDataSet":[{"groupName":"g"}],"producerDataSet":[]}'
    for at_ms in (1_000, 31_000):
        for connection, broker in ((1, "broker-a"), (2, "broker-b")):
            asked = {"opaque": 1, "code": 34, "body": body}
            story.of.saw(Asked(at_ms=at_ms + connection, front=broker, connection=connection, **asked))  # type: ignore[arg-type]
    assert [row["at"] for row in story.told("scheduled_task")] == [1_001, 31_001]
    assert story.of.is_consumer


def test_a_route_is_told_when_it_is_another_than_the_last_one() -> None:
    story = Story()
    story.of.saw(Opened(at_ms=0, front="ns-0", connection=1, peer=PEER))
    for opaque, body in enumerate((ROUTE, ROUTE, b"not json", ROUTE)):
        asked = {"opaque": opaque, "code": 105, "fields": {"topic": "orders"}}
        story.of.saw(Asked(at_ms=opaque, front="ns-0", connection=1, **asked))  # type: ignore[arg-type]
        story.of.saw(Answered(at_ms=opaque, front="ns-0", connection=1, opaque=opaque, code=0, body=body))
    answers = story.told("route_answer")
    assert [row["at"] for row in answers] == [0, 2, 3]
    assert answers[0]["value"] == {
        "brokers": {"broker-a": {"0": "127.0.0.1:10911"}},
        "queues": {"broker-a": [4, 4, 6, 0]},
    }
    assert "unreadable" in answers[1]["value"]


def test_connections_on_which_nothing_is_asked_are_probes() -> None:
    story = Story()
    for number, front in enumerate(NS):
        story.of.saw(Opened(at_ms=number, front=front, connection=number, peer=PEER))
    story.of.saw(Asked(at_ms=5, front="ns-2", connection=2, opaque=1, code=105, fields={"topic": "orders"}))
    story.of.saw(Closed(at_ms=9, front="ns-0", connection=0, by=By.CLIENT))
    assert [row["name_server"] for row in story.told("name_server_chosen")] == [NS["ns-2"]]
    assert [(row["f"], row["address"]) for row in story.told("channel")] == [("open", NS["ns-2"])]


def test_a_dial_of_a_broker_that_nobody_let_in_is_told() -> None:
    story = Story()
    at = Address.parse(BROKERS["broker-a"])
    dialled = {"front": "broker-a", "address": at}
    story.of.saw(Dialled(at_ms=0, process=1, **dialled))  # type: ignore[arg-type]
    story.open(1, 1, "broker-a")
    story.of.saw(Behaved(at_ms=10, front="broker-a", behaviour=REFUSES))
    story.of.saw(Dialled(at_ms=20, process=1, **dialled))  # type: ignore[arg-type]
    story.of.saw(Behaved(at_ms=30, front="broker-a", behaviour=PASSES))
    story.of.saw(Dialled(at_ms=40, process=1, **dialled))  # type: ignore[arg-type]
    story.of.saw(GaveUp(at_ms=3_040, **dialled))  # type: ignore[arg-type]
    assert [(row["at"], row["f"], row["address"]) for row in story.told("channel")] == [
        (1, "open", BROKERS["broker-a"]),
        (20, "connect_failed", BROKERS["broker-a"]),
        (3_040, "connect_failed", BROKERS["broker-a"]),
    ]


def test_the_sends_of_a_program_that_tells_them_itself_are_not_told_twice() -> None:
    story = Story(told=True).open(0, 1, "broker-a")
    story.answer(20, 1, "broker-a", story.send(10, 1, "broker-a", "K1"))
    assert story.told("send") == story.told("send_attempt") == []
    assert story.of.is_producer


@pytest.mark.parametrize("told", [True, False])
def test_an_answer_that_nobody_asked_for_is_told_of_a_node_of_the_run(told: bool) -> None:
    story = Story(told=told).open(0, 1, "broker-a")
    story.answer(20, 1, "broker-a", story.send(10, 1, "broker-a", "K1", oneway=True))
    asked = story.send(30, 1, "broker-a", "K2")
    story.answer(40, 1, "broker-a", asked).answer(50, 1, "broker-a", asked)
    unasked = [(row["at"], row["address"]) for row in story.told("unasked_answer")]
    assert unasked == ([(20, BROKERS["broker-a"]), (50, BROKERS["broker-a"])] if told else [])


def test_what_was_under_way_when_the_client_closed_was_asked_for() -> None:
    story = Story(told=True).open(0, 1, "broker-a")
    asked = story.send(10, 1, "broker-a", "K1")
    story.of.saw(Closed(at_ms=20, front="broker-a", connection=1, by=By.CLIENT))
    story.answer(30, 1, "broker-a", asked)
    assert story.told("unasked_answer") == []


def test_what_a_client_asked_whose_start_failed_is_not_said_of_the_next_one() -> None:
    of_the_next_one = Story(told=True)
    of_the_next_one.answer(20, 1, "broker-a", 7)
    asked = of_the_next_one.send(30, 1, "broker-a", "K1")
    of_the_next_one.answer(40, 1, "broker-a", 8).answer(50, 1, "broker-a", asked)
    assert of_the_next_one.told("unasked_answer") == []


@pytest.mark.parametrize(("first", "verdict"), [(1, Validity.VALID), (2, Validity.INVALID)])
def test_who_starts_while_the_first_is_dead_must_go_on_to_the_next(first: int, verdict: Validity) -> None:
    front = f"ns-{first}"
    seen = [opened(2_000, front, 1), asked(2_001, front, 1), answered(2_002, front, 1)]
    dead = Behaved(at_ms=1_000, front="ns-0", behaviour=REFUSES)
    found = held_against("go", [dead, *seen], 9_000, dials=False)
    assert found.verdict is verdict
    assert found.measured["broken_rules"] == ({} if verdict is Validity.VALID else {"start": 1})


@pytest.mark.parametrize(("first", "wrong"), [(1, set()), (2, {"producer-2"})])
def test_among_three_of_a_program_that_start_so_it_is_the_wrong_one_that_is_told(first: int, wrong: set[str]) -> None:
    rows: dict[int, list[TimedRow]] = {}
    of: dict[int, ClientRows] = {}

    def came(instance: Instance) -> None:
        rows[instance.number] = []
        put = rows[instance.number].append
        of[instance.number] = ClientRows(put, rules_of(PROFILES["go"]), NS, BROKERS, seen=False)
        of[instance.number].saw(Behaved(at_ms=1_000, front="ns-0", behaviour=REFUSES))

    program = Instances(
        came, lambda each, one: of[each.number].saw(one), lambda each, at_ms: None, NS, every_request=True, clients=3
    )
    program.see(Behaved(at_ms=1_000, front="ns-0", behaviour=REFUSES))
    for number, entry in enumerate((1, 1, first)):
        at_ms, where = 2_000 + 3_000 * number, {"front": f"ns-{entry}", "connection": number + 1}
        program.see(Opened(at_ms=at_ms, **where, peer=PEER, process=7))  # type: ignore[arg-type]
        asked = {"opaque": number, "code": 105, "fields": {"topic": f"topic-{number}"}}
        program.see(Asked(at_ms=at_ms + 1, **where, **asked))  # type: ignore[arg-type]
        program.see(Answered(at_ms=at_ms + 2, **where, opaque=number, code=0, body=ROUTE))  # type: ignore[arg-type]
    program.end(60_000)
    builder = cluster(
        name_servers=3, clients=[f"producer-{number}" for number in of], workload={"client_profile": "go"}
    )
    for number, each in of.items():
        each.end(60_000)
        with_rows(builder, f"producer-{number}", rows[number])
    found = judge(*builder.end(90).facts())
    assert len(of) == 3
    assert {one.subject for one in found.findings if one.wrong} == wrong
    assert found.measured["broken_rules"] == ({"start": 1} if wrong else {})

"""A NameServer seen from outside, frame by frame: what is learnt where the wire, its log and polls do not agree."""

from typing import Any

import pytest

from nemesrv.chaos.apache.name_server_rows import NameServerRows
from nemesrv.chaos.apache.server_rows import ServerAbout
from nemesrv.chaos.apache.tables import Table
from nemesrv.chaos.fronts.observed import Answered, Asked, By, Closed, How, Observation, Opened
from nemesrv.chaos.fronts.rows import TimedRow
from nemesrv.remoting.bodies.register import RegisterBrokerBody, TopicConfigSerializeWrapper
from nemesrv.remoting.bodies.route import BrokerData, DataVersion, QueueData, TopicConfig, TopicRouteData
from nemesrv.remoting.node.network import Address

A, B = "10.0.2.1:10911", "10.0.2.2:10911"
LINE = "2026-11-22 20:00:00 INFO t - "


class Seen:
    """A NameServer `ns-0` of 4.9, and what was learnt of it."""

    def __init__(self) -> None:
        self.all: list[TimedRow] = []
        about = ServerAbout(name="ns-0")
        self.rows = NameServerRows(self.all.append, about)

    def of(self, event: str) -> list[tuple[float, Any]]:
        found = [row for row in self.all if row.event == event]
        return [(row.at_ms, row.fields.get("value")) for row in sorted(found, key=lambda row: row.at_ms)]

    def saw(self, *seen: Observation) -> None:
        for one in seen:
            self.rows.saw(one)

    def opened(self, at_ms: float, connection: int) -> None:
        self.saw(Opened(at_ms=at_ms, front="ns-0", connection=connection, peer=Address("127.0.0.1", connection)))

    def asked(
        self, at_ms: float, connection: int, code: int, opaque: int = 1, body: bytes = b"", **fields: str
    ) -> None:
        where = {"front": "ns-0", "connection": connection, "opaque": opaque}
        self.saw(Asked(at_ms=at_ms, code=code, fields=fields, body=body, version=409, **where))  # type: ignore[arg-type]

    def answered(self, at_ms: float, connection: int, opaque: int = 1, code: int = 0, body: bytes = b"") -> None:
        self.saw(Answered(at_ms=at_ms, front="ns-0", connection=connection, opaque=opaque, code=code, body=body))

    def closed(self, at_ms: float, connection: int, by: By = By.CLIENT, how: How = How.FIN) -> None:
        self.saw(Closed(at_ms=at_ms, front="ns-0", connection=connection, by=by, how=how))

    def registered(self, at_ms: float, connection: int, name: str, address: str, code: int = 0) -> None:
        self.opened(at_ms - 3, connection)
        who = {"brokerName": name, "brokerAddr": address, "brokerId": "0", "clusterName": "c"}
        self.asked(at_ms - 2, connection, 103, body=registration("T"), **who)
        self.answered(at_ms, connection, code=code)

    def polled(self, at_ms: float, *brokers: str) -> None:
        """A poll that took 4 ms and found these brokers, all of them with the topic."""
        addresses = {"broker-a": A, "broker-b": B}
        held = {name: {0: addresses[name]} for name in brokers}
        self.rows.polled(at_ms - 4, at_ms, Table(brokers=held, routes={"T": route(*brokers)}))

    def until(self, at_ms: float) -> None:
        self.rows.passed(at_ms)


@pytest.fixture
def seen() -> Seen:
    return Seen()


def test_who_says_oneway_what_it_is_now_is_registered_without_an_answer(seen: Seen) -> None:
    seen.opened(997, 1)
    who = {"brokerName": "broker-a", "brokerAddr": A, "brokerId": "2", "clusterName": "c"}
    where: dict[str, Any] = {"front": "ns-0", "connection": 1, "version": 409, "body": registration("T")}
    seen.saw(Asked(at_ms=1000, code=103, opaque=1, fields=who, oneway=True, **where))
    (row,) = [row for row in seen.all if row.event == "registration"]
    assert (row.at_ms, row.fields["broker_id"], row.fields["address"], row.fields["code"]) == (1000, 2, A, 0)


def test_whose_id_another_has_taken_was_not_dropped(seen: Seen) -> None:
    seen.rows.polled(996, 1000, Table(brokers={"broker-a": {0: A, 2: B}}))
    seen.rows.polled(1246, 1250, Table(brokers={"broker-a": {0: B}}))  # it was 2, and is the master now
    seen.until(60_000)
    assert seen.of("broker_dropped") == []
    seen.rows.polled(60_246, 60_250, Table(brokers={}))
    seen.until(120_000)
    assert len(seen.of("broker_dropped")) == 1


def registration(*topics: str) -> bytes:
    version = DataVersion(timestamp=1, counter=1)
    wrapper = TopicConfigSerializeWrapper.of(tuple(TopicConfig(topic_name=topic) for topic in topics), version)
    return RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=()).encode()


def route(*brokers: str) -> dict[str, Any] | None:
    addresses = {"broker-a": {"0": A}, "broker-b": {"0": B}}
    if not brokers:
        return None
    return {"brokers": {n: addresses[n] for n in brokers}, "queues": {n: [16, 16, 6, 0] for n in brokers}}


def answer(*brokers: str) -> bytes:
    addresses = {"broker-a": A, "broker-b": B}
    return TopicRouteData(
        queue_datas=tuple(
            QueueData(broker_name=name, read_queue_nums=16, write_queue_nums=16, perm=6) for name in brokers
        ),
        broker_datas=tuple(BrokerData(cluster="c", broker_name=n, broker_addrs={0: addresses[n]}) for n in brokers),
    ).encode()


def test_brokers_that_register_between_two_polls_come_into_the_route_one_by_one(seen: Seen) -> None:
    seen.polled(1000)
    seen.registered(1100, 1, "broker-a", A)
    seen.registered(1200, 2, "broker-b", B)
    seen.polled(1250, "broker-a", "broker-b")
    seen.until(2000)
    assert seen.of("route") == [(1100.0, route("broker-a")), (1200.0, route("broker-a", "broker-b"))]
    assert [(at_ms, value) for at_ms, value in seen.of("registration")] == [
        (1100.0, {"learnt": "wire"}),
        (1200.0, {"learnt": "wire"}),
    ]
    assert seen.of("timer_lag") == []


def test_a_change_that_nothing_on_the_wire_explains_has_the_middle_and_its_inexactness(seen: Seen) -> None:
    seen.registered(1000, 1, "broker-a", A)
    seen.polled(1004, "broker-a")
    seen.polled(1250, "broker-a")
    seen.polled(1500)
    seen.until(1600)
    assert seen.of("route") == [(1000.0, route("broker-a")), (pytest.approx((1246 + 1500) / 2), None)]
    lag = next(row for row in seen.all if row.event == "timer_lag")
    assert (lag.at_ms, lag.fields["duration_ms"], lag.fields["lag_ms"]) == (1500, 254, 127)
    last = [row for row in seen.all if row.event == "route"][-1]
    assert last.fields["f"] == "poll"


def test_an_answer_on_the_wire_is_a_poll_of_its_topic(seen: Seen) -> None:
    seen.registered(1000, 1, "broker-a", A)
    seen.opened(1100, 9)
    seen.asked(1100, 9, 105, 7, topic="T")
    seen.answered(1102, 9, 7, body=answer("broker-a"))
    seen.closed(1150, 1)
    seen.asked(1160, 9, 105, 8, topic="T")
    seen.answered(1162, 9, 8, code=17)
    seen.until(2000)
    assert seen.of("route") == [(1000.0, route("broker-a")), (1150.0, None)]


def test_an_answer_that_was_asked_for_before_the_change_is_no_change_back(seen: Seen) -> None:
    seen.registered(1000, 1, "broker-a", A)
    seen.polled(1010, "broker-a")
    seen.opened(1100, 9)
    seen.asked(1199, 9, 105, 7, topic="T")
    seen.closed(1200, 1)
    seen.polled(1205)
    seen.answered(1206, 9, 7, body=answer("broker-a"))  # it was looked up before, and came later
    seen.until(2000)
    assert seen.of("route") == [(1000.0, route("broker-a")), (1200.0, None)]


def test_an_answer_that_nothing_explains_is_believed_when_a_poll_has_it_too_and_dates_it(seen: Seen) -> None:
    seen.registered(1000, 1, "broker-a", A)
    seen.polled(1250, "broker-a")
    seen.opened(1300, 9)
    for opaque, at_ms in enumerate((1300, 1400)):
        seen.asked(at_ms, 9, 105, opaque, topic="T")
        seen.answered(at_ms + 2, 9, opaque, code=17)
    seen.until(1480)
    assert seen.of("route") == [(1000.0, route("broker-a"))]
    seen.polled(1500)
    seen.until(1600)
    assert seen.of("route") == [(1000.0, route("broker-a")), (pytest.approx((1246 + 1302) / 2), None)]


def test_an_answer_that_nothing_explains_and_no_poll_has_is_no_change_of_the_table(seen: Seen) -> None:
    seen.registered(1000, 1, "broker-a", A)
    seen.polled(1250, "broker-a")
    seen.opened(1300, 9)
    seen.asked(1300, 9, 105, 7, topic="T")
    seen.answered(1302, 9, 7, code=17)
    for at_ms in (1500, 1750, 2000):
        seen.polled(at_ms, "broker-a")
    seen.until(3000)
    assert seen.of("route") == [(1000.0, route("broker-a"))]


@pytest.mark.parametrize(
    ("by", "how", "lines", "reason"),
    [
        (By.CLIENT, How.FIN, [], "closed"),
        (By.CLIENT, How.RST, [], "exception"),
        (By.CLIENT, How.FIN, ["NETTY SERVER PIPELINE: exceptionCaught 127.0.0.1:1"], "exception"),
        (By.SERVER, How.FIN, ["NETTY SERVER PIPELINE: IDLE exception [127.0.0.1:1]"], "idle"),
        (By.SERVER, How.FIN, [f"The broker channel expired, {A} 120000ms"], "expired"),
    ],
)
def test_a_broker_is_dropped_for_the_logs_reason(seen: Seen, by: By, how: How, lines: list[str], reason: str) -> None:
    seen.registered(1000, 1, "broker-a", A)
    seen.closed(5000, 1, by, how)
    for line in (*lines, f"remove brokerAddr[0, {A}] from brokerAddrTable, because channel destroyed"):
        seen.rows.logged(5090, LINE + line)
    assert seen.of("broker_dropped") == [(5000.0, {"reason": reason, "learnt": "log"})]


def test_a_name_server_that_is_stopped_drops_nobody_when_it_closes_its_connections(seen: Seen) -> None:
    seen.registered(1000, 1, "broker-a", A)
    seen.rows.stops()
    seen.closed(5000, 1, By.SERVER, How.FIN)
    seen.rows.logged(5050, f"{LINE}remove brokerAddr[0, {A}] from brokerAddrTable, because channel destroyed")
    seen.rows.end(5100)
    assert seen.of("broker_dropped") == []


def test_an_unregistration_is_the_reason_though_its_connection_closes_behind_it(seen: Seen) -> None:
    seen.registered(1000, 1, "broker-a", A)
    seen.asked(2000, 1, 104, 5, brokerName="broker-a", brokerAddr=A, brokerId="0", clusterName="c")
    seen.answered(2002, 1, 5)
    seen.closed(2003, 1)
    seen.rows.logged(2090, f"{LINE}unregisterBroker, remove addr from brokerAddrTable OK, {A}")
    assert seen.of("broker_dropped") == [(2002.0, {"reason": "unregistered", "learnt": "log"})]


def test_a_broker_that_is_gone_and_no_line_says_so_is_dropped_for_an_unknown_reason(seen: Seen) -> None:
    seen.registered(1000, 1, "broker-a", A)
    seen.polled(1250, "broker-a")
    seen.polled(1500)
    seen.until(1600)
    assert seen.of("broker_dropped") == []
    seen.until(4000)
    assert seen.of("broker_dropped") == [(pytest.approx(1373, abs=1), {"reason": "unknown", "learnt": "poll"})]


def test_a_registration_that_is_refused_is_a_row_and_makes_nobody_known(seen: Seen) -> None:
    seen.registered(1000, 1, "broker-a", A, code=1)
    seen.closed(1500, 1)
    assert [row.fields["code"] for row in seen.all if row.event == "registration"] == [1]
    assert seen.of("broker_dropped") == []


def test_polls_that_took_long_say_how_late_the_server_was(seen: Seen) -> None:
    seen.polled(1000)
    seen.rows.polled(1250, 1950, None)
    seen.polled(2250)
    assert [(row.at_ms, row.fields["lag_ms"]) for row in seen.all if row.event == "timer_lag"] == [(2250, 700)]


def test_a_permission_that_was_wiped_is_told_with_how_many_rows_lost_it(seen: Seen) -> None:
    seen.opened(997, 1)
    seen.asked(1000, 1, 205, brokerName="broker-a")
    where: dict[str, Any] = {"front": "ns-0", "connection": 1, "opaque": 1, "body": b""}
    seen.saw(Answered(at_ms=1002, code=0, fields={"wipeTopicCount": "2"}, **where))
    seen.rows.end(2000)
    assert seen.of("write_perm") == [(1002, {"wiped": 2, "learnt": "wire"})]

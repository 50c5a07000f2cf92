"""Reported incidents, each a shipped scenario: what was reported happens, the checks that are named find it, and with
its fix none finds anything.

Times are seconds of the timeline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.proof.museum import SEED
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import fixed, load, shipped
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.verdict import Validity, Verdict


@dataclass
class Incident:
    """One that was recorded and judged."""

    folder: Path

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        rows = read_rows(self.folder)
        begin_ms = next(row["time_ms"] for row in rows if row["event"] == "phase" and row["phase"] == "steady")
        return [{**row, "at_s": (row["time_ms"] - begin_ms) / 1000} for row in rows]

    @cached_property
    def verdicts(self) -> list[Verdict]:
        return verdicts(self.folder)

    @property
    def wrong(self) -> set[str]:
        return {verdict.name for verdict in self.verdicts if verdict.verdict is Validity.INVALID}

    @property
    def right(self) -> set[str]:
        return {verdict.name for verdict in self.verdicts if verdict.verdict is Validity.VALID}

    @cached_property
    def addresses(self) -> dict[str, str]:
        return {row["source"]: row["address"] for row in self.rows if row["event"] == "node"}

    def of(
        self, event: str, node: str = "", from_s: float = -1e9, to_s: float = 1e9, **like: Any
    ) -> list[dict[str, Any]]:
        return [
            row
            for row in self.rows
            if row["event"] == event
            and row["node"].startswith(node)
            and from_s <= row["at_s"] < to_s
            and all(row.get(name) == value for name, value in like.items())
        ]

    def route(self, node: str, at_s: float, topic: str = "orders", event: str = "route") -> Mapping[str, Any]:
        """What the node held for the topic then."""
        began_s = self.of("started", node, to_s=at_s)[-1]["at_s"]  # with an empty table
        held = [row["value"] for row in self.of(event, node, began_s, at_s) if row["topic"] == topic]
        return (held[-1] if held else None) or {}

    def brokers(self, node: str, at_s: float, event: str = "route") -> set[str]:
        return set(self.route(node, at_s, event=event).get("brokers") or {})

    def tries(self, producer: str, broker: str, from_s: float, to_s: float) -> list[str]:
        """How each try of a send at that broker ended."""
        rows = self.of("send_attempt", producer, from_s, to_s, broker_name=broker)
        return [row["type"] for row in rows if row["type"] != "invoke"]


def i01_host_lost(run: Incident) -> None:
    """Who knows ns-0 alone sends to the dead host until it is back; the other leaves within 160 s. The slave
    that lives serves nobody."""
    dropped = run.of("broker_dropped", "ns-1", 20, broker_name="broker-a")[0]
    assert not dropped.get("broker_id")
    assert 20 + 90 <= dropped["at_s"] <= 20 + 130
    assert len(run.tries("producer-0", "broker-a", 200, 600)) > 20
    assert set(run.tries("producer-0", "broker-a", 200, 600)) == {"info"}
    assert run.tries("producer-1", "broker-a", 181, 600) == []
    # The slave keeps the name in ns-1's routes, so its queues stay with consumer-0, which knows the dead master alone.
    assert run.brokers("ns-1", 300) == {"broker-a", "broker-b"}
    assert run.of("pull", "consumer", 220, 600, broker_name="broker-a", type="ok") == []
    assert run.wrong == {"availability"}, "the promises alone"


def i02_each_blind_to_another(run: Incident) -> None:
    """Each NameServer, and who asks it, knows another pair of brokers; what producer-0 fills nobody else may read."""
    assert run.brokers("ns-0", 160) == run.brokers("producer-0", 200, "route_changed") == {"broker-a", "broker-b"}
    assert run.brokers("ns-1", 160) == run.brokers("consumer-1", 200, "route_changed") == {"broker-a", "broker-c"}
    assert run.brokers("ns-0", 353) == run.brokers("ns-1", 353) == {"broker-a", "broker-b", "broker-c"}
    assert run.wrong == {"routes_converge", "messages_delivered"}, "the promises alone"


def i03_one_of_two_drops_syns(run: Incident) -> None:
    """4.9.1 to 4.9.8 with two entries: every call fails after 3 s for as long as it lasts."""
    calls = run.of("name_server_call", "producer", 100, 330, f="route")
    answered = {row["node"] for row in calls if row["type"] == "ok"}
    failing = {row["node"] for row in calls} - answered
    assert failing
    assert {round(row["duration_ms"] / 1000) for row in calls if row["node"] in failing} == {3}
    assert run.wrong == {"availability"}, "the promises alone"


def i04_accepts_and_does_not_answer(run: Incident) -> None:
    """Up to 4.9.0 a client never leaves it; from 4.9.1 on it does, after one call that fails."""
    chosen = {
        producer: [row["name_server"] for row in run.of("name_server_chosen", producer, 45, 165)]
        for producer in ("producer-0", "producer-1")
    }
    assert chosen == {"producer-0": [], "producer-1": [run.addresses["ns-1"]]}
    failed = {
        producer: [row["type"] for row in run.of("name_server_call", producer, 45, 165, f="route")]
        for producer in chosen
    }
    assert len(failed["producer-0"]) >= 3
    assert "ok" not in failed["producer-0"]
    assert failed["producer-1"][0] != "ok"
    assert set(failed["producer-1"][1:]) == {"ok"}
    assert run.wrong == {"availability"}, "the promises alone"


def i05_list_replaced(run: Incident) -> None:
    """Brokers leave the old NameServers to their expiry, and clients go on asking these, which know nothing."""
    old, new = ("ns-0", "ns-1"), ("ns-2", "ns-3")
    assert [run.brokers(name_server, 59) for name_server in (*old, *new)] == [{"broker-a", "broker-b"}] * 2 + [
        set()
    ] * 2
    assert [run.brokers(name_server, 60 + 120 + 33) for name_server in new] == [{"broker-a", "broker-b"}] * 2
    assert [run.brokers(name_server, 60 + 120 + 130) for name_server in old] == [set()] * 2
    calls = run.of("name_server_call", "producer", 60 + 120 + 130, 450)
    assert {row["name_server"] for row in calls} <= {run.addresses[name_server] for name_server in old}
    assert {row["code"] for row in calls} == {17}
    assert run.wrong == {"dead_name_servers_left"}


def fixed_i05_list_replaced(run: Incident) -> None:
    """Clients change at their next call after the new list."""
    asked = {row["name_server"] for row in run.of("name_server_call", "producer", 60 + 120 + 33, 450)}
    assert asked <= {run.addresses[name_server] for name_server in ("ns-2", "ns-3")}


def i06_empty_table(run: Incident) -> None:
    """A poll in the gap gets code 17 and changes nothing; a later one gets a part of the brokers, and is taken."""
    assert [run.brokers("ns-0", at_s) for at_s in (33, 40, 50, 60)] == [
        set(), {"broker-b"}, {"broker-b", "broker-c"}, {"broker-a", "broker-b", "broker-c"},
    ]  # fmt: skip
    taken = [set(row["value"]["brokers"]) for row in run.of("route_changed", "", 32, 70, topic="orders")]
    assert any(len(brokers) < 3 for brokers in taken)
    assert all(taken), "nobody drops a route for code 17"
    assert run.wrong == {"messages_delivered"}, "the promises alone"


def i07_topic_before_the_first_tick(run: Incident) -> None:
    """4.9: the full registration counts as unchanged, so that all topics but the new one stay away."""
    assert run.route("ns-0", 140) == {}
    assert run.route("ns-0", 140, topic="fresh")
    assert run.of("register", "broker-a", 38, 140, type="ok")[0]["value"]["topics"] == 1
    assert run.wrong == {"routes_are_true"}, "the NameServer does what 4.9 does"


def i08_stuck_broker(run: Incident) -> None:
    """Routing is right all the time; every send that meets it first fails after the whole budget."""
    assert {len(row["value"]["brokers"]) for row in run.of("route", "ns", 0, topic="orders")} <= {2}
    assert set(run.tries("producer", "broker-a", 25, 600)) == {"info"}
    failed = run.of("send", "producer", 25, 600, type="info")
    assert len(failed) > 50
    assert {round(row["duration_ms"] / 1000) for row in failed} == {3}
    assert run.wrong == {"availability"}, "the promises alone"


def i09_ghost_of_the_last_broker(run: Incident) -> None:
    """The NameServer answers 17, and clients go on with the dead address until it is back."""
    assert run.route("ns-0", 21) == {}
    codes = {row["code"] for row in run.of("name_server_call", "producer-0", 60, 200, topic="orders")}
    assert codes == {17}
    assert len(run.tries("producer-0", "broker-a", 100, 200)) > 50
    assert run.of("route_changed", "producer-0", 21, 200, topic="orders") == []
    assert run.of("send", "producer-0", 240, type="ok")
    assert run.wrong == {"availability"}, "the promises alone"


def i10_poll_starved(run: Incident) -> None:
    """One thread polls and commits: polls are minutes apart, though every NameServer is well."""
    polls = [row["at_s"] for row in run.of("scheduled_task", "consumer-0", f="updateTopicRouteInfoFromNameServer")]
    gaps = [later - earlier for earlier, later in pairwise(polls)]
    assert max(gaps) > 60
    assert {row["node"] for row in run.of("client_gone", f="expired")} == {"broker-a", "broker-b"}
    assert run.wrong == {"timers_kept"}, "the promises alone"


def i11_two_claim_one_name(run: Incident) -> None:
    """4.9: the last writer wins, so that the address flips with each registration of either."""
    routes = run.of("route", "ns-0", 20, 200, topic="orders")
    addresses = [row["value"]["brokers"]["broker-a"]["0"] for row in routes]
    assert addresses[:6] == ["10.9.9.9:10911", run.addresses["broker-a"]] * 3
    assert run.brokers("ns-0", 255) == {"broker-a", "broker-b"}
    assert run.wrong == {"one_master"}, "the promises alone"


def i12_wiped_and_restored(run: Incident) -> None:
    """Only the NameServer that was reached goes to perm 4; the change brings perm 6 back there, unasked."""

    def perm(name_server: str, at_s: float) -> int:
        return int(run.route(name_server, at_s)["queues"]["broker-a"][2])

    assert [(perm("ns-0", at_s), perm("ns-1", at_s)) for at_s in (39, 41, 110, 125)] == [(6, 6), (4, 6), (4, 6), (6, 6)]
    assert run.tries("producer-0", "broker-a", 75, 120) == []
    assert set(run.tries("producer-1", "broker-a", 75, 120)) == {"ok"}
    assert run.tries("producer-0", "broker-a", 160, 250)
    assert run.wrong == {"routes_converge"}, "the promises alone"


def i13_part_of_the_list(run: Incident) -> None:
    """broker-b is at one of three NameServers, for good, and no link ever failed."""
    assert [run.brokers(name_server, 200) for name_server in ("ns-0", "ns-1", "ns-2")] == [
        {"broker-a", "broker-b"}, {"broker-a"}, {"broker-a"},
    ]  # fmt: skip
    assert run.wrong == {"routes_converge"}, "the promises alone"


def i14_another_language_each(run: Incident) -> None:
    """Java and C++ keep the NameServer that has no topic; Go and Node flip between it and the others, and pay for the
    one that hangs with half of their queries."""
    names = {address: name for name, address in run.addresses.items()}

    def asked(producer: str, from_s: float, to_s: float) -> list[tuple[tuple[str, ...], int | None, int]]:
        """Of each look-up of the topic: whom it met, what it got, and how many seconds it took."""
        rows = run.of("name_server_call", producer, from_s, to_s, f="route", topic="orders")
        return [
            (tuple(names[one["name_server"]] for one in row["value"]["tried"]), row["code"],
             round(row["duration_ms"] / 1000))
            for row in rows
        ]  # fmt: skip

    java, go, node, cpp, last = (f"producer-{number}" for number in range(5))
    assert {who for who, _, _ in asked(java, 0, 330)} == {("ns-0",)}, "its first choice, by chance"
    assert set(asked(cpp, 0, 330)) == {(("ns-0",), 17, 0)}, "entry 0, with no topic"
    for rotating, first, silent_s in ((go, "ns-0", 6), (node, "ns-1", 3)):
        assert asked(rotating, -100, 60)[0][0] == (first,)
        while_it_hangs = asked(rotating, 60, 180)
        assert while_it_hangs == [(("ns-1", "ns-2"), 0, silent_s), (("ns-0",), 17, 0)] * 2
    assert [took_s for _, _, took_s in asked(last, 60, 180)] == [5, 0, 0, 0], "it leaves for good after one"
    assert run.wrong == {"availability"}, "the promises alone"


def i15_longer_time_out(run: Incident) -> None:
    """The first try on the hung broker takes the ten seconds, and no second follows."""
    failed = run.of("send", "producer", 25, 220, type="info")
    assert {round(row["duration_ms"] / 1000) for row in failed} == {10}
    assert {row["attempt"] for row in failed} == {1}
    assert run.wrong == {"availability"}


def i16_one_host_of_three(run: Incident) -> None:
    """Until the route goes, whoever comes to the lost broker waits 3 s for nothing; the two others serve on."""
    dropped = run.of("broker_dropped", "ns-0", 20, broker_name="broker-b")[0]
    assert 20 + 90 <= dropped["at_s"] <= 20 + 130
    failed = run.of("send", "producer", 20, 140, type="info")
    assert {row["duration_ms"] // 1000 for row in failed} == {3}
    assert run.wrong == {"availability"}


def i17_old_channel_outlives_its_list(run: Incident) -> None:
    """Who was on ns-0 asks it to the end, over the connection of before."""
    last = {row["node"]: row["name_server"] for row in run.of("name_server_call", to_s=450, f="route")}
    assert run.addresses["ns-0"] in last.values()
    assert run.wrong == {"dead_name_servers_left"}


def i18_list_grown(run: Incident) -> None:
    """The NameServers that were added stay empty, and clients know their addresses."""
    assert [run.brokers(name_server, 350) for name_server in ("ns-0", "ns-1", "ns-2")] == [
        {"broker-a", "broker-b"}, set(), set(),
    ]  # fmt: skip
    assert {len(row["value"]) for row in run.of("name_server_list", "producer", 200)} <= {3}
    assert run.wrong == {"routes_converge", "routes_are_true"}


def i19_list_shrunk(run: Incident) -> None:
    """ns-0, which is on nobody's list, is told every 30 s."""
    assert run.brokers("ns-0", 390) == {"broker-a", "broker-b"}
    assert len(run.of("registration", "ns-0", 200, 390, broker_name="broker-a")) >= 6
    assert {"routes_are_true"} <= run.wrong <= {"routes_are_true", "registrations_are_kept"}


def i20_members_counted_twice(run: Incident) -> None:
    """For 120 s some queues have nobody, because two of the four members that brokers name do not exist."""
    waited = [row for row in run.of("receive", "consumer", 130, 200) if row["queue_id"] is not None]
    assert waited
    assert run.wrong == {"messages_delivered", "queue_ownership"}


def i21_always_the_first_entry(run: Incident) -> None:
    """All connections are to ns-0."""
    first = [row["name_server"] for row in run.of("name_server_chosen") if row["value"]["reason"] == "first"]
    assert len(first) > 90
    assert {*first} == {run.addresses["ns-0"]}
    assert run.wrong == {"name_server_selection"}


def i22_another_for_each_request(run: Incident) -> None:
    """Each producer asks all three in turn, and waits for the one that hangs again and again."""
    asked = run.of("name_server_call", "producer-0", 0, 190, f="route")
    assert {row["name_server"] for row in asked} == {run.addresses[name] for name in ("ns-0", "ns-1", "ns-2")}
    hung = run.of("name_server_call", "", 45, 130, name_server=run.addresses["ns-1"])
    assert len(hung) > 4
    assert {row["type"] for row in hung} == {"info"}
    assert "name_server_selection" in run.wrong


def i23_permission_comes_back(run: Incident) -> None:
    """Nobody adds the permission, and both NameServers give it back with the broker's next registration."""
    perms = [
        [run.route(name_server, at_s)["queues"]["broker-a"][2] for at_s in (39, 41, 119, 121)]
        for name_server in ("ns-0", "ns-1")
    ]
    assert perms == [[6, 4, 4, 6]] * 2
    assert run.wrong == {"done_by_hand"}


def fixed_i23_permission_comes_back(run: Incident) -> None:
    """What the broker says of itself outlasts every registration."""
    assert [run.route("ns-0", at_s)["queues"]["broker-a"][2] for at_s in (80, 121, 190)] == [4, 4, 4]


def i24_two_masters_of_one_name(run: Incident) -> None:
    """Whoever registered last is the master."""
    routes = run.of("route", "ns-0", 20, 150, topic="payments")
    addresses = [row["value"]["brokers"]["broker-x"]["0"] for row in routes]
    assert addresses[:6] == ["10.9.9.8:10911", "10.9.9.9:10911"] * 3
    assert run.wrong == {"one_master"}


def fixed_i24_two_masters_of_one_name(run: Incident) -> None:
    """Who has the smaller state version is refused."""
    routes = run.of("route", "ns-0", 20, 150, topic="payments")
    assert {row["value"]["brokers"]["broker-x"]["0"] for row in routes} == {"10.9.9.8:10911"}


def i25_registration_too_large(run: Incident) -> None:
    """Each registration of all topics closes the channel that it comes on, so that broker-a is nowhere."""
    dropped = run.of("broker_dropped", "ns", 45, broker_name="broker-a")
    assert {row["node"] for row in dropped} == {"ns-0", "ns-1"}
    assert [run.brokers(name_server, 190) for name_server in ("ns-0", "ns-1")] == [{"broker-b"}] * 2
    assert {row["type"] for row in run.of("register", "broker-a", 90, 190)} == {"info"}
    assert {"routes_are_true", "no_false_eviction"} <= run.wrong


def _used(run: Incident, from_s: float) -> set[str]:
    """The addresses at which clients asked broker-a from then on."""
    rows = (*run.of("send_attempt", "", from_s, 190), *run.of("pull", "", from_s, 190))
    return {row["address"] for row in rows if row["broker_name"] == "broker-a" and row["type"] == "invoke"}


def i26_broker_at_another_address(run: Incident) -> None:
    """NameServers name the new address, and clients go on at the old one."""
    old, new = (row["address"] for row in run.of("node", "harness", -1000) if row["source"] == "broker-a")
    assert run.route("ns-0", 100)["brokers"]["broker-a"]["0"] == new
    assert _used(run, 125) == {old}
    assert "dead_brokers_avoided" in run.wrong


def fixed_i26_broker_at_another_address(run: Incident) -> None:
    """A poll after that all are at the new one."""
    old, new = (row["address"] for row in run.of("node", "harness", -1000) if row["source"] == "broker-a")
    assert old not in _used(run, 125)
    assert _used(run, 125) == {new}


OUTCOMES: dict[str, Callable[[Incident], None]] = {
    name.replace("_", "-"): outcome for name, outcome in globals().items() if name[0] == "i" and name[1:3].isdigit()
}
WITH_THE_FIX: dict[str, Callable[[Incident], None]] = {
    name.removeprefix("fixed_").replace("_", "-"): outcome
    for name, outcome in globals().items()
    if name.startswith("fixed_i")
}


def test_every_incident_has_an_outcome() -> None:
    assert shipped("incidents").keys() == OUTCOMES.keys()
    assert [name[:3] for name in shipped("incidents")] == [f"i{number:02}" for number in range(1, len(OUTCOMES) + 1)]
    assert WITH_THE_FIX.keys() <= OUTCOMES.keys()


def recorded(scenario: Scenario, folder: Path) -> Incident:
    return Incident(record_virtual(scenario, SEED, folder).path)


@pytest.mark.nightly
@pytest.mark.parametrize("name", OUTCOMES)
def test_what_was_reported_happens_and_is_found_and_with_its_fix_does_not(name: str, tmp_path: Path) -> None:
    scenario = load(shipped("incidents")[name])
    assert scenario.incident is not None
    as_it_was = recorded(scenario, tmp_path / "as it was")
    OUTCOMES[name](as_it_was)
    assert {*scenario.incident.found_by} <= as_it_was.wrong
    with_its_fix = recorded(fixed(shipped("incidents")[name]), tmp_path / "fixed")
    WITH_THE_FIX.get(name, lambda _: None)(with_its_fix)
    assert with_its_fix.wrong == set()
    assert {*scenario.incident.found_by} <= with_its_fix.right

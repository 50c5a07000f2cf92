"""What a watch has seen as a history: judged by the checks that it supports, which see through what is wrong in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.verdict import Validity
from nemesrv.operations.cluster.looks import BrokerId, BrokerLook, Look, Member, NameServerLook
from nemesrv.operations.cluster.watched_history import WatchedHistory
from nemesrv.operations.cluster.watched_run import LEFT_OUT, SUPPORTED, explained, judged, verdicts_of, watched_checks
from nemesrv.remoting.node.network import Address

NS = ("10.0.1.1:9876", "10.0.1.2:9876", "10.0.1.3:9876")
A, B = BrokerId("broker-a", 0), BrokerId("broker-b", 0)
AT = {A: "10.0.2.1:10911", B: "10.0.2.2:10911"}
TOPICS = frozenset({"DefaultCluster", "orders"})

Shows = Callable[[float, str], dict[BrokerId, int]]
"""At what second, which NameServer: the brokers in its table, each with its queues of the topic."""


def recorded(
    shows: Shows, until_s: int = 600, refused: Callable[[float], set[BrokerId]] = lambda _at_s: set()
) -> WatchedHistory:
    """A watch of so long; `refused`: brokers that refuse our dials then."""
    record = WatchedHistory(NS, now_s=0.0, wall_ms=1_000_000.0)
    for at_s in range(1, until_s, 2):
        gone = refused(at_s)
        for broker in sorted(gone):
            record.now_ms = at_s * 1000.0
            record.channel("connect_failed", Address.parse(AT[broker]), "refused")
        servers = {at: _server(shows(at_s, at), record.topics) for at in NS}
        said = {AT[one]: BrokerLook(lists=frozenset(NS)) for one in (A, B) if one not in gone}
        record.looked(Look(at_s=at_s, name_servers=servers, brokers=said))
    return record


def _server(held: dict[BrokerId, int], asked: tuple[str, ...]) -> NameServerLook:
    route = {
        "brokers": {one.name: {"0": AT[one]} for one in held},
        "queues": {one.name: [queues, queues, 6, 0] for one, queues in held.items()},
    }
    return NameServerLook(
        brokers={one: AT[one] for one in held},
        clusters=frozenset({"DefaultCluster"}),
        topics=TOPICS,
        tables={topic: route if held else None for topic in asked},
    )


def found_in(record: WatchedHistory) -> dict[str, Validity]:
    return {verdict.name: verdict.verdict for verdict in verdicts_of(explained(record))}


def killed(at_s: float) -> set[BrokerId]:
    return {A} if at_s >= 200 else set()


def test_a_cluster_at_rest_is_right() -> None:
    record = recorded(lambda _at_s, _at: {A: 8, B: 8})
    assert record.topics == ("DefaultCluster", "orders")
    found = found_in(record)
    assert found.pop("no_resurrection") is Validity.UNKNOWN, "nobody died"
    assert set(found.values()) == {Validity.VALID}
    assert explained(record).episodes == []


def test_those_checks_are_judged_that_are_asked_for() -> None:
    one = explained(recorded(lambda _at_s, _at: {A: 8, B: 8}))
    asked_for = ["routes_are_true", "one_master"]
    assert [(verdict.name, verdict.verdict) for verdict in verdicts_of(one, asked_for)] == [
        (name, Validity.VALID) for name in asked_for
    ]


def test_a_watch_that_has_seen_nothing_decides_nothing() -> None:
    assert set(found_in(recorded(lambda _at_s, _at: {A: 8, B: 8}, until_s=1)).values()) == {Validity.UNKNOWN}


def test_a_broker_that_dies_and_is_dropped_everywhere_is_right() -> None:
    found = found_in(recorded(lambda at_s, _at: {B: 8} if at_s >= 200 else {A: 8, B: 8}, refused=killed))
    assert set(found.values()) == {Validity.VALID}


def test_a_name_server_that_keeps_a_dead_broker_is_found() -> None:
    def shows(at_s: float, at: str) -> dict[BrokerId, int]:
        return {B: 8} if at_s >= 200 and at != NS[2] else {A: 8, B: 8}

    record = recorded(shows, refused=killed)
    one = explained(record)
    assert one.episodes[0]["hypotheses"][0]["timeline"][0]["nodes"] == ["broker-a"]
    wrong = {verdict.name: verdict for verdict in verdicts_of(one) if verdict.verdict is Validity.INVALID}
    assert "routes_are_true" in wrong
    assert {example.who for example in wrong["routes_are_true"].examples} == {"ns-2"}


def test_a_dead_broker_that_comes_back_in_a_table_is_found() -> None:
    def shows(at_s: float, at: str) -> dict[BrokerId, int]:
        return {B: 8} if at_s >= 200 and not (at == NS[1] and at_s >= 400) else {A: 8, B: 8}

    found = found_in(recorded(shows, refused=killed))
    assert Validity.INVALID in (found["no_resurrection"], found["routes_are_true"])


def test_a_name_server_with_other_queues_than_the_others_is_found() -> None:
    def shows(at_s: float, at: str) -> dict[BrokerId, int]:
        return {A: 4 if at_s >= 200 and at == NS[0] else 8, B: 8}

    assert found_in(recorded(shows))["routes_converge"] is Validity.INVALID


def test_two_addresses_of_a_broker_make_what_depends_on_it_unknown() -> None:
    record = recorded(lambda _at_s, _at: {A: 8, B: 8}, until_s=200)
    record.looked(Look(at_s=201, name_servers={at: NameServerLook(brokers={**AT, A: "10.0.2.9:10911"}) for at in NS}))
    assert any("more than one address (10.0.2.1:10911, 10.0.2.9:10911)" in one.says for one in record.blind)
    assert Validity.INVALID not in found_in(record).values()


def test_the_folder_of_a_watch_is_a_run_that_says_the_same(tmp_path: Path) -> None:
    record = recorded(lambda at_s, _at: {B: 8} if at_s >= 200 else {A: 8, B: 8}, refused=killed)
    folder = RunFolder.create("watched", tmp_path / "night").path
    found = judged(record, explained(record), (), folder)
    again = {verdict.name: verdict.verdict for verdict in verdicts(folder)}
    assert {verdict.name: again[verdict.name] for verdict in found.verdicts} == {
        verdict.name: verdict.verdict for verdict in found.verdicts
    }
    assert {verdict.name for verdict in found.verdicts} | {one.name for one in found.left_out} == set(CHECKS)
    assert RunFolder(folder).scenario().checks == tuple(name for name in CHECKS if name in SUPPORTED)
    document = json.loads((folder / "incident.json").read_text())
    assert document["topology"]["brokers"] == {"broker-a": {"0": [AT[A]]}, "broker-b": {"0": [AT[B]]}}
    assert (folder / "verdicts.json").is_file()
    assert [row["event"] for row in read_rows(folder)][-1] == "run_end"


def test_the_scenario_of_a_watch_counts_the_consumers_that_brokers_tell_of(tmp_path: Path) -> None:
    record = recorded(lambda _at_s, _at: {A: 8, B: 8}, until_s=60)
    clients = {Member("group", f"10.0.3.{one}@7"): frozenset(NS) for one in (1, 2)}
    record.looked(Look(at_s=61, name_servers={at: _server({A: 8, B: 8}, ()) for at in NS}, clients=clients))
    folder = RunFolder.create("watched", tmp_path / "night").path
    judged(record, explained(record), (), folder)
    assert RunFolder(folder).scenario().workload.consumers == 2


def test_that_the_watch_closes_its_own_channels_at_its_end_is_no_fault() -> None:
    record = recorded(lambda _at_s, _at: {A: 8, B: 8}, until_s=200)
    record.is_over = True
    for address in NS:
        record.channel("close", Address.parse(address), "closed")
    assert explained(record).episodes == []


@pytest.mark.parametrize(("unused_s", "rows"), [(120.0, 0), (60.0, 1)])
def test_that_a_broker_closes_a_channel_that_was_idle_is_no_fault(unused_s: float, rows: int) -> None:
    record = recorded(lambda _at_s, _at: {A: 8, B: 8}, until_s=200)
    record.now_ms += 1000 * unused_s
    record.channel("close", Address.parse(AT[A]), "closed by the peer")
    closes = [row for row in record.framed() if row["event"] == "channel" and row["f"] == "close"]
    assert len(closes) == rows


def test_every_check_is_supported_or_left_out_with_a_reason() -> None:
    assert set(SUPPORTED) | LEFT_OUT.keys() == set(CHECKS)
    assert not set(SUPPORTED) & LEFT_OUT.keys()


def test_a_check_that_a_watch_cannot_support_is_refused_with_what_it_needs() -> None:
    assert watched_checks(None) is None
    assert watched_checks("default") == SUPPORTED == watched_checks("all")
    assert watched_checks("routes_are_true") == ("routes_are_true",)
    with pytest.raises(ScenarioError, match="of availability: it needs who sent, pulled and got what"):
        watched_checks("availability")

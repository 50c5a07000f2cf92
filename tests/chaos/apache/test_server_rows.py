"""Our own NameServers and brokers seen from outside: the rows that follow are the rows that they record themselves."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from nemesrv.chaos.checks.plain.verdicts import verdicts_of_rows
from nemesrv.chaos.history.recorder import check_fields
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.verdict import Validity
from tests.chaos.apache.from_outside import Outside, seen_from_outside

COMPARED = (
    *("registration", "broker_dropped", "route", "write_perm"),
    *("register", "topic", "client_heartbeat", "client_gone", "commit", "offset_reset"),
)
POLL_MS = 250.0
EXACT_MS = 5.0
"""What a front sees, and the middle of what a poll found between two such moments."""
BY_LOG_MS = 400.0
"""What nothing but a line of a log tells: when a client expired, and that nobody was there to register with."""

SCENARIO = {
    "name": "from-outside",
    "cluster": {"name_servers": 2, "brokers": 2},
    "workload": {"producers": 1, "consumers": 2, "queues": 2, "sends_per_s": 1},
    "timeline": [
        {"at_s": 5, "do": "black_hole", "links": ["broker-a <-> ns-0"]},
        {"at_s": 10, "do": "black_hole", "links": ["consumer-0 <-> broker-b"]},
        {"at_s": 20, "do": "wipe_write_perm", "broker": "broker-a", "nodes": ["ns-1"]},
        {"at_s": 40, "do": "add_write_perm", "broker": "broker-a", "nodes": ["ns-1"]},
        {"at_s": 180, "do": "heal"},
        {"at_s": 190, "do": "kill", "nodes": ["broker-b"], "for_s": 10},
        {"at_s": 215, "do": "stop", "nodes": ["broker-a"], "for_s": 10},
        {"at_s": 230, "do": "stop", "nodes": ["ns-1"], "for_s": 6},
    ],
    "settle_s": 70,
    "checks": "all",
}
"""Registrations, and again with other topics; a close, an expiry, an unregistration; heartbeats and commits."""

Run = tuple[Outside, list[dict[str, Any]]]


@pytest.fixture(scope="module", params=["4.9", "5.x"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("from-outside") / "run"
    cluster = {**SCENARIO["cluster"], "profile": request.param}  # type: ignore[dict-item]
    with seen_from_outside() as outside:
        record_virtual(parse({**SCENARIO, "cluster": cluster}, file="from-outside.yaml"), 1, folder)
    return outside, read_rows(folder)


def routes_as_polled(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Without the routes that were as before again in less time than passes between two polls: nobody sees those."""
    found: list[Mapping[str, Any]] = []
    of: dict[tuple[str, int, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["event"] != "route":
            found.append(row)
            continue
        held = of[row["node"], row["incarnation"], row["topic"]]
        before = held[-2]["value"] if len(held) > 1 else None
        if held and row["time_ms"] - held[-1]["time_ms"] < POLL_MS and row["value"] == before:
            held.pop()
        else:
            held.append(row)
    return [*found, *(row for held in of.values() for row in held)]


def moments(rows: Sequence[Mapping[str, Any]], event: str, servers: set[str]) -> dict[str, list[float]]:
    """What the rows say, but for how it was learnt and which channel it was, → when."""
    found: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["event"] != event or row["node"] not in servers:
            continue
        value = row["value"]
        if isinstance(value, dict):
            value = {key: said for key, said in value.items() if key != "learnt"} or None
        if event == "topic" and value is not None:
            value.pop("version")  # of the registration that told it, which others of the same moment may precede
        names = (
            *("node", "incarnation", "topic", "broker_name", "broker_id", "name_server"),
            *("queue_id", "offset", "code"),
        )
        said = [row[name] for name in names]
        if event != "route":  # there it says how it was learnt
            said.append(row["f"])
        found[json.dumps([*said, row["type"], value], sort_keys=True)].append(row["time_ms"])
    return found


@pytest.mark.parametrize("event", COMPARED)
def test_what_is_seen_from_outside_is_what_the_server_says_itself(run: Run, event: str) -> None:
    outside, rows = run
    servers = {process.name for process in outside.processes}
    own = moments(routes_as_polled(rows), event, servers)
    derived = moments(routes_as_polled(outside.instead_of_own(rows)), event, servers)
    if event == "offset_reset":
        assert (own, derived) == ({}, {})
        return
    assert own
    assert {key: len(times) for key, times in own.items()} == {key: len(times) for key, times in derived.items()}
    for key, times in own.items():
        by_log = '"expired"' in key or '"fail"' in key
        for said_ms, seen_ms in zip(sorted(times), sorted(derived[key]), strict=True):
            assert abs(said_ms - seen_ms) <= (BY_LOG_MS if by_log else EXACT_MS), key


def test_every_row_says_how_it_was_learnt_and_fits_the_catalogue(run: Run) -> None:
    outside, _rows = run
    learnt: dict[str, set[str]] = defaultdict(set)
    for process in outside.processes:
        for row in process.rows:
            check_fields(row.event, row.fields)
            if row.event == "route":
                learnt[row.event].add(row.fields["f"])
            elif row.event == "topic" and row.fields["value"] is None:
                learnt[row.event].add("wire")
            elif row.event != "timer_lag":
                learnt[row.event].add(row.fields["value"]["learnt"])
    assert set().union(*learnt.values()) <= {"wire", "log", "poll"}
    assert learnt["boot"] == {"log"}
    assert learnt["commit"] == {"wire"}
    assert "log" in learnt["broker_dropped"]


def test_the_checks_say_of_it_what_they_say_of_the_servers_own_rows(run: Run) -> None:
    outside, rows = run
    own = {verdict.name: verdict for verdict in verdicts_of_rows(rows)}
    for verdict in verdicts_of_rows(outside.instead_of_own(rows)):
        if (
            verdict.name == "queue_ownership"
        ):  # Apache's brokers do not say whom they list, and so short a run is not quiet
            assert verdict.verdict is Validity.UNKNOWN, verdict.why
            continue
        assert verdict.verdict is own[verdict.name].verdict, (verdict.name, verdict.why, verdict.examples)
        assert verdict.verdict is not Validity.INVALID

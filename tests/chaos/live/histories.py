"""Random histories for the differential test: small virtual runs, with quiet stretches, and damages put in.

A damage is a change that a defect, a tired machine or a torn file could make: rows missing, messages received twice or
never, routes too early or too late, timers that fired late. What the checks say of it is no matter here, only that they
say the same of the whole history and of its parts.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario

Rows = list[dict[str, Any]]


def random_history(seed: int) -> Rows:
    """Some thousand rows in order of time, from zero to three faults, in most cases with damages."""
    rng = random.Random(f"{seed} live")
    with tempfile.TemporaryDirectory(prefix="nemesrv-live-") as folder:
        recorded = read_rows(record_virtual(_scenario(rng), seed, Path(folder) / "run", latest=False).path)
    rows = [{name: cell for name, cell in row.items() if cell is not None} for row in recorded]
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        rows = rng.choice(DAMAGES)(rows, rng)
    return _numbered(rows)


def _scenario(rng: random.Random) -> Scenario:
    """A small cluster with up to three faults, one after another, and up to four quiet minutes before each."""
    name_servers, brokers = rng.choice((1, 2, 3)), rng.choice((1, 2, 3))
    timeline: list[dict[str, Any]] = []
    now_s = rng.uniform(20.0, 50.0)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        name_server, broker = f"ns-{rng.randrange(name_servers)}", f"broker-{'abc'[rng.randrange(brokers)]}"
        on_node = rng.choice((broker, broker, name_server))
        begin, end = rng.choice(
            (
                ({"do": "kill", "nodes": [on_node]}, {"do": "restart", "nodes": [on_node]}),
                ({"do": "stop", "nodes": [on_node]}, {"do": "restart", "nodes": [on_node]}),
                ({"do": "pause", "nodes": [on_node]}, {"do": "resume", "nodes": [on_node]}),
                ({"do": "cut", "links": [f"{broker} -> {name_server}"]}, {"do": "heal"}),
                ({"do": "black_hole", "links": [f"{broker} -> {name_server}"]}, {"do": "heal"}),
            )
        )
        end_s = now_s + rng.uniform(5.0, 180.0)
        timeline += [{"at_s": round(now_s, 3), **begin}, {"at_s": round(end_s, 3), **end}]
        now_s = end_s + rng.choice((rng.uniform(20.0, 140.0), rng.uniform(140.0, 380.0)))
    document = {
        "cluster": {
            "name_servers": name_servers,
            "brokers": brokers,
            "profile": rng.choice(("4.9", "5.x")),
        },
        "workload": {
            **{"producers": rng.choice((1, 2)), "consumers": rng.choice((1, 2)), "queues": rng.choice((1, 2, 4))},
            **{"sends_per_s": 0.1, "client_starts": rng.choice((0, 3, 12))},
        },
        "timeline": timeline,
        "settle_s": round(rng.uniform(5.0, 240.0), 3),
        "checks": "all",
    }
    return parse(document, file="live.yaml")


def _numbered(rows: Rows) -> Rows:
    """In order of time, each process's rows counted anew: the damage shows in no gap."""
    seqs: dict[tuple[str, int], int] = {}
    found = sorted(rows, key=lambda row: (row["time_ms"], row["node"], row["incarnation"], row["seq"]))
    for row in found:
        process = (row["node"], row["incarnation"])
        row["seq"] = seqs[process] = seqs.get(process, -1) + 1
    return found


def _some(rows: Rows, rng: random.Random, *events: str, most: int = 3) -> list[int]:
    """The places of a few rows of these events."""
    places = [place for place, row in enumerate(rows) if row["event"] in events]
    return rng.sample(places, min(len(places), rng.randint(1, most)))


def rows_missing(rows: Rows, rng: random.Random) -> Rows:
    """Rows of one kind were never written."""
    event = rng.choice(
        ("receive", "route", "name_server_call", "send_attempt", "pull", "name_server_chosen", "channel")
    )
    gone = set(_some(rows, rng, event))
    return [row for place, row in enumerate(rows) if place not in gone]


def received_again(rows: Rows, rng: random.Random) -> Rows:
    """Messages reach the listener a second time, some much later."""
    return [*rows, *(_later(rows[place], rng, 200_000.0) for place in _some(rows, rng, "receive"))]


def lost(rows: Rows, rng: random.Random) -> Rows:
    """A message is in no queue and with no consumer, and its queue was read whole."""
    keys = {rows[place].get("msg_key") for place in _some(rows, rng, "receive")}
    return [row for row in rows if row["event"] not in ("receive", "read") or row.get("msg_key") not in keys]


def reads_incomplete(rows: Rows, rng: random.Random) -> Rows:
    """The final reads of a queue did not come to an end, and a message in it was not received."""
    gone = set(_some(rows, rng, "read_done", "receive", most=6))
    return [row for place, row in enumerate(rows) if place not in gone]


def routes_differ(rows: Rows, rng: random.Random) -> Rows:
    """A NameServer forgets a topic for a while, or for good."""
    end_ms = max(row["time_ms"] for row in rows)
    found = [*rows]
    for place in _some(rows, rng, "route", most=2):
        route = rows[place]
        at_ms = rng.uniform(route["time_ms"], end_ms)
        found.append({**route, "time_ms": at_ms, "value": None})
        if rng.random() < 0.7:
            found.append({**route, "time_ms": at_ms + rng.choice((20.0, 2_000.0, 40_000.0))})
    return found


def routes_late(rows: Rows, rng: random.Random) -> Rows:
    """Changes of routes come later than they may."""
    moved = set(_some(rows, rng, "route"))
    return [_later(row, rng, 90_000.0) if place in moved else row for place, row in enumerate(rows)]


def timers_late(rows: Rows, rng: random.Random) -> Rows:
    """The machine was too slow at times."""
    slow = set(_some(rows, rng, "timer_lag", most=20))
    return [{**row, "lag_ms": rng.uniform(50.0, 9_000.0)} if place in slow else row for place, row in enumerate(rows)]


def proxies_late(rows: Rows, rng: random.Random) -> Rows:
    """Toxiproxy stood still at times, and sends timed out in one of them."""
    late = _some([row if row["node"] == "toxiproxy" else {**row, "event": ""} for row in rows], rng, "timer_lag")
    found = [{**row, "lag_ms": rng.uniform(50.0, 9_000.0)} if place in late else row for place, row in enumerate(rows)]
    if not late:
        return found
    stall = rows[rng.choice(late)]
    from_ms = stall["time_ms"] - (stall["duration_ms"] or 0.0)

    def timed_out(row: dict[str, Any]) -> bool:
        return row["event"] == "send" and row["type"] == "ok" and from_ms <= row["time_ms"] <= stall["time_ms"]

    return [{**row, "type": "info"} if timed_out(row) else row for row in found]


def lost_brokers_used(rows: Rows, rng: random.Random) -> Rows:
    """Clients go on with a broker, or come to it, at any time."""
    found = [*rows]
    end_ms = max(row["time_ms"] for row in rows)
    for place in _some(rows, rng, "pull"):
        found.append({**rows[place], "time_ms": rng.uniform(0.0, end_ms), "type": "invoke"})
    return found


def moved_on_without_reason(rows: Rows, rng: random.Random) -> Rows:
    """A client chooses another NameServer, or the same one, in no order."""
    found = [*rows]
    for place in _some(rows, rng, "name_server_chosen"):
        found.append(_later(rows[place], rng, 100_000.0))
    return found


def sends_failed(rows: Rows, rng: random.Random) -> Rows:
    """Sends that were acknowledged end with an error, or with nothing known."""
    failed = set(_some([row if row.get("type") == "ok" else {**row, "event": ""} for row in rows], rng, "send", most=8))
    outcome = rng.choice(("fail", "info"))
    return [{**row, "type": outcome} if place in failed else row for place, row in enumerate(rows)]


def _later(row: dict[str, Any], rng: random.Random, most_ms: float) -> dict[str, Any]:
    return {**row, "time_ms": row["time_ms"] + rng.choice((rng.uniform(0.0, 100.0), rng.uniform(0.0, most_ms)))}


DAMAGES: Sequence[Callable[[Rows, random.Random], Rows]] = (
    rows_missing,
    received_again,
    lost,
    reads_incomplete,
    routes_differ,
    routes_late,
    timers_late,
    proxies_late,
    lost_brokers_used,
    moved_on_without_reason,
    sends_failed,
)

"""What the scenario was about really happened: every fault has its rows and shows an effect, and every client worked.

A run whose faults never bit proves nothing, however many checks call it VALID. This one is VALID or UNKNOWN, never
INVALID: a fault without effect is no fault of the cluster's.

| fault                   | effect: one of these rows while it lasts, or just after                                  |
|-------------------------|------------------------------------------------------------------------------------------|
| kill, stop of a node    | its next process started; a NameServer dropped it; a call or connection to it failed     |
| pause of a node         | it measured no timers all the while; or as above                                         |
| black_hole, cut, reset  | the dialler's call or connection over the link failed; the NameServer dropped the broker |
| latency                 | a call over the link took at least as long as one direction was delayed                  |
| any; bandwidth only so  | the harness recorded `verified`                                                          |

Where clients had chosen a NameServer that was then lost to them, at least one must have chosen another.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..oracle.world import Fault, World
from ..verdict import EXAMPLES_MAX, Validity, Verdict
from .dataframes.operations import shared_slots
from .dataframes.shared import parts_of, within
from .dataframes.small_tables import frame
from .findings import rounded
from .lateness import RESUME_GRACE_MS

NAME = "exercised"
_SHOWN = 60


def exercised(history: DataFrame, world: World) -> Verdict:
    """Examined: faults and clients. None is a violation: what did not happen makes it UNKNOWN."""
    by_id: dict[str, list[Fault]] = defaultdict(list)
    for fault in world.faults:
        by_id[fault.fault_id].append(fault)
    clients = [node.name for node in world.of_kind("producer", "consumer")]
    if not by_id and not clients:
        return Verdict.nothing_examined(NAME, "there was neither a fault nor a client")
    effects = _effects(history, world) if by_id else {}
    switches, used = _switches(history, world)
    worked = {slot.node for slot in shared_slots(history, world)[1] if slot.good}
    missing: list[dict[str, Any]] = [
        {"client": client, "what": "it never had a success", "at_ms": 0.0, "to_ms": rounded(world.end_ms)}
        for client in clients
        if client not in worked
    ]
    shown: list[dict[str, Any]] = []
    for fault_id, faults in by_id.items():
        seen = effects.get(fault_id, {})
        start_ms, end_ms = min(f.start_ms for f in faults), max(f.end_ms for f in faults)
        what = _lacks(world, faults, seen, switches.get(fault_id, 0), fault_id in used)
        shown.append({"fault_id": fault_id, "fault": faults[0].fault, "effects": seen})
        if fault_id in used or switches.get(fault_id):
            shown[-1]["switches"] = switches.get(fault_id, 0)
        if what:
            until_ms = rounded(end_ms) if math.isfinite(end_ms) else None
            missing.append({"fault_id": fault_id, "what": what, "at_ms": rounded(start_ms), "to_ms": until_ms})
    planned = [action for action in world.run.get("timeline") or () if action not in ("heal", "resume", "restart")]
    if len(planned) > len(by_id):
        missing.append({"what": f"{len(planned)} faults were planned and {len(by_id)} recorded", "at_ms": 0.0})
    return Verdict(
        name=NAME,
        verdict=Validity.UNKNOWN if missing else Validity.VALID,
        examined=len(by_id) + len(clients),
        measured={
            "faults": len(by_id),
            "clients": len(clients),
            "effects": sum(sum(seen.values()) for seen in effects.values()),
            "switches": sum(switches.values()),
            "by_fault": shown[:_SHOWN],
        },
        allowed={
            "bound_ms": None,
            "formula": "each fault begins, ends and has an effect; each client works",
            "tolerance_ms": 0,
            "row": "what did not happen proves nothing",
        },
        examples=tuple(missing[:EXAMPLES_MAX]),
        why=f"{len(missing)} things did not happen, so the run proves nothing about them: {missing[0]['what']}"
        if missing
        else "",
    )


def _lacks(world: World, faults: Sequence[Fault], seen: Mapping[str, int], switches: int, used: bool) -> str:
    """What is missing of a fault; "" when nothing is."""
    if any(fault.start_ms >= world.end_ms for fault in faults):
        return "it began after the end"
    if world.run.get("timeline") and all(fault.end_ms > world.end_ms for fault in faults):
        return "it never ended"  # a run by a timeline heals every fault before it settles
    if not seen:
        return "no row shows an effect of it"
    if used and not switches and all(_forces_a_switch(world, fault) for fault in faults):
        return "clients had chosen the NameServer that it took, and none chose another"
    return ""


def _forces_a_switch(world: World, fault: Fault) -> bool:
    """Whether a client that keeps on calling must have met the loss: it lasted a poll and a time-out."""
    lasts_ms = min(fault.end_ms, world.end_ms) - fault.start_ms
    return not fault.harmless(world.timers) and lasts_ms > world.timers.P_ms + 2 * world.timers.A_ms


def _address(world: World) -> dict[str, str | None]:
    return {node.name: node.address for node in world.nodes}


def _effects(history: DataFrame, world: World) -> dict[str, dict[str, int]]:
    """fault_id → kind of effect → how many rows show it."""
    addresses, grace_ms = _address(world), world.timers.A_ms + world.timers.T_ms
    rows: list[tuple[int, str | None, str | None, str, float, float, float]] = []
    for index, fault in enumerate(world.faults):
        if not fault.kind.shows_in_rows:
            continue  # no row tells a narrow link from a busy one
        until_ms = min(fault.end_ms, world.end_ms) + grace_ms
        slow_ms = fault.kind.call_takes_ms
        if fault.target is None:
            rows.append((index, addresses.get(fault.source), None, "", fault.start_ms, until_ms, slow_ms))
        else:
            rows.append((index, addresses.get(fault.target), fault.source, "", fault.start_ms, until_ms, slow_ms))
            dropped = (index, addresses.get(fault.source), fault.target, "broker_dropped")
            rows.append((*dropped, fault.start_ms, until_ms, slow_ms))
    asked = frame(
        history,
        rows,
        "fault int, key string, by string, only string, start_ms double, until_ms double, slow_ms double",
    )
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    matches = (
        (F.col("time_ms") >= F.col("start_ms"))
        & (F.col("begun_ms") <= F.col("until_ms"))
        & (F.col("time_ms") <= F.col("until_ms"))
        & (F.col("by").isNull() | (F.col("by") == F.col("node")))
        & ((F.col("only") == "") | (F.col("only") == F.col("kind")))
        & ((F.col("kind") != "slow") | (F.col("took_ms") >= F.col("slow_ms")))
        & ((F.col("slow_ms") == 0) | F.col("kind").isin("slow", "failed"))
        & ((F.col("slow_ms") > 0) | (F.col("kind") != "slow"))
    )
    in_time = within(F.col("time_ms"), ((start_ms, until_ms) for *_, start_ms, until_ms, _ in rows))
    for part in parts_of(history, *_EVIDENT):
        hits = _evidence(part.where(in_time), any(row[-1] for row in rows)).join(asked, "key").where(matches)
        for row in hits.groupBy("fault", "kind").agg(F.count("*").alias("rows")).collect():
            found[world.faults[row["fault"]].fault_id][row["kind"]] += row["rows"]
    for fault_id, count in _verified(history).items():
        found[fault_id]["verified"] += count
    for fault_id in _silent(history, world):
        found[fault_id]["silent"] += 1
    return {fault_id: dict(kinds) for fault_id, kinds in found.items()}


_CALLS = ("register", "name_server_call", "send_attempt", "pull")
_EVIDENT = (*_CALLS, "channel", "broker_dropped", "started")


def _evidence(history: DataFrame, slow: bool) -> DataFrame:
    """kind, key (the address it speaks of), node, time_ms, begun_ms, took_ms: rows that may show a fault."""
    event, type_ = F.col("event"), F.col("type")
    calls = event.isin(*_CALLS)
    failed = calls & type_.isin("fail", "info") & F.col("code").isNull()
    broken = (event == "channel") & F.col("f").isin("close", "connect_failed")
    kind: Column = (
        F.when(failed, "failed")
        .when(broken, "closed")
        .when(event == "broker_dropped", "broker_dropped")
        .when((event == "started") & (F.col("incarnation") > 0), "started_again")
    )
    if slow:
        kind = F.coalesce(kind, F.when(calls & (F.col("duration_ms") > 0), "slow"))
    took_ms = F.coalesce("duration_ms", F.lit(0.0))
    return (
        history.withColumn("kind", kind)
        .where(F.col("kind").isNotNull())
        .select(
            "kind",
            F.coalesce("address", "name_server").alias("key"),
            "node",
            "time_ms",
            (F.col("time_ms") - took_ms).alias("begun_ms"),
            took_ms.alias("took_ms"),
        )
    )


def _verified(history: DataFrame) -> dict[str, int]:
    rows = history.where((F.col("event") == "verified") & F.col("fault_id").isNotNull()).groupBy("fault_id").count()
    return {row["fault_id"]: row["count"] for row in rows.collect()}


def _silent(history: DataFrame, world: World) -> set[str]:
    """Pauses during which the node, which measured its timers before, measured nothing."""
    pauses = [(i, f) for i, f in enumerate(world.faults) if f in world.pauses()]
    if not pauses:
        return set()
    rows = [(i, f.source, f.start_ms + RESUME_GRACE_MS, min(f.end_ms, world.end_ms)) for i, f in pauses]
    asked = frame(history, rows, "fault int, p_node string, p_from double, p_to double")
    beats = history.where(F.col("event") == "timer_lag").select("node", "time_ms")
    counted = (
        beats.join(asked, F.col("node") == F.col("p_node"))
        .groupBy("fault")
        .agg(
            F.count(F.when(F.col("time_ms") < F.col("p_from"), True)).alias("before"),
            F.count(F.when((F.col("time_ms") >= F.col("p_from")) & (F.col("time_ms") < F.col("p_to")), True)).alias(
                "during"
            ),
        )
        .collect()
    )
    return {world.faults[row["fault"]].fault_id for row in counted if row["before"] and not row["during"]}


def _switches(history: DataFrame, world: World) -> tuple[dict[str, int], set[str]]:
    """fault_id → choices of another NameServer while it lasted; and the faults that took one that a client had chosen.

    `name_server_chosen` rows come with starts and failures, not with traffic.
    """
    servers = {node.name: node.address for node in world.of_kind("name_server")}
    clients = {node.name for node in world.of_kind("producer", "consumer")}
    asked = [
        fault
        for fault in world.faults
        if (fault.target is None and fault.source in servers) or (fault.target in servers and fault.source in clients)
    ]
    if not asked or not clients:
        return {}, set()
    rows = (
        history.where((F.col("event") == "name_server_chosen") & F.col("node").isin(*sorted(clients)))
        .select("node", "name_server", "time_ms", "seq", F.get_json_object("value", "$.reason").alias("reason"))
        .orderBy("time_ms", "seq")
        .collect()
    )
    counts: dict[str, int] = defaultdict(int)
    used: set[str] = set()
    for fault in asked:
        server = servers[fault.source if fault.target is None else fault.target]
        until_ms = min(fault.end_ms, world.end_ms) + world.timers.P_ms + world.timers.A_ms
        for client in clients if fault.target is None else {fault.source}:
            chosen = [row for row in rows if row["node"] == client]
            before = [row for row in chosen if row["time_ms"] <= fault.start_ms]
            if before and before[-1]["name_server"] == server:
                used.add(fault.fault_id)
                counts[fault.fault_id] += any(
                    fault.start_ms < row["time_ms"] <= until_ms and row["reason"] != "first" for row in chosen
                )
    return dict(counts), used

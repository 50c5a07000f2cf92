"""Clients choose NameServers as Java's do: first at random, then round robin, kept until it fails.

Over every selection of the run (a process of a client, or one of the prober's starts):

    shuffled      the list in use is a permutation of the configured NameServers
    uniform       over all selections, the first choice falls on each NameServer equally often (χ², alpha 1e-6)
    in order      each later choice is the next entry of the client's own list
    sticky        another one is chosen only after the current one failed: a call without an answer, a failed connect,
                  or a close that a fault of that NameServer, of the link or of the client itself explains
    moves on      after such a failure the next call, or the next connect, is not made to the same one again

An answer with an error code is no failure. A client's own close without a reason is none either.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ..verdict import EXAMPLES_MAX, Validity, Verdict
from .findings import rounded
from .lag import frame
from .world import World

NAME = "name_server_selection"
ALPHA = 1e-6
"""How often a client that chooses fairly may be called unfair: once in a million runs."""

EXPECTED_MIN = 10
"""First choices expected per NameServer below which χ² is not trusted at ALPHA."""

_PROBER = "prober"
_WHO = ("node", "incarnation", "start")


def name_server_selection(history: DataFrame, world: World) -> Verdict:
    """Examined: choices of a NameServer. Violations: choices, lists, calls and connects against the rules."""
    configured = sorted(node.address for node in world.of_kind("name_server") if node.address)
    if not configured:
        return Verdict.nothing_examined(NAME, "no NameServer is in the history")
    choices = _choices(history, configured)
    judged = _broken_choices(choices, history, world, len(configured))
    broken = judged.unionByName(_repeated_calls(history, len(configured))).unionByName(
        _silent_reconnects(history, configured)
    )
    is_first = F.when(F.col("rank") == 1, "first").otherwise("later")
    made = choices.groupBy(is_first.alias("rule"), "name_server").agg(F.count("*").alias("n"))
    rows = (
        broken.groupBy("rule")
        .agg(
            F.count("*").alias("n"),
            F.slice(
                F.array_sort(F.collect_list(F.struct("time_ms", "node", "start", "name_server", "was"))),
                1,
                EXAMPLES_MAX,
            ).alias("examples"),
        )
        .select("rule", "n", "examples", F.lit(None).cast("string").alias("name_server"))
        .unionByName(made, allowMissingColumns=True)
        .coalesce(1)
        .collect()
    )
    return _verdict([row.asDict() for row in rows], configured)


def _rows(history: DataFrame, *events: str) -> DataFrame:
    """The rows of clients' selections; `start` tells the prober's starts apart and is empty for everyone else."""
    is_prober = F.col("role") == _PROBER
    return history.where(F.col("event").isin(*events)).withColumn(
        "start", F.when(is_prober, F.coalesce("op_id", F.lit(""))).otherwise(F.lit(""))
    )


def _choices(history: DataFrame, configured: list[str]) -> DataFrame:
    """One row per choice: who, time_ms, seq, name_server, rank (1 = first), index, old choice, and the list in use."""
    of_one = Window.partitionBy(*_WHO).orderBy("time_ms", "seq")
    is_list = F.col("event") == "name_server_list"
    choice = F.from_json("value", "old string, index int, reason string")
    listed = F.when(is_list, F.from_json("value", "array<string>"))
    return (
        _rows(history, "name_server_list", "name_server_chosen")
        .withColumn("choice", choice)
        .withColumn("listed", F.last(listed, ignorenulls=True).over(of_one))
        .withColumn("list_number", F.sum(is_list.cast("int")).over(of_one))
        .where(~is_list)
        .withColumns(
            {
                "rank": F.row_number().over(of_one),
                "index": F.col("choice.index"),
                "old": F.lag("name_server").over(of_one),
                "old_ms": F.lag("time_ms").over(of_one),
                "old_index": F.lag("choice.index").over(of_one),
                "same_list": F.lag("list_number").over(of_one) == F.col("list_number"),
            }
        )
        .withColumn("configured", F.array(*[F.lit(address) for address in configured]))
        .select(
            *(*_WHO, "role", "time_ms", "seq", "name_server", "rank", "index", "old", "old_ms", "old_index"),
            *("same_list", "listed", "configured"),
        )
    )


def _shown(rows: DataFrame, rule: str | Column, was: Column) -> DataFrame:
    rule = F.lit(rule) if isinstance(rule, str) else rule
    return rows.select(rule.alias("rule"), "time_ms", "node", "start", "name_server", was.cast("string").alias("was"))


def _broken_choices(choices: DataFrame, history: DataFrame, world: World, n: int) -> DataFrame:
    listed_at = F.element_at("listed", F.col("index") + 1)
    in_order = F.col("index") == F.pmod(F.col("old_index") + 1, F.size("listed"))
    rule = (
        F.when(F.col("listed").isNull(), "shuffled")
        .when(~F.sort_array("listed").eqNullSafe(F.sort_array("configured")), "shuffled")
        .when(~F.coalesce((F.col("index") >= 0) & (F.col("index") < F.size("listed")), F.lit(False)), "in order")
        .when(~listed_at.eqNullSafe(F.col("name_server")), "in order")
        .when(F.col("same_list") & ~F.coalesce(in_order, F.lit(False)), "in order")
    )
    disordered = choices.withColumn("rule", rule).where(F.col("rule").isNotNull())
    was = F.concat_ws(" then ", "old_index", "index")
    return _shown(disordered, F.col("rule"), was).unionByName(_left_without_reason(choices, history, world, n))


def _failures(history: DataFrame) -> DataFrame:
    """who, failed, f_ms: when a NameServer failed this client for certain."""
    event = F.col("event")
    unanswered = (event == "name_server_call") & F.col("type").isin("fail", "info") & F.col("code").isNull()
    unreachable = (event == "channel") & (F.col("f") == "connect_failed")
    return (
        _rows(history, "name_server_call", "channel")
        .where(unanswered | unreachable)
        .select(
            *[F.col(column).alias(f"f_{column}") for column in _WHO],
            F.when(event == "channel", F.col("address")).otherwise(F.col("name_server")).alias("failed"),
            F.col("time_ms").alias("f_ms"),
            (F.col("time_ms") - F.coalesce("duration_ms", F.lit(0.0))).alias("f_began_ms"),
        )
    )


def _left_without_reason(choices: DataFrame, history: DataFrame, world: World, n: int) -> DataFrame:
    """Choices of another NameServer although nothing says that the current one failed."""
    later = choices.where((F.col("rank") > 1) & (F.col("role") != _PROBER) & F.lit(n > 1))
    failures = _failures(history)
    failed_before = (
        (F.col("node") == F.col("f_node"))
        & (F.col("incarnation") == F.col("f_incarnation"))
        & (F.col("start") == F.col("f_start"))
        & (F.col("old") == F.col("failed"))
        & (F.col("f_ms") >= F.col("old_ms"))
        & (F.col("f_ms") <= F.col("time_ms"))
    )
    unexplained = later.join(failures, failed_before, "left_anti")
    explained = frame(history, _explaining(world), "x_node string, x_address string, x_from double, x_to double")
    # The close itself must fall into the fault; the choice may follow as late as the next call. A channel that was
    # used for nothing for I is closed by either side, and that is nobody's fault.
    closes = _closes(history)
    during = (
        ((F.col("x_node") == F.col("c_node")) | (F.col("x_node") == "*"))
        & ((F.col("x_address") == F.col("closed")) | (F.col("x_address") == "*"))
        & (F.col("c_ms") >= F.col("x_from"))
        & (F.col("c_ms") <= F.col("x_to"))
    )
    closed_before = (
        (F.col("node") == F.col("c_node"))
        & (F.col("incarnation") == F.col("c_incarnation"))
        & (F.col("start") == F.col("c_start"))
        & (F.col("old") == F.col("closed"))
        & (F.col("c_ms") >= F.col("old_ms"))
        & (F.col("c_ms") <= F.col("time_ms"))
    )
    idle = F.col("c_ms") - F.col("used_ms") >= F.lit(0.95 * world.timers.I_ms)
    innocent = closes.where(idle).unionByName(closes.where(~idle).join(explained, during, "left_semi")).coalesce(1)
    return _shown(unexplained.join(innocent, closed_before, "left_anti"), "sticky", F.col("old"))


def _closes(history: DataFrame) -> DataFrame:
    """who, closed, c_ms, used_ms: each close of a channel, and when it was last opened or answered a call."""
    is_channel = F.col("event") == "channel"
    peer = F.when(is_channel, F.col("address")).otherwise(F.col("name_server"))
    of_one = Window.partitionBy(*_WHO, "peer").orderBy("time_ms", "seq")
    return (
        _rows(history, "channel", "name_server_call")
        .withColumn("peer", peer)
        .withColumn("used_ms", F.coalesce(F.lag("time_ms").over(of_one), "time_ms"))
        .where(is_channel & (F.col("f") == "close"))
        .select(
            *[F.col(column).alias(f"c_{column}") for column in _WHO],
            F.col("peer").alias("closed"),
            F.col("time_ms").alias("c_ms"),
            "used_ms",
        )
    )


def _explaining(world: World) -> list[tuple[str, str, float, float]]:
    """(client or *, NameServer's address or *, from, to): when a close of that channel is no fault of the client."""
    addresses = {node.name: node.address or "" for node in world.of_kind("name_server")}
    # What the fault did to a call or a connect in flight shows when that times out.
    after_ms = world.timers.A_ms + world.timers.C_ms + world.timers.delivery_ms
    found: list[tuple[str, str, float, float]] = []
    for fault in world.faults:
        span = (fault.start_ms - world.timers.delivery_ms, fault.end_ms + after_ms)
        if fault.target is None:
            found.append(
                ("*", addresses[fault.source], *span) if fault.source in addresses else (fault.source, "*", *span)
            )
        elif fault.target in addresses:
            found.append((fault.source, addresses[fault.target], *span))
    for life in world.lives:
        if life.node in addresses and life.end_ms < math.inf:
            found.append(("*", addresses[life.node], life.end_ms - world.timers.delivery_ms, life.end_ms + after_ms))
    return found


def _repeated_calls(history: DataFrame, n: int) -> DataFrame:
    """First calls begun after a call without an answer, made to the same NameServer with no choice in between."""
    event = F.col("event")
    began = F.when(event == "name_server_call", F.col("time_ms") - F.coalesce("duration_ms", F.lit(0.0)))
    rows = (
        _rows(history, "name_server_call", "name_server_chosen", "channel")
        .where((event != "channel") | (F.col("f") == "open"))
        .withColumn("at_ms", F.coalesce(began, "time_ms"))
    )
    # Ordered by when calls began: `failed_until` is the latest end so far of an unanswered call, per NameServer asked.
    of_one = Window.partitionBy(*_WHO).orderBy("at_ms", "seq")
    before = of_one.rowsBetween(Window.unboundedPreceding, -1)
    after = of_one.rowsBetween(1, Window.unboundedFollowing)
    lost = (event == "name_server_call") & (F.col("type") == "info") & F.col("code").isNull()
    moved_at = F.when(event != "name_server_call", F.col("time_ms"))
    return _shown(
        rows.where(F.lit(n > 1))
        .withColumns(
            {
                "lost_ms": F.max(F.when(lost, F.col("time_ms"))).over(before),
                "lost_at": F.max_by("name_server", F.when(lost, F.col("time_ms"))).over(before),
                "moved_ms": F.max(moved_at).over(before),
                # A call that chooses records its choice while it runs, that is after it began.
                "moves_ms": F.min(moved_at).over(after),
            }
        )
        .where(
            (event == "name_server_call")
            & (F.col("role") != _PROBER)
            & (F.col("at_ms") >= F.col("lost_ms"))
            & (F.col("name_server") == F.col("lost_at"))
            & (F.coalesce("moved_ms", F.lit(-1.0)) < F.col("lost_ms"))
            & ~F.coalesce(F.col("moves_ms") <= F.col("time_ms"), F.lit(False))
        ),
        "moves on",
        F.lit("called again after a call without an answer"),
    )


def _silent_reconnects(history: DataFrame, configured: list[str]) -> DataFrame:
    """Channels to a NameServer opened again after a close, although it was not chosen again."""
    event = F.col("event")
    address = F.when(event == "channel", F.col("address")).otherwise(F.col("name_server"))
    of_one = Window.partitionBy(*_WHO, "peer").orderBy("time_ms", "seq")
    rows = (
        _rows(history, "name_server_chosen", "channel")
        .withColumn("peer", address)
        .where(F.col("peer").isin(configured) & (F.col("role") != _PROBER))
        .withColumn("what", F.when(event == "channel", F.col("f")).otherwise(F.lit("chosen")))
        .withColumn("what_before", F.lag("what").over(of_one))
        .where((F.col("what") == "open") & F.col("what_before").isin("close", "connect_failed"))
        .withColumn("name_server", F.col("peer"))
    )
    return _shown(rows, "moves on", F.lit("connected again without being chosen"))


def chi_square_p(counts: list[int]) -> float:
    """The probability of counts at least this uneven, when each was equally likely (Pearson's χ², upper tail)."""
    total, k = sum(counts), len(counts)
    if k < 2 or not total:
        return 1.0
    expected = total / k
    x = sum((count - expected) ** 2 for count in counts) / expected
    half, freedom = x / 2, k - 1
    # Q(a + 1, h) = Q(a, h) + h^a e^-h / Γ(a + 1), from Q(1, h) = e^-h or Q(1/2, h) = erfc(√h).
    q, a = (math.exp(-half), 1.0) if freedom % 2 == 0 else (math.erfc(math.sqrt(half)), 0.5)
    while a < freedom / 2 - 1e-9:
        q += math.exp(a * math.log(half) - half - math.lgamma(a + 1)) if half else 0.0
        a += 1
    return min(q, 1.0)


def first_choices_needed(name_servers: int) -> int:
    """So many that always choosing the same one would be found at ALPHA, and that χ² can be trusted."""
    if name_servers < 2:
        return 1
    always_same = math.ceil(1 + math.log(1 / ALPHA) / math.log(name_servers))
    return max(always_same, EXPECTED_MIN * name_servers)


def _verdict(rows: list[Mapping[str, Any]], configured: list[str]) -> Verdict:
    counts = {address: 0 for address in configured}
    strange: list[dict[str, Any]] = []
    for row in rows:
        if row["rule"] == "first" and row["name_server"] in counts:
            counts[row["name_server"]] += row["n"]
    later = sum(row["n"] for row in rows if row["rule"] == "later")
    broken = {row["rule"]: row for row in rows if row["rule"] not in ("first", "later")}
    total, needed, p_value = (
        sum(counts.values()),
        first_choices_needed(len(configured)),
        chi_square_p([*counts.values()]),
    )
    for rule, row in sorted(broken.items()):
        for example in row["examples"]:
            strange.append(
                {
                    "rule": rule,
                    "node": example["node"],
                    "start": example["start"] or None,
                    "name_server": example["name_server"],
                    "was": example["was"],
                    "time_ms": rounded(example["time_ms"]),
                }
            )
    violations = sum(row["n"] for row in broken.values())
    uneven = total >= needed and p_value < ALPHA
    measured = {
        "first_choices": counts,
        "later_choices": later,
        "p_value": p_value,
        "broken_rules": {rule: row["n"] for rule, row in sorted(broken.items())},
    }
    allowed = {
        "bound_ms": None,
        "formula": f"χ² p ≥ {ALPHA:g} over {needed}+ first choices; next = index + 1 mod n, only after a failure",
        "tolerance_ms": None,
        "row": "list shuffled, random start, one NameServer kept until its channel is not active",
        "first_choices_needed": needed,
    }
    why = []
    if uneven:
        shown = " / ".join(str(count) for count in counts.values())
        why.append(f"first choices are not uniform: {shown}, p = {p_value:.2g}")
    if violations:
        why.append("; ".join(f"rule '{rule}' broken {row['n']} times" for rule, row in sorted(broken.items())))
    validity = Validity.VALID
    if why:
        validity = Validity.INVALID
    elif total + later == 0:
        return Verdict.nothing_examined(NAME, "no client chose a NameServer", measured=measured, allowed=allowed)
    elif total < needed:
        validity = Validity.UNKNOWN
        why.append(f"{total} first choices are too few to tell whether they are uniform; {needed} are needed")
    return Verdict(
        name=NAME,
        verdict=validity,
        examined=total + later,
        violations=violations + uneven,
        measured=measured,
        allowed=allowed,
        examples=tuple(strange[:EXAMPLES_MAX]),
        why="; ".join(why),
    )

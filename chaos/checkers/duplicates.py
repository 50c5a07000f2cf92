"""How often messages came twice, and whether faults and rebalances explain it. RocketMQ promises at-least-once.

    older holding's receipt ── commit (first after 10 s, then every 5 s) ──┬── younger holding taken ── its receipt
                       └────────── at most U before it was taken ──────────┘

Two ways for a message to come twice, each with its bound:

* The same stored copy is received again. That needs another holding of its queue (`queue_taken`), and the older
  holding's receipt at most U = 10 s before the younger was taken (what was not committed), or at most Qr + A after it
  (two owners until the group has shared its queues). A fault widens both: U grows by the 5 s between two flushes of a
  broker's offset table, and owners may disagree until `aftermath_ms` after its end. Twice within one holding is wrong.
* It was stored more than once: never more often than its tries that may have stored it.

So in a run without faults and rebalances every duplicate is a violation. With broadcasting every consumer is a group of
its own. Whether a message came at all is no_acknowledged_loss's question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from ..oracle.quiet import Stretch, aftermath_ms, disturbed, members_window
from ..oracle.world import World
from ..verdict import EXAMPLES_MAX, Validity, Verdict
from .dataframes.messages import messages
from .dataframes.plain_pages import QUEUE
from .dataframes.shared import traffic
from .findings import rounded
from .tolerance import UNLIMITED_MS, LagWindow, Tolerance, measure, tolerance

NAME = "duplicates"
COMMIT_MS = 10_000.0
"""`MQClientInstance` persists offsets first after 10 s, then every `persistConsumerOffsetInterval` of 5 s."""
FLUSH_MS = 5_000.0
"""`BrokerConfig.flushConsumerOffsetInterval`: what a broker that is killed forgets of the offsets it was told."""
_HOLDING = ("node", "incarnation", "op_id")


class Rules(NamedTuple):
    """How far from the taking of its queue a first receipt may lie, outside of disturbances and within them."""

    uncommitted_ms: float
    owners_ms: float
    disturbed: Sequence[Stretch]

    @classmethod
    def of(cls, world: World) -> Rules:
        """`disturbed` reaches from U + flush before each fault until its aftermath is over."""
        stretches = disturbed(world, COMMIT_MS + FLUSH_MS, aftermath_ms(world))
        return cls(COMMIT_MS, members_window(world.timers).latest_ms, stretches)


def duplicates(history: DataFrame, world: World) -> Verdict:
    """Examined: messages received. Violations: receipts and stored copies that nothing explains."""
    rules, tolerance_ = Rules.of(world), _tolerance(history, world)
    plain, others = messages(history)
    twice_stored = F.col("low") != F.col("high")
    suspicious = (F.col("receives") > 1) | twice_stored
    totals = others.agg(
        F.count(F.when(F.col("receives") > 0, True)).alias("messages"),
        F.count(F.when(suspicious, True)).alias("suspicious"),
        F.count(F.when(twice_stored, True)).alias("twice_stored"),
    ).collect()[0]
    within_ms = COMMIT_MS + FLUSH_MS
    allowed = {
        "bound_ms": rounded(COMMIT_MS),
        "formula": f"first received up to {COMMIT_MS:.0f} ms before its queue changed hands (first commit), or "
        f"{rules.owners_ms:.0f} ms after (Qr + A); in a fault {within_ms:.0f} ms before it (commit + flush) until its "
        "aftermath is over; stored no oftener than tried",
        "tolerance_ms": rounded(tolerance_.valid_up_to_ms),
        "row": "at-least-once: what was not committed comes again",
    }
    received = totals["messages"] + plain
    measured: dict[str, Any] = {"messages": received, "received_again": 0, "stored_again": 0}
    if not received:
        return Verdict.nothing_examined(NAME, "no message was received", measured=measured, allowed=allowed)
    found: list[_Found] = []
    if totals["suspicious"]:
        keys = others.where(suspicious).select("msg_key", F.greatest("tries", F.lit(1)).alias("tries"))
        alone = bool((world.run.get("workload") or {}).get("broadcasting"))
        again = _receipts(history, keys, rules, each_alone=alone)
        counts = _counts(again.withColumn("kind", _kind(tolerance_)))
        found.append(counts)
        measured |= {"received_again": counts.again, "oldest_ms": rounded(counts.oldest_ms)}
    if totals["twice_stored"]:
        copies = _copies(history, keys).withColumn("kind", F.when(F.col("copies") > F.col("tries"), "wrong"))
        found.append(_counts(copies))
        measured["stored_again"] = found[-1].again
    return _verdict(found, measured, allowed, tolerance_)


class _Found(NamedTuple):
    again: int
    wrong: int
    late: int
    oldest_ms: float | None
    """How long after its first receipt the latest repeat came; in a fault that may be far beyond the bound."""
    examples: list[dict[str, Any]]


def _tolerance(history: DataFrame, world: World) -> Tolerance:
    """Of the whole run: a receipt that comes again joins several nodes and times, and only the worst one matters."""
    nodes = [node.name for node in world.of_kind("consumer", "broker")]
    lags = measure(history, world, [LagWindow(0, node, 0.0, world.end_ms) for node in nodes])
    return tolerance(world.timers, lags.get(0), 2)


def _receipts(history: DataFrame, keys: DataFrame, rules: Rules, *, each_alone: bool) -> DataFrame:
    """One row per receipt of a stored copy that was received before: over_ms beyond what explains it.

    over_ms null: nothing says when its queue was taken. `times` > 1: within one holding.
    """
    event = F.col("event")
    taken = history.where(event == "queue_taken").groupBy(*_HOLDING).agg(F.min("time_ms").alias("taken_ms"))
    received = (
        traffic(history)
        .where(event == "receive")
        .select("msg_key", *QUEUE, "offset", *_HOLDING, "time_ms", "seq")
        .join(keys, "msg_key", "left_semi")
        .join(F.broadcast(taken), list(_HOLDING), "left")
    )
    copy = ["msg_key", *QUEUE, "offset", *(["node"] if each_alone else [])]
    in_order = Window.partitionBy(*copy).orderBy("time_ms", "node", "seq")
    in_holding = Window.partitionBy(*copy, *_HOLDING).orderBy("time_ms", "seq")
    times, over = F.col("times"), F.col("over_ms")
    what = (
        F.when(times > 1, "received twice from one holding of its queue")
        .when(over.isNull(), "nothing says when its queue was taken")
        .otherwise("received again, and no change of hands explains it")
    )
    older_now = F.col("taken_ms") < F.col("first_taken_ms")
    return (
        received.withColumn("first_ms", F.lag("time_ms").over(in_order))
        .withColumn("first_client", F.lag("node").over(in_order))
        .withColumn("first_taken_ms", F.lag("taken_ms").over(in_order))
        .withColumn("times", F.when(F.col("op_id").isNotNull(), F.row_number().over(in_holding)).otherwise(1))
        .where(F.col("first_ms").isNotNull())
        .withColumn("changed_ms", F.when(older_now, F.col("first_taken_ms")).otherwise(F.col("taken_ms")))
        .withColumn("old_ms", F.when(older_now, F.col("time_ms")).otherwise(F.col("first_ms")))
        .withColumn("over_ms", _over(rules))
        .withColumns(
            {
                "what": what,
                "again": F.lit(1),
                "age_ms": F.col("changed_ms") - F.col("old_ms"),
                "client": F.col("node"),
                "at_ms": F.col("first_ms"),
                "to_ms": F.col("time_ms"),
            }
        )
    )


def _over(rules: Rules) -> Column:
    """How far the older holding's receipt (old_ms) lies outside of all that explains it and the younger one's.

    changed_ms is when the younger of the two holdings began. Null when one of them is not known.
    """
    old, changed, none = F.col("old_ms"), F.col("changed_ms"), F.lit(0.0)
    ways = [F.greatest(changed - old - rules.uncommitted_ms, old - changed - rules.owners_ms, none)]
    for start_ms, end_ms in rules.disturbed:
        until = F.lit(min(end_ms, UNLIMITED_MS))
        ways.append(F.greatest(F.lit(start_ms) - old, old - until, changed - until, none))
    least = ways[0] if len(ways) == 1 else F.least(*ways)
    return F.when(F.col("taken_ms").isNotNull() & F.col("first_taken_ms").isNotNull(), least)


def _kind(tolerance_: Tolerance) -> Column:
    over = F.col("over_ms")
    wrong = (F.col("times") > 1) | (over > tolerance_.unknown_up_to_ms)
    return F.when(wrong, "wrong").when(over.isNull() | (over > tolerance_.valid_up_to_ms), "late")


def _copies(history: DataFrame, keys: DataFrame) -> DataFrame:
    """One row per message that is stored more than once. Receipts are left out of this: a consumer that sends a
    message back stores it again itself."""
    stored = (F.col("event") == "read") | ((F.col("event") == "send") & (F.col("type") == "ok"))
    return (
        traffic(history)
        .where(stored)
        .select("msg_key", *QUEUE, "offset", F.struct(*QUEUE, "offset").alias("copy"), "time_ms")
        .join(keys, "msg_key")
        .groupBy("msg_key", "tries")
        .agg(
            F.countDistinct("copy").alias("copies"),
            F.max("copy").alias("copy"),
            F.min("time_ms").alias("at_ms"),
            F.max("time_ms").alias("to_ms"),
        )
        .where(F.col("copies") > 1)
        .select(
            "msg_key",
            "copy.*",
            "copies",
            "tries",
            (F.col("copies") - 1).alias("again"),
            F.concat(F.lit("stored "), "copies", F.lit(" times by "), "tries", F.lit(" tries")).alias("what"),
            "at_ms",
            "to_ms",
            F.lit(None).cast("double").alias("age_ms"),
        )
    )


def _counts(rows: DataFrame) -> _Found:
    kind = F.col("kind")
    counts = rows.agg(
        F.sum("again").alias("again"),
        F.count(F.when(kind == "wrong", True)).alias("wrong"),
        F.count(F.when(kind == "late", True)).alias("late"),
        F.max("age_ms").alias("oldest_ms"),
    ).collect()[0]
    examples: list[dict[str, Any]] = []
    if counts["wrong"] or counts["late"]:
        bad = rows.where(kind == ("wrong" if counts["wrong"] else "late")).orderBy("at_ms", "msg_key")
        examples = [_example(row) for row in bad.limit(EXAMPLES_MAX).collect()]
    return _Found(counts["again"] or 0, counts["wrong"], counts["late"], counts["oldest_ms"], examples)


_SHOWN = ("what", "msg_key", *QUEUE, "offset", "client", "first_client", "at_ms", "to_ms", "changed_ms", "over_ms")


def _example(row: Row) -> dict[str, Any]:
    fields = row.asDict()
    shown = {name: fields[name] for name in _SHOWN if fields.get(name) is not None}
    return {name: rounded(value) if name.endswith("_ms") else value for name, value in shown.items()}


def _verdict(
    found: Sequence[_Found], measured: Mapping[str, Any], allowed: Mapping[str, Any], tolerance_: Tolerance
) -> Verdict:
    wrong, late = sum(part.wrong for part in found), sum(part.late for part in found)
    examples = [example for part in found for example in part.examples if bool(wrong) == bool(part.wrong)]
    validity, why = Validity.VALID, ""
    if wrong:
        validity, why = Validity.INVALID, f"{wrong} duplicates that no fault, rebalance or retry explains"
    elif late:
        lateness = "nobody measured" if tolerance_.lag_ms is None else f"up to {tolerance_.lag_ms:.0f} ms"
        validity = Validity.UNKNOWN
        why = f"{late} duplicates may be the machine's lateness ({lateness}), or the taking of their queue is missing"
    return Verdict(
        name=NAME,
        verdict=validity,
        examined=measured["messages"],
        violations=wrong,
        measured=measured,
        allowed=allowed,
        examples=tuple(examples[:EXAMPLES_MAX]),
        why=why,
    )

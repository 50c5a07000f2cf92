"""What clients used, counted (uses.py): aggregating queries, their results as large as the cluster and the run.

send (ok) ─────────► by process, topic, queue and segment ──┐
send_attempt, send ► those that failed, by segments ────────┼─► one pass ─► sends in turn, failures, who read what when
pull, receive ─────► by consumer, queue and 10 s ───────────┘
send_attempt ──────► where any is a retry: beside the try before it ──► retries, and those on the same broker
send_attempt ──────► where any failed: from each queue to the next one ──► those in turn, and those out of it
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from ...oracle.time_outs import (
    ENDED_BEFORE,
    OUT_OF_TIME,
    STORED,
    STORED_BEFORE,
    TOO_MANY,
    SendRules,
    avoidance,
    send_rules,
)
from ...oracle.world import World
from ...verdict import FINDINGS_MAX
from ..record.control import Control
from ..record.turns import Routes, Step, Stepped, goes_round, judged
from ..record.uses import (
    PART_MS,
    BrokerShares,
    GivenUp,
    OddTry,
    Queue,
    Read,
    SameBroker,
    Segment,
    SlaveRead,
    edges,
    least_left_ms,
    ran_out,
    slave_addresses,
)
from .gathering import Gathering
from .operations import passed
from .shared import traffic
from .small_tables import frame

_OP = ("node", "incarnation", "op_id")


def broker_shares(gathering: Gathering, world: World) -> BrokerShares:
    """Of the run's producers and consumers."""
    history, between = traffic(gathering.history), edges(gathering.control, world)
    producers = [node.name for node in world.of_kind("producer")]
    consumers = [node.name for node in world.of_kind("consumer")]
    if not producers and not consumers:
        return BrokerShares()
    counted = _counted(history, producers, consumers, between, world)
    any_retried = any(row["kind"] == "retried" for row in counted)
    retries, same = _retries(history, producers) if any_retried else (0, ())
    rules = send_rules(world)
    failed = _failed(counted, between)
    in_turn, strays = judged(_steps(history, failed, between, goes_round(world)), Routes(gathering.control))
    return BrokerShares(
        sends=_sends(counted, between),
        failed=failed,
        retries=retries,
        same=same,
        odd=_odd(history, rules, gathering.control) if any_retried and rules else (),
        given_up=_given_up(history, rules, least_left_ms(world)) if failed and rules else (),
        in_turn=in_turn,
        strays=strays,
        reads=_reads(counted),
        at_slaves=_at_slaves(history, slave_addresses(world)),
    )


def _counted(
    history: DataFrame, producers: Sequence[str], consumers: Sequence[str], between: Sequence[float], world: World
) -> list[Row]:
    """kind, node, incarnation, topic, broker_name, queue_id, edge, until, part, count: null where it is nothing to the
    kind, which is one of `sent`, `failed`, `retried` and `read`."""
    event, type_, at_ms = F.col("event"), F.col("type"), F.col("time_ms")
    begun_ms = at_ms - F.coalesce("duration_ms", F.lit(0.0))
    is_read = (event == "receive") | ((event == "pull") & (type_ == "ok"))
    is_sent = (event == "send") & (type_ == "ok")
    failed = type_.isin("fail", "info")
    avoided = avoidance(world)
    if avoided is not None:
        failed = failed | ((event == "send_attempt") & (F.col("duration_ms") >= avoided.slow_ms))
    is_failed = event.isin("send", "send_attempt") & failed
    is_retried = (event == "send_attempt") & (type_ == "invoke") & (F.col("attempt") > 0)
    of_producer = (is_sent | is_failed | is_retried) & F.col("node").isin(*producers)
    kind = F.when(is_read, "read").when(is_sent, "sent").when(is_retried, "retried").otherwise("failed")

    def where(kinds: tuple[str, ...], value: Column, name: str) -> Column:
        return F.when(F.col("kind").isin(*kinds), value).alias(name)

    found: list[Row] = (
        history.where((is_read & F.col("node").isin(*consumers)) | of_producer)
        .withColumn("kind", kind)
        .groupBy(
            "kind",
            "node",
            *(where(("sent", "read"), F.col(name), name) for name in ("topic", "broker_name", "queue_id")),
            where(("sent",), F.col("incarnation"), "incarnation"),
            where(("sent", "failed"), passed(begun_ms, between), "edge"),
            where(("failed",), passed(at_ms, between), "until"),
            where(("read",), F.floor(at_ms / PART_MS), "part"),
        )
        .count()
        .collect()
    )
    return found


def _retries(history: DataFrame, producers: Sequence[str]) -> tuple[int, tuple[SameBroker, ...]]:
    begun = history.where(
        (F.col("event") == "send_attempt") & (F.col("type") == "invoke") & F.col("node").isin(*producers)
    ).select(*_OP, "attempt", "broker_name", "time_ms")
    again = begun.where(F.col("attempt") > 0)
    before = begun.select(*_OP, (F.col("attempt") + 1).alias("attempt"), F.col("broker_name").alias("before"))
    pairs = again.join(before, [*_OP, "attempt"])
    same = F.col("broker_name") == F.col("before")
    rows = (
        pairs.withColumn("retries", F.count("*").over(Window.partitionBy(F.lit(0))))
        .withColumn("place", F.row_number().over(Window.partitionBy(F.lit(0)).orderBy((~same).cast("int"), "time_ms")))
        .where((F.col("place") == 1) | (same & (F.col("place") <= FINDINGS_MAX)))
        .select(*_OP, "attempt", "broker_name", "time_ms", same.alias("same"), "retries")
        .orderBy("time_ms")
        .collect()
    )
    found = tuple(
        SameBroker(node, incarnation, op_id, attempt, broker_name, time_ms)
        for node, incarnation, op_id, attempt, broker_name, time_ms, is_same, _ in rows
        if is_same
    )
    return (rows[0]["retries"] if rows else 0), found


def _steps(
    history: DataFrame, failed: Mapping[tuple[str, float], int], between: Sequence[float], producers: Sequence[str]
) -> dict[Step, Stepped]:
    """Those of these producers, between edges where something failed."""
    failing = [(node, between.index(at_ms) + 1) for (node, at_ms), times in failed.items() if times]
    failing = [(node, edge) for node, edge in failing if node in producers]
    if not failing:
        return {}
    of_them = history.where(F.col("event").isin("send", "send_attempt") & F.col("node").isin(*{n for n, _ in failing}))
    begun_ms = F.col("time_ms") - F.coalesce("duration_ms", F.lit(0.0))
    there = of_them.withColumn("edge", passed(begun_ms, between)).join(
        frame(history, failing, "node string, edge int"), ["node", "edge"]
    )
    sends = (
        there.where(F.col("event") == "send")
        .groupBy(*_OP)
        .agg(F.max("topic").alias("topic"), F.max((F.col("type") == "ok").cast("int")).alias("is_stored"))
    )
    segment = Window.partitionBy("node", "incarnation", "topic", "edge")
    tries = (
        there.where((F.col("event") == "send_attempt") & (F.col("type") == "invoke"))
        .select(*_OP, "edge", "attempt", "broker_name", "queue_id", "time_ms", "seq")
        .withColumn("first", F.min("attempt").over(Window.partitionBy(*_OP, "edge")))
        .join(sends.select(*_OP, "topic"), [*_OP])
    )
    of = F.struct("op_id", "broker_name", "queue_id", "first")
    pairs = (
        tries.withColumn("before", F.lag(of).over(segment.orderBy("time_ms", "seq")))
        .where((F.col("first") == 0) & (F.col("before.first") == 0))
        .withColumn("again", F.col("before.op_id") == F.col("op_id"))
    )
    former = sends.select("node", "incarnation", F.col("op_id").alias("former"), "is_stored")
    counted = (
        pairs.withColumn("former", F.col("before.op_id"))
        .join(former, ["node", "incarnation", "former"], "left")
        .where(F.col("again") | (F.col("is_stored") == 1))
        .groupBy(
            *("node", "incarnation", "topic", "edge", "broker_name", "queue_id", "again"),
            F.col("before.broker_name").alias("from_broker"),
            F.col("before.queue_id").alias("from_queue"),
        )
        .agg(F.count("*").alias("times"), F.min("time_ms").alias("first_ms"))
        .collect()
    )
    found = {}
    for row in counted:
        was, now = (row["from_broker"], row["from_queue"]), (row["broker_name"], row["queue_id"])
        place = row["node"], row["incarnation"], row["topic"], between[row["edge"] - 1]
        found[Step(*place, was, now, row["again"])] = Stepped(row["times"], row["first_ms"])
    return found


def _of_rule(rules: Mapping[str, SendRules], says: Callable[[SendRules], Column]) -> Column:
    """What each producer's own rules say."""
    by_rule: dict[SendRules, list[str]] = defaultdict(list)
    for node, rule in rules.items():
        by_rule[rule].append(node)
    found = F.lit(None)
    for rule, nodes in by_rule.items():
        found = F.when(F.col("node").isin(*nodes), says(rule)).otherwise(found)
    return found


def _ends(rule: SendRules, code: str) -> Column:
    """As `SendRules.ends`, of a code that is none of STORED's."""
    return F.col(code).isNotNull() & ~F.col(code).isin(*rule.again)


def _odd(history: DataFrame, rules: Mapping[str, SendRules], control: Control) -> tuple[OddTry, ...]:
    tries = history.where((F.col("event") == "send_attempt") & F.col("node").isin(*rules))
    again = tries.where((F.col("type") == "invoke") & (F.col("attempt") > 0))
    before = tries.where(F.col("type") != "invoke").select(
        *_OP, (F.col("attempt") + 1).alias("attempt"), F.col("type").alias("how"), F.col("code").alias("said")
    )
    rows = [(node, life, op_id, attempt + 1, True) for node, life, op_id, attempt in ran_out(control, rules)]
    over = frame(history, rows, "node string, incarnation int, op_id string, attempt int, over boolean")

    def kind(rule: SendRules) -> Column:
        stored = F.coalesce(F.col("said").isin(*STORED), F.lit(False))
        is_stored = (F.col("how") == "ok") | (F.lit(not rule.stored_again) & stored)
        return (
            F.when(is_stored, STORED_BEFORE)
            .when(~stored & _ends(rule, "said"), ENDED_BEFORE)
            .when(F.coalesce("over", F.lit(False)), OUT_OF_TIME)
            .when(F.col("attempt") >= rule.tries, TOO_MANY)
        )

    found = (
        again.select(*_OP, "attempt", "broker_name", "time_ms")
        .join(before, [*_OP, "attempt"])
        .join(over, [*_OP, "attempt"], "left")
        .withColumn("kind", _of_rule(rules, kind))
        .where(F.col("kind").isNotNull())
        .select(*_OP, "attempt", "broker_name", "time_ms", "kind")
        .orderBy("time_ms")
        .limit(FINDINGS_MAX)
        .collect()
    )
    return tuple(OddTry(*row) for row in found)


def _given_up(history: DataFrame, rules: Mapping[str, SendRules], least_ms: float) -> tuple[GivenUp, ...]:
    began_ms = F.col("time_ms") - F.coalesce("duration_ms", F.lit(0.0))
    lost = history.where(
        (F.col("event") == "send") & F.col("type").isin("fail", "info") & F.col("node").isin(*rules)
    ).select(*_OP, began_ms.alias("began_ms"))
    ended = history.where((F.col("event") == "send_attempt") & (F.col("type") != "invoke") & F.col("node").isin(*rules))
    last = F.max(F.struct("attempt", "type", "code", "time_ms", "broker_name")).alias("last")
    left_ms = _of_rule(rules, lambda rule: F.lit(rule.time_ms)) - (F.col("time_ms") - F.col("began_ms"))

    def goes_on(rule: SendRules) -> Column:
        over = (F.col("type") == "ok") | F.coalesce(F.col("code").isin(*STORED), F.lit(False)) | _ends(rule, "code")
        return ~over & (F.col("attempt") + 1 < rule.tries)

    found = (
        lost.join(ended.groupBy(*_OP).agg(last), [*_OP])
        .select(*_OP, "began_ms", "last.*")
        .withColumn("left_ms", left_ms)
        .where(_of_rule(rules, goes_on) & (F.col("left_ms") > least_ms))
        .select(*_OP, "attempt", "broker_name", "time_ms", "left_ms")
        .orderBy("time_ms")
        .limit(FINDINGS_MAX)
        .collect()
    )
    return tuple(GivenUp(*row) for row in found)


def _sends(counted: Sequence[Row], between: Sequence[float]) -> dict[Segment, dict[Queue, int]]:
    found: dict[Segment, dict[Queue, int]] = defaultdict(dict)
    for row in counted:
        if row["kind"] == "sent":
            segment = Segment(row["node"], row["incarnation"], row["topic"], between[row["edge"] - 1])
            found[segment][row["broker_name"], row["queue_id"]] = row["count"]
    return dict(found)


def _failed(counted: Sequence[Row], between: Sequence[float]) -> dict[tuple[str, float], int]:
    """Where they began, and where they ended."""
    found: dict[tuple[str, float], int] = defaultdict(int)
    for row in counted:
        if row["kind"] == "failed":
            for edge in {row["edge"], row["until"]}:
                found[row["node"], between[edge - 1]] += row["count"]
    return dict(found)


def _at_slaves(history: DataFrame, slaves: Sequence[str]) -> dict[SlaveRead, dict[int, int]]:
    found: dict[SlaveRead, dict[int, int]] = defaultdict(dict)
    if slaves:
        began = (F.col("event") == "pull") & (F.col("type") == "invoke") & F.col("address").isin(*slaves)
        part = F.floor(F.col("time_ms") / PART_MS).cast("int").alias("part")
        for row in history.where(began).groupBy("node", "broker_name", "address", part).count().collect():
            found[SlaveRead(row["node"], row["broker_name"], row["address"])][row["part"]] = row["count"]
    return dict(found)


def _reads(counted: Sequence[Row]) -> dict[Read, dict[int, int]]:
    found: dict[Read, dict[int, int]] = defaultdict(dict)
    for row in counted:
        if row["kind"] == "read":
            found[Read(row["node"], row["topic"], row["broker_name"], row["queue_id"])][row["part"]] = row["count"]
    return dict(found)

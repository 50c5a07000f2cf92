"""How long brokers took in quiet times, counted by broker, quiet stretch and level (prompt_answers.py).

send_attempt ok ──────────────────────────────► its duration ─────────────────────────────┐
send ok ─┐                                                                                ├─► group by ─► Timed
receive ─┴─ of a key ─► from the send's end until the first receipt (0 where that is first) ─┘
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...oracle.intervals import Stretch
from ...oracle.world import World
from ..record.timed import LEVELS, STEPS, Timed, Who
from .shared import traffic

_SENDS_PER_S = 500
"""Of more messages a second only so many are looked at, chosen by their keys."""


def latencies(
    history: DataFrame,
    world: World,
    sends: Mapping[tuple[str, str], Sequence[Stretch]],
    delivery: Sequence[Stretch],
    least_ms: float,
) -> dict[Who, Timed]:
    """What brokers' answers to sends, and the delivery of their messages, took in these stretches of each: of sends by
    producer and broker name."""
    rows, one_in = traffic(history), max(1, int(_sends_per_s(world) / _SENDS_PER_S))
    found: dict[Who, Timed] = {}
    if any(sends.values()):
        found |= _counted("send", _sends(rows, one_in, sends), least_ms)
    if delivery:
        found |= _counted("delivery", _deliveries(rows, one_in, delivery), least_ms)
    return found


def _sends_per_s(world: World) -> float:
    workload = world.workload
    return float(workload.get("sends_per_s") or 0.0) * float(workload.get("producers") or 1)


def _chosen(column: str, one_in: int) -> Column:
    return F.lit(True) if one_in == 1 else (F.pmod(F.xxhash64(column), F.lit(one_in)) == 0)


def _stretch(began_ms: Column, ended_ms: Column, stretches: Sequence[Stretch]) -> Column:
    """The beginning of the stretch that both lie in; null where there is none."""
    found = F.lit(None).cast("double")
    for stretch in stretches:
        inside = (began_ms >= stretch.start_ms) & (ended_ms <= stretch.end_ms)
        found = F.when(inside, F.lit(float(stretch.start_ms))).otherwise(found)
    return found


def _sends(rows: DataFrame, one_in: int, stretches: Mapping[tuple[str, str], Sequence[Stretch]]) -> DataFrame:
    ended_ms, took_ms = F.col("time_ms"), F.col("duration_ms")
    is_sent = (F.col("event") == "send_attempt") & (F.col("type") == "ok") & took_ms.isNotNull()
    return rows.where(is_sent & _chosen("op_id", one_in)).select(
        "broker_name",
        ended_ms.alias("at_ms"),
        took_ms.alias("took_ms"),
        _of_link(ended_ms - took_ms, ended_ms, stretches).alias("since_ms"),
    )


def _of_link(began_ms: Column, ended_ms: Column, stretches: Mapping[tuple[str, str], Sequence[Stretch]]) -> Column:
    """The same by producer and broker name; those that have the same stretches are asked for at once."""
    alike: dict[tuple[Stretch, ...], list[str]] = defaultdict(list)
    for (producer, broker), of in stretches.items():
        alike[tuple(of)].append(f"{producer} {broker}")
    found, link = F.lit(None).cast("double"), F.concat_ws(" ", "node", "broker_name")
    for these, links in alike.items():
        found = F.when(link.isin(links), _stretch(began_ms, ended_ms, these)).otherwise(found)
    return found


def _deliveries(rows: DataFrame, one_in: int, stretches: Sequence[Stretch]) -> DataFrame:
    is_sent = (F.col("event") == "send") & (F.col("type") == "ok")
    is_received = F.col("event") == "receive"
    begins, ends = min(s.start_ms for s in stretches), max(s.end_ms for s in stretches)
    in_time = F.col("time_ms").between(begins, ends)
    of_key = (
        rows.where((is_sent | is_received) & in_time & _chosen("msg_key", one_in))
        .groupBy("msg_key")
        .agg(
            F.min(F.when(is_sent, F.col("time_ms"))).alias("sent_ms"),
            F.min(F.when(is_received, F.struct("time_ms", "broker_name"))).alias("first"),
        )
        .where(F.col("sent_ms").isNotNull() & F.col("first").isNotNull())
        .select("sent_ms", F.col("first.time_ms").alias("at_ms"), "first.broker_name")
    )
    took_ms = F.greatest(F.col("at_ms") - F.col("sent_ms"), F.lit(0.0))
    since_ms = _stretch(F.col("sent_ms"), F.greatest("sent_ms", "at_ms"), stretches)
    return of_key.select("broker_name", "at_ms", took_ms.alias("took_ms"), since_ms.alias("since_ms"))


def _counted(operation: str, timed: DataFrame, least_ms: float) -> dict[Who, Timed]:
    over = F.col("took_ms") > least_ms
    level = F.least(F.floor(STEPS * F.log2(F.col("took_ms") / least_ms)), F.lit(LEVELS)).cast("int")
    rows = (
        timed.where(F.col("since_ms").isNotNull())
        .withColumn("level", F.when(over, level).otherwise(-1))
        .groupBy("broker_name", "since_ms", "level")
        .agg(F.count(F.lit(1)).alias("count"), F.max("took_ms").alias("slowest"), F.min("at_ms").alias("first"))
        .collect()
    )
    of_who: dict[Who, list[tuple[int, int, float, float]]] = defaultdict(list)
    for row in rows:
        who = Who(operation, row["broker_name"], row["since_ms"])
        of_who[who].append((row["level"], row["count"], row["slowest"], row["first"]))
    return {
        who: Timed(
            count=sum(count for _, count, _, _ in of),
            over={level: count for level, count, _, _ in of if level >= 0},
            slowest_ms=max(slowest for _, _, slowest, _ in of),
            first_slow_ms=min((first for level, _, _, first in of if level >= 0), default=None),
        )
        for who, of in of_who.items()
    }

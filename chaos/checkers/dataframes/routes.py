"""What each NameServer's table held, and when: the `route` rows as stretches of time."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ...oracle.world import World
from .small_tables import frame, looked_up, memoized_table

_BEFORE_ALL_MS = -1.0
"""A process's table is empty before its first row, whenever that is."""

_PROCESS = ("name_server", "incarnation")
_LIFE = "concat(node, '/', incarnation)"
_EXISTS = "value IS NOT NULL AND value != 'null'"


def topics(history: DataFrame, world: World) -> DataFrame:
    """topic: every topic that any NameServer held at any time."""
    held = f"event = 'route' AND {_EXISTS}"
    return memoized_table(history, world, "topics", lambda: history.where(held).select("topic").distinct())


def topic_changes(history: DataFrame, world: World) -> DataFrame:
    """broker, incarnation, topic, time_ms, started, is_there: each time that a broker's process made, changed or lost a
    topic, beside when that process was started."""
    lives = {f"{life.node}/{life.incarnation}": life.start_ms for life in reversed(world.lives)}
    columns = ("node AS broker", "incarnation", "topic", "time_ms", f"({_EXISTS}) AS is_there")
    started = looked_up(_LIFE, lives)

    def make() -> DataFrame:
        made = history.where("event = 'topic'").selectExpr(*columns, f"{started} AS started")
        return made.where("started IS NOT NULL")

    return memoized_table(history, world, "topic_changes", make)


def route_stretches(history: DataFrame, world: World) -> DataFrame:
    """name_server, incarnation, topic, s, e, value: the route held in [s, e), for every topic of the run.

    value is the route's JSON text with sorted keys, null when the topic is not there. A process that ended holds
    nothing and has no stretches.
    """
    name_servers = {node.name for node in world.of_kind("name_server")}
    lives = [
        (life.node, life.incarnation, min(life.end_ms, world.end_ms))
        for life in world.lives
        if life.node in name_servers
    ]
    ends = {f"{node}/{incarnation}": end_ms for node, incarnation, end_ms in lives}
    rows = history.where("event = 'route'").selectExpr(
        *("node AS name_server", "incarnation", "topic", "time_ms", "seq"),
        "if(value != 'null', value, NULL) AS value",
        f"{looked_up(_LIFE, ends)} AS life_end",
    )
    living = frame(history, lives, "name_server string, incarnation int, life_end double")
    empty = (
        topics(history, world)
        .crossJoin(living)
        .selectExpr(
            *(*_PROCESS, "topic", f"{_BEFORE_ALL_MS}D AS time_ms", "-1L AS seq"),
            *("CAST(NULL AS string) AS value", "life_end"),
        )
    )
    by_topic = Window.partitionBy(*_PROCESS, "topic").orderBy("time_ms", "seq")
    return (
        rows.union(empty)
        .coalesce(1)  # route changes, not traffic: few enough for one partition, and then nothing is shuffled
        .where("life_end IS NOT NULL")
        .select(
            *(*_PROCESS, "topic", F.col("time_ms").alias("s")),
            F.least(F.coalesce(F.lead("time_ms").over(by_topic), "life_end"), "life_end").alias("e"),
            "value",
        )
        .where("s < e")
    )


def presence(history: DataFrame, world: World) -> DataFrame:
    """name_server, incarnation, topic, broker, present, s, e: whether the topic's route had the broker in [s, e).

    That is under its name, as a master, with the address that it really has. Neighbouring stretches differ in
    `present`.
    """
    return memoized_table(history, world, "presence", lambda: _presence(history, world))


def _presence(history: DataFrame, world: World) -> DataFrame:
    known = [(node.name, node.address) for node in world.of_kind("broker")]
    brokers = frame(history, known, "broker string, broker_address string")
    keys = (*_PROCESS, "topic", "broker")
    by_pair = Window.partitionBy(*keys).orderBy("s")
    whole = by_pair.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    is_right = "held[broker]['0'] IS NOT NULL AND (broker_address IS NULL OR held[broker]['0'] = broker_address)"
    return (
        route_stretches(history, world)
        .selectExpr(
            *(*_PROCESS, "topic", "s", "e"),
            "from_json(value, 'brokers map<string,map<string,string>>').brokers AS held",
        )
        .crossJoin(brokers)
        .selectExpr(*keys, "s", "e", f"coalesce({is_right}, false) AS present")
        .select(
            *(*keys, "present", "s"),
            F.lag("present").over(by_pair).alias("before"),
            F.max("e").over(whole).alias("last_e"),
        )
        .where("before IS NULL OR before != present")
        .select(*keys, "present", "s", F.coalesce(F.lead("s").over(by_pair), "last_e").alias("e"))
    )

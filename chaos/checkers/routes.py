"""What each NameServer's table held, and when: the `route` rows as stretches of time."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from .lag import frame
from .world import World

_BEFORE_ALL_MS = -1.0
"""A process's table is empty before its first row, whenever that is."""


def topics(history: DataFrame) -> DataFrame:
    """topic: every topic that any NameServer held at any time."""
    held = (F.col("event") == "route") & F.col("value").isNotNull() & (F.col("value") != "null")
    return history.where(held).select("topic").distinct()


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
    living = frame(history, lives, "name_server string, incarnation int, life_end double")
    value = F.when(F.col("value") != "null", F.col("value"))
    rows = history.where(F.col("event") == "route").select(
        F.col("node").alias("name_server"), "incarnation", "topic", "time_ms", "seq", value.alias("value")
    )
    empty = (
        topics(history)
        .crossJoin(living.select("name_server", "incarnation"))
        .select(
            *("name_server", "incarnation", "topic"),
            F.lit(_BEFORE_ALL_MS).alias("time_ms"),
            F.lit(-1).cast("long").alias("seq"),
            F.lit(None).cast("string").alias("value"),
        )
    )
    by_topic = Window.partitionBy("name_server", "incarnation", "topic").orderBy("time_ms", "seq")
    return (
        rows.unionByName(empty)
        .coalesce(1)  # route changes, not traffic: few enough for one partition, and then nothing is shuffled
        .join(living, ["name_server", "incarnation"])
        .withColumn("e", F.least(F.coalesce(F.lead("time_ms").over(by_topic), F.col("life_end")), F.col("life_end")))
        .withColumnRenamed("time_ms", "s")
        .where(F.col("s") < F.col("e"))
        .select("name_server", "incarnation", "topic", "s", "e", "value")
    )


def presence(history: DataFrame, world: World) -> DataFrame:
    """name_server, incarnation, topic, broker, present, s, e: whether the topic's route had the broker in [s, e).

    That is under its name, as a master, with the address that it really has. Neighbouring stretches differ in
    `present`.
    """
    known = [(node.name, node.address) for node in world.of_kind("broker")]
    brokers = frame(history, known, "broker string, broker_address string")
    held = F.from_json("value", "brokers map<string,map<string,string>>").getField("brokers")
    master = F.col("held")[F.col("broker")]["0"]
    is_right = F.col("broker_address").isNull() | (master == F.col("broker_address"))
    by_pair = Window.partitionBy("name_server", "incarnation", "topic", "broker").orderBy("s")
    changed = F.lag("present").over(by_pair)
    return (
        route_stretches(history, world)
        .withColumn("held", held)
        .crossJoin(brokers)
        .withColumn("present", F.coalesce(master.isNotNull() & is_right, F.lit(False)))
        .withColumn("before", changed)
        .withColumn(
            "last_e", F.max("e").over(by_pair.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing))
        )
        .where(F.col("before").isNull() | (F.col("before") != F.col("present")))
        .withColumn("e", F.coalesce(F.lead("s").over(by_pair), F.col("last_e")))
        .select("name_server", "incarnation", "topic", "broker", "present", "s", "e")
    )

"""How clients keep, leave and ask NameServers: the rules of `name_server_selection` that are about calls.

Each function gives the rows that break its rule: rule, time_ms, node, start, name_server, was.
"""

from __future__ import annotations

import math

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ..client_profiles import Advance, ClientProfile, Outcome
from .lag import frame
from .world import World

PROBER = "prober"
WHO = ("node", "incarnation", "start")
TRIED = "tried"
TRIES_RULES = ("answers are final", "attempts", "in time", TRIED)
"""What `judged_tries` says of a call; all of them together are the calls that said their tries."""
ROUNDING_MS = 0.5
"""A call's beginning is its end less its duration; a choice made at once may seem to be before it."""
CHAINED_TIMERS = 4
"""The timers that may each be late within one call: the wait for a choice, a connect, a time-out, a callback."""


def rows_of(history: DataFrame, *events: str) -> DataFrame:
    """The rows of clients' selections; `start` tells the prober's starts apart and is empty for everyone else."""
    is_prober = F.col("role") == PROBER
    return history.where(F.col("event").isin(*events)).withColumn(
        "start", F.when(is_prober, F.coalesce("op_id", F.lit(""))).otherwise(F.lit(""))
    )


def shown(rows: DataFrame, rule: str | Column, was: Column) -> DataFrame:
    """The rows as rows that break `rule`."""
    rule = F.lit(rule) if isinstance(rule, str) else rule
    return rows.select(rule.alias("rule"), "time_ms", "node", "start", "name_server", was.cast("string").alias("was"))


def _failures(history: DataFrame) -> DataFrame:
    """who, failed, f_ms: when a NameServer failed this client for certain."""
    event = F.col("event")
    unanswered = (event == "name_server_call") & F.col("type").isin("fail", "info") & F.col("code").isNull()
    unreachable = (event == "channel") & (F.col("f") == "connect_failed")
    return (
        rows_of(history, "name_server_call", "channel")
        .where(unanswered | unreachable)
        .select(
            *[F.col(column).alias(f"f_{column}") for column in WHO],
            F.when(event == "channel", F.col("address")).otherwise(F.col("name_server")).alias("failed"),
            F.col("time_ms").alias("f_ms"),
            (F.col("time_ms") - F.coalesce("duration_ms", F.lit(0.0))).alias("f_began_ms"),
        )
    )


def left_without_reason(choices: DataFrame, history: DataFrame, world: World, n: int) -> DataFrame:
    """Choices of another NameServer although nothing says that the current one failed."""
    later = choices.where((F.col("rank") > 1) & (F.col("role") != PROBER) & F.lit(n > 1))
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
    return shown(unexplained.join(innocent, closed_before, "left_anti"), "sticky", F.col("old"))


def _closes(history: DataFrame) -> DataFrame:
    """who, closed, c_ms, used_ms: each close of a channel, and when it was last opened or answered a call."""
    is_channel = F.col("event") == "channel"
    peer = F.when(is_channel, F.col("address")).otherwise(F.col("name_server"))
    of_one = Window.partitionBy(*WHO, "peer").orderBy("time_ms", "seq")
    return (
        rows_of(history, "channel", "name_server_call")
        .withColumn("peer", peer)
        .withColumn("used_ms", F.coalesce(F.lag("time_ms").over(of_one), "time_ms"))
        .where(is_channel & (F.col("f") == "close"))
        .select(
            *[F.col(column).alias(f"c_{column}") for column in WHO],
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


def repeated_calls(history: DataFrame, n: int) -> DataFrame:
    """First calls begun after a call without an answer, made to the same NameServer with no choice in between."""
    event = F.col("event")
    began = F.when(event == "name_server_call", F.col("time_ms") - F.coalesce("duration_ms", F.lit(0.0)))
    rows = (
        rows_of(history, "name_server_call", "name_server_chosen", "channel")
        .where((event != "channel") | (F.col("f") == "open"))
        .withColumn("at_ms", F.coalesce(began, "time_ms"))
    )
    # Ordered by when calls began: `failed_until` is the latest end so far of an unanswered call, per NameServer asked.
    of_one = Window.partitionBy(*WHO).orderBy("at_ms", "seq")
    before = of_one.rowsBetween(Window.unboundedPreceding, -1)
    after = of_one.rowsBetween(1, Window.unboundedFollowing)
    lost = (event == "name_server_call") & (F.col("type") == "info") & F.col("code").isNull()
    moved_at = F.when(event != "name_server_call", F.col("time_ms"))
    return shown(
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
            & (F.col("role") != PROBER)
            & (F.col("at_ms") >= F.col("lost_ms"))
            & (F.col("name_server") == F.col("lost_at"))
            & (F.coalesce("moved_ms", F.lit(-1.0)) < F.col("lost_ms"))
            & ~F.coalesce(F.col("moves_ms") <= F.col("time_ms"), F.lit(False))
        ),
        "moves on",
        F.lit("called again after a call without an answer"),
    )


def silent_reconnects(history: DataFrame, configured: list[str]) -> DataFrame:
    """Channels to a NameServer opened again after a close, although it was not chosen again."""
    event = F.col("event")
    address = F.when(event == "channel", F.col("address")).otherwise(F.col("name_server"))
    of_one = Window.partitionBy(*WHO, "peer").orderBy("time_ms", "seq")
    rows = (
        rows_of(history, "name_server_chosen", "channel")
        .withColumn("peer", address)
        .where(F.col("peer").isin(configured) & (F.col("role") != PROBER))
        .withColumn("what", F.when(event == "channel", F.col("f")).otherwise(F.lit("chosen")))
        .withColumn("what_before", F.lag("what").over(of_one))
        .where((F.col("what") == "open") & F.col("what_before").isin("close", "connect_failed"))
        .withColumn("name_server", F.col("peer"))
    )
    return shown(rows, "moves on", F.lit("connected again without being chosen"))


def tries_of(history: DataFrame, profile: ClientProfile, n: int, world: World) -> DataFrame:
    """Calls that say what each of their tries came to, with `rule`: what is wrong with them, null when nothing is."""
    tried, number = F.col("tried"), F.size("tried")
    earlier = F.slice("tried", F.lit(1), F.greatest(number - 1, F.lit(0)))
    last = F.element_at("tried", -1)["outcome"]
    most, retried = profile.attempts_max(n), [str(outcome) for outcome in sorted(profile.retries)]
    may_go_on = last.isin(*retried) if retried else F.lit(False)
    # Nobody measured the lateness of a client that is not ours: then the most that any verdict forgives.
    lag_ms = F.coalesce(F.max("lag_ms").over(Window.partitionBy("node")), F.lit(world.timers.lateness_cap_ms))
    allowed_ms = number * profile.try_timeout_ms + profile.wait_ms + lag_ms * CHAINED_TIMERS + world.timers.delivery_ms
    answered_before = F.exists(earlier, lambda one: one["outcome"] == str(Outcome.ANSWERED))
    wrongly_again = F.exists(earlier, lambda one: ~one["outcome"].isin(*retried) if retried else F.lit(True))
    rule = (
        F.when(answered_before, "answers are final")
        .when((number > most) | wrongly_again | ((number < most) & may_go_on), "attempts")
        .when(F.col("duration_ms") > allowed_ms, "in time")
    )
    kind = "tried array<struct<name_server: string, outcome: string>>"
    return (
        rows_of(history, "name_server_call", "timer_lag")
        .withColumns({"tried": F.from_json("value", kind)["tried"], "lag_ms": lag_ms})
        .where((F.col("event") == "name_server_call") & (F.size(F.coalesce(tried, F.array())) > 0))
        .withColumn("rule", rule)
        .select(*WHO, "time_ms", "name_server", "duration_ms", "tried", "rule")
    )


def judged_tries(tries: DataFrame) -> DataFrame:
    """The calls that made too many tries, gave up early, went on after an answer, or took too long; and the others,
    as rows of the rule TRIED."""
    outcomes = F.array_join(F.transform("tried", lambda one: one["outcome"]), ", ")
    took = F.concat(outcomes, F.lit(" in "), F.round(F.col("duration_ms")).cast("long"), F.lit(" ms"))
    return shown(tries, F.coalesce("rule", F.lit(TRIED)), took)


def kept_between_requests(choices: DataFrame, history: DataFrame) -> DataFrame:
    """Calls without a choice of their own, of clients that take the next NameServer at every request."""
    made = choices.select(
        *[F.col(column).alias(f"m_{column}") for column in WHO],
        F.col("name_server").alias("m_name_server"),
        F.col("time_ms").alias("m_ms"),
    )
    of_the_call = (
        (F.col("node") == F.col("m_node"))
        & (F.col("incarnation") == F.col("m_incarnation"))
        & (F.col("start") == F.col("m_start"))
        & (F.col("name_server") == F.col("m_name_server"))
        & (F.col("m_ms") >= F.col("time_ms") - F.coalesce("duration_ms", F.lit(0.0)) - ROUNDING_MS)
        & (F.col("m_ms") <= F.col("time_ms"))
    )
    calls = rows_of(history, "name_server_call").where(F.col("name_server").isNotNull())
    return shown(calls.join(made, of_the_call, "left_anti"), "every request", F.lit("asked without being chosen"))


def broken_calls(
    choices: DataFrame, history: DataFrame, profile: ClientProfile, configured: list[str], world: World
) -> list[DataFrame]:
    """What breaks the profile's rule about when another NameServer is chosen."""
    n = len(configured)
    if profile.advance is Advance.EVERY_REQUEST:
        return [kept_between_requests(choices, history)]
    return [
        left_without_reason(choices, history, world, n),
        repeated_calls(history, n),
        silent_reconnects(history, configured),
    ]

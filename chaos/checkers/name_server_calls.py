"""How clients keep, leave and ask NameServers: the rules of `name_server_selection` that are about calls.

Each function gives the rows that break its rule: rule, time_ms, node, start, name_server, was.
"""

from __future__ import annotations

import math

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ..oracle.client_profiles import Advance, ClientProfile, Outcome
from ..oracle.world import World
from .dataframes.small_tables import frame

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
    start = f"if(role = '{PROBER}', coalesce(op_id, ''), '') AS start"
    return history.where(F.col("event").isin(*events)).selectExpr("*", start)


def shown(rows: DataFrame, rule: str | Column, was: Column) -> DataFrame:
    """The rows as rows that break `rule`."""
    rule = F.lit(rule) if isinstance(rule, str) else rule
    return rows.select(rule.alias("rule"), "time_ms", "node", "start", "name_server", was.cast("string").alias("was"))


def _failures(history: DataFrame) -> DataFrame:
    """who, failed, f_ms: when a NameServer failed this client for certain."""
    unanswered = "event = 'name_server_call' AND type IN ('fail', 'info') AND code IS NULL"
    unreachable = "event = 'channel' AND f = 'connect_failed'"
    return (
        rows_of(history, "name_server_call", "channel")
        .where(f"({unanswered}) OR ({unreachable})")
        .selectExpr(
            *(f"{column} AS f_{column}" for column in WHO),
            "if(event = 'channel', address, name_server) AS failed",
            "time_ms AS f_ms",
        )
    )


def left_without_reason(choices: DataFrame, history: DataFrame, world: World, n: int) -> DataFrame:
    """Choices of another NameServer although nothing says that the current one failed."""
    later = choices.where(f"rank > 1 AND role != '{PROBER}' AND {n} > 1")
    of_the_old = "node = {0}_node AND incarnation = {0}_incarnation AND start = {0}_start"
    of_the_old += " AND old = {1} AND {0}_ms >= old_ms AND {0}_ms <= time_ms"
    unexplained = later.join(_failures(history), F.expr(of_the_old.format("f", "failed")), "left_anti")
    explained = frame(history, _explaining(world), "x_node string, x_address string, x_from double, x_to double")
    # The close itself must fall into the fault; the choice may follow as late as the next call. A channel that was
    # used for nothing for I is closed by either side, and that is nobody's fault.
    closes = _closes(history)
    during = "(x_node = c_node OR x_node = '*') AND (x_address = closed OR x_address = '*')"
    during += " AND c_ms >= x_from AND c_ms <= x_to"
    idle = f"c_ms - used_ms >= {0.95 * world.timers.I_ms!r}D"
    of_a_fault = closes.where(f"NOT {idle}").join(explained, F.expr(during), "left_semi")
    innocent = closes.where(idle).union(of_a_fault).coalesce(1)
    unfounded = unexplained.join(innocent, F.expr(of_the_old.format("c", "closed")), "left_anti")
    return shown(unfounded, "sticky", F.col("old"))


def _closes(history: DataFrame) -> DataFrame:
    """who, closed, c_ms, used_ms: each close of a channel, and when it was last opened or answered a call."""
    of_one = Window.partitionBy(*WHO, "peer").orderBy("time_ms", "seq")
    return (
        rows_of(history, "channel", "name_server_call")
        .selectExpr(*WHO, "time_ms", "seq", "event", "f", "if(event = 'channel', address, name_server) AS peer")
        .withColumn("before_ms", F.lag("time_ms").over(of_one))
        .where("event = 'channel' AND f = 'close'")
        .selectExpr(
            *(f"{column} AS c_{column}" for column in WHO),
            "peer AS closed",
            "time_ms AS c_ms",
            "coalesce(before_ms, time_ms) AS used_ms",
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
    rows = (
        rows_of(history, "name_server_call", "name_server_chosen", "channel")
        .where(f"{n} > 1 AND (event != 'channel' OR f = 'open')")
        .selectExpr(
            *(*WHO, "role", "time_ms", "seq", "name_server", "event = 'name_server_call' AS is_call"),
            # Ordered by when calls began.
            "if(event = 'name_server_call', time_ms - coalesce(duration_ms, 0D), time_ms) AS at_ms",
            "if(event = 'name_server_call' AND type = 'info' AND code IS NULL, time_ms, NULL) AS lost",
            "if(event = 'name_server_call', NULL, time_ms) AS moved",
        )
    )
    of_one = Window.partitionBy(*WHO).orderBy("at_ms", "seq")
    before = of_one.rowsBetween(Window.unboundedPreceding, -1)
    after = of_one.rowsBetween(1, Window.unboundedFollowing)
    return shown(
        rows.select(
            *("time_ms", "node", "start", "name_server", "role", "is_call", "at_ms"),
            # The latest end so far of an unanswered call, and the NameServer that was asked.
            F.max("lost").over(before).alias("lost_ms"),
            F.max_by("name_server", "lost").over(before).alias("lost_at"),
            F.max("moved").over(before).alias("moved_ms"),
            # A call that chooses records its choice while it runs, that is after it began.
            F.min("moved").over(after).alias("moves_ms"),
        ).where(
            f"is_call AND role != '{PROBER}' AND at_ms >= lost_ms AND name_server = lost_at"
            " AND coalesce(moved_ms, -1D) < lost_ms AND NOT coalesce(moves_ms <= time_ms, false)"
        ),
        "moves on",
        F.lit("called again after a call without an answer"),
    )


def silent_reconnects(history: DataFrame, configured: list[str]) -> DataFrame:
    """Channels to a NameServer opened again after a close, although it was not chosen again."""
    of_one = Window.partitionBy(*WHO, "name_server").orderBy("time_ms", "seq")
    rows = (
        rows_of(history, "name_server_chosen", "channel")
        .selectExpr(
            *(*WHO, "role", "time_ms", "seq", "if(event = 'channel', address, name_server) AS name_server"),
            "if(event = 'channel', f, 'chosen') AS what",
        )
        .where(F.col("name_server").isin(configured) & (F.col("role") != PROBER))
        .withColumn("what_before", F.lag("what").over(of_one))
        .where("what = 'open' AND what_before IN ('close', 'connect_failed')")
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

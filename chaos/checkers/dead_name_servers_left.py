"""Each client leaves a NameServer that died, hung or became unreachable, and asks it nothing more while it is lost.

    on it   ── lost ────── P (+ k·P) + A ──┬── another one chosen ──────────────── back
    chosen meanwhile ───── P (+ k·P) + A ──┘

    left        every visit (from one choice of it to the next choice of another) ends within the client's window,
                counted from the loss, or from the choice when that came later: round robin leads past the dead, too
    once        within a visit nothing is asked after a call went without an answer
    in time     a call without an answer is given up after A, and what connecting to each of the list may take
    not behind  no call is made to it while another one is chosen

A client that had chosen another one before the loss has nothing to leave, but it must not ask the lost one all the
same. Which windows hold for which client version stands in name_server_windows.py; name_server_selection asks for the
order of choices, this check for the time they take.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ..oracle.lost_name_servers import NameServerLoss, name_server_losses
from ..oracle.world import World
from ..verdict import Finding, Verdict
from .dataframes.small_tables import frame
from .findings import finding, rounded, verdict_of
from .tolerance import LagWindow, Tolerance, measure, tolerance

NAME = "dead_name_servers_left"
_SHOWN = 60
_CALLS_MAX = 200
"""So many of a client's calls to one lost NameServer are looked at one by one; the first ones are the telling ones."""


@dataclass(frozen=True, slots=True)
class _Visit:
    """From a choice of the NameServer to the next choice of another (inf: none was made)."""

    chosen_ms: float
    left_ms: float


@dataclass(frozen=True, slots=True)
class _Call:
    began_ms: float
    ended_ms: float
    answered: bool


def dead_name_servers_left(history: DataFrame, world: World) -> Verdict:
    """Examined: lost NameServers, per client that left them or that asked anyone after its window. Violations: those
    that were not left, or were asked."""
    found = name_server_losses(world)
    nothing = "no NameServer was lost to a client for longer than the client's window"
    if not found:
        return Verdict.nothing_examined(NAME, nothing)
    visits: dict[int, list[_Visit]] = defaultdict(list)
    calls: dict[int, list[_Call]] = defaultdict(list)
    asked: dict[int, int] = {}
    for row in _visits(history, found).unionByName(_calls(history, found)).coalesce(1).collect():
        if row["chosen_ms"] is not None:
            left_ms = float("inf") if row["left_ms"] is None else row["left_ms"]
            visits[row["id"]].append(_Visit(row["chosen_ms"], left_ms))
        else:
            asked[row["id"]] = row["asked"]
            calls[row["id"]] = [_Call(c["began_ms"], c["time_ms"], c["answered"]) for c in row["calls"]]
    judged = [e for e in found if asked.get(e.id) or any(visit.left_ms < e.end_ms for visit in visits[e.id])]
    windows = [
        LagWindow(loss.id, node, loss.start_ms, loss.from_ms)
        for loss in judged
        for node in (loss.client, loss.name_server)
    ]
    lags = measure(history, world, windows)
    tolerances = {e.id: tolerance(world.timers, lags.get(e.id), e.window.timers) for e in judged}
    patience_ms = world.timers.A_ms + world.timers.C_ms * len(world.of_kind("name_server"))
    findings = [_finding(e, visits[e.id], calls[e.id], tolerances[e.id], patience_ms) for e in judged]
    measured = {
        "left": _left(judged, visits),
        "calls_failed": max((sum(not c.answered for c in _during(e, calls[e.id])) for e in judged), default=0),
    }
    nothing = "no client left a lost NameServer, or asked any after its window"
    noun = "NameServers were not left, or were asked again, while they were lost"
    return verdict_of(NAME, findings, measured=measured, nothing=nothing, noun=noun)


def _exile_frame(history: DataFrame, found: Sequence[NameServerLoss]) -> DataFrame:
    rows = [(e.id, e.client, e.incarnation, e.address, e.start_ms, e.from_ms, e.end_ms) for e in found]
    schema = "id int, node string, incarnation int, lost string, start_ms double, from_ms double, end_ms double"
    return frame(history, rows, schema)


def _visits(history: DataFrame, found: Sequence[NameServerLoss]) -> DataFrame:
    """id, chosen_ms, left_ms: every visit to the lost NameServer that reaches into its loss."""
    of_one = Window.partitionBy("node", "incarnation").orderBy("time_ms", "seq")
    return (
        history.where((F.col("event") == "name_server_chosen") & F.col("role").isin("producer", "consumer"))
        .select("node", "incarnation", "time_ms", "seq", "name_server")
        # Choosing the same one again is no leave.
        .withColumn("before", F.lag("name_server").over(of_one))
        .where(~F.col("before").eqNullSafe(F.col("name_server")))
        .withColumn("left_ms", F.lead("time_ms").over(of_one))
        .withColumnRenamed("time_ms", "chosen_ms")
        .join(_exile_frame(history, found), ["node", "incarnation"])
        .where((F.col("name_server") == F.col("lost")) & (F.col("chosen_ms") < F.col("end_ms")))
        .where(F.coalesce(F.col("left_ms") > F.col("start_ms"), F.lit(True)))
        .select("id", "chosen_ms", "left_ms", F.lit(None).cast("long").alias("asked"), _no_calls().alias("calls"))
    )


_CALLS = "array<struct<began_ms: double, time_ms: double, answered: boolean>>"


def _no_calls() -> Any:
    return F.lit(None).cast(_CALLS)


def _calls(history: DataFrame, found: Sequence[NameServerLoss]) -> DataFrame:
    """id, asked (calls to anyone after the window), calls: those to the lost NameServer that ended after its loss."""
    rows = (
        history.where((F.col("event") == "name_server_call") & F.col("role").isin("producer", "consumer"))
        .select("node", "incarnation", "time_ms", "name_server", "type", "code", "duration_ms")
        .join(_exile_frame(history, found), ["node", "incarnation"])
        .where((F.col("time_ms") >= F.col("start_ms")) & (F.col("time_ms") < F.col("end_ms")))
        .withColumn("began_ms", F.col("time_ms") - F.coalesce("duration_ms", F.lit(0.0)))
    )
    to_lost = F.col("name_server") == F.col("lost")
    answered = (F.col("type") == "ok") | F.col("code").isNotNull()
    call = F.struct("began_ms", "time_ms", answered.alias("answered"))
    return rows.groupBy("id").agg(
        F.lit(None).cast("double").alias("chosen_ms"),
        F.lit(None).cast("double").alias("left_ms"),
        F.count(F.when(F.col("time_ms") >= F.col("from_ms"), True)).alias("asked"),
        F.slice(F.array_sort(F.collect_list(F.when(to_lost, call))), 1, _CALLS_MAX).cast(_CALLS).alias("calls"),
    )


def _during(loss: NameServerLoss, calls: Sequence[_Call]) -> list[_Call]:
    """The calls that began while the NameServer was lost."""
    return [call for call in calls if loss.start_ms <= call.began_ms < loss.end_ms]


def _finding(
    loss: NameServerLoss, visits: Sequence[_Visit], calls: Sequence[_Call], tolerance_: Tolerance, patience_ms: float
) -> Finding:
    """What one lost NameServer and one client came to."""
    overs: list[tuple[float, dict[str, Any]]] = []
    allowed_ms = loss.window.latest_ms
    longest_ms: float | None = None
    for visit in visits:
        since_ms, until_ms = max(visit.chosen_ms, loss.start_ms), min(visit.left_ms, loss.end_ms)
        stayed_ms = until_ms - since_ms
        if visit.left_ms < loss.end_ms or stayed_ms > allowed_ms:
            longest_ms = max(longest_ms or 0.0, stayed_ms)
        over_ms = stayed_ms - allowed_ms
        overs.append((over_ms, {"rule": "left", "at_ms": rounded(since_ms), "to_ms": rounded(until_ms)}))
    for began_ms, over_ms, rule in _asked_again(loss, visits, calls):
        overs.append((over_ms, {"rule": rule, "at_ms": rounded(began_ms)}))
    for call in calls:
        if not call.answered:
            over_ms = call.ended_ms - call.began_ms - patience_ms
            overs.append(
                (over_ms, {"rule": "in time", "at_ms": rounded(call.began_ms), "to_ms": rounded(call.ended_ms)})
            )
    over_ms, what = max(overs, key=lambda over: over[0], default=(0.0, {}))
    wrong = over_ms > tolerance_.unknown_up_to_ms
    late = not wrong and over_ms > tolerance_.valid_up_to_ms
    example = None
    if wrong or late:
        example = {
            "client": loss.client,
            "name_server": loss.name_server,
            "fault_id": loss.fault_id,
            **what,
            "lost_ms": rounded(loss.start_ms),
            "back_ms": rounded(loss.end_ms),
            "calls_failed": sum(not call.answered for call in _during(loss, calls)),
            "over_ms": rounded(over_ms),
        }
    return finding(
        bound_ms=allowed_ms,
        formula=loss.window.formula,
        row=loss.window.row,
        tolerance=tolerance_,
        measured_ms=longest_ms,
        examined=1,
        wrong=int(wrong),
        late=int(late),
        example=example,
    )


def _asked_again(
    loss: NameServerLoss, visits: Sequence[_Visit], calls: Sequence[_Call]
) -> list[tuple[float, float, str]]:
    """When a call to the lost NameServer began that should not have, how far out of bounds it was, and which rule."""
    found: list[tuple[float, float, str]] = []
    for call in _during(loss, calls):
        # A call and the choice that it makes, or the choice of another that it outlives, overlap.
        away_ms = min(
            (max(call.began_ms - visit.left_ms, visit.chosen_ms - call.ended_ms, 0.0) for visit in visits),
            default=call.began_ms - loss.start_ms,
        )
        if away_ms > 0:
            found.append((call.began_ms, away_ms, "not behind"))
        for visit in visits:
            chosen_anew = any(call.began_ms < other.chosen_ms <= call.ended_ms for other in visits)
            if chosen_anew or not visit.chosen_ms <= call.began_ms < visit.left_ms:
                continue
            unanswered = (
                other.ended_ms
                for other in calls
                if not other.answered
                and max(visit.chosen_ms, loss.start_ms) <= other.began_ms
                and other.ended_ms < call.began_ms
            )
            first_ms = min(unanswered, default=None)
            if first_ms is not None:
                found.append((call.began_ms, call.began_ms - first_ms, "once"))
    return found


def _left(found: Sequence[NameServerLoss], visits: Mapping[int, Sequence[_Visit]]) -> list[dict[str, Any]]:
    """How long each client that was on a lost NameServer took to leave it; the longest first."""
    rows: list[dict[str, Any]] = [
        {
            "client": loss.client,
            "name_server": loss.name_server,
            "fault_id": loss.fault_id,
            "after_ms": rounded(visit.left_ms - loss.start_ms),
            "bound_ms": rounded(loss.window.latest_ms),
        }
        for loss in found
        for visit in visits[loss.id]
        if visit.chosen_ms <= loss.start_ms and visit.left_ms < loss.end_ms
    ]
    return sorted(rows, key=lambda row: -row["after_ms"])[:_SHOWN]

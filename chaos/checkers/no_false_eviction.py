"""No NameServer drops a broker that is alive and reaches it, and none gives up a silent one too soon.

    live and reachable   in every stretch in which the broker must be in the table (obligations.py: RETURN, KEEP) no
                         `broker_dropped` row, whatever its reason
    too soon             a drop for silence (expired, idle) comes no earlier than E, or I, after the last registration
                         that this NameServer accepted, in any stretch and under any fault

Drops at the edge of a stretch are those of the change next to it. A channel closes for a live broker's own time-out
too: where the machine stood still for as long as that time-out, nobody can say whose fault the drop was.
routes_are_true asks whether the routes were right; this check names the drop, its reason, and how old the broker was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ..oracle.obligations import Obligation, ObligationKind, obligations
from ..oracle.windows import Timers
from ..oracle.world import World
from ..verdict import Verdict
from .findings import Finding, rounded, verdict_of
from .tolerance import LagWindow, Tolerance, may_time_out, measure, table, tolerance

NAME = "no_false_eviction"
_DROPS_MAX = 50
"""So many drops are looked at one by one in each stretch; the rest count like the last of them."""

_ROW = "a live, reachable broker stays in the table"
_SOON = {"expired": "not before E", "idle": "not before I"}

_Pair = tuple[str, int, str]
Row = Mapping[str, Any]


def no_false_eviction(history: DataFrame, world: World) -> Verdict:
    """Examined: stretches in which a registered broker had to stay, and drops for silence. Violations: drops."""
    held = [o for o in obligations(world) if o.demand is not ObligationKind.DROP]
    nothing = "no NameServer and broker lived together for longer than the window of their last change"
    if not held:
        return Verdict.nothing_examined(NAME, nothing)
    pairs: dict[_Pair, Row] = {}
    stretches: dict[int, Row] = {}
    for row in (found.asDict(recursive=True) for found in _collected(history, world, held).collect()):
        if row["id"] is None:
            pairs[row["name_server"], row["incarnation"], row["broker"]] = row
        else:
            stretches[row["id"]] = row
    stalls = _Stalls(history, world, held, pairs, stretches)
    findings = [_stay(o, stalls, stretches.get(o.id)) for o in held if _registered(o, pairs)]
    findings += [finding for pair, row in sorted(pairs.items()) for finding in _too_soon(world, pair, row, stalls)]
    return verdict_of(
        NAME,
        findings,
        measured=_measured(pairs, stretches),
        nothing="no broker registered with a NameServer that had to keep it",
        noun="drops of brokers that were alive, reachable or not silent for long enough",
    )


def _collected(history: DataFrame, world: World, held: Sequence[Obligation]) -> DataFrame:
    """One row a pair (id null): first registration, drops by reason, those too soon. One row a stretch with drops."""
    timers = world.timers
    by_pair = Window.partitionBy("name_server", "incarnation", "broker").orderBy("time_ms", "seq")
    accepted = F.expr("if(event = 'registration' AND coalesce(code, 0) = 0, time_ms, NULL)")
    rows = (
        history.where("event IN ('registration', 'broker_dropped') AND coalesce(broker_id, 0) = 0")
        .where(f"time_ms < {world.end_ms!r}D")
        .select(
            *("incarnation", "time_ms", "seq", (F.col("event") == "broker_dropped").alias("is_drop")),
            F.col("node").alias("name_server"),
            F.col("broker_name").alias("broker"),
            F.get_json_object("value", "$.reason").alias("reason"),
            accepted.alias("accepted_ms"),
        )
        .withColumn("age_ms", F.col("time_ms") - F.last("accepted_ms", ignorenulls=True).over(by_pair))
        .selectExpr(
            *("name_server", "incarnation", "broker", "time_ms", "reason", "is_drop", "accepted_ms"),
            "if(is_drop, age_ms, NULL) AS age_ms",
            f"CASE reason WHEN 'expired' THEN {timers.E_ms!r}D WHEN 'idle' THEN {timers.I_ms!r}D END AS due_ms",
        )
        .selectExpr("*", "greatest(due_ms - age_ms, 0D) AS short_ms")
    )
    soon = f"is_drop AND short_ms > {timers.delivery_ms!r}D"
    drop = "struct(time_ms, reason, age_ms, short_ms)"
    pairs = rows.groupBy("name_server", "incarnation", "broker").agg(
        F.expr("min(accepted_ms) AS since_ms"),
        *(
            F.expr(f"count_if(is_drop AND reason = '{reason}') AS {reason}")
            for reason in ("closed", "exception", "expired", "idle", "unregistered")
        ),
        F.expr("min(if(due_ms IS NULL, NULL, age_ms)) AS least_age_ms"),
        F.expr(f"count_if({soon}) AS n"),
        F.expr(f"slice(array_sort(collect_list(if({soon}, {drop}, NULL))), 1, {_DROPS_MAX}) AS drops"),
    )
    stretch = table(
        history,
        [(o.id, o.name_server, o.incarnation, o.broker, o.from_ms, o.to_ms) for o in held],
        "id int, h_name_server string, h_incarnation int, h_broker string, from_ms double, to_ms double",
    )
    inside = "name_server = h_name_server AND incarnation = h_incarnation AND broker = h_broker"
    inside += " AND time_ms >= from_ms AND time_ms < to_ms"
    longest = "collect_list(struct(least(time_ms - from_ms, to_ms - time_ms) AS over_ms, time_ms, reason, age_ms))"
    of_stretch = (
        rows.where("is_drop")
        .join(stretch, F.expr(inside))
        .groupBy("id")
        .agg(
            F.expr("count(*) AS n"),
            F.expr(f"slice(sort_array({longest}, false), 1, {_DROPS_MAX}) AS longest"),
        )
    )
    return pairs.unionByName(of_stretch, allowMissingColumns=True).coalesce(1)


class _Stalls:
    """How late the machine was around the stretches and drops in question; asked for in one job, or in none."""

    def __init__(
        self,
        history: DataFrame,
        world: World,
        held: Sequence[Obligation],
        pairs: Mapping[_Pair, Row],
        stretches: Mapping[int, Row],
    ) -> None:
        self.timers = world.timers
        self._ids: dict[object, int] = {}
        windows: list[LagWindow] = []

        def ask(key: object, nodes: Sequence[str], from_ms: float, to_ms: float) -> None:
            id_ = self._ids.setdefault(key, len(self._ids))
            windows.extend(LagWindow(id_, node, from_ms, to_ms) for node in nodes)

        for o in held:
            if o.id in stretches:
                ask(o.id, (o.name_server, o.broker), o.at_ms - self.timers.R_ms, o.from_ms)
                for drop in stretches[o.id]["longest"]:
                    ask((o.id, drop["time_ms"]), (o.name_server, o.broker), *self._around(drop["time_ms"]))
        for pair, row in pairs.items():
            for drop in row["drops"]:
                ask((pair, drop["time_ms"]), (pair[0], pair[2]), *self._around(drop["time_ms"]))
        self._lags = measure(history, world, windows)

    def _around(self, at_ms: float) -> tuple[float, float]:
        return at_ms - self.timers.R_ms - self.timers.B_ms, at_ms + self.timers.delivery_ms

    def at(self, key: object) -> float | None:
        id_ = self._ids.get(key)
        return None if id_ is None else self._lags.get(id_)

    def explains(self, key: object, reason: str | None) -> bool:
        """Whether the machine stood still so long that a time-out of a healthy pair may have run out."""
        timers = self.timers
        patience_ms = {
            "closed": timers.B_ms,
            "exception": timers.B_ms,
            "expired": timers.E_ms - timers.R_ms,
            "idle": timers.I_ms - timers.R_ms,
        }.get(reason or "")
        return patience_ms is not None and may_time_out(timers, self.at(key), patience_ms)


def _registered(obligation: Obligation, pairs: Mapping[_Pair, Row]) -> bool:
    """Whether the NameServer had the broker at all, as far as the record says."""
    row = pairs.get((obligation.name_server, obligation.incarnation, obligation.broker))
    return row is not None and row["since_ms"] is not None and row["since_ms"] < obligation.to_ms


def _stay(o: Obligation, stalls: _Stalls, row: Row | None) -> Finding:
    tolerance_ = tolerance(stalls.timers, stalls.at(o.id), o.window.timers)
    drops = row["longest"] if row else []
    wrong = [d for d in drops if d["over_ms"] > tolerance_.unknown_up_to_ms and not _excused(stalls, o.id, d)]
    late = [d for d in drops if d not in wrong and d["over_ms"] > tolerance_.valid_up_to_ms]
    unseen = row["n"] - len(drops) if row and len(wrong) == len(drops) else 0
    worst = (wrong or late or [None])[0]
    example = None
    if worst is not None:
        example = {
            "name_server": o.name_server,
            "broker_name": o.broker,
            "at_ms": rounded(worst["time_ms"]),
            "reason": worst["reason"],
            "registered_before_ms": rounded(worst["age_ms"]),
            "live_since_ms": rounded(o.from_ms),
            "live_until_ms": rounded(o.to_ms),
            "over_ms": rounded(worst["over_ms"]),
            "after": str(o.label),
        }
    return Finding(
        bound_ms=0.0,
        formula="never",
        row=_ROW,
        tolerance=tolerance_,
        examined=1,
        wrong=len(wrong) + unseen,
        late=len(late),
        example=example,
    )


def _excused(stalls: _Stalls, id_: object, drop: Mapping[str, Any]) -> bool:
    return stalls.explains((id_, drop["time_ms"]), drop["reason"])


def _too_soon(world: World, pair: _Pair, row: Row, stalls: _Stalls) -> list[Finding]:
    """Drops for silence, held against the age of the last registration."""
    timers, found = world.timers, []
    in_time = row["expired"] + row["idle"] - row["n"]
    if in_time:
        found.append(_silence(timers, "expired" if row["expired"] else "idle", tolerance(timers, 0.0, 1), in_time))
    for drop in row["drops"]:
        tolerance_ = tolerance(timers, stalls.at((pair, drop["time_ms"])) or 0.0, 1)
        wrong = drop["short_ms"] > tolerance_.unknown_up_to_ms
        late = not wrong and drop["short_ms"] > tolerance_.valid_up_to_ms
        example = {
            "name_server": pair[0],
            "broker_name": pair[2],
            "at_ms": rounded(drop["time_ms"]),
            "reason": drop["reason"],
            "registered_before_ms": rounded(drop["age_ms"]),
            "too_soon_by_ms": rounded(drop["short_ms"]),
        }
        found.append(_silence(timers, drop["reason"], tolerance_, 1, int(wrong), int(late), example))
    return found


def _silence(
    timers: Timers,
    reason: str,
    tolerance_: Tolerance,
    examined: int,
    wrong: int = 0,
    late: int = 0,
    example: Mapping[str, Any] | None = None,
) -> Finding:
    return Finding(
        bound_ms=timers.E_ms if reason == "expired" else timers.I_ms,
        formula=_SOON[reason],
        row="a NameServer drops a broker for silence",
        tolerance=tolerance_,
        examined=examined,
        wrong=wrong,
        late=late,
        example=example if wrong or late else None,
    )


def _measured(pairs: Mapping[_Pair, Row], stretches: Mapping[int, Row]) -> dict[str, Any]:
    reasons: dict[str, int] = defaultdict(int)
    for row in pairs.values():
        for reason in ("closed", "exception", "expired", "idle", "unregistered"):
            reasons[reason] += row[reason]
    ages = [row["least_age_ms"] for row in pairs.values() if row["least_age_ms"] is not None]
    return {
        "drops": {reason: n for reason, n in reasons.items() if n},
        "of_live_brokers": sum(row["n"] for row in stretches.values()),
        "shortest_silence_ms": rounded(min(ages, default=None)),
    }

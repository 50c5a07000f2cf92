"""A broker that was dropped while it is down stays dropped: in NameServers' tables, and in clients' routes.

    table    lost ──── dropped ─┬──── named again: INVALID ────┬─ back, or a link lets out what it held
    client   lost ─── its last NameServer's window, P ─┬───────┴── named again: INVALID ──┬─ back

Nothing but a registration may put a broker into a table, and a dead or cut-off broker sends none: what comes back is a
stale entry, a replayed one, or an old answer. A route that a client was late to give up is dead_brokers_avoided's and
routes_are_true's business; here it had been given up. Under faults that let registrations through now and then, a
broker may come and go, and nothing is judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ..oracle.lost_brokers import Absence, absences
from ..oracle.obligations import Down, downs
from ..oracle.world import World
from ..verdict import Verdict
from .dataframes.routes import presence
from .findings import Finding, rounded, verdict_of
from .tolerance import LagWindow, Tolerance, measure, table, tolerance

NAME = "no_resurrection"
_ROW = "a broker that is down sends no registration"
_MOMENT_MS = 1.0

Row = Mapping[str, Any]


def no_resurrection(history: DataFrame, world: World) -> Verdict:
    """Examined: (NameServer or client, topic) that dropped a broker while it was down. Violations: its returns."""
    down, lost = downs(world), absences(world)
    nothing = "no broker was dropped while it was down, so none could come back"
    if not down and not lost:
        return Verdict.nothing_examined(NAME, nothing)
    rows = _in_tables(history, world, down).unionByName(_in_clients(history, world, lost)).coalesce(1).collect()
    seen = {(row["of"], row["id"]): row.asDict() for row in rows}
    windows = [
        LagWindow(number, node, from_ms - world.timers.R_ms, from_ms + world.timers.P_ms)
        for number, (kind, id_) in enumerate(sorted(seen))
        for node, from_ms in _nodes(down, lost, kind, id_)
    ]
    lags = measure(history, world, windows)
    tolerances = {key: tolerance(world.timers, lags.get(number), 1) for number, key in enumerate(sorted(seen))}
    findings = [_finding(down, lost, key, row, tolerances[key]) for key, row in sorted(seen.items())]
    measured = {
        "dropped_by_name_servers": sum(row["examined"] for (kind, _), row in seen.items() if kind == "table"),
        "dropped_by_clients": sum(row["examined"] for (kind, _), row in seen.items() if kind == "client"),
        "returns": sum(finding.wrong + finding.late for finding in findings),
    }
    noun = "brokers came back into a route while they were down"
    return verdict_of(NAME, findings, measured=measured, nothing=nothing, noun=noun)


def _nodes(down: Sequence[Down], lost: Sequence[Absence], kind: str, id_: int) -> list[tuple[str, float]]:
    if kind == "table":
        d = down[id_]
        return [(d.name_server, d.from_ms), (d.broker, d.from_ms)]
    a = lost[id_]
    return [(a.client, a.route_from_ms), (a.broker, a.start_ms)]


def _in_tables(history: DataFrame, world: World, down: Sequence[Down]) -> DataFrame:
    """of, id, examined (topics dropped), returns, and the worst return: topic, at_ms, until_ms, dropped_ms, over_ms."""
    rows = [(d.id, d.name_server, d.incarnation, d.broker, d.since_ms, d.from_ms, d.to_ms) for d in down]
    schema = "id int, name_server string, incarnation int, broker string"
    schema += ", since_ms double, from_ms double, to_ms double"
    joined = (
        presence(history, world)
        .join(table(history, rows, schema), ["name_server", "incarnation", "broker"])
        .where("s < to_ms AND e > since_ms")
    )
    return _returns(joined, "table", f"since_ms - {world.timers.delivery_ms!r}D")


def _in_clients(history: DataFrame, world: World, lost: Sequence[Absence]) -> DataFrame:
    """The same of clients' routes; a return counts from the time when every NameServer must have dropped the broker."""
    rows = [(a.id, a.client, a.broker, a.start_ms, a.route_from_ms, a.end_ms) for a in lost]
    schema = "id int, client string, broker string, start_ms double, from_ms double, to_ms double"
    of_topic = Window.partitionBy("id", "topic").orderBy("s", "seq")
    held = "map_keys(from_json(value, 'brokers map<string,map<string,string>>').brokers) AS held"
    taken = (
        history.where("event = 'route_changed' AND role IN ('producer', 'consumer')")
        .selectExpr("node AS client", "topic", "time_ms AS s", "seq", held)
        .join(table(history, rows, schema), "client")
        .where("s < to_ms")
        .selectExpr(
            *("id", "topic", "s", "seq", "start_ms", "from_ms", "to_ms"),
            "coalesce(array_contains(held, broker), false) AS present",
        )
        .withColumn("before", F.lag("present").over(of_topic))
        .where("coalesce(before != present, true)")
        .withColumn("e", F.least(F.coalesce(F.lead("s").over(of_topic), F.col("to_ms")), F.col("to_ms")))
        # A route that never named the broker is no drop, and one that it lost before is another absence's.
        .where("before IS NOT NULL AND s >= start_ms")
    )
    return _returns(taken, "client", f"start_ms - {_MOMENT_MS}D")


def _returns(stretches: DataFrame, of: str, dropped_from: str) -> DataFrame:
    """of, id, examined, topics, of stretches `present` or not in the routes; drops count from `dropped_from`."""
    over = "if(present AND s > from_ms, least(s - from_ms, to_ms - s), NULL) AS over_ms"
    dropped = f"if(NOT present AND s >= {dropped_from}, s, NULL) AS dropped"
    topics = "sort_array(collect_list(if(over_ms IS NULL, NULL, struct(over_ms, topic, stretch, dropped_ms))), false)"
    return (
        stretches.selectExpr("id", "topic", "s", "e", over, dropped)
        .groupBy("id", "topic")
        .agg(
            F.expr("min(dropped) AS dropped_ms"),
            F.expr("max(over_ms) AS over_ms"),
            F.expr("max_by(struct(s, e), over_ms) AS stretch"),
        )
        .where("dropped_ms IS NOT NULL")
        .groupBy(F.lit(of).alias("of"), "id")
        .agg(F.expr("count(*) AS examined"), F.expr(f"{topics} AS topics"))
    )


def _finding(
    down: Sequence[Down], lost: Sequence[Absence], key: tuple[str, int], row: Row, tolerance_: Tolerance
) -> Finding:
    topics = row["topics"]
    wrong = [t for t in topics if t["over_ms"] > tolerance_.unknown_up_to_ms]
    late = [t for t in topics if t not in wrong and t["over_ms"] > tolerance_.valid_up_to_ms]
    example: dict[str, Any] | None = None
    if wrong or late:
        worst = (wrong or late)[0]
        kind, id_ = key
        if kind == "table":
            d = down[id_]
            example = {"name_server": d.name_server, "broker_name": d.broker, "after": str(d.label)}
            since_ms, until_ms = d.from_ms, d.to_ms
        else:
            a = lost[id_]
            example = {"client": a.client, "broker_name": a.broker, "fault_id": a.fault_id}
            since_ms, until_ms = a.start_ms, a.end_ms
        example |= {
            "topic": worst["topic"],
            "at_ms": rounded(worst["stretch"]["s"]),
            "to_ms": rounded(min(worst["stretch"]["e"], until_ms)),
            "dropped_ms": rounded(worst["dropped_ms"]),
            "down_since_ms": rounded(since_ms),
            "down_until_ms": rounded(until_ms),
        }
    return Finding(
        bound_ms=0.0,
        formula="never",
        row=_ROW,
        tolerance=tolerance_,
        examined=row["examined"],
        wrong=len(wrong),
        late=len(late),
        example=example,
    )

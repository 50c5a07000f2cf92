"""A history in Spark: read, cut into parts of what belongs together, and each part counted by its readings in a worker.

Parquet ─┬─ what is no traffic ──────────────────────────────► Control, World
         └─ rows of a reading's events ─► by message, queue or client ─► a part a partition ─► its facts ─┐
                                                                      (Python, in the workers)            │
                                          the whole history's facts ◄── added up, in this process ◄───────┘
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from pyspark import Broadcast, cloudpickle
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ...arrow import pa, pc
from ...history.schema import arrow_schema
from ...history.wholeness import Gap, RecordedProcess, missing
from ...oracle.world import World
from ..plain.part import Facts_, Part, Reading, Span, Together, is_one_of
from ..plain.verdicts import COUNTED_ONLY
from ..record.control import Control, Row, told_by

ROWS_AT_ONCE = 500_000
"""So many rows that need not stay together are a part."""

Asked = tuple[Reading[Any], World]


@dataclass(frozen=True, slots=True)
class Failed:
    """In place of facts: what went wrong while they were gathered."""

    error: Exception


@dataclass(slots=True, eq=False)
class Spread:
    """A history that Spark reads, as the checks see it. `events`: which it has. `parts`: into how many it is cut."""

    history: DataFrame
    control: Control
    events: frozenset[str]
    parts: int = 2
    _counted: dict[Any, tuple[World, Any]] = field(default_factory=dict, repr=False)

    def counted(self, reading: Reading[Facts_], world: World) -> Facts_:
        """The facts of the whole history."""
        if (reading, id(world)) not in self._counted:
            self.count([(reading, world)])
        found: Facts_ | Failed = self._counted[reading, id(world)][1]
        if isinstance(found, Failed):
            raise found.error
        return found

    def count(self, asked: Iterable[Asked], say: Callable[[str], None] = lambda _: None) -> None:
        """Count all of these, in one job for those that keep the same together; `say` is told each."""
        jobs: dict[Together, dict[Any, Asked]] = defaultdict(dict)
        for reading, world in asked:
            if (reading, id(world)) not in self._counted:
                jobs[reading.together][reading, id(world)] = reading, world
        if Together.OPERATION in jobs:  # rows by themselves give the same in any parts, and are read once less
            jobs[Together.OPERATION] |= jobs.pop(Together.ROW, {})
        for done, (together, those) in enumerate(sorted(jobs.items(), key=lambda job: _needs_others(job[1]))):
            say(f"counting events by {together}, {done} of {len(jobs)} done")
            facts = self._facts(together, [*those.values()])
            for (reading, world), found in zip(those.values(), facts, strict=True):
                self._counted[reading, id(world)] = world, found

    def _facts(self, together: Together, asked: Sequence[Asked]) -> list[Any]:
        nothing = Part(arrow_schema().empty_table(), self.control)
        readings = [reading for reading, _ in asked]
        events = {event for one in readings for event in one.events}
        if not events & self.events:
            return [_facts_of(reading, nothing, world) for reading, world in asked]
        rows = self.history.where(F.col("event").isin(*events))
        if all(reading.types for reading in readings):
            types = {type_ for one in readings for type_ in one.types}
            rows = rows.where(F.col("type").isNull() | F.col("type").isin(*types))
        if all(reading.spans for reading in readings):
            spans = {span for one, world in asked if one.spans is not None for span in one.spans(self, world)}
            rows = _within(rows, spans)
        rows = rows.select(*sorted({column for one in readings for column in one.all_columns}))
        if together.keys:
            rows = rows.repartition(self.parts, *together.keys)
        said = self.history.sparkSession.sparkContext.broadcast(cloudpickle.dumps((asked, self.control)))
        try:
            run = partial(_count_parts, said=said, at_once=None if together.keys else ROWS_AT_ONCE)
            found = _map_in_arrow(rows, run, "reading int, facts binary").collect()
        finally:
            said.destroy()
        sums: list[Any] = [None] * len(asked)
        for number, facts in [(row["reading"], pickle.loads(row["facts"])) for row in found]:
            sums[number] = _plus(sums[number], facts)
        return [
            _facts_of(reading, nothing, world) if facts is None else facts
            for (reading, world), facts in zip(asked, sums, strict=True)
        ]


def _needs_others(job: Mapping[Any, Asked]) -> bool:
    return any(reading.spans for reading, _ in job.values())


def _within(rows: DataFrame, spans: Iterable[Span]) -> DataFrame:
    """The rows of a span's node that lasted into the span. A join: of thousands of conditions Spark's planner has no
    stack."""
    few = rows.sparkSession.createDataFrame(sorted(spans), "span_node string, from_ms double, to_ms double")
    began_ms = F.col("time_ms") - F.coalesce("duration_ms", F.lit(0.0))
    is_in = (F.col("time_ms") >= F.col("from_ms")) & (began_ms <= F.col("to_ms"))
    return rows.join(F.broadcast(few), (F.col("node") == F.col("span_node")) & is_in, "left_semi")


def gather(history: DataFrame, *, is_whole_history: bool = False, parts: int = 2) -> tuple[Spread, World]:
    """The history's control rows, and the World that they tell of. Of a whole history, rows that are not there are
    missed."""
    table = history.where(~F.col("event").isin(*COUNTED_ONLY)).select(*Row._fields).toArrow()
    processes, events = processes_of(history)
    lost = missing(processes, partial(gaps_of, history), table) if is_whole_history else []
    is_ended = pc.or_(pc.equal(table["event"], "run_end"), is_one_of(table["event"], ["phase"]))
    ends = table.filter(is_ended).select(["event", "phase"]).to_pylist()
    is_over = any(row["event"] == "run_end" or row["phase"] == "end" for row in ends)
    last_ms = None if is_over else max((one.last_ms for one in processes), default=None)
    control, world = told_by(table, lost=lost, last_ms=last_ms)
    return Spread(history, control, events, parts), world


def processes_of(history: DataFrame) -> tuple[list[RecordedProcess], frozenset[str]]:
    """Each process's rows, counted, and the events of all."""
    counted = history.groupBy("node", "incarnation").agg(
        F.count("*"), F.max("seq"), F.max("time_ms"), F.collect_set("event").alias("events")
    )
    rows = counted.orderBy("node", "incarnation").collect()
    return [RecordedProcess(*row[:-1]) for row in rows], frozenset().union(*(row["events"] for row in rows))


def gaps_of(history: DataFrame, process: RecordedProcess) -> list[Gap]:
    """Where rows of the process are not there."""
    of_process = history.where((F.col("node") == process.node) & (F.col("incarnation") == process.incarnation))
    in_order = Window.orderBy("seq")
    before = F.coalesce(F.lag("seq").over(in_order), F.lit(-1))
    numbered = of_process.select(
        (F.col("seq") - before - 1).alias("rows"), F.lag("time_ms").over(in_order).alias("since_ms"), "time_ms", "seq"
    )
    found = numbered.where("rows > 0").orderBy("seq").select("rows", "since_ms", "time_ms")
    return [Gap(*row) for row in found.collect()]


def _map_in_arrow(rows: DataFrame, run: Any, schema: str) -> DataFrame:
    """DataFrame.mapInArrow, which asks for pandas though it does not use it."""
    from pyspark.sql.pandas import functions

    asks = "require_minimum_pandas_version"
    before = getattr(functions, asks)
    setattr(functions, asks, lambda: None)
    try:
        return rows.mapInArrow(run, schema)
    finally:
        setattr(functions, asks, before)


# -- in a worker


def _count_parts(
    batches: Iterator[pa.RecordBatch], said: Broadcast[bytes], at_once: int | None
) -> Iterator[pa.RecordBatch]:
    """The facts of this partition's rows, which are one part, or of so many at once."""
    asked, control = _heard(said.value)
    sums: list[Any] = [None] * len(asked)
    for table in _tables(batches, at_once):
        part = Part(table, control)
        for number, (reading, world) in enumerate(asked):
            sums[number] = _plus(sums[number], _facts_of(reading, part, world))
    known = [number for number, facts in enumerate(sums) if facts is not None]
    facts = [pickle.dumps(sums[number]) for number in known]
    yield pa.record_batch({"reading": pa.array(known, pa.int32()), "facts": pa.array(facts, pa.binary())})


@lru_cache(maxsize=4)
def _heard(said: bytes) -> tuple[list[Asked], Control]:
    """What is asked for, and the control rows; once a worker."""
    return pickle.loads(said)


def _tables(batches: Iterator[pa.RecordBatch], at_once: int | None) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if at_once is not None and sum(map(len, waiting)) >= at_once:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if any(map(len, waiting)):
        yield pa.Table.from_batches(waiting)


def _facts_of(reading: Reading[Any], part: Part, world: World) -> Any:
    try:
        return reading.of(part, world)
    except Exception as exc:
        return Failed(exc)


def _plus(one: Any, other: Any) -> Any:
    if one is None or isinstance(other, Failed):
        return other
    return one if isinstance(one, Failed) else one.plus(other)

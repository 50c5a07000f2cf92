"""A growing history, judged again at each addition; the cost depends on the new and the carried rows, not on all rows.

    add(files) ─► carry ∪ files since the last seal ─► gather, as of a whole run ─► facts + sealed ─► judge ─► verdicts
                        ▲                                                              │
                        └────────── carry.py ◄── seal: at a quiet moment, enough rows ◄┘

    facts(whole) = sealed + facts(carried ∪ new)            sealed grows at each seal by  facts(before) - facts(carried)

So nothing is counted twice, whatever a check counts: what the carried rows still give is not sealed. Where that cannot
be (a check counts more in fewer rows), all rows stay and the seal is tried again after as many rows again. Of a check
whose facts do not add up all rows that decide its verdict are carried. Where no moment is quiet the rows stay as well;
beyond `max_rows` they are sealed all the same, and the verdict says that what spans such a moment may be counted twice.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from ..checks import CHECKS
from ..checks.check import Facts, Inconsistent, Reads
from ..checks.spark.judge import count, facts_of, verdict_of
from ..checks.spark.parts import Failed, Spread, gather
from ..checks.spark.settings import SMALL_PLANS, plans_for
from ..checks.spark.storage import HISTORY_SCHEMA
from ..oracle.link import leave_ms
from ..oracle.world import World
from ..verdict import Validity, Verdict
from .carry import FOR, MESSAGES, OPERATIONS, TRAFFIC, carried, highest_offsets, rows_of, seen, suspicious, unfinished
from .changes import quiet_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from ..verdict import Verdict

log = logging.getLogger("nemesrv.live")

_CARRY_SCHEMA = StructType([*HISTORY_SCHEMA.fields, StructField(FOR, StringType())])

SEAL_ROWS = 20_000
MAX_ROWS = 2_000_000
ROW_BYTES = 20
"""Of a history in Parquet, about; it decides whether there are many rows to plan for."""
MARGIN_MS = 10_000.0
"""A seal lies at least this far back: what is younger may still change, a message under way for instance, or a broker
that is on its way to a clean stop, which is recorded when it is over."""


@dataclass(slots=True)
class LiveJudge:
    """Judges a growing history by the named checks. Not safe to call from two threads at once.

    `folder` gets the carried rows; `seal_rows` is after how many new rows a seal is tried, `max_rows` is how many may
    wait for a quiet moment. KeyError for a check that does not exist.
    """

    spark: SparkSession
    folder: Path
    checks: Sequence[str]
    seal_rows: int = SEAL_ROWS
    max_rows: int = MAX_ROWS
    seals: int = field(default=0, init=False)
    forced: int = field(default=0, init=False)
    """Seals without a quiet moment."""
    refused: int = field(default=0, init=False)
    """Seals that were not made, because a check would have noticed."""
    taken_back: int = field(default=0, init=False)
    """How often sealed messages turned out not to be finished."""
    rows: int = field(default=0, init=False)
    """Rows that have been added."""
    carried_rows: int = field(default=0, init=False)
    _fresh: list[str] = field(default_factory=list, init=False)
    _fresh_rows: int = field(default=0, init=False)
    _wait_rows: int = field(init=False)
    _carry: list[str] = field(default_factory=list, init=False)
    _archive: list[str] = field(default_factory=list, init=False)
    _offsets: dict[tuple[str, str, int], int] = field(default_factory=dict, init=False)
    _plans: Mapping[str, str] = field(default_factory=lambda: SMALL_PLANS, init=False)
    _sealed: dict[str, Facts] = field(default_factory=dict, init=False)
    """By check: the facts of rows that are sealed away."""
    _undecided: dict[str, str] = field(default_factory=dict, init=False)
    """By check: why its sealed facts are not to be relied upon."""

    def __post_init__(self) -> None:
        for name in self.checks:
            CHECKS[name]
        self._wait_rows = self.seal_rows
        self.folder.mkdir(parents=True, exist_ok=True)

    def add(self, files: Iterable[str], rows: int) -> None:
        """Take in Parquet files of the history's schema, with `rows` rows in all."""
        added = [str(file) for file in files]
        if not added:
            return
        if self._offsets:
            self._take_back(added)
        self._fresh += added
        self._fresh_rows += rows
        self.rows += rows

    def judge(self, only: Collection[str] | None = None) -> list[Verdict]:
        """The verdicts of everything added so far, in the order of `checks`; then a seal, where it is time for one.

        `only` names the checks that are wanted; those that are counted are judged all the same where a seal is due.
        """
        if not self.rows:
            return [Verdict.nothing_examined(name, "nothing was recorded") for name in self.checks]
        self._plans = plans_for(self.spark, (self.carried_rows + self._fresh_rows) * ROW_BYTES)
        due = self._fresh_rows >= self._wait_rows
        wanted = [name for name in self.checks if only is None or name in only or (due and name in self._counted)]
        if not wanted and not due:
            return []
        with self._kept([*self._carry, *self._fresh]) as history:
            world, rest = self._gathered(history, wanted)
            found = [self._whole(name, rest[name], world) for name in wanted]
            if due:
                self._try_to_seal(history, world, rest)
        return found

    def environment(self) -> DataFrame:
        """The rows that checks without traffic see now; all of them, but for lateness far from every change."""
        return seen(self._read([*self._carry, *self._fresh]), OPERATIONS).where(~F.col("event").isin(*TRAFFIC))

    @property
    def _counted(self) -> list[str]:
        return [name for name in self.checks if CHECKS[name].adds_up]

    def _read(self, paths: Sequence[str]) -> DataFrame:
        """Rows with FOR, which is null in files that were never carried."""
        rows = self.spark.read.schema(_CARRY_SCHEMA).parquet(*paths)
        return rows.coalesce(1) if self._plans is SMALL_PLANS else rows

    @contextmanager
    def _kept(self, paths: Sequence[str]) -> Iterator[DataFrame]:
        """The rows of these files; in memory when they are few, for many queries read them."""
        rows = self._read(paths)
        if self._plans is SMALL_PLANS:
            with cached(rows) as kept:
                yield kept
        else:
            yield rows

    def _gathered(self, history: DataFrame, names: Sequence[str]) -> tuple[World, dict[str, Any]]:
        """The facts of these checks, or what failed; and the World that the rows tell of."""
        spread, world = gather(history)
        found: dict[str, Any] = {}
        for reads in (MESSAGES, OPERATIONS):
            those = [name for name in names if _reads(name) == reads]
            if those:
                of_them = Spread(seen(history, reads), spread.control)
                count(of_them, those, world)
                found |= {name: facts_of(name, of_them, world) for name in those}
        return world, found

    def _whole(self, name: str, rest: Any, world: World) -> Verdict:
        """The verdict of everything, `rest` being the facts of the carried and new rows."""
        check = CHECKS[name]
        sealed = None if isinstance(rest, Failed) else self._sealed.get(name)
        verdict = verdict_of(name, rest if sealed is None else sealed.plus(rest), world)
        measured = {**verdict.measured}
        if self.seals:
            measured = {key: value for key, value in measured.items() if key not in check.takes_all_rows}
        if self.forced and check.adds_up:
            said = f"{self.forced} times no quiet moment came in time: what spans those may be counted twice"
            measured["live"] = said
        verdict = replace(verdict, measured=measured)
        if name in self._undecided and verdict.verdict is Validity.VALID:
            verdict = replace(verdict, verdict=Validity.UNKNOWN, why=self._undecided[name])
        return verdict

    # -- sealing

    def _try_to_seal(self, history: DataFrame, world: World, rest: Mapping[str, Any]) -> None:
        until_ms = world.end_ms - max(MARGIN_MS, 2 * leave_ms(world))
        force = self.carried_rows + self._fresh_rows > self.max_rows
        floor = world.run.get("availability_floor") is not None and "availability" in self.checks
        if floor or not (force or quiet_at(world, until_ms)):
            return  # a floor is a ratio over the whole run: no part of that can be sealed
        path = str(self.folder / f"carry-{self.seals + self.refused:06d}")
        operations = verdict_of("availability", rest["availability"], world) if "availability" in rest else None
        short = operations is not None and bool(operations.examined) and operations.verdict is not Validity.VALID
        carried(history, world, until_ms, short=short).coalesce(1).write.mode("overwrite").parquet(path)
        with self._kept([path]) as carry:
            _, after = self._gathered(carry, self._counted)
            try:
                gone = {name: _difference(name, rest[name], facts) for name, facts in after.items()}
                sealed = {name: self._sealed[name].plus(f) if name in self._sealed else f for name, f in gone.items()}
            except Inconsistent as exc:
                log.info("a seal at %.0f ms was refused: %s", until_ms, exc)
                self.refused += 1
                self._wait_rows = self._fresh_rows + self.seal_rows
                return
            for queue, offset in highest_offsets(seen(history, MESSAGES), seen(carry, MESSAGES)).items():
                self._offsets[queue] = max(offset, self._offsets.get(queue, -1))
            self.carried_rows = carry.count()
        self._sealed |= sealed
        self._archive += self._fresh
        for old in self._carry:
            shutil.rmtree(old, ignore_errors=True)
        self._carry, self._fresh, self._fresh_rows, self._wait_rows = [path], [], 0, self.seal_rows
        self.seals += 1
        self.forced += force

    def _take_back(self, added: Sequence[str]) -> None:
        """Where `added` tells more of messages that were sealed, all rows of those are carried again."""
        rows = [(*queue, offset) for queue, offset in self._offsets.items()]
        schema = "topic string, broker_name string, queue_id int, _highest long"
        new, carry = self._read(added), seen(self._read(self._carry), MESSAGES)
        known = seen(self._read([*self._carry, *self._fresh, *added]), MESSAGES)
        highest = F.broadcast(self.spark.createDataFrame(rows, schema))
        if not suspicious(new, known, highest):
            return
        archive = self._read(self._archive).drop(FOR)
        back = rows_of(archive, unfinished(new, known, archive), carry)
        path = str(self.folder / f"back-{self.taken_back:06d}")
        back.withColumn(FOR, F.lit(MESSAGES)).coalesce(1).write.mode("overwrite").parquet(path)
        count = self._read([path]).count()
        if not count:
            return
        names = [name for name in self._counted if _reads(name) == MESSAGES]
        with self._kept(self._carry) as before, self._kept([*self._carry, path]) as after:
            _, without = self._gathered(before, names)
            _, with_ = self._gathered(after, names)
        for name in names:
            try:
                self._sealed[name] = self._sealed[name].minus(_difference(name, with_[name], without[name]))
            except Inconsistent as exc:
                why = f"sealed messages came again and could not be told from new ones: {exc}"
                self._undecided[name] = why
        self._carry.append(path)
        self.carried_rows += count
        self.taken_back += 1


def _reads(name: str) -> str:
    """Which of the carried rows of traffic the check sees."""
    return MESSAGES if CHECKS[name].reads is Reads.MESSAGES else OPERATIONS


@contextmanager
def cached(rows: DataFrame) -> Iterator[DataFrame]:
    """The rows, kept in memory meanwhile."""
    try:
        yield rows.persist(StorageLevel.MEMORY_AND_DISK)
    finally:
        rows.unpersist()


def _difference(name: str, whole: Any, part: Any) -> Facts:
    """What the part no longer gives. Inconsistent when that cannot be told."""
    for facts in (whole, part):
        if isinstance(facts, Failed):
            raise Inconsistent(f"{name} failed: {facts.error}")
    try:
        found: Facts = whole.minus(part)
    except Inconsistent as exc:
        raise Inconsistent(f"{name}: {exc}") from exc
    return found


def start_query(
    spark: SparkSession,
    segments: Path,
    folder: Path,
    judge: LiveJudge,
    on_verdicts: Callable[[Sequence[Verdict], float], None],
) -> StreamingQuery:
    """A running query over the Parquet files that appear in `segments`, which must be whole and never change.

    `folder` gets the query's checkpoint and its micro-batches; a segment that is in one of those is deleted. Each is
    added to `judge`, and judged; then `on_verdicts` is told the verdicts, and up to which time they are. One that fails
    ends the query, and `exception()` of it says why. The folder belongs to one query: a new one judges anew.
    """

    def on_batch(batch: DataFrame, batch_id: int) -> None:
        path = folder / "batches" / f"batch-{batch_id:06d}"
        batch.coalesce(1).write.mode("overwrite").parquet(str(path))
        times = pq.read_table(path, columns=["time_ms"]).column("time_ms")
        if len(times):
            judge.add([str(path)], len(times))
            on_verdicts(judge.judge(), pc.max(times).as_py())

    growing = spark.readStream.schema(HISTORY_SCHEMA).option("cleanSource", "delete").parquet(str(segments))
    return (
        growing.writeStream.foreachBatch(on_batch)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="2 seconds")
        .queryName("nemesrv-live")
        .start()
    )

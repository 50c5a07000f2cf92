"""A history judged by named checks: planned for its size, read once, one verdict a check."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import InheritableThread, StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ...errors import HarnessError
from ...oracle.world import World
from ...verdict import Verdict
from .. import CHECKS
from ..check import Reads
from ..dataframes.gathering import Gathering, gather
from ..dataframes.shared import TRAFFIC, shared_scan
from ..finishing import finished, seen_by, with_joining
from .session import jvm_death
from .settings import SMALL_PLANS, use
from .storage import load_planned

log = logging.getLogger("nemesrv.spark")

JVM_END_S = 0.5
"""From the loss of its connection to the end of a JVM that dies."""


def by_event(history: DataFrame, control: DataFrame) -> DataFrame:
    """The history again, such that a query of some events reads no others: `control` and one part an event of TRAFFIC.

    In each of those parts `event` is a constant, so Spark drops the parts that a filter on `event` excludes when it
    plans, and row groups of other events when it reads.
    """
    whole = control
    for event in TRAFFIC:
        part = history.where(F.col("event") == event).withColumn("event", F.lit(event))
        whole = whole.unionByName(part)
    return whole


def check_history(
    history: DataFrame,
    checks: Iterable[str],
    plans: Mapping[str, str] = SMALL_PLANS,
    say: Callable[[str], None] = lambda _: None,
) -> list[Verdict]:
    """One verdict per named check, in order. A check that fails is UNKNOWN, with the error's text. `say` is told each.

    A small history is kept in memory whole. Of a large one (its own `plans`) only what is no traffic is, in one
    partition; and one row a message is kept on disk, so that the checks of messages share one shuffle.
    """
    with ExitStack() as stack:
        if plans is SMALL_PLANS:
            history = stack.enter_context(cached(history))
        judged = stack.enter_context(planned(history, plans))
        gathering, world = gather(judged, is_whole_history=True)
        named = with_joining(checks, gathering.control)
        facts = _all_facts(named, gathering, world, plans, say)
        return [verdict_of(name, facts[name], world) for name in named]


@contextmanager
def planned(history: DataFrame, plans: Mapping[str, str]) -> Iterator[DataFrame]:
    """The history as checks may read it again and again meanwhile: a large one by_event."""
    spark = history.sparkSession
    spark.sparkContext.setLocalProperty("callSite.long", "a check")  # else each RDD walks the JVM's stack for it
    if plans is SMALL_PLANS:
        yield history
        return
    with _parts(history) as judged, shared_scan(judged, history):
        use(spark, SMALL_PLANS)
        try:
            yield judged
        finally:
            use(spark, plans)


@dataclass(frozen=True, slots=True)
class Failed:
    """In place of facts: what went wrong while they were gathered."""

    error: Exception


def facts_of(name: str, gathering: Gathering, world: World, plans: Mapping[str, str]) -> Any:
    """The check's facts, or Failed."""
    check = CHECKS[name]
    # However large the history, a check that reads no traffic is planned as for a small one.
    use(gathering.history.sparkSession, SMALL_PLANS if check.reads is Reads.CONTROL else plans)
    try:
        return check.gather(gathering, seen_by(check, world))
    except Exception as exc:
        log.info("check %s failed", name, exc_info=True)  # its verdict says so to the person
        return Failed(exc)


def _all_facts(
    names: Sequence[str], gathering: Gathering, world: World, plans: Mapping[str, str], say: Callable[[str], None]
) -> dict[str, Any]:
    """By check. Of a small history, where Spark plans longer than it reads, for two checks at a time."""
    waiting, found = deque(names), dict[str, Any]()

    def gather_those_that_wait() -> None:
        with suppress(IndexError):
            while True:
                name = waiting.popleft()
                say(f"{name}, {len(found)} of {len(names)} checks done")
                found[name] = facts_of(name, gathering, world, plans)

    if plans is not SMALL_PLANS:
        gather_those_that_wait()
        return found
    beside = _Beside(target=gather_those_that_wait, name="gather", daemon=True)
    beside.start()
    gather_those_that_wait()
    beside.join()
    if beside.error is not None:
        raise beside.error
    return found


class _Beside(InheritableThread):  # type: ignore[misc]
    """What goes wrong in it is for who waits for it, and not printed: a run that is stopped loses Spark under it."""

    error: Exception | None = None

    def run(self) -> None:
        try:
            super().run()
        except Exception as exc:
            self.error = exc


def verdict_of(name: str, facts: Any, world: World) -> Verdict:
    """The check's verdict; UNKNOWN, with the error's text, where it fails or has failed."""
    if isinstance(facts, Failed):
        return Verdict.of_failed_check(name, facts.error)
    try:
        check = CHECKS[name]
        return finished(check, check.judge(facts, seen_by(check, world)), world)
    except Exception as exc:
        log.info("check %s failed", name, exc_info=True)
        return Verdict.of_failed_check(name, exc)


@contextmanager
def cached(rows: DataFrame) -> Iterator[DataFrame]:
    """The rows, kept in memory meanwhile."""
    try:
        yield rows.persist(StorageLevel.MEMORY_AND_DISK)
    finally:
        rows.unpersist()


@contextmanager
def _parts(history: DataFrame) -> Iterator[DataFrame]:
    """The history by_event, with what is no traffic read once and kept in one partition."""
    control = history.where(~F.col("event").isin(*TRAFFIC)).repartition(1)
    with cached(control) as kept:
        kept.count()
        yield by_event(history, kept)


def check_run(
    run_dir: Path | str, checks: Iterable[str], spark: SparkSession, say: Callable[[str], None] = lambda _: None
) -> list[Verdict]:
    """The verdicts of a recorded run or of a URI's, in the order of `checks`. KeyError for one that does not exist.

    HarnessError when Spark's JVM dies meanwhile, or ends a query: that says nothing about the history.
    """
    names = list(checks)
    for name in names:
        CHECKS[name]
    try:
        history, plans = load_planned(run_dir, spark)
        verdicts = check_history(history, names, plans, say)
    except Exception as exc:
        if dead := _of_a_dead_jvm(run_dir, within_s=JVM_END_S):
            raise dead from exc
        if isinstance(exc, Py4JJavaError | PySparkException):  # it asks the JVM what it says, and that soon ends
            raise HarnessError(f"Spark ended a query while it judged: {_thrown(exc)}: {_again(run_dir)}") from exc
        raise
    if dead := _of_a_dead_jvm(run_dir):
        raise dead
    return verdicts


def _of_a_dead_jvm(run_dir: Path | str, *, within_s: float = 0.0) -> HarnessError | None:
    death = jvm_death(within_s)
    return HarnessError(f"{death} while it judged: {_again(run_dir)}") if death else None


def _again(run_dir: Path | str) -> str:
    return f"what was recorded is kept, so judge it again with `nemesrv check {run_dir}`"


def _thrown(exc: Py4JJavaError | PySparkException) -> str:
    """What went wrong first, in a line: Spark wraps it into others that say nothing."""
    if isinstance(exc, PySparkException):
        return next(iter(str(exc).splitlines()), type(exc).__name__)
    thrown = exc.java_exception
    while thrown.getCause() is not None:
        thrown = thrown.getCause()
    said = str(thrown.getMessage() or "").splitlines()
    return said[0] if said else str(thrown.getClass().getSimpleName())

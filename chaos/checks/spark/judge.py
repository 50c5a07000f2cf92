"""A history judged by named checks: planned for its size, counted part by part, one verdict a check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ...errors import HarnessError
from ...verdict import Verdict
from .. import CHECKS
from ..finishing import seen_by, with_joining
from ..plain.verdicts import verdicts_of
from .parts import gather
from .session import jvm_death
from .settings import SMALL_PLANS
from .storage import load_planned

JVM_END_S = 0.5
"""From the loss of its connection to the end of a JVM that dies."""


def check_history(
    history: DataFrame,
    checks: Iterable[str],
    plans: Mapping[str, str] = SMALL_PLANS,
    say: Callable[[str], None] = lambda _: None,
) -> list[Verdict]:
    """One verdict per named check, in order; a check that fails is UNKNOWN, with the error's text. `say` is told what
    is being counted."""
    cores = history.sparkSession.sparkContext.defaultParallelism
    parts = cores if plans is SMALL_PLANS else int(plans["spark.sql.shuffle.partitions"])
    spread, world = gather(history, is_whole_history=True, parts=parts)
    named = with_joining(checks, spread.control)
    spread.count(((one, seen_by(CHECKS[name], world)) for name in named for one in CHECKS[name].readings), say)
    return verdicts_of(spread, world, named)


def check_run(
    run_dir: Path | str, checks: Iterable[str], spark: SparkSession, say: Callable[[str], None] = lambda _: None
) -> list[Verdict]:
    """The verdicts of a recorded run or of a URI's, in the order of `checks`. KeyError for one that does not exist.
    HarnessError when Spark's JVM dies meanwhile, or ends a query: that says nothing about the history."""
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

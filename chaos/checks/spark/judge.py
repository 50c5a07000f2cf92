"""A history judged by named checks: planned for its size, counted part by part, one verdict a check."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ...errors import HarnessError
from ...oracle.world import World
from ...verdict import Verdict
from .. import CHECKS
from ..finishing import finished, seen_by, with_joining
from .parts import Failed, Spread, gather
from .session import jvm_death
from .settings import SMALL_PLANS
from .storage import load_planned

log = logging.getLogger("nemesrv.spark")

JVM_END_S = 0.5
"""From the loss of its connection to the end of a JVM that dies."""


def check_history(
    history: DataFrame,
    checks: Iterable[str],
    plans: Mapping[str, str] = SMALL_PLANS,
    say: Callable[[str], None] = lambda _: None,
) -> list[Verdict]:
    """One verdict per named check, in order; a check that fails is UNKNOWN, with the error's text.

    `say` is told what is being counted.
    """
    cores = history.sparkSession.sparkContext.defaultParallelism
    parts = cores if plans is SMALL_PLANS else int(plans["spark.sql.shuffle.partitions"])
    spread, world = gather(history, is_whole_history=True, parts=parts)
    named = with_joining(checks, spread.control)
    count(spread, named, world, say)
    return [verdict_of(name, facts_of(name, spread, world), world) for name in named]


def count(spread: Spread, names: Iterable[str], world: World, say: Callable[[str], None] = lambda _: None) -> None:
    """Count what these checks ask for, for all of them at once."""
    spread.count(((one, seen_by(CHECKS[name], world)) for name in names for one in CHECKS[name].readings), say)


def facts_of(name: str, spread: Spread, world: World) -> Any:
    """The check's facts, or Failed."""
    try:
        return CHECKS[name].gather(spread, seen_by(CHECKS[name], world))
    except Exception as exc:
        log.info("check %s failed", name, exc_info=True)  # its verdict says so to the person
        return Failed(exc)


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

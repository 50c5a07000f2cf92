"""A Spark cluster without executors: a line says for how long, and the wait ends; without a Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nemesrv.chaos.checks.spark.executors import LIMIT_S, ExecutorWait, awaited
from nemesrv.chaos.errors import HarnessError


class Context:
    """A driver whose cluster has so many executors."""

    def __init__(self, master: str = "spark://host:7077") -> None:
        self.master, self.executors, self.cancelled = master, 0, 0
        status = SimpleNamespace(size=lambda: self.executors + 1)
        self._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(getExecutorMemoryStatus=lambda: status))

    def cancelAllJobs(self) -> None:
        self.cancelled += 1


class Watched:
    """A wait at a cluster, on a clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.context, self.now_s, self.said = Context(), 0.0, list[str]()
        self.wait = ExecutorWait(self.context, self.said.append, lambda: self.now_s)

    def at(self, now_s: float) -> Watched:
        self.now_s = now_s
        self.wait.look()
        return self


def test_a_cluster_without_an_executor_is_told_for_how_long() -> None:
    assert Watched().at(0).at(5).said == []
    assert Watched().at(0).at(20).said == ["no executor for 20 s; given up after 180 s"]


def test_an_executor_that_comes_ends_the_wait() -> None:
    watched = Watched().at(0).at(20)
    watched.context.executors = 1
    watched.at(30)
    watched.context.executors = 0
    assert watched.at(40).at(45).said == ["no executor for 20 s; given up after 180 s"]


def test_in_the_end_every_query_is_ended_and_the_sentence_says_what_helps() -> None:
    watched = Watched().at(0).at(LIMIT_S).at(LIMIT_S + 2)
    assert watched.context.cancelled == 2
    assert watched.wait.sentence.startswith("spark://host:7077 had no executor for 180 s: start a worker of it")


def test_what_was_judged_without_an_executor_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExecutorWait, "go_on", lambda self: setattr(self, "given_up", True))
    with pytest.raises(HarnessError, match="had no executor"), awaited(session(Context()), print):
        pass


def test_spark_in_this_process_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExecutorWait, "go_on", lambda self: pytest.fail("looked"))
    with awaited(session(Context("local[2]")), print):
        pass


def session(context: Context) -> Any:
    return SimpleNamespace(sparkContext=context)

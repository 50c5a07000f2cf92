"""What several runs share, and when it judges a made-up run ahead of the real one."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from nemesrv.chaos.experiment import harness
from nemesrv.chaos.experiment.harness import Harness
from nemesrv.chaos.machine import processors


@pytest.mark.parametrize(("of_a_core", "rehearsed"), [(0.1, True), (1.4, True), (1.6, False), (20, False)])
def test_a_made_up_run_is_judged_ahead_where_the_machine_has_time_for_it(
    of_a_core: float, rehearsed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[object] = []
    monkeypatch.setattr(os, "getloadavg", lambda: (of_a_core * processors(), 0.0, 0.0))
    monkeypatch.setattr("nemesrv.chaos.machine.require_java", lambda: None)
    monkeypatch.setattr("nemesrv.chaos.checks.spark.session.session", lambda *_, **__: SimpleNamespace())
    monkeypatch.setattr("nemesrv.chaos.checks.spark.session.stop", lambda _: None)
    monkeypatch.setattr("nemesrv.chaos.checks.spark.warm_up.rehearse", judged.append)
    monkeypatch.setattr(harness, "SPARK_NICENESS", os.getpriority(os.PRIO_PROCESS, 0))
    with Harness() as begun:
        begun.start_spark()
        spark = begun.spark(hurry=False)
    assert judged == ([spark] if rehearsed else [])

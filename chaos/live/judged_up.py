"""`nemesrv up --check`: what is added to a cluster that stays up so that it is recorded and judged meanwhile.

    stack:  merge history │ end Spark │ … cluster … │ faults from outside │ finish        closed from right to left

Recorded are the NameServers, the brokers and what is done to their links; a person's own clients are not nodes of the
run.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from ...remoting.node.clock import RealClock
from ...remoting.node.network import Address
from ..experiment.nodes import timers_of
from ..experiment.run_folder import RunFolder
from ..faults.outside import OutsideFaults
from ..history.recorder import HistoryWriter, LagProbe, RecorderSpec, to_parquet
from ..judging import Judged, of_run, write_verdicts
from ..scenarios.model import Scenario
from ..topology import NodeKind, Topology
from ..verdict import Verdict
from .watch import LiveWatch

UP_CHECKS = ("routes_converge", "routes_are_true", "no_false_eviction", "no_resurrection")
"""`default`: what needs no clients."""
LAST_WRITE_S = 0.1
"""Of the machine's time: longer than a node may keep an event in memory."""


class JudgedUp:
    """The record and the judge of one cluster that stays up. Everything it starts ends with `stack`."""

    def __init__(self, stack: ExitStack, scenario: Scenario, clock: RealClock, out: Path | None, as_json: bool) -> None:
        self.folder = RunFolder.create(scenario.name, out)
        self.folder.scenario_file.write_text(scenario.to_yaml(), encoding="utf-8")
        self._scenario, self._clock, self._as_json = scenario, clock, as_json
        self._unsaid: list[str] | None = []
        self._saying = threading.Lock()
        stack.callback(self._merge)
        self._watch = LiveWatch(self.folder.path, clock, scenario.checks, self._say)
        stack.callback(self._watch.close)
        self.record: HistoryWriter = self._spec("harness", "harness").open()
        stack.callback(self.record.close)

    def begin(self, topology: Topology, advertised: Mapping[str, Address]) -> None:
        """The run is in the record, and Spark starts. HarnessError when there is no Java."""
        scenario = self._scenario
        self.record(
            "run_begin",
            value={
                "scenario": scenario.name,
                "seed": scenario.seed,
                "profile": scenario.cluster.profile,
                "time_scale": scenario.timers.time_scale,
                "timers": timers_of(scenario).to_json(),
            },
        )
        for name, kind in topology.kinds.items():
            if kind is not NodeKind.EXTERNAL:
                self.record("node", source=name, address=str(advertised[name]), value={"kind": str(kind)})
        self._watch.start()

    def node(self, name: str, kind: NodeKind) -> dict[str, Any]:
        """What a NodeSpec needs so that the node records."""
        return {"recorder_spec": self._spec(name, str(kind)), "probe": LagProbe}

    def watch(self, stack: ExitStack, toxiproxy: Address, pids: Mapping[str, int]) -> None:
        """From now on faults from outside are recorded and verdicts said; `stack` ends with the last of them."""
        stack.enter_context(OutsideFaults(toxiproxy, self.record, self._clock.scale, pids))
        stack.callback(self._finish)
        with self._saying:
            unsaid, self._unsaid = self._unsaid or [], None
            for line in unsaid:
                click.echo(line)

    def _spec(self, name: str, role: str) -> RecorderSpec:
        return RecorderSpec.for_run(self.folder.path.resolve(), name, role, 0, self._clock)

    def _finish(self) -> None:
        self.record("phase", phase="end")
        self.record("run_end")
        time.sleep(LAST_WRITE_S)
        verdicts = self._watch.finish()
        write_verdicts(self.folder, self._scenario, verdicts)
        judged = Judged(of_run(self.folder, self._scenario), verdicts)
        click.echo(f"verdicts: {judged.verdict}   {self.folder.verdicts_file}", err=self._as_json)

    def _merge(self) -> None:
        if any((self.folder.path / "history" / "_raw").glob("*.jsonl")):
            to_parquet(self.folder.path)

    def _say(self, at_ms: float, verdict: Verdict) -> None:
        if self._as_json:
            shown = {"at_ms": round(at_ms, 1), **verdict.to_json()}
            line = json.dumps(shown, ensure_ascii=False, default=str)
        else:
            why = f"   {verdict.why}" if verdict.why else ""
            line = f"{at_ms / 1000:8.1f} s  {verdict.name} {verdict.verdict} ({verdict.examined} examined){why}"
        with self._saying:
            if self._unsaid is None:
                click.echo(line)
            else:  # what the cluster's addresses are comes first
                self._unsaid.append(line)

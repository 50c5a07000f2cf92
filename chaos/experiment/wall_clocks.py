"""The wall clocks of nodes that a timeline changes: what each shows is remembered, so that a new process has it too."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple

from ...actors.actor import ADJUST_CLOCK
from ...remoting.node.recording import Recorder
from ..faults.clocks import ClockAction, ClockSync, changed
from .stage import Nodes


class _Shown(NamedTuple):
    at_ms: float
    ahead_ms: float
    """How far ahead it was then."""
    rate: float
    """How many times as fast it goes since."""

    def ahead_at(self, now_ms: float) -> float:
        return self.ahead_ms + (now_ms - self.at_ms) * (self.rate - 1)


@dataclass(slots=True, kw_only=True)
class WallClocks:
    """`or_not_done(node, what)`: what a node does not do is a finding of the run, and the run goes on."""

    nodes: Nodes
    record: Recorder
    now_s: Callable[[], float]
    or_not_done: Callable[[str, str], AbstractContextManager[None]]
    _shown: dict[str, _Shown] = field(init=False, default_factory=dict)
    _changes: int = field(init=False, default=0)

    def change(self, what: ClockAction, nodes: tuple[str, ...]) -> None:
        """These nodes' clocks, from now on."""
        self._changes += 1
        for node in nodes:
            self._change(what, node, f"{what.do}-{self._changes}")

    def restarted(self, node: str) -> None:
        """Its process is another, and its machine's clock as wrong as before."""
        if node in self._shown:
            shown = self._shown[node]
            with self.or_not_done(node, ADJUST_CLOCK):
                self.nodes.call(node, ADJUST_CLOCK, shown.ahead_at(1000 * self.now_s()), shown.rate)

    def end(self) -> None:
        """All are right again."""
        for node, shown in tuple(self._shown.items()):
            if (shown.ahead_ms, shown.rate) != (0.0, 1.0):
                self._change(ClockSync(), node, "clock_sync-end")

    def _change(self, what: ClockAction, node: str, change_id: str) -> None:
        at_ms = 1000 * self.now_s()
        shown = self._shown.get(node, _Shown(at_ms, 0.0, 1.0))
        step_ms, rate = changed(what, shown.rate)
        with self.or_not_done(node, ADJUST_CLOCK):
            self.nodes.call(node, ADJUST_CLOCK, step_ms, rate)
            ahead_ms = 0.0 if step_ms is None else shown.ahead_at(at_ms) + step_ms
            self._shown[node] = _Shown(at_ms, ahead_ms, rate)
            value = {"step_ms": step_ms, "rate": rate}
            self.record("clock", source=node, f=what.do, fault_id=change_id, value=value)

"""Acts by hand while an experiment runs: asked of the client that stands for an operator, and not waited for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from ..faults.by_hand import ByHand
from ..scenarios.model import Scenario
from ..topology import ADMIN
from .stage import Nodes, Result


@dataclass(slots=True, kw_only=True)
class HandActs:
    nodes: Nodes
    or_not_done: Callable[[str, str], AbstractContextManager[None]]
    _asked: list[Result] = field(init=False, default_factory=list)

    def begin(self, what: ByHand, nodes: tuple[str, ...], scenario: Scenario) -> str:
        """The id of the act. Nobody waits for it: who hangs is asked, and the timeline goes on."""
        act_id = f"{what.do}-{len(self._asked) + 1}"
        act = scenario.request_in_full(what)
        self._asked.append(self.nodes.submit(ADMIN, "act", act, list(nodes), act_id))
        return act_id

    def leave(self) -> None:
        """The operator closes what an act may hold open."""
        if self._asked:
            with self.or_not_done(ADMIN, "leave"):
                self.nodes.call(ADMIN, "leave")

    def finish(self) -> None:
        """Each act has ended, or is recorded as not done."""
        for act in self._asked:
            with self.or_not_done(ADMIN, "act"):
                act.result(timeout=60)

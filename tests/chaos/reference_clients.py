"""Tiny simulators of each language's client, told into a story: the clean twins of the selection rules, and defects.

A client here is the rules of its profile and nothing else: which entry comes next, when, and how often one call tries.
A defect changes one of them. `dead` NameServers refuse, `silent` ones never answer, `coded` ones answer with a code.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from nemesrv.chaos.oracle.client_profiles import Advance, Attempts, ClientProfile, Order, Outcome
from tests.chaos.builder import HistoryBuilder

CONNECT_S, ANSWER_S = 0.001, 0.005


@dataclass(kw_only=True)
class ReferenceClient:
    """One client process. `defect` None is a clean twin."""

    builder: HistoryBuilder
    node: str
    profile: ClientProfile
    configured: list[str]
    rng: random.Random
    op_id: str | None = None
    defect: str | None = None
    dead: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    coded: frozenset[str] = frozenset()
    _index: int = field(init=False)
    _listed: list[str] = field(init=False)
    _chosen: str | None = field(init=False, default=None)
    _open: bool = field(init=False, default=False)

    def start(self, at_s: float) -> ReferenceClient:
        self._listed = list(self.configured)
        if (self.profile.order is Order.SHUFFLED) != (self.defect == "orders as the others do"):
            while self._listed == self.configured or self.defect is None:
                self.rng.shuffle(self._listed)
                if self.defect is None:
                    break
        fixed = self.profile.start.place(len(self._listed))
        self._index = self.rng.randrange(999) if fixed is None else fixed
        self._index += self.defect == "starts one further"
        self._event(at_s, "name_server_list", value=self._listed)
        return self

    def query(self, at_s: float) -> float:
        """One route query; returns when it ended."""
        profile, began_s, tried = self.profile, at_s, []
        most = profile.attempts_max(len(self._listed))
        if self.defect == "gives up after one" or (self.defect == "tries twice" and profile.attempts is Attempts.ONE):
            most = 1 if self.defect == "gives up after one" else 2
        retries = set(profile.retries)
        if self.defect == "tries twice":
            retries |= {Outcome.CONNECT_FAILED, Outcome.NO_ANSWER}
        if self.defect == "asks on after a code":
            retries.add(Outcome.ANSWERED)
        while True:
            if self._takes_another(first=not tried):
                self._advance(at_s)
            outcome, at_s = self._try(at_s)
            tried.append({"name_server": self._chosen, "outcome": str(outcome)})
            if outcome not in retries or len(tried) >= most:
                break
        code = (17 if self._chosen in self.coded else 0) if outcome is Outcome.ANSWERED else None
        kinds = {Outcome.ANSWERED: "fail" if code else "ok", Outcome.CONNECT_FAILED: "fail", Outcome.NO_ANSWER: "info"}
        self._event(
            at_s,
            "name_server_call",
            f="route",
            type=kinds[outcome],
            name_server=self._chosen,
            topic="orders",
            code=code,
            duration_ms=(at_s - began_s) * 1000,
            value={"tried": tried},
        )
        return at_s

    def _takes_another(self, *, first: bool) -> bool:
        if self._chosen is None or not first:
            return True
        if self.defect == "goes by the other rule":
            return not self._open if self.profile.advance is Advance.EVERY_REQUEST else True
        return self.profile.advance is Advance.EVERY_REQUEST or not self._open

    def _advance(self, at_s: float) -> None:
        position = self._index % len(self._listed)
        self._index += 2 if self.defect == "skips one" else 1
        old, self._chosen, self._open = self._chosen, self._listed[position], False
        value = {"old": old, "index": position, "reason": "first" if old is None else "not_active"}
        self._event(at_s, "name_server_chosen", name_server=self._chosen, value=value)

    def _try(self, at_s: float) -> tuple[Outcome, float]:
        if self._chosen in self.dead:
            self._event(at_s + CONNECT_S, "channel", f="connect_failed", address=self._chosen)
            return Outcome.CONNECT_FAILED, at_s + CONNECT_S
        if not self._open:
            self._event(at_s + CONNECT_S, "channel", f="open", address=self._chosen)
            self._open, at_s = True, at_s + CONNECT_S
        if self._chosen in self.silent:
            patience_s = self.profile.try_timeout_ms / 1000 * (9 if self.defect == "waits too long" else 1)
            self._event(at_s + patience_s, "channel", f="close", address=self._chosen)
            self._open = False
            return Outcome.NO_ANSWER, at_s + patience_s
        return Outcome.ANSWERED, at_s + ANSWER_S

    def _event(self, at_s: float, event: str, **fields: object) -> None:
        self.builder.at(at_s).event(self.node, event, op_id=self.op_id, **fields)

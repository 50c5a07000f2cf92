"""How the clients of each language choose, keep and leave NameServers: the rules of `name_server_selection`.

    order     the list in use: shuffled once, or as it was configured (here: in the order of the NameServers' names)
    start     which entry of the list in use comes first
    advance   when the next entry's turn comes: after a failure only, or at every request; it is always index + 1 mod n
    attempts  how many entries one call may meet: one, or the whole list
    retries   after which outcome the same call goes on to the next entry; a call that may, must

An answer ends a call whatever its code, in every client. The facts stand in profiles/*.yaml, which `nemesrv conform`
measures clients against; here is what a history is judged by. Rust has no entry: it scores its servers.

Profiles of clients as files: what each is known to do, one home for `conform` and for `name_server_selection`.

    client: Go v2.1.2                  for people
    like: java-4.9                     one that ships, of which only what follows differs; a rule of null is not had
    inside: {lock_wait_s: 3.0}         what cannot be seen from outside; may be missing
    rules: {start: 0, …}               a rule of conformance/rules: what it is expected to measure

Which rules there are, and what each may expect, conformance/profile.py knows; here a file is only read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ...clients.name_servers import SelectionRules
from ...remoting.node.profile import Profile
from ..errors import ScenarioError, nearest

if TYPE_CHECKING:
    from .recorded import NodeInfo

DIR = Path(__file__).parent / "profiles"
KEYS = ("client", "like", "inside", "rules")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(path: Path) -> Mapping[str, Any]:
    """The document, each of KEYS of the right kind, with what it is like; `own` are then the rules that it says itself.
    ScenarioError if it is something else."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)  # the safe one
    except OSError as exc:
        raise ScenarioError(str(path), "", "", f"a profile that can be read ({exc.strerror})") from exc
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        raise ScenarioError(str(path), "", "", f"YAML ({' '.join(str(exc).split())})") from exc
    if not isinstance(document, dict):
        raise ScenarioError(str(path), "", "", f"a mapping with the keys {', '.join(KEYS)}")
    for key, value in document.items():
        if key not in KEYS:
            raise ScenarioError(str(path), str(key), repr(value), f"the keys are {', '.join(KEYS)}")
        is_text = key in ("client", "like")
        if not isinstance(value, str if is_text else dict):
            raise ScenarioError(str(path), key, repr(value), f"it must be {'a text' if is_text else 'a mapping'}")
    if "rules" not in document:
        raise ScenarioError(str(path), "rules", "", "a mapping of rules to what is expected")
    return _with_what_it_is_like(document, path)


def _with_what_it_is_like(document: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    if (name := document.get("like")) is None:
        return document
    there = sorted(file.stem for file in DIR.glob("*.yaml"))
    if name not in there or path == DIR / f"{name}.yaml":
        raise ScenarioError(str(path), "like", repr(name), f"one of {', '.join(there)}{nearest(name, there)}")
    other = read(DIR / f"{name}.yaml")
    rules = {rule: value for rule, value in {**other["rules"], **document["rules"]}.items() if value is not None}
    return {**other, **document, "rules": rules, "own": [*document["rules"]]}


@lru_cache(maxsize=1)
def built_in() -> Mapping[str, Mapping[str, Any]]:
    """The profiles that ship, by name, in the order of their names."""
    return {path.stem: read(path) for path in sorted(DIR.glob("*.yaml"))}


class Order(StrEnum):
    SHUFFLED = "shuffled"
    LISTED = "listed"


class Start(StrEnum):
    RANDOM = "random"
    FIRST = "first"
    SECOND = "second"

    def place(self, name_servers: int) -> int | None:
        """The first index; None if it is drawn."""
        return {Start.RANDOM: None, Start.FIRST: 0, Start.SECOND: 1 % name_servers}[self]


class Advance(StrEnum):
    ON_FAILURE = "on_failure"
    EVERY_REQUEST = "every_request"


class Attempts(StrEnum):
    ONE = "one"
    WHOLE_LIST = "whole_list"


class Outcome(StrEnum):
    """What came of one try of a call: `value.tried[].outcome` of a `name_server_call` row."""

    CONNECT_FAILED = "connect_failed"
    NO_ANSWER = "no_answer"
    ANSWERED = "answered"
    NOT_SENT = "not_sent"
    """Connecting took the call's whole time, or nobody could be chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProfile:
    """The rules of one client. Times in RocketMQ milliseconds."""

    name: str
    order: Order
    start: Start
    advance: Advance
    attempts: Attempts
    retries: frozenset[Outcome]
    try_timeout_ms: float
    """What one try may take, connecting included."""
    wait_ms: float = 0.0
    """What a call may wait for another call of the same client that is choosing."""

    def selection(self) -> SelectionRules:
        """The same for a client of ours that is to choose so."""
        return SelectionRules(
            shuffled=self.order is Order.SHUFFLED,
            start={Start.RANDOM: None, Start.FIRST: 0, Start.SECOND: 1}[self.start],
            each_request=self.advance is Advance.EVERY_REQUEST,
            whole_list=self.attempts is Attempts.WHOLE_LIST,
            after_silence=Outcome.NO_ANSWER in self.retries,
        )

    @property
    def drawn(self) -> bool:
        """Whether chance decides the first NameServer, so that first choices must be even."""
        return self.order is Order.SHUFFLED or self.start is Start.RANDOM

    def attempts_max(self, name_servers: int) -> int:
        return 1 if self.attempts is Attempts.ONE else name_servers

    @property
    def rule(self) -> str:
        """The profile in one line, as a verdict shows it."""
        kept = "one NameServer kept until its channel is not active"
        kept = kept if self.advance is Advance.ON_FAILURE else "the next NameServer at every request"
        tries = "one try a call" if self.attempts is Attempts.ONE else "a call tries the whole list"
        return f"list {self.order}, {self.start} start, {kept}, {tries}"


_STARTS = {
    "random": Start.RANDOM,
    "0": Start.FIRST,
    "0 of the shuffle": Start.FIRST,
    "1": Start.SECOND,
}


def from_rules(name: str, document: Mapping[str, Any]) -> ClientProfile | None:
    """What a profile's file says of choosing; None where that is not by a place in a list, but by score or by lot."""
    rules = document["rules"]
    start = _STARTS.get(str(rules["start"]))
    if start is None or rules["sticky"] not in ("kept", "next at every request"):
        return None
    retries = {Outcome.CONNECT_FAILED} if rules["tries_refused"] == "all" else set()
    retries |= {Outcome.NO_ANSWER} if rules["tries_silent"] == "all" else set()
    connect_s = float(rules["connect_timeout_s"])
    answer_s = float(rules.get("answer_timeout_s", connect_s))
    # of a client whose call goes on by itself after silence, a try's one time-out has the dial in it
    adds = rules.get("timeouts_add") == "added" and Outcome.NO_ANSWER not in retries
    return ClientProfile(
        name=name,
        order=Order.SHUFFLED if rules["list_order"] == "shuffled" else Order.LISTED,
        start=start,
        advance=Advance.ON_FAILURE if rules["sticky"] == "kept" else Advance.EVERY_REQUEST,
        attempts=Attempts.WHOLE_LIST if retries else Attempts.ONE,
        retries=frozenset(retries),
        try_timeout_ms=1000 * (connect_s + answer_s if adds else max(connect_s, answer_s)),
        wait_ms=1000 * float(document.get("inside", {}).get("lock_wait_s", 0.0)),
    )


PROFILES: Mapping[str, ClientProfile] = {
    name: profile for name, document in built_in().items() if (profile := from_rules(name, document)) is not None
}

OF_CLUSTER: Mapping[Profile, str] = {Profile.V4_9: "java-4.9", Profile.V5_X: "java-5.3"}
"""What our own clients are, for each profile of a cluster."""


def timers_under_test(nodes: Iterable[NodeInfo]) -> dict[str, dict[str, float | bool]]:
    """By client under test, what its profile says of RocketMQ's timers: windows are made of these."""
    found: dict[str, dict[str, float | bool]] = {}
    for node in nodes:
        rules = built_in().get(node.client_profile or "", {}).get("rules", {})
        said: dict[str, float | bool] = {}
        for timer, rule in (("P_ms", "poll_period_s"), ("A_ms", "answer_timeout_s"), ("C_ms", "connect_timeout_s")):
            if isinstance(value := rules.get(rule), int | float):
                said[timer] = 1000.0 * value
        if (closes := rules.get("closes_on_silence")) is not None:
            said["Z"] = "no" not in (closes if isinstance(closes, list) else (closes,))
        if said:
            found[node.name] = said
    return found


def profile_of(name: str | None, cluster: Profile) -> ClientProfile:
    """The profile called `name`, or that of the cluster's own clients. KeyError for an unknown name."""
    return PROFILES[name or OF_CLUSTER[cluster]]

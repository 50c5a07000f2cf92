"""Makes the history's rows that show how an outside client uses its NameServers. Does no I/O.

    connect without an answer ─► a try that could not connect ┐
    request ─► answer         ─► a try that was answered      ├─► a call ─► name_server_call, value.tried
    request ─► close, or the same request elsewhere ─► none   ┘

Of an outside client only its connections, requests and answers are observed. All other facts are inferred as the
client's profile says:

    channel  one without a request is a probe; a failed connect if the server closed it at once; a try that came too
             late if the client opened it during a call and closed it at once
    call     a try within JOIN_MS of a failure after which the profile allows a retry belongs to the same call
    choice   the NameServer that it asks, or fails to connect to; failing at the chosen one again is no choice
    list     as given; if clients shuffle it, the order in which entries were first chosen
    skipped  if connects are not seen, an entry that refused or dropped SYNs meanwhile was tried
    reason   who closed a channel, and how
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...remoting.bodies.route import TopicRouteData, canonical
from ...remoting.codes import RequestCode
from ...remoting.errors import ProtocolError
from .behaviour import Dials
from .decode import ROUTE
from .observed import Answered, Asked, Behaved, By, Closed, Dialled, GaveUp, Observation, Opened

JOIN_MS = 1_000.0
ABANDONED_MS = 1_000.0
"""A request that is repeated elsewhere after this time got no answer the first time."""
CONNECTS_MS = 3_500.0
"""A connect without an answer for this long has failed."""
HANGS_MS = 6_000.0
"""The longest connect timeout of a known client (Go). An entry that was lost this recently may have been tried."""
_AFTER_MS = 0.001
"""A channel opens this long after its choice in the rows, though both are seen at once."""
_CONNECT_FAILED, _NO_ANSWER, _ANSWERED, _NOT_SENT = "connect_failed", "no_answer", "answered", "not_sent"


class Put(Protocol):
    def __call__(self, at_ms: float, event: str, **fields: Any) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """A client profile's rules for choosing NameServers and repeating look-ups (oracle/client_profiles.py)."""

    shuffled: bool = True
    start: int = 0
    """Index of the first entry used in a list that is not shuffled."""
    every_request: bool = False
    tries_max: int | None = None
    """Most tries per call; None: the number of NameServers."""
    retries: frozenset[str] = frozenset({_CONNECT_FAILED})
    """Outcomes of a try after which the same call tries again."""


@dataclass(slots=True)
class _Call:
    began_ms: float
    f: str = "route"
    topic: str | None = None
    tried: list[dict[str, str]] = field(default_factory=list)
    ended_ms: float = 0.0
    outcome: str = ""
    asked: bool = False
    """Whether a request was seen, so that the topic is known."""


@dataclass(slots=True)
class _Try:
    call: _Call
    address: str
    at_ms: float


class LookUps:
    """One client's look-ups. `name_servers` are the front names, in the order of the client's list."""

    def __init__(self, put: Put, rules: Rules, name_servers: Mapping[str, str], *, seen: bool = True) -> None:
        self._put, self._rules, self._seen = put, rules, seen
        self.name_servers = dict(name_servers)
        self._told = list(name_servers.values())
        self._listed: list[str] = []
        self._known = 0  # how many entries of the list, from `_listed[0]` on, were chosen or told
        self._chosen: str | None = None
        self._chosen_failed = False
        self._left_last_ms: dict[str, float] = {}
        self._open: dict[int, str] = {}
        self._fresh: dict[int, tuple[float, float]] = {}  # nothing was asked there yet: when dialled, and let in
        self._dials: list[tuple[float, str]] = []
        self._asked: dict[tuple[int, int], _Try] = {}
        self._waiting: _Call | None = None  # ended in a way from which its client may go on
        self._lost_until_ms: dict[str, float] = {}  # infinite while it refuses or drops SYNs
        self._all_lost_ms = self._asked_last_ms = -math.inf
        self._refusing: set[str] = set()
        self._bodies: dict[tuple[str, str | None], bytes] = {}

    def saw(self, one: Observation) -> None:
        match one:
            case Behaved():
                address = self.name_servers.get(one.front)
                if address is not None:
                    self._lost(address, one.at_ms, one.behaviour.dials in (Dials.REFUSED, Dials.DROPPED))
                    refuses = one.behaviour.dials is Dials.REFUSED
                    (self._refusing.add if refuses else self._refusing.discard)(address)
            case Dialled(front=str(front)):
                self._failed_dials(one.at_ms)
                self._dials.append((one.at_ms, self.name_servers[front]))
                if self.name_servers[front] in self._refusing:
                    self._failed_dials(one.at_ms)
            case GaveUp(front=str(front)):
                self._gave_up(self.name_servers[front], one.at_ms)
            case Opened():
                self._opened(one, self.name_servers[one.front])
            case Asked() if not one.oneway:
                self._ask(one, self.name_servers[one.front])
            case Answered():
                self._answer(one)
            case Closed():
                self._close(one)
            case _:
                pass

    def _lost(self, address: str, at_ms: float, is_lost: bool) -> None:
        """Note that this NameServer refuses or drops SYNs from now on, or no longer does."""
        lost = self._lost_until_ms
        if all(lost.get(each) == math.inf for each in self._told):
            self._all_lost_ms = at_ms
        if is_lost:
            lost[address] = math.inf
        elif lost.get(address) == math.inf:
            lost[address] = at_ms

    def passed(self, now_ms: float) -> None:
        for at_ms, address in [dial for dial in self._dials if now_ms - dial[0] >= CONNECTS_MS]:
            self._dials.remove((at_ms, address))
            self._connect_failed(address, at_ms, at_ms + CONNECTS_MS)
        if self._waiting is not None and now_ms - self._waiting.ended_ms > JOIN_MS:
            self._end_of_waiting()

    def end(self, now_ms: float) -> None:
        self._failed_dials(now_ms)
        for key in [*self._asked]:
            self._no_answer(key, now_ms)
        self._end_of_waiting()

    # --- connections --------------------------------------------------------------------------------------------------

    def _opened(self, one: Opened, address: str) -> None:
        dialled_ms = self._first_dial(address)
        self._failed_dials(one.at_ms)
        self._open[one.connection] = address
        self._fresh[one.connection] = min(one.at_ms if dialled_ms is None else dialled_ms, one.at_ms), one.at_ms

    def _first_dial(self, address: str) -> float | None:
        dial = next((dial for dial in self._dials if dial[1] == address), None)
        if dial is None:
            return None
        self._dials.remove(dial)
        return dial[0]

    def _close(self, one: Closed) -> None:
        address = self._open.pop(one.connection, None)
        fresh = self._fresh.pop(one.connection, None)
        if address is None:
            return
        if fresh is not None:  # nothing was asked: a probe, unless it was closed at once under its client
            if one.at_ms - fresh[1] > JOIN_MS:
                return  # who wants an answer asks at once: an idle one, of a pool
            if one.by is not By.CLIENT:
                self._connect_failed(address, fresh[0], one.at_ms)
            else:
                self._came_too_late(address, fresh, one)
            return
        left = [key for key in self._asked if key[0] == one.connection]
        at_ms = self._left_ms(address, one, [self._asked[key] for key in left])
        for key in left:
            self._no_answer(key, at_ms)
        self._put(at_ms, "channel", f="close", address=address, value={"reason": f"{one.how} by {one.by}"})

    def _left_ms(self, address: str, closed: Closed, waiting: Sequence[_Try]) -> float:
        """When a channel was closed, inferred.

        A client that gives up a call closes before it connects to another NameServer. So a connect that began after
        the request, and on which nothing was asked yet, is the later of the two, even if the close is seen late. If
        another NameServer was chosen before any request here, connecting took too long.
        """
        if closed.by is not By.CLIENT or not waiting:
            return closed.at_ms
        asked_ms, left_ms = max(each.at_ms for each in waiting), self._left_last_ms.get(address, -math.inf)
        turned = [*self._dials, *((fresh[0], self._open[number]) for number, fresh in self._fresh.items())]
        dials = [at_ms for at_ms, other in turned if other != address and at_ms > asked_ms]
        is_late = all(each.call.began_ms < left_ms <= each.at_ms for each in waiting)
        return min([closed.at_ms, *dials, *([left_ms] if is_late else [])])

    def _gave_up(self, address: str, at_ms: float) -> None:
        dialled_ms = self._first_dial(address)
        if dialled_ms is not None:
            self._connect_failed(address, dialled_ms, at_ms)

    def _came_too_late(self, address: str, fresh: tuple[float, float], closed: Closed) -> None:
        """Record a try that had no time left: the client connected, sent no request, and closed."""
        call = self._join(fresh[0])
        if call is None:
            return
        self._choose(address, fresh[0])
        opened_ms = fresh[1] + _AFTER_MS
        ended_ms = max(closed.at_ms, opened_ms + _AFTER_MS)
        self._put(opened_ms, "channel", f="open", address=address, value={"reason": ""})
        call.tried.append({"name_server": address, "outcome": _NOT_SENT})
        self._put(ended_ms, "channel", f="close", address=address, value={"reason": f"{closed.how} by {closed.by}"})
        self._ended(call, ended_ms, "fail", None)

    def _failed_dials(self, now_ms: float) -> None:
        failed, self._dials = self._dials, []
        for at_ms, address in failed:
            self._connect_failed(address, at_ms, now_ms)

    def _connect_failed(self, address: str, began_ms: float, ended_ms: float) -> None:
        if self._chosen != address or self._rules.every_request:
            self._choose(address, began_ms)
        self._chosen_failed = True
        self._put(ended_ms, "channel", f=_CONNECT_FAILED, address=address, value={"reason": "nobody let it in"})
        call = self._join(began_ms) or _Call(began_ms)
        call.tried.append({"name_server": address, "outcome": _CONNECT_FAILED})
        self._tried(call, ended_ms, _CONNECT_FAILED)

    # --- calls --------------------------------------------------------------------------------------------------------

    def _ask(self, one: Asked, address: str) -> None:
        self._failed_dials(one.at_ms)
        f = "route" if one.code == ROUTE else _name(one.code)
        topic = one.fields.get("topic")
        for key, other in [*self._asked.items()]:
            same = (other.call.f, other.call.topic) == (f, topic)
            if same and one.at_ms - other.at_ms >= ABANDONED_MS:
                self._no_answer(key, one.at_ms)
        fresh = self._fresh.pop(one.connection, None)
        was_idle = fresh is not None and one.at_ms - fresh[1] > JOIN_MS
        began_ms = one.at_ms if fresh is None or was_idle else fresh[0]
        call = self._join(began_ms, f, topic)
        skipped = [] if self._seen else self._skipped(address, began_ms)
        self._asked_last_ms = one.at_ms
        for lost in skipped:
            self._choose(lost, began_ms)
            self._put(began_ms, "channel", f=_CONNECT_FAILED, address=lost, value={"reason": "inferred"})
        if self._chosen != address or self._rules.every_request or fresh is not None:
            self._choose(address, began_ms)
        if fresh is not None:
            self._put(fresh[1] + _AFTER_MS, "channel", f="open", address=address, value={"reason": ""})
        call = call or _Call(began_ms)
        call.f, call.topic, call.asked = f, topic, True
        if _CONNECT_FAILED in self._rules.retries:
            call.tried += [{"name_server": lost, "outcome": _CONNECT_FAILED} for lost in skipped]
        call.tried.append({"name_server": address, "outcome": _NOT_SENT})
        self._asked[one.connection, one.opaque] = _Try(call, address, one.at_ms)

    def _answer(self, one: Answered) -> None:
        tried = self._asked.pop((one.connection, one.opaque), None)
        if tried is None:
            return
        self._chosen_failed = False
        call, topic = tried.call, tried.call.topic
        if one.body and self._bodies.get((tried.address, topic)) != one.body:
            self._bodies[tried.address, topic] = one.body
            self._put(one.at_ms, "route_answer", name_server=tried.address, topic=topic, value=route_value(one.body))
        call.tried[-1]["outcome"] = _ANSWERED
        self._ended(call, one.at_ms, "fail" if one.code else "ok", one.code)

    def _no_answer(self, key: tuple[int, int], at_ms: float) -> None:
        tried = self._asked.pop(key)
        self._chosen_failed = True
        tried.call.tried[-1]["outcome"] = _NO_ANSWER
        self._tried(tried.call, at_ms, _NO_ANSWER)

    def _tried(self, call: _Call, at_ms: float, outcome: str) -> None:
        call.ended_ms, call.outcome = at_ms, outcome
        self._end_of_waiting()
        most = self._rules.tries_max or len(self._told)
        if outcome in self._rules.retries and len(call.tried) < most:
            self._waiting = call
        else:
            self._ended(call, at_ms, "fail" if outcome == _CONNECT_FAILED else "info", None)

    def _join(self, began_ms: float, f: str | None = None, topic: str | None = None) -> _Call | None:
        call = self._waiting
        if call is None or began_ms - call.ended_ms > JOIN_MS:
            return None
        if f is not None and call.asked and (call.f, call.topic) != (f, topic):
            return None
        self._waiting = None
        return call

    def _end_of_waiting(self) -> None:
        call, self._waiting = self._waiting, None
        if call is not None:
            self._ended(call, call.ended_ms, "fail" if call.outcome == _CONNECT_FAILED else "info", None)

    def _ended(self, call: _Call, at_ms: float, type_: str, code: int | None) -> None:
        self._put(
            at_ms,
            "name_server_call",
            f=call.f,
            type=type_,
            name_server=call.tried[-1]["name_server"],
            topic=call.topic,
            code=code,
            duration_ms=at_ms - call.began_ms,
            value={"tried": call.tried},
        )

    # --- list and choice ----------------------------------------------------------------------------------------------

    def _choose(self, address: str, at_ms: float) -> None:
        if not self._listed:
            self._listed = [address, *(one for one in self._told if one != address)]
            if not self._rules.shuffled:
                self._listed = list(self._told)
            self._known = 1 if self._rules.shuffled else len(self._told)
            self._put(at_ms, "name_server_list", value=list(self._listed))
        elif address not in self._listed[: self._known]:
            known = self._listed[: self._known]
            listed = [*known, address, *(one for one in self._listed[self._known :] if one != address)]
            self._known += 1
            if listed != self._listed:
                self._listed = listed
                self._put(at_ms, "name_server_list", value=list(listed))
        old = self._chosen
        left = "connect_failed" if self._chosen_failed else "not_active"
        value = {"old": old, "index": self._listed.index(address), "reason": "first" if old is None else left}
        if old not in (None, address):
            self._left_last_ms[old] = at_ms
        self._chosen, self._chosen_failed = address, False
        self._put(at_ms, "name_server_chosen", name_server=address, value=value)

    def _skipped(self, address: str, began_ms: float) -> list[str]:
        """Return the entries between the chosen one and this one that the client tried without a visible connect. A
        client that found no reachable entry may have gone round the list and be anywhere in it."""
        if self._chosen == address and not self._rules.every_request:
            return []
        if self._rules.shuffled and self._known < len(self._told):
            return []
        listed, skipped = self._listed or self._told, list[str]()
        at = self._rules.start - 1 if self._chosen is None else listed.index(self._chosen)
        went_round = self._all_lost_ms > self._asked_last_ms
        for step in range(1, len(listed) + 1):
            entry = listed[(at + step) % len(listed)]
            if entry == address:
                return skipped
            if not went_round and self._lost_until_ms.get(entry, -math.inf) < began_ms - HANGS_MS:
                return []
            skipped.append(entry)
        return []


def _name(code: int) -> str:
    try:
        return RequestCode(code).name.lower()
    except ValueError:
        return str(code)


def route_value(body: bytes) -> Any:
    """A route as recorded in the history: brokers with their addresses, and their queues."""
    try:
        return canonical(TopicRouteData.decode(body))
    except ProtocolError as exc:
        return {"unreadable": str(exc)}

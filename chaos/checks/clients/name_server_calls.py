"""How clients keep, leave and ask NameServers: the rules of `name_server_selection` that are about calls.

    Selection    one process of a client, or one of the prober's starts: its rows in order of time, and its choices
    Broken       one row of it that breaks a rule

All rules but those of a call's tries look at one selection at a time.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ....remoting.node.profile import Profile
from ....remoting.top_addressing import TIMEOUT_S
from ...oracle.client_profiles import Advance, ClientProfile, Outcome
from ...oracle.intervals import grouped
from ...oracle.lists import due_ms, in_use, out_of_reach
from ...oracle.world import World
from ..record.control import Control, Row, decoded
from ..record.lateness import Lateness

PROBER = "prober"
ROUNDING_MS = 0.5
"""A call's beginning is its end less its duration; a choice made at once may seem to be before it."""
LEAVES_MS = 3_000.0
"""Who is told to end has closed its channels, and is gone, so long after; what is under way then is cut short."""
CHAINED_TIMERS = 4
"""The timers that may each be late within one call: the wait for a choice, a connect, a time-out, a callback."""


class Who(NamedTuple):
    """Who selects: one process of a client, or one of the prober's starts."""

    node: str
    incarnation: int
    start: str
    """The prober's start; empty for everyone else."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One choice of a NameServer, with the one before it."""

    row: Row
    index: int | None
    """Of the NameServer in the list in use."""
    listed: tuple[str, ...] | None
    """The list in use."""
    before: Choice | None
    """None: it is the selection's first."""
    same_list: bool
    """Whether the choice before it was made from the same list."""
    is_kept: bool = True
    """Whether every list that was fetched since then, by HTTP, has the NameServer of the choice before."""
    is_started: bool = True
    """Whether its client was started anew since then: its list was not fetched in mid-run."""


class Broken(NamedTuple):
    """A row that breaks `rule`."""

    rule: str
    row: Row
    start: str
    was: str


@dataclass(slots=True)
class Selection:
    """What one who selects recorded."""

    who: Who
    rows: Sequence[Row]
    """Lists, choices, calls and channels, in order of time."""
    choices: Sequence[Choice]

    @property
    def is_prober(self) -> bool:
        return bool(self.rows) and self.rows[0].role == PROBER

    def broken(self, rule: str, row: Row, was: str) -> Broken:
        return Broken(rule, row, self.who.start, was)


def selections(control: Control, until_ms: float = math.inf) -> list[Selection]:
    """Every selection of the run, each in order of time; what is recorded after `until_ms`, its end, is no part."""
    rows = control.rows("name_server_list", "name_server_chosen", "name_server_call", "channel")
    choosing = (row for row in rows if row.role not in ("broker", "slave"))  # a broker chooses none: it has all
    starts = ((row, (row.op_id or "") if row.role == PROBER else "") for row in choosing if row.time_ms <= until_ms)
    of = grouped((Who(*row.process, start), row) for row, start in starts)
    return [Selection(who, rows, _choices(rows)) for who, rows in of.items()]


def _choices(rows: Sequence[Row]) -> list[Choice]:
    found: list[Choice] = []
    listed: tuple[str, ...] | None = None
    news: list[Row] = []
    for row in rows:
        if row.event == "name_server_list":
            said = _listed(row.value)
            listed = listed if said is None else said
            news.append(row)
        elif row.event == "name_server_chosen":
            before = found[-1] if found else None
            fetched = [_listed(new.value) or () for new in news if new.f is not None]
            is_kept = before is None or all(before.row.name_server in one for one in fetched)
            is_started = any(new.f is None for new in news)
            index = row.said.get("index")
            found.append(Choice(row, index, listed, before, bool(found) and not news, is_kept, is_started))
            news = []
    return found


@lru_cache(maxsize=4096)
def _listed(value: str | None) -> tuple[str, ...] | None:
    """The list that a `name_server_list` row says; None if it is none."""
    found = decoded(value)
    return tuple(found) if isinstance(found, list) else None


def lists_not_taken(of: Selection, world: World) -> Iterator[Broken]:
    """Lists by HTTP that the client has not taken in time, though it could ask for them; told at when it had to."""
    node = of.who.node
    if not world.asks_for_list(node):
        return
    ends_ms = min(world.ended_ms(node, of.who.incarnation), world.end_ms)
    lists = [row for row in of.rows if row.event == "name_server_list"]
    for served in world.served[1:]:
        due = due_ms(world, node, served) + world.timers.lateness_cap_ms
        had = [row for row in lists if row.time_ms <= due]
        if not had or due >= ends_ms:
            continue
        may = [set(world.addresses(one.entries)) for one in in_use(world, node, due, due)]
        if set(_listed(had[-1].value) or ()) not in may:
            was = f"still in use {(due - served.from_ms) / 1000:.0f} s after another"
            yield of.broken("takes the list", had[-1]._replace(time_ms=due), was)


def lists_taken_again(of: Selection) -> Iterator[Broken]:
    """Lists that were fetched and taken though the client had the same NameServers: `updateNameServerAddressList` does
    not ask for their order."""
    had: tuple[str, ...] = ()
    for row in of.rows:
        listed = _listed(row.value) if row.event == "name_server_list" else None
        if listed is None:
            continue
        if row.f is not None and len(listed) == len(had) and set(listed) <= set(had):
            yield of.broken("keeps the list", row, "the same NameServers in another order")
        had = listed


def channels_kept(of: Selection, world: World) -> Iterator[Broken]:
    """Channels of a client of ours to its NameServer that stay open though a fetched list lacks the NameServer: 5.x
    closes them at once (`updateNameServerAddressList` since 5.3.1), 4.9 does not."""
    timers = world.timers_of(of.who.node)
    if not world.is_ours(of.who.node) or timers.profile is not Profile.V5_X:
        return
    ends_ms = min(world.ended_ms(of.who.node, of.who.incarnation), world.end_ms) - timers.at_once_ms
    opened, lost = set[str](), dict[str, Row]()
    chosen = ""
    for row in of.rows:
        if row.event == "name_server_chosen":
            chosen = row.name_server
        elif row.event == "channel" and row.f == "open":
            opened.add(row.address)
        elif row.event == "channel":
            opened.discard(row.address)
            if row.address in lost and row.time_ms <= lost[row.address].time_ms + timers.at_once_ms:
                del lost[row.address]
        elif row.event == "name_server_list" and row.f is not None and row.time_ms < ends_ms:
            lost |= {at: row for at in opened & {chosen} - {*(_listed(row.value) or ())}}
    for address, row in lost.items():
        yield of.broken("closes the lost", row._replace(name_server=address), "left open")


def broken_calls(of: Selection, profile: ClientProfile, configured: Sequence[str], world: World) -> Iterator[Broken]:
    """What breaks the profile's rule about when another NameServer is chosen."""
    if profile.advance is Advance.EVERY_REQUEST:
        yield from kept_between_requests(of)
    elif not of.is_prober:  # its starts end with their first call
        if len(configured) > 1:
            yield from left_without_reason(of, world)
            if world.timers_of(of.who.node).Z:  # else its channel stays open, and it stays
                yield from repeated_calls(of)
        yield from silent_reconnects(of, configured, world)
        yield from unchosen(of, configured, world)


def left_without_reason(of: Selection, world: World) -> Iterator[Broken]:
    """Choices of another NameServer although nothing says that the current one failed."""
    reasons = _reasons(of, world) if len(of.choices) > 1 else {}
    for choice in of.choices[1:]:
        if choice.is_started and choice.row.said.get("reason") == "first":
            continue  # the client was started anew in the same process, and chooses from its own start
        if not choice.is_kept:
            continue  # `updateNameServerAddressList` forgets whom the list has lost, and nobody else
        old = choice.before.row if choice.before else choice.row
        if not _any_within(reasons.get(old.name_server, ()), old.time_ms, choice.row.time_ms):
            yield of.broken("sticky", choice.row, old.name_server)


def _any_within(times: Sequence[float], from_ms: float, to_ms: float) -> bool:
    """Whether one of the ascending times lies there, bounds included."""
    at = bisect_left(times, from_ms)
    return at < len(times) and times[at] <= to_ms


def _reasons(of: Selection, world: World) -> Mapping[str | None, Sequence[float]]:
    """NameServer → when it failed this client for certain, or its channel ended for a reason to leave it; ascending."""
    every = (*_failures(of.rows), *_ends(of, world))
    return {name_server: sorted(times) for name_server, times in grouped(every).items()}


def _failures(rows: Iterable[Row]) -> Iterator[tuple[str | None, float]]:
    for row in rows:
        if row.event == "name_server_call" and row.type in ("fail", "info") and row.code is None:
            yield row.name_server, row.time_ms
        elif row.event == "channel" and row.f == "connect_failed":
            yield row.address, row.time_ms


_OWN = ("by self", "by client")


def _ends(of: Selection, world: World) -> Iterator[tuple[str | None, float]]:
    """Ends of channels that are a reason to leave the NameServer: all but those that the client made itself. A channel
    that was used for nothing for I is closed by either side. A row that does not say by whom accuses nobody."""
    idle_ms, used = idle_limit_ms(world, of.who.node), dict[str | None, float]()
    for row in of.rows:
        if row.event not in ("channel", "name_server_call"):
            continue
        peer = row.address if row.event == "channel" else row.name_server
        if row.event == "channel" and row.f == "close":
            is_idle = row.time_ms - used.get(peer, row.time_ms) >= 0.95 * idle_ms
            if is_idle or not str(row.said.get("reason") or "").endswith(_OWN):
                yield peer, row.time_ms
        used[peer] = row.time_ms


def idle_limit_ms(world: World, client: str) -> float:
    """After how long without use a channel between this client and some NameServer is closed by either."""
    limits = [world.timers_of(node.name).I_ms for node in world.of_kind("name_server")]
    if world.run.get("settings"):
        limits.append(1000.0 * world.number(client, "clientChannelMaxIdleTimeSeconds"))
    return min(limits, default=world.timers.I_ms)


def _began_ms(row: Row) -> float:
    """A call's beginning; anything else was when it was recorded."""
    return row.began_ms if row.event == "name_server_call" else row.time_ms


def repeated_calls(of: Selection) -> Iterator[Broken]:
    """First calls begun after a call without an answer, made to the same NameServer with no choice in between."""
    chosen = (row.event == "name_server_chosen" or (row.event == "channel" and row.f == "open") for row in of.rows)
    moves = [row.time_ms for row, is_move in zip(of.rows, chosen, strict=True) if is_move]
    calls = (row for row in of.rows if row.event == "name_server_call")
    lost_ms, lost_at = -math.inf, ""
    for row in sorted(calls, key=lambda row: (row.began_ms, row.seq)):
        is_again = row.name_server and row.name_server == lost_at and row.began_ms >= lost_ms
        # A call that chooses records its choice while it runs, that is after it began.
        if is_again and not _any_within(moves, lost_ms, row.time_ms):
            yield of.broken("moves on", row, "called again after a call without an answer")
        # The latest end so far of a call without an answer, and the NameServer that was asked.
        if row.type == "info" and row.code is None and row.time_ms >= lost_ms:
            lost_ms, lost_at = row.time_ms, row.name_server


def silent_reconnects(of: Selection, configured: Collection[str], world: World) -> Iterator[Broken]:
    """Channels to a NameServer opened again after a close, although it was not chosen again; if the chosen one has not
    failed since, the client left that. Where two calls time out together, one may choose before the other has closed
    the channel."""
    before: dict[str, tuple[str | None, float]] = {}
    reasons, chosen = _reasons(of, world), of.rows[0]
    for row in of.rows:
        if row.event not in ("name_server_chosen", "channel"):
            continue
        address = row.address if row.event == "channel" else row.name_server
        if address not in configured:
            continue
        what = row.f if row.event == "channel" else "chosen"
        if what == "chosen":
            chosen = row
        last, at_ms = before.get(address, (None, -math.inf))
        if what == "open" and last in ("close", "connect_failed"):
            kept = chosen.name_server
            failed = _any_within(reasons.get(kept, ()), chosen.time_ms, row.time_ms)
            rule = "moves on" if failed or kept in ("", address) else "sticky"
            yield of.broken(rule, row, "connected again without being chosen")
        if what != "close" or last != "chosen" or row.time_ms > at_ms + world.timers.at_once_ms:
            before[address] = what, row.time_ms


def unchosen(of: Selection, configured: Collection[str], world: World) -> Iterator[Broken]:
    """Channels to a NameServer that was never chosen: only brokers look for available ones (`scanAvailableNameSrv`). Of
    an outside client the choice is seen only with its first request, behind the dial, so it is not judged by this."""
    if not any(n.name == of.who.node and n.is_ours and not n.is_under_test for n in world.nodes):
        return
    chosen = set[str | None]()
    for row in of.rows:
        if row.event == "name_server_chosen":
            chosen.add(row.name_server)
        elif row.event == "channel" and row.f == "open" and row.address in configured and row.address not in chosen:
            yield of.broken("dials the chosen", row, "connected without being chosen")


class Tries:
    """The rules of one call, for calls that say what each of their tries came to."""

    def __init__(self, profile: ClientProfile, world: World, lateness: Lateness) -> None:
        self._profile, self._timers = profile, world.timers
        self._retried = frozenset(str(outcome) for outcome in profile.retries)
        self._world = world
        self._lag_ms = {node: float(of.lag_ms.max()) for node, of in lateness.of_node.items() if len(of.lag_ms)}
        self.calls = 0
        """How many calls said it so far."""

    def broken(self, of: Selection) -> Iterator[Broken]:
        """The calls that made too many tries, gave up early though their client lived on, went on after an answer, or
        took too long."""
        by_http, listed, since_ms = self._world.asks_for_list(of.who.node), 0, -math.inf
        for row in of.rows:
            if row.event == "name_server_list":
                listed, since_ms = len(_listed(row.value) or ()), row.time_ms
            tried = row.said.get("tried") if row.event == "name_server_call" else None
            gave_up = tried == [] and listed and self._gave_up(row, of) and not self._cut_short(row, of)
            if gave_up and not (by_http and self._fetches_in_vain(row)):
                yield of.broken("attempts", row, "no try")
            if tried:
                self.calls += 1
                outcomes = [one.get("outcome") for one in tried]
                if by_http and _began_ms(row) <= since_ms:
                    continue  # its list changed under it
                entries = listed if by_http else len(self._world.addresses_of(row.node))
                most = self._profile.attempts_max(entries)
                rule = self._rule(row, outcomes, most)
                if rule == "attempts" and self._cut_short(row, of):
                    continue
                if rule is not None:
                    took = "" if row.duration_ms is None else f" in {math.floor(row.duration_ms + 0.5)} ms"
                    yield of.broken(rule, row, ", ".join(map(str, outcomes)) + took)

    def _gave_up(self, row: Row, of: Selection) -> bool:
        """Whether a call of our client failed without a try though no other call was choosing, or the call did not wait
        for it."""
        if row.type != "fail" or row.duration_ms is None or not self._world.is_ours(row.node):
            return False
        others = (one for one in of.rows if one.event == "name_server_call" and one.said.get("tried") != [])
        could_choose = any(one.time_ms >= row.began_ms and one.began_ms <= row.time_ms for one in others)
        return not could_choose or row.duration_ms < self._waits_ms(row.node) - self._timers.delivery_ms

    def _fetches_in_vain(self, row: Row) -> bool:
        """Whether a client that began shortly before may not have fetched a list yet."""
        until_ms = row.time_ms - 1000 * TIMEOUT_S - self._timers.delivery_ms
        away = out_of_reach(self._world, row.node)
        return any(one.start_ms <= row.time_ms and until_ms <= one.end_ms for one in away)

    def _is_told(self) -> bool:
        """Whether our clients go by their settings, and by no profile of another client."""
        return bool(self._world.run.get("settings")) and not self._world.workload.get("client_profile")

    def _waits_ms(self, node: str) -> float:
        """For how long a call waits for another call to choose."""
        told = self._world.setting(node, "lockTimeoutMillis") if self._is_told() else self._profile.wait_ms
        return float(str(told))

    def _cut_short(self, row: Row, of: Selection) -> bool:
        """Whether the end of its client (SIGTERM, its shutdown) or of the run may have ended it: nothing came after."""
        ends_ms = min(self._world.ended_ms(*row.process), self._world.end_ms)
        return row.time_ms >= ends_ms - LEAVES_MS - self._timers.delivery_ms and not any(
            _began_ms(later) > row.time_ms for later in of.rows if later.event != "channel" or later.f != "close"
        )

    def _rule(self, row: Row, outcomes: Sequence[str | None], most: int) -> str | None:
        number, earlier = len(outcomes), outcomes[:-1]
        if str(Outcome.ANSWERED) in earlier:
            return "answers are final"
        if number > most or any(outcome not in self._retried for outcome in earlier):
            return "no more attempts"
        if number < most and outcomes[-1] in self._retried:
            return "attempts"
        if row.duration_ms is not None and row.duration_ms > self._allowed_ms(row.node, number):
            return "in time"
        return None

    def _allowed_ms(self, node: str, number: int) -> float:
        # Nobody measured the lateness of a client that is not ours: then the most that any verdict forgives.
        lag_ms = self._lag_ms.get(node, self._timers.lateness_cap_ms)
        try_ms = self._profile.try_timeout_ms
        if self._is_told():
            timers = self._world.timers_of(node)  # ours: as it was told
            try_ms = max(timers.A_ms, timers.C_ms)
        tries_ms = number * try_ms + self._waits_ms(node)
        return tries_ms + lag_ms * CHAINED_TIMERS + self._timers.delivery_ms


def kept_between_requests(of: Selection) -> Iterator[Broken]:
    """Calls without a choice of their own since the call before, of clients that take the next NameServer at every
    request."""
    chosen = grouped((choice.row.name_server, choice.row.time_ms) for choice in of.choices)
    before_ms = -math.inf
    for row in of.rows:
        if row.event == "name_server_call" and row.name_server:
            since_ms = min(before_ms, _began_ms(row)) - ROUNDING_MS
            if not _any_within(chosen.get(row.name_server, ()), since_ms, row.time_ms):
                yield of.broken("every request", row, "asked without being chosen")
            before_ms = row.time_ms

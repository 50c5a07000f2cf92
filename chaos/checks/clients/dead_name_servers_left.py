"""Each client leaves a NameServer that died, hung or became unreachable, and asks it nothing more while it is lost.

    on it   ── lost ────── P (+ k·P) + A ──┬── another one chosen ──────────────── back
    chosen meanwhile ───── P (+ k·P) + A ──┘

    must have left       every visit (from one choice of it to the next choice of another) ends within the client's
                         window, counted from the loss, or from the choice when that came later: round robin leads past
                         the dead, too
    must not ask again   within a visit nothing is asked after a call went without an answer
    must give up         a call without an answer ends after A, and what connecting to each of the list may take
    must not ask         no call is made to it while another one is chosen

A client that had chosen another one before the loss has nothing to leave, but it must not ask the lost one all the
same. Which windows hold for which client version stands in lost_name_servers.py; name_server_selection asks for the
order of choices, this check for the time they take.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...oracle.intervals import until_next
from ...oracle.lost_name_servers import NameServerLoss, name_server_losses
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import NEVER, Rule, finding, rounded, verdict_of
from ..record.control import Control, Row
from ..tolerance import Tolerance, tolerance

NAME = "dead_name_servers_left"
_SHOWN = 60
_CALLS_MAX = 200
"""So many of a client's calls to one lost NameServer are looked at one by one; the first ones are the telling ones."""
_CLIENTS = ("producer", "consumer")

_Process = tuple[str, int]
"""Node and incarnation."""


class _Visit(NamedTuple):
    """From a choice of the NameServer to the next choice of another (inf: none was made)."""

    chosen_ms: float
    left_ms: float


class _Call(NamedTuple):
    began_ms: float
    ended_ms: float
    answered: bool


class _Rule(NamedTuple):
    """One rule held against one visit or call: how long it took, what is allowed, and where it was broken."""

    measured_ms: float
    bound_ms: float
    kind: str
    due_ms: float
    wrong_from_ms: float
    wrong_to_ms: float
    formula: str = NEVER

    @property
    def over_ms(self) -> float:
        return self.measured_ms - self.bound_ms


@dataclass(slots=True)
class _Seen:
    """What the client's process did about one lost NameServer."""

    visits: Sequence[_Visit]
    """Those that reach into the loss, in order of time."""
    calls: Sequence[_Call]
    """To the lost one, ended after its loss, in order of their beginning."""
    asked: int
    """Calls of anyone after the client's window."""


def judge(control: Control, world: World) -> Verdict:
    """Examined: lost NameServers, per client that left them or that asked anyone after its window. Violations: those
    that were not left, or were asked."""
    found = name_server_losses(world)
    if not found:
        return Verdict.nothing_examined(NAME, "no NameServer was lost to a client for longer than the client's window")
    seen = _seen(control, found)
    judged = [e for e in found if seen[e.id].asked or any(visit.left_ms < e.end_ms for visit in seen[e.id].visits)]
    late = (((e.client, e.name_server), e.start_ms, e.from_ms) for e in judged)
    findings = [
        _finding(e, seen[e.id], tolerance(world.timers, lag_ms, e.window.timers), _patience_ms(world, e.client))
        for e, lag_ms in zip(judged, control.lateness.largest_of_each(world, late), strict=True)
    ]
    measured = {
        "left": _left(judged, seen),
        "calls_failed": max((_failed(e, seen[e.id]) for e in judged), default=0),
    }
    return verdict_of(
        NAME,
        findings,
        measured=measured,
        nothing="no client left a lost NameServer, or asked any after its window",
        noun="NameServers were not left, or were asked again, while they were lost",
    )


def _patience_ms(world: World, client: str) -> float:
    """How long a call may take that meets every NameServer."""
    timers = world.timers_of(client)
    return timers.A_ms + timers.C_ms * len(world.addresses_of(client))


CHECK = Check(
    name=NAME,
    says="each client left a dead or silent NameServer as its version does, and called it no more",
    group=Group.NAME_SERVERS,
    section=Section.CLIENTS,
    is_of_the_whole=True,
    despite_stalls=True,
    needs=(Needs.CLIENTS,),
    judge=judge,
    outside=True,
    tells=lambda measured: _told(measured),
)


def _told(measured: Mapping[str, Any]) -> str:
    left, failed = measured.get("left") or (), measured.get("calls_failed", 0)
    said = ["nobody was on a lost NameServer"]
    if left:
        last = left[0]
        said = [
            f"the last to leave: {last['client']}, {last['after_ms'] / 1000:.1f} s after {last['name_server']} was lost"
        ]
    return "; ".join([*said, f"failed calls of one client: {failed} at most"])


def _seen(control: Control, losses: Sequence[NameServerLoss]) -> dict[int, _Seen]:
    chosen = _of_clients(control, "name_server_chosen", losses)
    called = _of_clients(control, "name_server_call", losses)
    lists = _of_clients(control, "name_server_list", losses)
    visits = {process: _visits(rows, [*map(_time_ms, lists.get(process, ()))]) for process, rows in chosen.items()}
    found: dict[int, _Seen] = {}
    for loss in losses:
        process = loss.client, loss.incarnation
        rows = called.get(process, ())
        first, last = (bisect_left(rows, at_ms, key=_time_ms) for at_ms in (loss.start_ms, loss.end_ms))
        found[loss.id] = _Seen(
            visits=[
                visit
                for visit in visits.get(process, {}).get(loss.address, ())
                if visit.chosen_ms < loss.end_ms and visit.left_ms > loss.start_ms
            ],
            calls=sorted(_call(row) for row in rows[first:last] if row.name_server == loss.address)[:_CALLS_MAX],
            asked=sum(row.time_ms >= loss.from_ms for row in rows[first:last]),
        )
    return found


def _of_clients(control: Control, event: str, losses: Sequence[NameServerLoss]) -> dict[_Process, list[Row]]:
    """Process → its rows in order of time, for each that lost a NameServer."""
    concerned = {(loss.client, loss.incarnation) for loss in losses}
    found: dict[_Process, list[Row]] = defaultdict(list)
    for row in control.rows(event):
        if row.role in _CLIENTS and row.process in concerned:
            found[row.process].append(row)
    return found


def _time_ms(row: Row) -> float:
    return row.time_ms


def _visits(rows: Sequence[Row], lists_ms: Sequence[float]) -> Mapping[str | None, Sequence[_Visit]]:
    """NameServer → one process's visits to it, in order of time."""
    # Choosing the same one again is no leave, but where a new list, in an order of its own, has it next.
    changes = [
        row
        for before, row in zip([None, *rows], rows, strict=False)
        if before is None
        or row.name_server != before.name_server
        or bisect_left(lists_ms, before.time_ms) < bisect_left(lists_ms, row.time_ms)
    ]
    found: dict[str | None, list[_Visit]] = defaultdict(list)
    for row, left_ms in until_next(changes, math.inf):
        found[row.name_server].append(_Visit(row.time_ms, left_ms))
    return found


def _call(row: Row) -> _Call:
    return _Call(row.time_ms - (row.duration_ms or 0.0), row.time_ms, row.type == "ok" or row.code is not None)


def _during(loss: NameServerLoss, calls: Sequence[_Call]) -> list[_Call]:
    """The calls that began while the NameServer was lost."""
    return [call for call in calls if loss.start_ms <= call.began_ms < loss.end_ms]


def _failed(loss: NameServerLoss, seen: _Seen) -> int:
    """How many calls that began while it was lost went without an answer."""
    return sum(not call.answered for call in _during(loss, seen.calls))


def _finding(loss: NameServerLoss, seen: _Seen, tolerance_: Tolerance, patience_ms: float) -> Finding:
    """What one lost NameServer and one client came to: of all rules the one that was broken most."""
    allowed_ms = loss.window.latest_ms
    rules: list[_Rule] = []
    left: list[_Rule] = []
    for visit in seen.visits:
        since_ms, until_ms = max(visit.chosen_ms, loss.start_ms), min(visit.left_ms, loss.end_ms)
        stayed_ms = until_ms - since_ms
        due_ms = since_ms + allowed_ms
        rule = _Rule(stayed_ms, allowed_ms, "must have left", due_ms, due_ms, until_ms, loss.window.formula)
        if visit.left_ms < loss.end_ms or stayed_ms > allowed_ms:
            left.append(rule)
    rules += left
    rules += _asked_again(loss, seen.visits, seen.calls)
    for call in seen.calls:
        if not call.answered:
            due_ms, took_ms = call.began_ms + patience_ms, call.ended_ms - call.began_ms
            rules.append(_Rule(took_ms, patience_ms, "must give up", due_ms, due_ms, call.ended_ms, "A + C·n"))
    worst = max((rule for rule in rules if rule.over_ms > 0), key=lambda rule: rule.over_ms, default=None)
    longest = max(left, key=lambda rule: rule.over_ms, default=None)
    shown = worst or longest
    return finding(
        (loss.client, loss.name_server),
        worst.kind if worst else "must have left",
        (worst.due_ms if worst else loss.from_ms, loss.end_ms),
        Rule(loss.window.row, shown.formula if shown else loss.window.formula, shown.bound_ms if shown else allowed_ms),
        out=(worst.wrong_from_ms, worst.wrong_to_ms) if worst else None,
        tolerance=tolerance_,
        measured_ms=shown.measured_ms if shown else None,
        over_ms=worst.over_ms if worst else 0.0,
        after=f"{loss.fault_id} start" if loss.fault_id else "",
        times={"lost": loss.start_ms, "back": loss.end_ms},
        more={"calls_failed": _failed(loss, seen)},
    )


def _asked_again(loss: NameServerLoss, visits: Sequence[_Visit], calls: Sequence[_Call]) -> Iterator[_Rule]:
    """The calls to the lost NameServer that began when none should have."""
    for call in _during(loss, calls):
        # A call and the choice that it makes, or the choice of another that it outlives, overlap.
        away_ms = min(
            (max(call.began_ms - visit.left_ms, visit.chosen_ms - call.ended_ms, 0.0) for visit in visits),
            default=call.began_ms - loss.start_ms,
        )
        if away_ms > 0:
            yield _Rule(away_ms, 0.0, "must not ask", call.began_ms, call.began_ms, call.ended_ms)
        for visit in visits:
            chosen_anew = any(call.began_ms < other.chosen_ms <= call.ended_ms for other in visits)
            if chosen_anew or not visit.chosen_ms <= call.began_ms < visit.left_ms:
                continue
            unanswered = (
                other.ended_ms
                for other in calls
                if not other.answered
                and max(visit.chosen_ms, loss.start_ms) <= other.began_ms
                and other.ended_ms < call.began_ms
            )
            first_ms = min(unanswered, default=None)
            if first_ms is not None:
                since_ms = call.began_ms - first_ms
                yield _Rule(since_ms, 0.0, "must not ask again", first_ms, call.began_ms, call.ended_ms)


def _left(found: Sequence[NameServerLoss], seen: Mapping[int, _Seen]) -> list[dict[str, Any]]:
    """How long each client that was on a lost NameServer took to leave it; the longest first."""
    rows: list[dict[str, Any]] = [
        {
            "client": loss.client,
            "name_server": loss.name_server,
            "fault_id": loss.fault_id,
            "after_ms": rounded(visit.left_ms - loss.start_ms),
            "bound_ms": rounded(loss.window.latest_ms),
        }
        for loss in found
        for visit in seen[loss.id].visits
        if visit.chosen_ms <= loss.start_ms and visit.left_ms < loss.end_ms
    ]
    return sorted(rows, key=lambda row: -row["after_ms"])[:_SHOWN]

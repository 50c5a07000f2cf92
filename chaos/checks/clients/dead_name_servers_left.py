"""Each client leaves a NameServer that died, hung or became unreachable, within the window of its version.

    on it   ── lost ────── P (+ k·P) + A ──┬── another one chosen ──────────────── back, or a second fault
    chosen meanwhile ───── P (+ k·P) + A ──┘

A promise, asked where one fault at a time met the client (oracle/lost_name_servers.py has the windows): every
visit, from one choice of it to the next choice of another, ends within the window, counted from the loss, or from the
choice when that came later, for round robin leads past the dead, too. A client that had chosen another one has nothing
to leave. That it asks no more after a call without an answer, nobody but whom it has chosen, and waits no longer than
it may, is name_server_selection's, which looks at no fault.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...oracle.intervals import grouped, until_next
from ...oracle.lost_name_servers import (
    NameServerLoss,
    clients_that_stay,
    is_any_lost,
    name_server_losses,
    too_short,
)
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Group, Needs, Section, check
from ..findings import finding, leavings, need_not_leave, verdict_of
from ..record.control import Control, Row


class _Visit(NamedTuple):
    """From a choice of the NameServer to the next choice of another (inf: none was made)."""

    chosen_ms: float
    left_ms: float


class _Seen(NamedTuple):
    """What the client's process did about one lost NameServer."""

    visits: Sequence[_Visit]
    """Those that reach into the loss, in order of time."""
    failed: int
    """Calls to it without an answer that began while it was lost."""
    asked: int
    """Calls of anyone after the client's window."""


@check(
    says="each client stops using a dead, silent or removed NameServer in the time that the client's version allows",
    group=Group.NAME_SERVERS,
    section=Section.CLIENTS,
    is_of_the_whole=True,
    despite_stalls=True,
    needs=(Needs.CLIENTS,),
    outside=True,
    tells=lambda measured: _told(measured),
)
def judge(control: Control, world: World) -> Verdict:
    """Examined: lost NameServers, per client that had chosen them, and that left them or asked anyone after its window.
    Violations: those that were not left."""
    found, stay = name_server_losses(world), clients_that_stay(world)
    if not found:
        return Verdict.nothing_examined("; ".join([*([_may_stay(stay)] if stay else []), _no_loss(world)]))
    chosen = [(loss, seen) for loss, seen in _seen(control, found) if seen.visits]
    judged = [(e, seen) for e, seen in chosen if seen.asked or any(visit.left_ms < e.end_ms for visit in seen.visits)]
    findings = [_finding(loss, seen, control, world) for loss, seen in judged]
    left = [
        (loss.client, loss.name_server, loss.fault_id, visit.left_ms - loss.start_ms, loss.window)
        for loss, seen in judged
        for visit in seen.visits
        if visit.chosen_ms <= loss.start_ms and visit.left_ms < loss.end_ms
    ]
    measured = {
        "left": leavings("name_server", left),
        "calls_failed": max((seen.failed for _, seen in judged), default=0),
    }
    measured |= {"may_stay": stay} if stay else {}
    return verdict_of(
        findings,
        measured=measured,
        nothing="no client moved on from a lost NameServer, or asked any NameServer after the time limit"
        if chosen
        else f"no client had chosen {' or '.join(sorted({e.name_server for e in found}))} before or during the loss",
        noun="lost NameServers were still a client's choice after the time limit",
    )


def _told(measured: Mapping[str, Any]) -> str:
    left, failed = measured.get("left") or (), measured.get("calls_failed", 0)
    stayed = measured.get("max_ms") is not None
    said = ["no client left the lost NameServer" if stayed else "no client had chosen a lost NameServer"]
    if left:
        last = left[0]
        said = [
            f"the last to leave: {last['client']}, {last['after_ms'] / 1000:.1f} s after {last['name_server']} was lost"
        ]
    may_stay = [_may_stay(stay)] if (stay := measured.get("may_stay")) else []
    return "; ".join([*said, f"failed calls of one client: {failed} at most", *may_stay])


def _may_stay(clients: Sequence[str]) -> str:
    return f"{', '.join(clients)} may stay with a silent NameServer (clientCloseSocketIfTimeout=false)"


def _no_loss(world: World) -> str:
    short = too_short(world)
    if not short and is_any_lost(world):
        return (
            "each NameServer was lost beside another fault, or soon after one: only a fault that comes alone is judged "
            "here, and each choice by name_server_selection"
        )
    if not short:
        return "no client lost its NameServer while another could be chosen, as in the scenario name-server-crash"
    longest = max(short, key=lambda loss: loss.back_ms - loss.start_ms)
    if longest.back_ms > longest.from_ms:
        lost_s, alone_s = ((at_ms - longest.start_ms) / 1000 for at_ms in (longest.back_ms, longest.end_ms))
        lost = f"{longest.client} lost {longest.name_server} for {lost_s:.0f} s"
        return f"{lost}, but met another fault after {alone_s:.0f} s: only a fault that comes alone is judged"
    return need_not_leave(longest.client, longest.name_server, longest.back_ms - longest.start_ms, longest.window)


def _seen(control: Control, losses: Sequence[NameServerLoss]) -> Iterator[tuple[NameServerLoss, _Seen]]:
    events = "name_server_chosen", "name_server_call", "name_server_list"
    chosen, called, lists = (control.by_process(event) for event in events)
    lists_ms = {process: [row.time_ms for row in rows] for process, rows in lists.items()}
    visits = {process: _visits(rows, lists_ms.get(process, ())) for process, rows in chosen.items()}
    for loss in losses:
        process = loss.client, loss.incarnation
        rows = called.get(process, ())
        first, last = (bisect_left(rows, at_ms, key=lambda row: row.time_ms) for at_ms in (loss.start_ms, loss.end_ms))
        here = [visit for visit in visits.get(process, {}).get(loss.address, ()) if visit.left_ms > loss.start_ms]
        visits_here = [visit for visit in here if visit.chosen_ms < loss.end_ms]
        meanwhile = rows[first:last]
        failed, asked = (_failed(row, loss) for row in meanwhile), (row.time_ms >= loss.from_ms for row in meanwhile)
        yield loss, _Seen(visits_here, sum(failed), sum(asked))


def _failed(row: Row, loss: NameServerLoss) -> bool:
    return row.name_server == loss.address and row.type != "ok" and row.code is None and row.began_ms >= loss.start_ms


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
    return grouped((row.name_server, _Visit(row.time_ms, left_ms)) for row, left_ms in until_next(changes, math.inf))


def _finding(loss: NameServerLoss, seen: _Seen, control: Control, world: World) -> Finding:
    """What one lost NameServer and one client came to: the visit that lasted longest."""
    allowed_ms, pair = loss.window.latest_ms, (loss.client, loss.name_server)
    is_unlisted = loss.fault_id in {served.change_id for served in world.served}
    stays = []
    for visit in seen.visits:
        since_ms, until_ms = max(visit.chosen_ms, loss.start_ms), min(visit.left_ms, loss.end_ms)
        if visit.left_ms < loss.end_ms or until_ms - since_ms > allowed_ms:
            stays.append((until_ms - since_ms, since_ms + allowed_ms, until_ms))
    stayed_ms, due_ms, left_ms = max(stays, default=(0.0, loss.from_ms, loss.from_ms))
    over_ms = max(0.0, stayed_ms - allowed_ms)
    return finding(
        pair,
        "must have left the removed" if is_unlisted else "must have left",
        (due_ms if over_ms else loss.from_ms, loss.end_ms),
        loss.window,
        out=(due_ms, left_ms) if over_ms else None,
        tolerance=control.lateness.tolerance(world, pair, loss.start_ms, loss.from_ms, loss.window.timers),
        measured_ms=stayed_ms if stays else None,
        over_ms=over_ms,
        after=f"{loss.fault_id} start" if loss.fault_id else "",
        times={"lost": loss.start_ms, "back": loss.end_ms},
        more={"calls_failed": seen.failed},
    )

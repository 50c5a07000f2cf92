"""Computes how well a fault explains a history's signs, and when the fault must have begun and ended. Pure: no I/O.

    signs on the candidate's links, in order of time
       ok ok ✗ ✗ ✗ ok ✗ ok        a fit is a run of signs that the fault makes likely, between two that contradict it
          └─start─┘ └end┘         start in (last success, first failure], end likewise; windows narrow it

A log line that the fault should have caused, but that is missing, is evidence against the fault (`Doubt`).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...chaos.faults.fault import Loss
from ...chaos.oracle.windows import drop_window
from ..logs_to_rows.signs import CLOSES, LEAVING_MS, WORKS, Edge, Kind, Seen, Sign, first_after, last_before
from .candidates import CERTAINLY_NOT, Candidate, Mode, gain, normal

CANNOT = -6.0
"""A sign that gains no more than this ends a fit."""
OFTEN = 3
"""Number of equal signs on one link that count fully; more of them say the same again."""
SAYS_AGAIN = 0.05
"""Weight of each further equal sign."""
BEARS = -8.0
"""Contradictions in sequence of this weight end a fit, too."""
DOUBTFUL = -0.5
"""Contradictions of less weight are ignored."""

CLOSES_WITHIN_MS = 1_000.0
"""A fault that ends channels ends all of them within this time."""
LEAVES_MS = 3_000.0
"""A cleanly stopped process unregisters at one NameServer within this time and is silent afterwards."""
CLOCKS_MS, LATE_WORTH = 10_000.0, 0.5
"""A close later than that, but within the error of clocks, has this small weight."""
AFTER_MS = 2_000.0
"""Time after a fault's end within which everything that the fault held back arrives."""
WAITED_MS = 24_000.0
"""Delayed effects of requests that waited come within this time, too."""
RESTARTS_MS = 60_000.0
"""An unregistration within this time of the broker's stop or start was not by hand."""

CONFLICT = 6.0
"""Cost: signs contradict each other about its begin."""
NOT_LEFT = 10.0
"""Cost: a NameServer's log lacks the unregistration of a clean stop or by hand, which is always logged."""
NO_LEAVE = 3.0
"""Cost: the log of a cleanly stopped broker does not say so."""
NO_CLOSE = 5.0
"""Cost: a NameServer's log lacks the end of a channel that the fault ends."""
NO_DROP = 6.0
"""Cost: a NameServer did not drop a broker that was silent for too long."""
NO_BOOT = 8.0
"""Cost: the log of a process that was ended goes on without a start."""
UNFELT, UNFELT_MAX = 4.0, 12.0
"""Cost: a user of the link noticed nothing; the second is the most for all links."""

_ANCHORS = frozenset({*CLOSES, Kind.LEFT, Kind.GONE})
"""Signs that show the begin of such faults at once."""
_ENDING = frozenset({Mode.CUT, Mode.DIALLER_GONE, Mode.PEER_GONE, Mode.DIALLER_LEFT, Mode.PEER_LEFT})
_SILENT = frozenset({Mode.HELD, Mode.LOST, Mode.DIALLER_HUNG, Mode.PEER_HUNG, Mode.PEER_OFF})
_HOLDS = frozenset({Mode.HELD, Mode.DOWN_HELD, Mode.DIALLER_HUNG, Mode.PEER_HUNG})
"""Modes whose kept-back data arrive at the end, closes included."""
_DEAD = frozenset({
    Mode.DIALLER_GONE, Mode.PEER_GONE, Mode.DIALLER_LEFT, Mode.PEER_LEFT, Mode.DIALLER_HUNG, Mode.PEER_HUNG,
    Mode.PEER_OFF,
})  # fmt: skip


class Bounds(NamedTuple):
    from_ms: float
    to_ms: float

    @property
    def middle_ms(self) -> float:
        return (self.from_ms + self.to_ms) / 2

    @property
    def half_ms(self) -> float:
        return (self.to_ms - self.from_ms) / 2

    def meets(self, other: Bounds, tolerance_ms: float) -> bool:
        return self.from_ms <= other.to_ms + tolerance_ms and other.from_ms <= self.to_ms + tolerance_ms


class Doubt(NamedTuple):
    """Evidence against a fault: a log line that contradicts the fault, or the lack of a line that the fault should have
    caused."""

    says: str
    cost: float
    row: Mapping[str, object] | None = None


@dataclass(slots=True)
class Fit:
    """A candidate fault with the time in which it explains signs: the fault's possible begin and end."""

    candidate: Candidate
    signs: list[tuple[Sign, float]]
    """The signs that it explains, and how much likelier each becomes."""
    start: Bounds
    end: Bounds | None
    """None if the fault does not end in these logs."""
    against: list[Doubt] = field(default_factory=list)

    @property
    def evidence(self) -> float:
        """Return how much likelier the signs are with the fault than without, in nats (units of log-likelihood)."""
        return sum(g for _, g in self.signs) - sum(one.cost for one in self.against)

    @property
    def net(self) -> float:
        return self.evidence - self.candidate.price

    def tolerance_ms(self, seen: Seen) -> float:
        return seen.tolerance_ms(*self.candidate.about)


def with_signs_of(among: Iterable[Fit], taken: Mapping[Sign, float]) -> dict[Sign, float]:
    """Return `taken` with the signs added that the faults in `among` explain."""
    return dict(taken) | {sign: worth for fit in among for sign, worth in fit.signs}


def fits(candidate: Candidate, seen: Seen, taken: Mapping[Sign, float] | None = None) -> list[Fit]:
    """Return every time in which the candidate fault explains more than its price. Other faults already explain the
    signs in `taken`."""
    taken, leaving = taken or {}, _leaving(candidate, seen)
    marked = [
        (sign, mode, _worth(candidate, sign, mode, taken, leaving))
        for edge, mode in candidate.edges
        for sign in seen.by_edge.get(edge, ())
    ]
    tolerance = seen.tolerance_ms(*candidate.about)
    marked.sort(key=lambda one: _order(one[0], tolerance if candidate.form.ends_process else 0.0))
    own = _own_times(candidate, seen)
    found: list[Fit] = []
    run: list[tuple[Sign, Mode, float]] = []
    before_ms = -math.inf
    booted_ms: float | None = None
    bad_for = 0.0

    def close(position: int, after_ms: float) -> None:
        if run:
            fit = _fit(candidate, seen, run, before_ms, after_ms, marked[position:], tolerance, own)
            if fit is not None:
                found.append(fit)
            run.clear()

    for position, (sign, mode, worth) in enumerate(marked):
        if run and candidate.instant and sign.at_ms > run[0][0].at_ms + _moment_ms(candidate, seen, tolerance):
            close(position, sign.at_ms)
        if booted_ms is not None and (sign.at_ms > booted_ms + tolerance / 2 or worth <= CANNOT):
            close(position, booted_ms)
            before_ms, booted_ms = max(before_ms, booted_ms), None
        first_ms = run[0][0].at_ms if run else None
        if worth <= CANNOT:
            if first_ms is not None and sign.at_ms <= first_ms + tolerance and run[0][0].kind in _ANCHORS:
                continue  # of the same second as what began it
            close(position, sign.at_ms)
            before_ms = sign.at_ms
        elif worth > 0:
            if run and _written_between(own, run[-1][0], sign, tolerance):
                close(position, first_after(own, run[-1][0].at_ms + tolerance))
                before_ms = last_before(own, sign.at_ms - tolerance)
            run.append((sign, mode, worth))
            if sign.kind is Kind.BOOT and candidate.form.ends_process:
                booted_ms = sign.at_ms
        elif worth < 0:
            if run:
                run.append((sign, mode, worth))
            if sign.kind not in WORKS:
                continue
            bad_for += worth
            if run and bad_for < BEARS:
                close(position + 1, sign.at_ms)
            if not run:
                before_ms = sign.at_ms
        if worth > 0:
            bad_for = 0.0
    close(len(marked), math.inf)
    return found


def _leaving(candidate: Candidate, seen: Seen) -> Mapping[str, Bounds]:
    """Return when each cleanly stopped node was stopping: after its unregistration, before its process ended."""
    found: dict[str, Bounds] = {}
    for node in candidate.nodes if candidate.name == "stop" else ():
        left = [sign.at_ms for edge, _ in candidate.edges if edge.dialler == node for sign in seen.by_edge.get(edge, ())
                if sign.kind is Kind.LEFT]  # fmt: skip
        for sign in seen.by_edge.get(Edge(node, ""), ()):
            since = [at for at in left if sign.at_ms - LEAVING_MS <= at <= sign.at_ms]
            if sign.kind is Kind.STOPPED and since and sign.at_ms - min(since) > LEAVES_MS:
                found[node] = Bounds(min(since), sign.at_ms)
    return found


def _is_leaving(sign: Sign, leaving: Mapping[str, Bounds]) -> bool:
    return any(
        (stretch := leaving.get(node)) is not None and stretch.from_ms <= sign.at_ms <= stretch.to_ms + LEAVES_MS
        for node in sign.edge
    )


def _worth(
    candidate: Candidate, sign: Sign, mode: Mode, taken: Mapping[Sign, float], leaving: Mapping[str, Bounds]
) -> float:
    if leaving and sign.kind not in _OF_THE_DEAD and sign.kind is not Kind.LEFT and _is_leaving(sign, leaving):
        return 0.0 if sign in taken or sign.kind in WORKS else max(LATE_WORTH, gain(mode, sign.kind))
    parting = candidate.name == "stop" and sign.kind in CLOSES
    if sign.observer in candidate.nodes and mode in _DEAD and sign.kind not in _OF_THE_DEAD and not parting:
        return -CERTAINLY_NOT
    return 0.0 if sign in taken else gain(mode, sign.kind)


_OF_THE_DEAD = frozenset({Kind.BOOT, Kind.STOPPED, Kind.OWN_MISSED, Kind.MISSED})
"""Signs that a dead process's own log cannot contain."""


def _order(sign: Sign, tolerance: float) -> tuple[float, int]:
    """Return a sort key by time; within the error of times, ends come before starts before successes."""
    if sign.kind in _ANCHORS:
        return sign.at_ms - 2 * tolerance, 0
    if sign.kind is Kind.BOOT:
        return sign.at_ms - tolerance, 1
    return sign.at_ms, 2 if sign.kind in WORKS else 0


def _moment_ms(candidate: Candidate, seen: Seen, tolerance: float) -> float:
    """Return the longest that the effects of one moment take to show everywhere."""
    return (seen.timers.S_ms if candidate.name == "clock_step" else LEAVES_MS * len(candidate.nodes)) + tolerance


def _own_times(candidate: Candidate, seen: Seen) -> list[float]:
    """Return when processes that the candidate would end or stop wrote something, so that they were alive."""
    if not candidate.nodes or candidate.instant:
        return []
    leaving = _leaving(candidate, seen)
    times = sorted(time for node in candidate.nodes for time in seen.own.get(node, ()))
    return [time for time in times if not any(one.from_ms <= time <= one.to_ms for one in leaving.values())]


def _written_between(own: Sequence[float], first: Sign, second: Sign, tolerance: float) -> bool:
    from_ms, to_ms = first.at_ms + tolerance, min(second.at_ms, max(second.from_ms, first.at_ms)) - tolerance
    return bisect_left(own, to_ms) > bisect_right(own, from_ms)


def _fit(
    candidate: Candidate, seen: Seen, run: Sequence[tuple[Sign, Mode, float]], before_ms: float, after_ms: float,
    rest: Sequence[tuple[Sign, Mode, float]], tolerance: float, own: Sequence[float],
) -> Fit | None:  # fmt: skip
    if not candidate.form.ends_process:
        late = [one for one in run if one[2] < 0 and one[0].at_ms >= after_ms - tolerance]
        run, rest = [one for one in run if one not in late], [*late, *rest]
    while run and run[-1][2] <= 0:
        last, run = run[-1], run[:-1]
        if last[0].kind in WORKS:
            after_ms = last[0].at_ms
        else:
            rest = [last, *rest]
    kept = [one for one in run if one[2] > 0]
    kept = _anchored(candidate, seen, kept, tolerance)
    if not kept:
        return None
    signs = _counted((sign, worth) for sign, _, worth in kept)
    against: list[Doubt] = []
    odd = [(sign, worth) for sign, _, worth in run if worth < 0 and sign.kind not in WORKS]
    doubtful = sum(worth for _, worth in _counted(odd))
    doubtful += sum(one[2] for one in run if one[2] < 0 and one[0].kind in WORKS)
    if doubtful < DOUBTFUL:
        against.append(Doubt("lines that hardly go with it", -doubtful))
    first_ms = min(sign.from_ms for sign, _, _ in kept)
    last_ms = max(_lasts_until(sign, seen) for sign, _, _ in kept)
    if candidate.instant:
        began_ms = min(sign.at_ms for sign, _, _ in kept)
        early = seen.timers.S_ms if candidate.name == "clock_step" else 0.0
        start = Bounds(began_ms - early - tolerance / 2, began_ms + tolerance / 2)
        says_so = {sign.edge for sign, _, _ in kept}
        for edge, mode in candidate.edges:
            if mode is Mode.BY_HAND and edge not in says_so and seen.covers(edge.peer, start.from_ms, start.to_ms):
                against.append(Doubt(f"{edge.peer} says nothing of it", NOT_LEFT))
        if candidate.name == "unregister":
            broker = candidate.edges[0][0].dialler
            ended = [s for s in seen.by_edge.get(Edge(broker, ""), ()) if s.kind in (Kind.BOOT, Kind.STOPPED)]
            if any(abs(sign.at_ms - start.to_ms) <= RESTARTS_MS for sign in ended):
                against.append(Doubt(f"{broker} was stopped, or started again, at that time", NOT_LEFT))
        return Fit(candidate, signs, start, start, against)
    boot = next((sign.at_ms for sign, _, _ in reversed(kept) if sign.kind is Kind.BOOT), None)
    if own:
        first_at = min(sign.at_ms for sign, _, _ in kept)
        before_ms = max(before_ms, last_before(own, min(first_at, boot or math.inf) - tolerance))
        if boot is None:
            after_ms = min(after_ms, first_after(own, max(sign.at_ms for sign, _, _ in kept) + tolerance))
    start = _start(seen, kept, max(before_ms, seen.first_ms), first_ms, tolerance, against)
    if boot is not None and candidate.form.ends_process:
        end: Bounds | None = Bounds(max(start.from_ms, boot - tolerance), boot)
        signs += _aftermath(rest, boot, tolerance)
    elif math.isinf(after_ms):
        end = None
    else:
        end = Bounds(min(max(last_ms, start.from_ms), after_ms), after_ms)
        after = _aftermath(rest, after_ms, tolerance)
        signs += after
        let_through = [s.at_ms for s, _ in after if s.kind in CLOSES and abs(s.at_ms - after_ms) <= tolerance]
        if let_through and any(mode in _HOLDS for _, mode in candidate.edges):
            end = Bounds(max(end.from_ms, min(let_through) - tolerance / 2), max(end.from_ms, min(let_through)))
    fit = Fit(candidate, signs, start, end, against)
    _missing(fit, seen, tolerance)
    return fit


def _lasts_until(sign: Sign, seen: Seen) -> float:
    silent = sign.kind in (Kind.SILENCE, Kind.GONE)
    return max(sign.from_ms, sign.at_ms - seen.timers.R_ms) if silent else sign.at_ms


def _counted(kept: Iterable[tuple[Sign, float]]) -> list[tuple[Sign, float]]:
    often: Counter[tuple[Edge, Kind]] = Counter()
    signs = []
    for sign, worth in kept:
        often[sign.edge, sign.kind] += 1
        signs.append((sign, worth if often[sign.edge, sign.kind] <= OFTEN else worth * SAYS_AGAIN))
    return signs


def _anchored(
    candidate: Candidate, seen: Seen, kept: list[tuple[Sign, Mode, float]], tolerance: float
) -> list[tuple[Sign, Mode, float]]:
    """Return the signs, but leave out closed channels and unregistrations far from the fault's begin. A fault causes
    these signs only at its begin."""
    anchors = [one for one in kept if one[1] in _ENDING and one[0].kind in _ANCHORS]
    if not anchors:
        return kept
    first_ms = min(one[0].at_ms for one in anchors)
    takes_leave = candidate.name == "stop" and any(one[0].kind is Kind.LEFT for one in anchors)
    within = LEAVES_MS * len(seen.name_servers) if takes_leave else CLOSES_WITHIN_MS
    within = max([within, *(LEAVES_MS + 2 * one.half_ms for one in _leaving(candidate, seen).values())])
    others = [one for one in kept if one not in anchors]
    early = [one for one in others if one[0].from_ms < first_ms - tolerance]
    if sum(one[2] for one in early) > sum(one[2] for one in anchors):
        return others
    found = []
    for one in kept:
        if one in early:
            continue
        if one in anchors and one[0].at_ms > first_ms + tolerance + within:
            if one[0].at_ms > first_ms + CLOCKS_MS:
                continue
            one = one[0], one[1], LATE_WORTH
        found.append(one)
    return found


def _start(
    seen: Seen, kept: Sequence[tuple[Sign, Mode, float]], before_ms: float, first_ms: float, tolerance: float,
    against: list[Doubt],
) -> Bounds:  # fmt: skip
    anchors = [s.at_ms for s, mode, _ in kept if mode in _ENDING and s.kind in _ANCHORS]
    if anchors:
        exact = tolerance / 2
        return Bounds(min(anchors) - exact, min(anchors) + exact)
    from_ms, to_ms = before_ms, first_ms
    for sign, mode, _ in kept:
        dropped = sign.kind is Kind.GONE or (sign.kind is Kind.SILENCE and sign.value)
        if not dropped or mode not in (*_SILENT, Mode.DOWN_LOST):
            continue
        window = drop_window(seen.timers, Loss.BACKWARD_PACKETS if mode is Mode.DOWN_LOST else Loss.SILENT)
        from_ms = max(from_ms, sign.at_ms - window.latest_ms - tolerance)
        to_ms = min(to_ms, sign.at_ms - window.earliest_ms + tolerance)
    if from_ms > to_ms:
        if from_ms - to_ms > 2 * tolerance:
            against.append(Doubt(f"its lines do not go together: {(from_ms - to_ms) / 1000:.0f} s apart", CONFLICT))
        from_ms, to_ms = to_ms - min(tolerance, from_ms - to_ms), to_ms
    return Bounds(from_ms, to_ms)


def _aftermath(rest: Sequence[tuple[Sign, Mode, float]], heal_ms: float, tolerance: float) -> list[tuple[Sign, float]]:
    """Return effects of the end of the fault: closed channels, abandoned requests, late data."""
    found = []
    for sign, mode, _ in rest:
        if sign.at_ms > heal_ms + AFTER_MS + tolerance + WAITED_MS:
            break
        refused = sign.kind in (Kind.REFUSED, Kind.FAILED) and sign.at_ms <= heal_ms + tolerance
        if (
            (mode in _ENDING and not refused)
            or not normal(sign.kind)
            or sign.kind in (Kind.BOOT, Kind.MISSED, Kind.OWN_MISSED, Kind.EARLY)
        ):
            continue
        held = sign.at_ms <= heal_ms + AFTER_MS + tolerance
        if held or sign.from_ms <= heal_ms - tolerance:
            found.append((sign, normal(sign.kind) - 0.5))
    return _counted(found)


def _missing(fit: Fit, seen: Seen, tolerance: float) -> None:
    """Return lines that the fault should have caused, and that are missing in logs which would have them."""
    candidate, start, end = fit.candidate, fit.start, fit.end
    has: dict[Edge, set[Kind]] = {}
    for sign, _ in fit.signs:
        has.setdefault(sign.edge, set()).add(sign.kind)
    sure_ms = (seen.last_ms if end is None else end.from_ms) - start.to_ms
    dead = {node for node in candidate.nodes if candidate.name in ("kill", "stop", "pause", "host_lost")}
    unfelt = 0.0
    for edge, mode in candidate.edges:
        if not edge.peer:
            continue
        kinds = has.get(edge, set())
        is_server = seen.kinds.get(edge.peer) == "name_server"
        watches = edge.peer not in dead and seen.covers(edge.peer, start.from_ms, start.to_ms)
        if is_server and seen.kinds.get(edge.dialler) in ("broker", "slave"):
            if not watches or not _was_there(seen, edge, start.to_ms, tolerance):
                continue
            if mode in _ENDING and mode is not Mode.DIALLER_LEFT and not kinds & _ANCHORS:
                fit.against.append(Doubt(f"{edge.peer} saw no channel of {edge.dialler} end", NO_CLOSE))
            if mode is Mode.DIALLER_LEFT and not kinds & {Kind.LEFT, Kind.GONE}:
                fit.against.append(Doubt(f"{edge.dialler} did not unregister at {edge.peer}", NOT_LEFT))
            late = seen.timers.E_ms + seen.timers.S_ms + tolerance
            if mode in _SILENT and sure_ms > late and not kinds & {Kind.SILENCE, Kind.CLOSED_BY_PEER_SEEN, Kind.GONE}:
                fit.against.append(Doubt(f"{edge.peer} did not drop {edge.dialler} in {sure_ms / 1000:.0f} s", NO_DROP))
        elif edge.dialler not in dead and seen.is_written(edge.dialler) and not kinds:
            felt_ms = seen.timers.P_ms if is_server else seen.timers.H_ms
            if sure_ms > felt_ms + seen.timers.A_ms + tolerance and _used(seen, edge, start, sure_ms):
                unfelt += UNFELT
                if unfelt <= UNFELT_MAX:
                    fit.against.append(Doubt(f"{edge.dialler} noticed nothing of {edge.peer}", UNFELT))
    if candidate.name == "stop":
        for node in candidate.nodes:
            parted = any(sign.kind is Kind.STOPPED and sign.edge.dialler == node for sign, _ in fit.signs)
            if node in seen.brokers and seen.covers(node, start.from_ms, start.from_ms) and not parted:
                fit.against.append(Doubt(f"{node}'s log has no line of a clean stop", NO_LEAVE))
    if candidate.form.ends_process and end is not None:
        for node in candidate.nodes:
            booted = any(sign.kind is Kind.BOOT and sign.edge.dialler == node for sign, _ in fit.signs)
            if seen.is_written(node) and seen.own[node][-1] > end.from_ms and not booted:
                fit.against.append(Doubt(f"{node}'s log goes on without a start", NO_BOOT))


def _was_there(seen: Seen, edge: Edge, at_ms: float, tolerance: float) -> bool:
    """Whether the broker had registered at the NameServer within the last period."""
    period = seen.timers.R_ms + seen.timers.B_ms + 2 * tolerance
    return any(
        sign.kind in (Kind.ARRIVED, Kind.OK) and at_ms - period <= sign.at_ms <= at_ms + tolerance
        for sign in seen.by_edge.get(edge, ())
    )


def _used(seen: Seen, edge: Edge, start: Bounds, for_ms: float) -> bool:
    """Whether the client had to use the link: its chosen NameServer, or a connected broker."""
    if seen.kinds.get(edge.peer) == "name_server":
        chosen = seen.chosen.get(edge.dialler, [])
        at = bisect_right(chosen, (start.from_ms, "\uffff"))
        stays = at == len(chosen) or chosen[at][0] > start.to_ms + for_ms
        return at > 0 and chosen[at - 1][1] == edge.peer and stays
    open_ = False
    for sign in seen.by_edge.get(edge, ()):
        if sign.at_ms > start.from_ms:
            break
        if sign.kind in (Kind.OPEN, Kind.OK):
            open_ = True
        elif sign.kind in (*CLOSES, Kind.REFUSED, Kind.NO_DIAL, Kind.NO_ANSWER):
            open_ = False
    return open_

"""What a dial over a link must meet, by the faults that were asked for: the matrix that probes are held against. Plain.

packets lost: no answer to the SYN; else cut: refused; else black hole: no answer; else peer gone: refused; else …
"""

from __future__ import annotations

from ..faults.kinds import UnknownFault
from ..faults.link_faults import BlackHole, Cut, Timeout
from ..faults.losses import Dial
from .recorded import Fault
from .world import World


def dials_met(world: World, source: str, target: str, from_ms: float, to_ms: float) -> frozenset[Dial]:
    """What a dial in [from_ms, to_ms] may meet; empty where something changed meanwhile, or nobody can say."""
    found = (*world.process_faults(target), *world.link_faults(source, target))
    if any(_changes(fault, from_ms, to_ms) for fault in found):
        return frozenset()
    on = [fault.kind for fault in found if fault.overlaps(from_ms, to_ms)]
    if any(isinstance(kind, UnknownFault | Timeout) for kind in on):
        return frozenset()
    dials = {kind.meets for kind in on}
    if Dial.DROPPED in dials:
        return frozenset({Dial.DROPPED})
    if any(isinstance(kind, Cut) for kind in on):
        return frozenset({Dial.REFUSED})
    if any(kind.ends_process for kind in on):
        return frozenset({Dial.SILENT if any(isinstance(kind, BlackHole) for kind in on) else Dial.REFUSED})
    if dials <= {Dial.ANSWERED, Dial.LATE}:  # a slow or narrow link's answer may come after one's patience
        answered = Dial.LATE if Dial.LATE in dials else Dial.ANSWERED
        return frozenset({answered, Dial.SILENT} if on else {answered})
    return frozenset(dials & {Dial.SILENT, Dial.RESET})


def late_ms(world: World, source: str, target: str, at_ms: float) -> float:
    """The round trip of an answer at that time, at the least."""
    delays = [fault.kind.delay for fault in world.link_faults(source, target) if fault.start_ms <= at_ms < fault.end_ms]
    return sum(delay.round_trip_min_ms for delay in delays if delay is not None)


def _changes(fault: Fault, from_ms: float, to_ms: float) -> bool:
    """Whether it begins or ends within the stretch; an injection takes from its asking until it is complete."""
    asked_ms = float(fault.value.get("asked_ms") or fault.start_ms)
    begun_ms = fault.start_ms
    if fault.ends_process:
        begun_ms = fault.gone_ms if fault.gone_ms is not None else fault.end_ms
    begins = asked_ms <= to_ms and begun_ms >= from_ms
    return begins or from_ms <= fault.end_ms <= to_ms

"""How well each fault accounts for each sign: surprises, in nats (-log of about how likely it is). Pure tables.

    NORMAL says what a sign costs when nothing is wrong; a fault's mode says what it costs while the fault lasts. What a
    fault gains by a sign is the difference. CERTAINLY_NOT stands for what cannot be: an answer out of a black hole.

The rows follow section 2 and 5 of the failure-detection table (oracle/windows.py): what closes, what only falls silent,
what is refused, which direction still passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ..logs_to_rows.signs import Kind

CERTAINLY_NOT = 12.0
UNEXPECTED = 7.0
"""Of a sign that a mode does not name, at most what it costs when nothing is wrong."""

NORMAL: Mapping[Kind, float] = {
    Kind.NO_ANSWER: 7,
    Kind.NO_DIAL: 7,
    Kind.REFUSED: 8,
    Kind.FAILED: 7,
    Kind.BROKEN: 7,
    Kind.HALF: 8,
    Kind.HALF_LATE: 8,
    Kind.LATE: 4,
    Kind.CLOSED_BY_DIALLER_SEEN: 6,
    Kind.CLOSED_BY_PEER_SEEN: 7,
    Kind.CLOSED_AFTER: 1,
    Kind.SILENCE: 9,
    Kind.EARLY: 10,
    Kind.MISSED: 5,
    Kind.LEFT: 12,
    Kind.GONE: 9,
    Kind.BOOT: 8,
    Kind.STOPPED: 8,
    Kind.OWN_MISSED: 5,
}


class Mode(StrEnum):
    """What a fault does to a link, or, with DIALLER_ and PEER_, the fault of which end's process it is."""

    HELD = "held"
    LOST = "lost"
    DOWN_HELD = "answers held"
    DOWN_LOST = "answers lost"
    CUT = "cut"
    RESET = "reset"
    SLOW = "slow"
    STALE = "half-open"
    DIALLER_GONE = "dialler gone"
    PEER_GONE = "peer gone"
    DIALLER_LEFT = "dialler left"
    PEER_LEFT = "peer left"
    DIALLER_HUNG = "dialler hung"
    PEER_HUNG = "peer hung"
    PEER_OFF = "peer's host off"
    CLOCK = "peer's clock"
    BY_HAND = "unregistered by hand"


_SHUT = {Kind.OK: CERTAINLY_NOT, Kind.ARRIVED: CERTAINLY_NOT}
_HELD = _SHUT | {
    Kind.OPEN: 0.0,
    Kind.NO_ANSWER: 0.1,
    Kind.NO_DIAL: 4,
    Kind.REFUSED: 9,
    Kind.FAILED: 0.3,
    Kind.BROKEN: 8,
    Kind.HALF: 6,
    Kind.HALF_LATE: 8,
    Kind.LATE: 0.5,
    Kind.CLOSED_BY_DIALLER_SEEN: 7,
    Kind.CLOSED_BY_PEER_SEEN: 8,
    Kind.CLOSED_AFTER: 4,
    Kind.SILENCE: 0.2,
    Kind.GONE: 0.7,
    Kind.MISSED: 0.1,
    Kind.LEFT: 9,
    Kind.EARLY: 11,
}
_LOST = _HELD | {Kind.OPEN: 8, Kind.NO_ANSWER: 0.5, Kind.NO_DIAL: 0.1, Kind.LATE: 1}
_GONE = _SHUT | {
    Kind.OPEN: CERTAINLY_NOT,
    Kind.REFUSED: 0.1,
    Kind.FAILED: 0.3,
    Kind.NO_ANSWER: 5,
    Kind.NO_DIAL: 6,
    Kind.CLOSED_BY_DIALLER_SEEN: 0.1,
    Kind.CLOSED_BY_PEER_SEEN: 0.1,
    Kind.CLOSED_AFTER: 2,
    Kind.MISSED: 0.1,
    Kind.SILENCE: 9,
    Kind.GONE: 0.7,
    Kind.LEFT: 9,
    Kind.HALF: 9,
    Kind.BROKEN: 3,
    Kind.EARLY: 11,
}
_DOWN = {
    Kind.OK: CERTAINLY_NOT,
    Kind.ARRIVED: 0.5,
    Kind.OPEN: 0.0,
    Kind.NO_ANSWER: 1.5,
    Kind.NO_DIAL: 5,
    Kind.REFUSED: 9,
    Kind.FAILED: 1,
    Kind.HALF: 0.1,
    Kind.HALF_LATE: 5,
    Kind.CLOSED_AFTER: 0.1,
    Kind.CLOSED_BY_PEER_SEEN: 1.5,
    Kind.CLOSED_BY_DIALLER_SEEN: 6,
    Kind.MISSED: 5,
    Kind.SILENCE: 7,
    Kind.LATE: 1,
    Kind.LEFT: 12,
    Kind.BROKEN: 8,
}

MODES: Mapping[Mode, Mapping[Kind, float]] = {
    Mode.HELD: _HELD,
    Mode.LOST: _LOST,
    Mode.DOWN_HELD: _DOWN,
    Mode.DOWN_LOST: _DOWN
    | {
        Kind.ARRIVED: 3,
        Kind.HALF: 0.2,
        Kind.NO_DIAL: 0.2,
        Kind.OPEN: 8,
        Kind.MISSED: 0.3,
        Kind.SILENCE: 0.3,
        Kind.GONE: 1.0,
        Kind.CLOSED_AFTER: 4,
        Kind.CLOSED_BY_PEER_SEEN: 7,
        Kind.NO_ANSWER: 1.0,
    },
    Mode.CUT: _GONE,
    Mode.RESET: {
        Kind.OK: 9,
        Kind.ARRIVED: 6,
        Kind.OPEN: 0.5,
        Kind.BROKEN: 0.1,
        Kind.CLOSED_BY_PEER_SEEN: 0.3,
        Kind.GONE: 1,
        Kind.FAILED: 1,
        Kind.CLOSED_BY_DIALLER_SEEN: 0.3,
        Kind.MISSED: 0.2,
        Kind.CLOSED_AFTER: 1,
        Kind.SILENCE: 14,
        Kind.LEFT: 12,
    },
    Mode.SLOW: {
        Kind.OK: 3,
        Kind.LATE: 0.1,
        Kind.HALF_LATE: 0.1,
        Kind.HALF: 2.5,
        Kind.NO_ANSWER: 1.5,
        Kind.CLOSED_AFTER: 0.1,
        Kind.ARRIVED: 1,
        Kind.MISSED: 4,
        Kind.OPEN: 0.0,
        Kind.FAILED: 3,
        Kind.CLOSED_BY_PEER_SEEN: 3,
    },
    Mode.STALE: _HELD | {Kind.SILENCE: 8, Kind.GONE: 8},
    Mode.DIALLER_GONE: _GONE
    | {Kind.NO_ANSWER: CERTAINLY_NOT, Kind.REFUSED: CERTAINLY_NOT, Kind.NO_DIAL: CERTAINLY_NOT},
    Mode.PEER_GONE: _GONE | {Kind.BOOT: 0.1, Kind.OWN_MISSED: 0.1},
    Mode.DIALLER_LEFT: _GONE
    | {
        Kind.LEFT: 0.1,
        Kind.GONE: 0.7,
        Kind.CLOSED_BY_PEER_SEEN: 1.5,
        Kind.NO_ANSWER: CERTAINLY_NOT,
        Kind.REFUSED: CERTAINLY_NOT,
        Kind.NO_DIAL: CERTAINLY_NOT,
    },
    Mode.PEER_LEFT: _GONE | {Kind.BOOT: 0.1, Kind.OWN_MISSED: 0.1, Kind.STOPPED: 0.1},
    Mode.DIALLER_HUNG: _HELD | {Kind.NO_ANSWER: 6, Kind.NO_DIAL: 6, Kind.FAILED: 6, Kind.OPEN: CERTAINLY_NOT},
    Mode.PEER_HUNG: _HELD | {Kind.OWN_MISSED: 0.1},
    Mode.PEER_OFF: _LOST | {Kind.BOOT: 0.1, Kind.OWN_MISSED: 0.1},
    Mode.BY_HAND: {Kind.LEFT: 0.1, Kind.GONE: 2},
    Mode.CLOCK: {Kind.OK: 0, Kind.ARRIVED: 0, Kind.OPEN: 0, Kind.EARLY: 0.1, Kind.SILENCE: 3, Kind.GONE: 4},
}


INSTANT = frozenset({Mode.CLOCK, Mode.BY_HAND})
"""What is done in a moment, and undone by nobody."""


def normal(kind: Kind) -> float:
    return NORMAL.get(kind, 0.0)


def gain(mode: Mode, kind: Kind) -> float:
    """By how much a sign is less surprising while the fault lasts; negative: more."""
    table = MODES[mode]
    usual = normal(kind)
    return usual - table.get(kind, max(usual, UNEXPECTED) if usual else 0.0)

"""What a check measured, as sentences, where a list of its numbers tells a person nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..verdict import Verdict

_OPERATIONS = {"send": "sends", "pull": "pulls", "name_server_call": "look-ups"}
_STRETCHES = 3
"""So many quiet stretches are named, and how many more there are."""


def measured_sentences(v: Verdict) -> list[str]:
    """What was measured, the most important sentence first; none where the numbers speak for themselves."""
    return _availability(v.measured) if v.name == "availability" and v.measured else []


def _availability(measured: Mapping[str, Any]) -> list[str]:
    shares = [_share(measured[name], plural) for name, plural in _OPERATIONS.items() if name in measured]
    return list(filter(None, (f"{_and(shares)} succeeded" if shares else "", _quiet(measured), _worst(measured))))


def _quiet(measured: Mapping[str, Any]) -> str:
    stretches: Sequence[Sequence[float]] = measured.get("quiet_stretches") or ()
    if not stretches:
        return "no time was quiet"
    shown = [f"{start_ms / 1000:.1f} to {end_ms / 1000:.1f} s" for start_ms, end_ms in stretches[:_STRETCHES]]
    more = len(stretches) - len(shown)
    when = _and([*shown, f"{more} more times"] if more else shown)
    count, ratio = measured.get("quiet_operations") or 0, measured.get("quiet")
    if not count or ratio is None:
        return f"when it was quiet, {when}, no operation ended"
    whose = f"all {count:,} operations" if ratio == 1 else f"{_percent(ratio)} of {count:,} operations"
    return f"when it was quiet, {when}, {whose} succeeded"


def _worst(measured: Mapping[str, Any]) -> str:
    """The bucket in which the greatest share failed; of several, the one with the most failures, then the first."""
    width_ms = measured.get("bucket_ms") or 0.0
    found = [
        (failed / ended, failed, -at, ended, plural)
        for name, plural in _OPERATIONS.items()
        for at, (ended, failed) in enumerate((measured.get("series") or {}).get(name) or ())
        if failed
    ]
    if not found:
        return ""
    _, failed, at, ended, plural = max(found)
    start_s, end_s = -at * width_ms / 1000, (1 - at) * width_ms / 1000
    return f"at worst, from {start_s:.1f} to {end_s:.1f} s, {failed:,} of {ended:,} {plural} failed"


def _share(ratio: float, what: str) -> str:
    return f"all {what}" if ratio == 1 else f"{_percent(ratio)} of {what}"


def _percent(ratio: float) -> str:
    """Rounded down, so that only all of them are 100 %."""
    return f"{math.floor(ratio * 10_000) / 100:g} %"


def _and(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))

"""Finds each timer of a cluster: from a settings line, the period of recurring lines, or the version's default. Pure:
no I/O."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ...chaos.oracle.timers import Timers
from ...remoting.node.profile import Profile
from .line import Line
from .sources import BROKER, CLIENT, NAME_SERVER, Source


class _Timer(NamedTuple):
    symbol: str
    """The timer's letter in oracle/timers.py."""
    setting: str = ""
    """RocketMQ's name of the setting that a log of `kind` has, in milliseconds or `Seconds`."""
    kind: str = ""


_TIMERS: Mapping[str, _Timer] = {
    "registration_period": _Timer("R", "registerNameServerPeriod", BROKER),
    "registration_timeout": _Timer("B", "registerBrokerTimeoutMills", BROKER),
    "expiry": _Timer("E"),
    "scan": _Timer("S", "scanNotActiveBrokerInterval", NAME_SERVER),
    "idle": _Timer("I", "serverChannelMaxIdleTimeSeconds", NAME_SERVER),
    "route_poll": _Timer("P", "pollNameServerInterval", CLIENT),
    "request_timeout": _Timer("A", "mqClientApiTimeout", CLIENT),
    "connect_timeout": _Timer("C", "connectTimeoutMillis", BROKER),
    "heartbeat": _Timer("H", "heartbeatBrokerInterval", CLIENT),
}
"""Each timer by its word in incident.json."""
_BY_SETTING = {(timer.kind, timer.setting): timer for timer in _TIMERS.values()}
_FITTED_FROM = 4


def timers_of(sources: Sequence[Source]) -> tuple[Timers, dict[str, Any]]:
    """Return RocketMQ's timers, and for each timer its value (`ms`), where the value comes from (`by`), and log lines
    that show it (`lines`)."""
    deciding = [source for source in sources if source.kind != CLIENT] or sources  # clients may be of another version
    profile = Profile.V5_X if any(source.is_v5 for source in deciding) else Profile.V4_9
    said: dict[str, list[tuple[float, Line]]] = defaultdict(list)
    for source in sources:
        for line in source.lines:
            if line.event == "setting":
                _setting(source, line, said)
            elif line.event == "broker_expired" and line.fields.get("timeout_ms", "").isdigit():
                said["E_ms"].append((float(line.fields["timeout_ms"]), line))
    default = Timers.for_profile(profile)
    chosen: dict[str, float] = {}
    known: dict[str, Any] = {}
    for word, timer in _TIMERS.items():
        symbol = f"{timer.symbol}_ms"
        value, by, lines = float(getattr(default, symbol)), "default", list[Line]()
        if said[symbol]:
            value, by = max(one for one, _ in said[symbol]), "settings"
            lines = [line for one, line in said[symbol] if one == value][:3]
        elif fitted := next(filter(None, (_fitted(sources, *one) for one in _FITS.get(symbol, ()))), None):
            (value, lines), by = fitted, "fitted"
        if symbol == "R_ms":
            value = min(max(value, 10_000.0), 60_000.0)
        chosen[symbol] = value
        known[word] = {"ms": value, "by": by, "lines": [{"file": one.file, "line": one.line} for one in lines]}
    return default.with_(**{name: value for name, value in chosen.items() if value > 0}), known


def _setting(source: Source, line: Line, said: dict[str, list[tuple[float, Line]]]) -> None:
    timer = _BY_SETTING.get((source.kind, line.fields["key"]))
    with suppress(ValueError):
        if timer is not None and (value := float(line.fields["value"])) > 0:
            said[f"{timer.symbol}_ms"].append((value * 1000 if timer.setting.endswith("Seconds") else value, line))


def _fitted(sources: Sequence[Source], event: str, of: str) -> tuple[float, list[Line]] | None:
    """Return the commonest time between lines of this event with one value of the field `of`, and two such lines."""
    gaps: Counter[int] = Counter()
    first: dict[int, list[Line]] = defaultdict(list)
    for source in sources:
        before: dict[str, Line] = {}
        for line in source.lines:
            if line.event != event:
                continue
            key = line.fields.get(of, "")
            if key in before:
                gap = round((line.stamp_ms - before[key].stamp_ms) / 1000)
                if gap:
                    gaps[gap] += 1
                    if len(first[gap]) < 2:
                        first[gap] += [before[key], line]
            before[key] = line
    if not gaps:
        return None
    best = max(gaps, key=lambda gap: gaps[gap] + gaps[gap - 1] + gaps[gap + 1])
    count = sum(gaps[gap] for gap in (best - 1, best, best + 1))
    if count < _FITTED_FROM or count < 0.4 * sum(gaps.values()):
        return None
    best = max((best - 1, best, best + 1), key=gaps.__getitem__)
    rounded = round(best / 5) * 5 if abs(best - round(best / 5) * 5) <= 1 and best >= 5 else best
    return rounded * 1000.0, first[best][:2]


_FITS: Mapping[str, Sequence[tuple[str, str]]] = {
    "S_ms": [("scanned", "")],
    "R_ms": [("master_address", "address"), ("registered", "name_server")],
}
"""The events, with a field each, that come once a period; the surest first."""

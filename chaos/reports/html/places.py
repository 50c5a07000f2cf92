"""Where in the plots a verdict or one of its examples is: a stretch of time, a lane, and the link that leads there.

A check names `at_ms` (and `to_ms`) and the nodes; other times that it names (`wrong_from_ms`, `since_ms` …) serve where
it does not. An example without any time leads to the faults of the run, because something must be seen to be believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ...oracle.world import World
from ...verdict import Example, Validity, Verdict

_FROM = ("at_ms", "wrong_from_ms", "from_ms", "since_ms", "start_ms", "sent_ms", "time_ms", "last_use_ms", "first_ms")
_TO = ("to_ms", "wrong_to_ms", "until_ms", "end_ms", "last_ms")
_ONE = ("who", "client", "name_server", "node", "consumer", "producer", "source")
_OTHER = ("what", "broker_name", "broker", "target")
_SECTIONS: Mapping[str, str] = {
    "routes_converge": "routes",
    "routes_are_true": "routes",
    "no_false_eviction": "routes",
    "no_resurrection": "routes",
    "dead_brokers_avoided": "clients",
    "dead_name_servers_left": "clients",
    "name_server_selection": "clients",
    "queue_ownership": "clients",
    "exercised": "routes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A stretch of time in one section of the page, and the lane in it where the example names one."""

    check: str
    from_ms: float
    to_ms: float
    section: str
    lane: str | None
    text: str
    bad: bool

    @property
    def link(self) -> str:
        """The fragment of the page's address: `#at=207.795,232.693&in=routes&lane=ns-0/broker-a`."""
        lane = f"&lane={quote(self.lane)}" if self.lane else ""
        return f"#at={self.from_ms / 1000:.3f},{self.to_ms / 1000:.3f}&in={self.section}{lane}"


def place_of_example(v: Verdict, found: Example, world: World, lanes: Sequence[str], start_ms: float) -> Place:
    """The example's own place; the run's faults where it names no time."""
    example = found.to_json()
    from_ms, to_ms = _times(example) or _faults(world, start_ms)
    text = ", ".join(
        f"{key.removesuffix('_ms')} {_short(value, key)}" for key, value in example.items() if value is not None
    )
    return Place(
        check=v.name,
        from_ms=from_ms,
        to_ms=max(to_ms, from_ms),
        section=_section(v, example),
        lane=_lane(example, lanes, world),
        text=text,
        bad=v.verdict is Validity.INVALID,
    )


def place_of_verdict(v: Verdict, world: World, lanes: Sequence[str], start_ms: float) -> Place:
    """Its first example, else the first measured entry that names its nodes, else the faults."""
    for example in v.examples:
        if _times(example.to_json()):
            return place_of_example(v, example, world, lanes, start_ms)
    for entry in _entries(v.measured):
        lane = _lane(entry, lanes, world)
        stretch = _times(entry) or _of_fault(entry, world)
        if lane and stretch:
            from_ms, to_ms = stretch
            return Place(
                check=v.name,
                from_ms=from_ms,
                to_ms=to_ms,
                section=_section(v, entry),
                lane=lane,
                text="",
                bad=False,
            )
    from_ms, to_ms = _faults(world, start_ms)
    section = _SECTIONS.get(v.name, "sends")
    return Place(check=v.name, from_ms=from_ms, to_ms=to_ms, section=section, lane=None, text="", bad=False)


def _entries(measured: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for value in measured.values():
        if isinstance(value, Sequence) and not isinstance(value, str):
            yield from (entry for entry in value if isinstance(entry, Mapping))


def _times(example: Mapping[str, Any]) -> tuple[float, float] | None:
    from_ms = next((example[key] for key in _FROM if _is_number(example.get(key))), None)
    if from_ms is None:
        return None
    to_ms = next((example[key] for key in _TO if _is_number(example.get(key))), from_ms)
    return float(from_ms), float(to_ms)


def _of_fault(entry: Mapping[str, Any], world: World) -> tuple[float, float] | None:
    """From the fault that the entry names until what it measured after its beginning."""
    faults = [f for f in world.faults if f.fault_id == entry.get("fault_id")]
    if not faults:
        return None
    start_ms = min(f.start_ms for f in faults)
    after_ms = entry.get("after_ms")
    end_ms = start_ms + float(after_ms) if isinstance(after_ms, int | float) else max(f.end_ms for f in faults)
    return start_ms, min(end_ms, world.end_ms)


def _faults(world: World, start_ms: float) -> tuple[float, float]:
    if not world.faults:
        return start_ms, world.end_ms
    first_ms = min(f.start_ms for f in world.faults)
    return first_ms, min(max(f.end_ms for f in world.faults), world.end_ms)


def _lane(example: Mapping[str, Any], lanes: Sequence[str], world: World) -> str | None:
    names = {node.address: node.name for node in world.nodes if node.address}
    ones = [names.get(str(example[key]), str(example[key])) for key in _ONE if example.get(key)]
    others = [names.get(str(example[key]), str(example[key])) for key in _OTHER if example.get(key)]
    wanted = [f"{one}/{other}" for one in ones for other in others] + ones
    wanted += [f"{other}/{one}" for one in ones for other in others]
    for key in wanted:
        if key in lanes:
            return key
    for key in lanes:  # only the broker is named: the first lane that shows it
        if any(key.endswith(f"/{other}") for other in others):
            return key
    return next((key for key in lanes for one in ones if key.startswith(f"{one}/")), None)


def _section(v: Verdict, example: Mapping[str, Any]) -> str:
    found = _SECTIONS.get(v.name)
    if found:
        return found
    return "clients" if example.get("client") or example.get("consumer") else "sends"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: object, key: str) -> str:
    if _is_number(value) and key.endswith("_ms"):
        return f"{float(str(value)) / 1000:.1f} s"
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}…"

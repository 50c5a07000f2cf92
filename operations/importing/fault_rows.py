"""Makes history rows for inferred faults, marked as inferred, and `rows_missing` rows for losses without an
explanation. Pure: no I/O.

episode, rank 1, certain or likely ─► fault start, end: `nemesrv check` and the report see it
a drop that no such fault explains,
a log that is missing,              ─► rows_missing: findings about these nodes then are UNKNOWN, never INVALID
a broker with two addresses
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ...chaos.faults.kinds import FAULTS
from ...chaos.history.host_clocks import HARNESS
from ...chaos.history.schema import Row
from ...chaos.oracle.timers import Timers
from ...chaos.reports.imported import LIKELY
from ...chaos.shapes import LinkExpressionError
from ...chaos.topology import Link, Nodes
from ..logs_to_rows.naming import GUESS
from ..logs_to_rows.reconstruct import Reconstructed
from ..logs_to_rows.timeline import ANSWERED

TOLD = ("certain", "likely")
_ENDS = {"kill": ("restart",), "stop": ("restart",), "pause": ("resume",)}


class FaultTime(NamedTuple):
    nodes: frozenset[str]
    from_ms: float
    to_ms: float
    is_formless: bool = False
    """Whether the fault is likely, but its form is not known."""


def fault_rows(
    roles: Mapping[str, str], episodes: Sequence[Mapping[str, Any]], end_ms: float
) -> tuple[list[Row], list[FaultTime]]:
    """Return history rows of each episode's certain or likely fault, and each fault's time. A fault whose form is not
    known has a time and no rows. `roles` has each node's kind."""
    known = Nodes(roles)
    rows: list[Row] = []
    stretches: list[FaultTime] = []
    for number, episode in enumerate(episodes):
        chosen = next(iter(episode.get("hypotheses") or ()), None)
        if chosen is None:
            continue
        is_formless = chosen.get("certainty") not in TOLD
        if is_formless and episode.get("score", 0.0) < LIKELY:
            continue
        ends = [float(bound or 0.0) for bound in chosen.get("bounds_ms") or ()]
        slack = max(ends, default=0.0)
        about = {
            "learnt": "inferred",
            "certainty": chosen["certainty"],
            "says": chosen.get("sentence"),
            "bound_ms": slack,
            "bounds_ms": ends,
        }
        entries = list(chosen.get("timeline") or ())
        for position, entry in enumerate(entries):
            if entry.get("do") not in FAULTS:
                continue
            from_ms = float(entry["at_s"]) * 1000
            to_ms = _until(entry, entries[position + 1 :])
            fault_id = f"{entry['do']}-{number + 1}"
            places = list(_places(entry, known))
            for place in places:
                rows += [] if is_formless else _rows(entry, fault_id, place, from_ms, to_ms, about)
            named = frozenset(node for source, target, _ in places for node in (source, target) if node)
            until_ms = min(end_ms if to_ms is None else to_ms, end_ms) + slack
            stretches.append(FaultTime(named, from_ms - slack, until_ms, is_formless))
    return rows, stretches


def _rows(
    entry: Mapping[str, Any],
    fault_id: str,
    place: tuple[str, str | None, str | None],
    from_ms: float,
    to_ms: float | None,
    about: Mapping[str, Any],
) -> Iterator[Row]:
    source, target, stream = place
    kind = FAULTS[entry["do"]]
    numbers = {key: said for key, said in entry.items() if key not in ("at_s", "do", "nodes", "links", "stream")}
    for phase, at_ms in (("start", from_ms), ("end", to_ms)):
        if at_ms is not None:
            yield {
                **_of_harness(at_ms, "fault"),
                "fault_id": fault_id,
                "fault": entry["do"],
                "injection": kind.injection,
                "source": source,
                "target": target,
                "stream": stream,
                "phase": phase,
                "value": {**numbers, **about},
            }


def _of_harness(at_ms: float, event: str) -> Row:
    return {"time_ms": max(at_ms, 0.0), "node": HARNESS, "role": HARNESS, "incarnation": 0, "event": event}


def _until(entry: Mapping[str, Any], later: Iterable[Mapping[str, Any]]) -> float | None:
    nodes = set(entry.get("nodes") or ())
    for other in later:
        if nodes and other.get("do") in _ENDS.get(str(entry["do"]), ()) and nodes & set(other.get("nodes") or ()):
            return float(other["at_s"]) * 1000
        if not nodes and other.get("do") == "heal":
            return float(other["at_s"]) * 1000
    return None


def _places(entry: Mapping[str, Any], known: Nodes) -> Iterator[tuple[str, str | None, str | None]]:
    """Return (source, target, stream) of each process or directed link that the fault affects."""
    for name in entry.get("nodes") or ():
        yield from ((member, None, None) for member in known.members(name))
    links = dict.fromkeys(link for expression in entry.get("links") or () for link in _links(expression, known))
    yield from ((node, peer, entry.get("stream") or "both") for node, peer in links)


def _links(expression: str, known: Nodes) -> Sequence[Link]:
    """Return the links that the expression names, as a run would cut them."""
    with suppress(LinkExpressionError):
        return known.parse_links(expression)
    return ()


# --- what nobody knows ------------------------------------------------------------------------------------------------


def unknown_rows(one: Reconstructed, faults: Sequence[FaultTime], end_ms: float) -> list[Row]:
    """Return `rows_missing` rows for missing logs, for nodes whose address or list of NameServers is not certain, and
    for lost connections and registrations that no inferred fault explains."""
    timers, found = one.timers_used, list[tuple[str, str, float, float]]()
    named = {source.name for source in one.found}
    words = {"name_server": "NameServer", "broker": "broker", "slave": "slave"}
    for node, role in one.nodes.roles.items():
        if node not in named:
            word = words.get(role, "client")
            found.append((node, f"the log of {word} {node} is not among those that were read", 0.0, end_ms))
        elif len(one.nodes.brokers.get(node, ())) > 1:
            addresses = ", ".join(one.nodes.brokers[node])
            found.append((node, f"{node} had more than one address ({addresses})", 0.0, end_ms))
    found += ((node, f"{node} had more than one list of NameServers", 0.0, end_ms) for node in _relisted(one))
    for node, guess in one.nodes.sure.items():
        if guess.startswith(GUESS):
            found.append((node, f"which address {node} had is a guess", 0.0, end_ms))
    found += unexplained(one.timeline, one.nodes.roles, faults, timers, end_ms)
    return [
        {
            **_of_harness(from_ms, "rows_missing"),
            "source": node,
            "value": {"says": says, "since_ms": max(from_ms, 0.001), "until_ms": to_ms},
        }
        for node, says, from_ms, to_ms in found
    ]


def _relisted(one: Reconstructed) -> list[str]:
    """Return nodes whose list of NameServers changed, so that it is unknown where they had to register."""
    lists: dict[str, set[frozenset[str]]] = defaultdict(set)
    for row in one.rows:
        if row["event"] == "name_server_list":
            lists[row["node"]].add(frozenset(row["value"]))
    return sorted(node for node, found in lists.items() if len(found) > 1)


def unexplained(
    timeline: Sequence[Mapping[str, Any]],
    roles: Mapping[str, str],
    faults: Sequence[FaultTime],
    timers: Timers,
    end_ms: float,
) -> Iterator[tuple[str, str, float, float]]:
    """Return (node, sentence, from, to) of each loss that no inferred fault explains, for both nodes of the link."""
    before_ms = timers.E_ms + timers.S_ms + timers.R_ms
    after_ms = timers.R_ms + 2 * timers.P_ms + timers.B_ms
    reach_ms = timers.E_ms + timers.S_ms + timers.lateness_cap_ms
    open_: dict[tuple[str, str], tuple[str, float, float]] = {}
    for entry in timeline:
        if entry["what"] not in _LOST or entry["how"] == "unregistered" or entry["how"].startswith(ANSWERED):
            continue
        at_ms, node, subject = entry["time_ms"], entry["node"], entry["subject"]
        pair = {name for name in (node, subject) if name in roles}
        near = [one for one in faults if one.from_ms - 2_000 <= at_ms <= one.to_ms + reach_ms and pair & one.nodes]
        if any(not fault.is_formless for fault in near):
            continue
        key = min(node, subject), max(node, subject)
        until_ms = min((_back(timeline, entry) or at_ms) + after_ms, end_ms)
        if key in open_ and at_ms - before_ms <= open_[key][2]:
            says, from_ms, to_ms = open_[key]
            open_[key] = says, from_ms, max(until_ms, to_ms)
            continue
        if key in open_:
            yield from _both(key, open_[key], roles)
        what = f"{node} {_LOST[entry['what']]} {subject} at {entry['wall'][11:19]}"
        says = f"nobody knows why {what}"
        if near:
            says = f"a likely fault explains that {what}, but the fault's form is not known"
        open_[key] = says, at_ms - before_ms, until_ms
    for key, found in open_.items():
        yield from _both(key, found, roles)


def _both(
    pair: tuple[str, str], found: tuple[str, float, float], roles: Mapping[str, str]
) -> Iterator[tuple[str, str, float, float]]:
    for name in pair:
        if name in roles:
            yield name, *found


_LOST = {"lost": "lost", "failed": "failed at", "timed_out": "waited in vain for"}


def _back(timeline: Sequence[Mapping[str, Any]], lost: Mapping[str, Any]) -> float | None:
    about = lost["node"], lost["subject"]
    back = (entry for entry in timeline if entry["what"] in ("came", "registered"))
    times = (entry["time_ms"] for entry in back if (entry["node"], entry["subject"]) == about)
    return next((float(at_ms) for at_ms in times if at_ms > lost["time_ms"]), None)

"""Makes the text that `nemesrv import` prints: logs and their clocks, topology, events in order, and inferred
faults."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...chaos.checks import CHECKS
from ...chaos.checks.check import Needs
from ...chaos.oracle.intervals import grouped
from ...chaos.reports.imported import alternatives, ended_before, scored, signs_of, suffered_lines, time_0
from ...chaos.reports.text import rows_fitting, width_of_output
from ..logs_to_rows.naming import GUESS
from ..logs_to_rows.sources import CLIENT

SHOWN = 28
"""Most entries of the time line."""


def lines_of(document: Mapping[str, Any]) -> Iterator[str]:
    """Return the text that import prints before the table of verdicts. `document` is incident.json."""
    yield from document["reading"]
    yield "sources (a clock's offset: how far it was ahead)"
    yield from rows_fitting([_source(source) for source in document["sources"]], width_of_output(), "  ")
    skipped = document.get("not_understood") or ()
    if skipped:
        yield f"  not understood, the commonest: {skipped[0]['lines']} lines like {skipped[0]['shape'][:90]!r}"
    for note in document["notes"]:
        yield f"  ! {note}"
    yield ""
    yield "topology"
    yield from _topology(document["topology"])
    yield f"  timers: {_timers(document['timers'])}"
    yield ""
    yield f"time line (time of day, and seconds since {time_0(document)}, which the faults below count, too)"
    yield from _timeline(document["timeline"])
    yield ""
    yield "faults that explain it (the number of a cause: how often causes with this number are right)"
    yield from episode_lines(document)
    for sentence in document.get("not_seen") or ():
        yield f"  ? {sentence}"
    yield ""
    clients = [source for source in document["sources"] if source["kind"] == CLIENT]
    if document["suffered"] or clients:
        ended = [*ended_before(document)]
        yield "what clients suffered, as their own logs say"
        yield from (f"  {line}" for line in (*suffered_lines(document["suffered"]), *ended))
        if not document["suffered"] and len(ended) < len(clients):
            yield "  nothing: no failed call, and no route without a broker, in the clients' logs that were read"
        yield ""


_NAME_SERVERS = "every NameServer's namesrv.log"
_BROKERS = "every broker's broker.log and remoting.log"
_WIRE = "the requests and answers on the wire, which a run with Apache's servers records (`--implementation apache-…`)"

LOGS: Mapping[Needs, str] = {
    Needs.CLIENTS: "the clients' rocketmq_client.log",
    Needs.TABLES: _NAME_SERVERS,
    Needs.ACTS: _NAME_SERVERS,
    Needs.BROKERS: _BROKERS,
    Needs.ACKNOWLEDGEMENTS: _BROKERS,
    Needs.TOPICS: _WIRE,
    Needs.WIRE: _WIRE,
    Needs.MESSAGES: "who sent and got each message, which no RocketMQ log says, but `nemesrv run` and `conform` record",
    Needs.EXPERIMENT: "an experiment with injected faults (`nemesrv run`)",
}


_WRITERS = {_NAME_SERVERS: "name_server", _BROKERS: "broker", LOGS[Needs.CLIENTS]: "client"}
"""The kind of source that writes these logs."""


def needs(check: str, given: Collection[str] = ()) -> str:
    """Return the missing kinds of logs that would decide this check; "" if `given` has all of them."""
    return " and ".join(dict.fromkeys(log for need in CHECKS[check].needs if (log := LOGS[need]) not in given))


def undecided_lines(left_out: Mapping[str, str], document: Mapping[str, Any]) -> Iterator[str]:
    """Return lines about the checks that the imported logs cannot decide, each with the logs that could decide the
    check. `document` is incident.json."""
    if left_out:
        kinds = {source["kind"] for source in document["sources"]}
        lacking = " ".join(document["checks_need"].values())
        given = [log for log, kind in _WRITERS.items() if kind in kinds and _file_of(log) not in lacking]
        by_need = grouped((needs(check, given) or f"no other logs; {why}", check) for check, why in left_out.items())
        if "no_acknowledged_loss" in left_out:
            yield "Whether an acknowledged message was lost, these logs do not show."
        yield "checks that these logs cannot decide, and what the checks need"
        for need, checks in by_need.items():
            yield f"  {', '.join(checks)}: {need}"


def _file_of(log: str) -> str:
    return next(word for word in log.split() if word.endswith(".log"))


def _source(source: Mapping[str, Any]) -> Sequence[str]:
    offset = f"{source['offset_ms'] / 1000:+.1f} s" if abs(source["offset_ms"]) < 86_400_000 else "unset clock"
    files = (
        source["files"][0] if len(source["files"]) == 1 else f"{source['files'][0]} and {len(source['files']) - 1} more"
    )
    return (
        source["source"],
        source["version"] or source["writer"],
        f"{source['zone']} ({source['zone_by']})",
        f"{offset} ± {source['bound_ms'] / 1000:.1f}",
        source["certainty"],
        f"{source['understood']:,} of {source['lines']:,} lines",
        files,
    )


def _topology(topology: Mapping[str, Any]) -> Iterator[str]:
    for node, addresses in topology["name_servers"].items():
        by = topology.get("name_servers_by", {}).get(node, "")
        yield f"  {node} {', '.join(addresses) or 'address unknown'}" + (f" ({by})" if by else "")
    guessed = next((node for node, by in topology.get("name_servers_by", {}).items() if by.startswith(GUESS)), None)
    if guessed:
        address = next(iter(topology["name_servers"][guessed])).partition(":")[0]
        yield f"  ! checks do not go by a guess: put each NameServer's log into a folder of its address ({address}/)"
    for name, ids in topology["brokers"].items():
        for id_, addresses in ids.items():
            node = name if id_ == "0" else f"{name}/{id_}"
            yield f"  {node} {', '.join(addresses) or 'address unknown'}"
    for node, client in topology["clients"].items():
        used = " → ".join(one["name_server"] for one in client["sat_on"][:6]) or "unknown"
        who = f" {client['id']}" if client["id"] else ""
        yield f"  {node} {client['kind']}{who} used {used}"
    if consumers := [node for node, client in topology["clients"].items() if client["kind"] == "consumer"]:
        yield f"  group all consumers (logs do not say who is in which group): {', '.join(consumers)}"


def _timers(timers: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {said['ms'] / 1000:g} s ({said['by']})" for name, said in timers.items())


def _timeline(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    told = _folded(entry for entry in entries if entry["what"] not in ("came", "changed", "chose") or entry["how"])
    half, more = SHOWN // 2, len(told) - SHOWN
    yield from map(_entry, told[:half] if more > 0 else told)
    if more > 0:
        yield f"  … {more:,} more in incident.json"
        yield from map(_entry, told[half + more :])
    if not told:
        yield "  nothing was lost, and nothing came back"


def _folded(entries: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return repeated entries of one node as one, with their number and the last time."""
    found: list[dict[str, Any]] = []
    last: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in entries:
        about = entry["node"], entry["subject"]
        before = last.get(about)
        is_same = before is not None and (before["what"], before["how"]) == (entry["what"], entry["how"])
        if before is not None and is_same and entry["what"] != "started":
            before["times"] += 1
            before["until"] = entry["wall"]
            continue
        last[about] = {**entry, "times": 1}
        found.append(last[about])
    return list(found)


def _entry(entry: Mapping[str, Any]) -> str:
    again = f"  {entry['times']} times until {entry['until'][11:19]}" if entry["times"] > 1 else ""
    place = f"{entry['file']}:{entry['line']}"
    return f"  {entry['wall'][11:19]} {entry['time_ms'] / 1000:9.1f} s  {_sentence(entry)}  {place}{again}"


def _sentence(entry: Mapping[str, Any]) -> str:
    """Return a sentence like `consumer-0's route of orders is now broker-b`."""
    node, subject, how = entry["node"], entry["subject"], entry["how"]
    in_brackets = f" ({how})" if how else ""
    match entry["what"]:
        case "came":
            again = " again" if how == "again" else ""
            return f"{subject} was registered at {node}{again}" + (f", {how}" if how and not again else "")
        case "registered":
            return f"{node} registered with {subject}{in_brackets and ' again'}"
        case "timed_out":
            return f"{node} waited in vain for an answer of {subject or 'a server'}"
        case "closed":
            return f"{node}'s connection to {subject} ended"
        case "failed" if how == "its registration there":
            return f"{node} could not register with {subject}"
        case "failed":
            return f"{node} failed at {subject}{in_brackets}"
        case "chose":
            return f"{node} {f'{how} and ' if how else ''}chose {subject}"
        case "changed" if how.startswith("now ") or how == "gone":
            return f"{node}'s route of {subject} is {how}"
        case "changed":
            return f"{node} changed {subject}{in_brackets}"
        case what:
            return f"{node} {what}" + ("" if subject == node else f" {subject}") + in_brackets


def episode_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Return lines about each episode (a fault and its effects): the likeliest faults, and the evidence for and against
    the first. `document` is incident.json."""
    episodes = document["episodes"]
    if not episodes:
        yield "  none: nothing in these logs needs one"
    for number, episode in enumerate(episodes, 1):
        if "follows" in episode:
            continue
        yield f"  {number}. {scored(episode, document)}"
        first = episode["hypotheses"][0]
        yield from (f"       + {sign}" for sign in signs_of(first, "for", document))
        yield from (f"       - {sign}" for sign in signs_of(first, "against", document))
        yield from (f"    {text}" for text in alternatives(number, episode))
        effects = (one["hypotheses"][0] for one in episodes if one.get("follows") == number)
        yield from (f"    follows from {number}: {effect['sentence']}" for effect in effects)

"""Describes incident.json of `nemesrv import` in sentences, for the terminal and for report.html."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from ..verdict import Validity, Verdict, seconds

LEAST_SCORE = 0.05
"""Alternatives of a lower score are in incident.json only."""
LIKELY = 0.7
"""From this score on a cause is likely, whatever its form."""
NOTHING_JUDGED = "No check has anything to judge in these logs; nemesrv doctor LOGS says what their lines show"
EPISODES_MAX = 4
SIGNS_MAX = 3
_FORMLESS = "the fault's exact form is not known"
_AT_S = re.compile(r"(?:^|\bat )(\d+\.\d) s\b")


def result(document: Mapping[str, Any], verdicts: Sequence[Verdict], left_out: int) -> str:
    """Return sentences about an import: the faults that explain the logs, INVALID checks, the number of undecided
    checks."""
    faults = [episode for episode in document["episodes"] if "follows" not in episode]
    told = [f"{capital(scored(episode, document))}." for episode in faults[:EPISODES_MAX]]
    more = len(faults) - len(told)
    told += [f"And {more} more in incident.json."] if more > 0 else []
    told = told or ["Nothing in these logs asks for a fault."]
    wrong = [v.name for v in verdicts if v.verdict is Validity.INVALID]
    unknown = sum(v.verdict is Validity.UNKNOWN for v in verdicts) + left_out
    found = f"INVALID: {', '.join(wrong)}." if wrong else "No rule of RocketMQ was broken, as far as these logs show."
    undecided = f" {unknown} checks cannot be decided by these logs." if unknown else ""
    return " ".join(told) + (f" {found}{undecided}" if any(v.examined for v in verdicts) else f" {NOTHING_JUDGED}.")


def answer_list(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (label, sentence) pairs: which times the page shows, the evidence for each fault, alternative faults, and
    what clients suffered."""
    rows = [("Times", f"Seconds since {time_0(document)}; times of day are in this zone, too.")]
    numbered = enumerate(document["episodes"], 1)
    for number, episode in [one for one in numbered if "follows" not in one[1]][:EPISODES_MAX]:
        signs = "; ".join(signs_of(episode["hypotheses"][0], "for", document))
        rows += [("Signs of it", f"{signs}.")] if signs else []
        rows += [("Not certain", capital(f"{text}.")) for text in alternatives(number, episode)]
    suffered = [*suffered_lines(document.get("suffered") or ()), *ended_before(document)]
    rows += [("Suffered", f"{line}.") for line in suffered]
    return rows


def facts(document: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Return the number of processes that wrote the logs, and the number of understood lines."""
    sources = document.get("sources") or []
    lines = sum(int(source.get("lines") or 0) for source in sources)
    understood = sum(int(source.get("understood") or 0) for source in sources)
    return [("logs of", f"{len(sources)} processes"), ("lines understood", f"{understood:,} of {lines:,}")]


def scored(episode: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """Return `likely (0.96): broker-a hung, from 20.0 s until 60.0 s (07:44:22 to 07:45:02)`."""
    sentence = episode["hypotheses"][0]["sentence"].rstrip(".")
    return f"{how_sure(episode)}: {sentence}{times_of_day(episode, document)}"


def how_sure(episode: Mapping[str, Any]) -> str:
    """Return `likely (0.96)`, or `likely (0.96; the fault's exact form is not known)`."""
    first = episode["hypotheses"][0]
    score = episode.get("score", first.get("score"))
    if first["certainty"] == "unsure" and score >= LIKELY:
        return f"likely ({score:.2f}; {_FORMLESS})"
    return f"{first['certainty']} ({score:.2f})"


def formless(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Sequence[str], Mapping[str, Any]]]:
    """Return (id, title, nodes, episode) of each fault that is likely, but whose form is not known: `black_hole-1`,
    `black hole broker-c ↔ ns-1`."""
    for number, episode in enumerate(document["episodes"], 1):
        entry = next(iter(episode["hypotheses"][0].get("timeline") or ()), None)
        if entry is not None and "follows" not in episode and _FORMLESS in how_sure(episode):
            places = [*(entry.get("links") or ()), *(entry.get("nodes") or ())]
            nodes = [node for place in places for node in place.split(" <-> ")]
            title = f"{entry['do'].replace('_', ' ')} {', '.join(places).replace('<->', '↔')}"
            yield f"{entry['do']}-{number}", title, nodes, episode


def time_0(document: Mapping[str, Any]) -> str:
    """Return the time of day at second 0 of the import: `2026-11-23 07:42:57 UTC+08:00`."""
    origin = datetime.fromisoformat(document["origin"])
    return f"{origin:%Y-%m-%d %H:%M:%S} {origin.tzinfo}"


def zone_ms(document: Mapping[str, Any]) -> float:
    """Return how far the zone of the import's times is ahead of UTC."""
    return (datetime.fromisoformat(document["origin"]).utcoffset() or timedelta()) / timedelta(milliseconds=1)


def signs_of(hypothesis: Mapping[str, Any], side: str, document: Mapping[str, Any]) -> list[str]:
    """Return the strongest evidence for or against a fault, each with the file and line of the log. `side`: "for" or
    "against"."""
    return [
        f"{with_times_of_day(one['says'], document)}{_place(one)}" for one in (hypothesis.get(side) or ())[:SIGNS_MAX]
    ]


def alternatives(number: int, episode: Mapping[str, Any]) -> Iterator[str]:
    """Return `or 1=2 (0.23 of the likelihood; the first has 0.77): broker-a's process ended` for each other form."""
    return (f"or {number}={place} {form}" for place, form in other_forms(episode))


def other_forms(episode: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Return the place and the sentence of the second and third likeliest fault, unless the fault's score is below
    LEAST_SCORE."""
    first, *others = episode["hypotheses"][:3]
    for place, other in enumerate(others, 2):
        if other["score"] >= LEAST_SCORE:
            shares = f"{other['score']:.2f} of the likelihood; the first has {first['score']:.2f}"
            yield place, f"({shares}): {other['sentence']}"


def suffered_lines(told: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Return a line for each client about the client's failed calls. `told` has the entries of incident.json's
    `suffered`."""
    for client, of in groupby(told, lambda one: str(one["client"])):
        yield f"{client}: {'; '.join(one['says'] for one in of)}"


def ended_before(document: Mapping[str, Any]) -> Iterator[str]:
    """Return a line for each client without a failed call whose log ends before the first fault: `producer-0: no
    failure in its log, whose last line is 07:43:36, before the fault`."""
    begins_ms = [one["from_ms"] for one in document["episodes"] if one["from_ms"] is not None]
    origin, hit = datetime.fromisoformat(document["origin"]), {one["client"] for one in document.get("suffered") or ()}
    for source in document.get("sources") or ():
        if source.get("kind") != "client" or source["source"] in hit or not (begins_ms and source.get("last")):
            continue
        last = datetime.fromisoformat(source["last"]).astimezone(origin.tzinfo)
        if last < origin + timedelta(milliseconds=min(begins_ms)):
            yield f"{source['source']}: no failure in its log, whose last line is {last:%H:%M:%S}, before the fault"


def with_times_of_day(text: str, document: Mapping[str, Any]) -> str:
    """Return the text with the time of day behind its seconds of the import: `at 190.5 s (07:46:07)`."""
    if not document.get("origin"):
        return text
    begun = datetime.fromisoformat(document["origin"])
    return _AT_S.sub(lambda found: f"{found[0]} ({begun + timedelta(seconds=float(found[1])):%H:%M:%S})", text)


def times_of_day(episode: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """Return ` (07:44:22 to 07:46:51; the fault took 148.7 s)`; "" if `document` has no origin, or nothing is known."""
    if not document.get("origin") or episode.get("from_ms") is None:
        return ""
    begun = datetime.fromisoformat(document["origin"])
    ends = (
        begun + timedelta(milliseconds=episode[end]) for end in ("from_ms", "to_ms") if episode.get(end) is not None
    )
    lasted = f"; the fault took {seconds(to_ms - episode['from_ms'])}" if (to_ms := episode.get("to_ms")) else ""
    return f" ({' to '.join(at.strftime('%H:%M:%S') for at in ends)}{lasted})"


def _place(one: Mapping[str, Any]) -> str:
    return f"  {one['file']}:{one['line']}" if one.get("file") else ""


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]

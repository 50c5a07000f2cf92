"""A violation in one sentence: which node did what, when, and by how much it exceeded its bound.

    ns-0 still listed broker-a (orders) until 225.0 s, 209.3 s after ns-0 last heard from broker-a; allowed 120.0 s: …
    consumer-0 committed for a queue of broker-b (orders) after consumer-0 had given the queue up, at 4.0 s

happened.toml has a sentence for each kind of finding: under `states` for what was wrong for some time, under `acts` for
an act that is wrong by itself, under `patterns` for kinds with a variable part. Times count from the origin of the
example's times.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from ..verdict import Example, length, seconds, tenths

_SENTENCES = tomllib.loads(Path(__file__).with_name("happened.toml").read_text(encoding="utf-8"))
_RECOVERED = "first good "
_STATES: Mapping[str, str] = _SENTENCES["states"]
_ACTS: Mapping[str, str] = _SENTENCES["acts"]
_OF_PATTERN: Mapping[str, str] = _SENTENCES["patterns"]
SAID = frozenset(_SENTENCES["said"])
"""Keys of an example's `more` that are not printed after the sentence: the sentence says them, or only programs read
them."""


def happened(e: Example) -> str:
    """Return the sentence without a full stop. A kind without a sentence is printed as it is."""
    kind = str(e.more.get("kind") or "")
    if e.from_ms is None or (told := _state(e, kind, e.from_ms)) is None:
        bound = f"; {e.against_bound}" if e.latest_ms or e.too_early else ""
        return _act(e, kind) + _when(e) + bound
    followed = e.after not in ("", "begin") and not (e.is_of_due_time or e.too_early)
    return f"{told}; {e.against_bound}" + (f"; after {e.after}" if followed else "")


def _state(e: Example, kind: str, from_ms: float) -> str | None:
    """None if the kind has no sentence in `_STATES`, or the finding has no measured time."""
    if e.measured_ms is None:
        return None
    if tell := {"must not be dropped": _dropped, "dropped too soon": _dropped, "must hold": _missing}.get(kind):
        return tell(e)
    sentence = _STATES.get(_RECOVERED if kind.startswith(_RECOVERED) else kind)
    return sentence and sentence.format(**_words(e, from_ms, e.measured_ms))


def _act(e: Example, kind: str) -> str:
    holder = e.more.get("holder")
    words = {
        "who": e.who,
        "what": e.what,
        "topic": e.topic,
        "about": _about(e),
        "of_topic": _of(e.topic),
        "because": f": {because}" if (because := e.more.get("because")) else "",
        "holder": holder,
        "unread": f"{holder} did not pull from {holder}'s queue" if holder else "no consumer pulled from a queue",
    }
    if sentence := _ACTS.get(kind):
        return sentence.format(**words)
    for pattern, sentence in _OF_PATTERN.items():
        if found := re.fullmatch(pattern, kind):
            return sentence.format(*found.groups(""), **words)
    kind = kind or str(e.more.get("rule") or "")
    who = e.who if kind.startswith(("must", "may")) or not kind else f"{e.who}:"
    return " ".join(filter(None, (who, kind, _about(e))))


def _when(e: Example) -> str:
    """`, at 4.0 s`, or `, from 42.0 to 70.0 s (28.0 s)`; if the bound is for a longer time: `(38.0 s in all)`."""
    if e.from_ms is None:
        return ""
    if e.to_ms is None or e.to_ms - e.from_ms < 1.0:
        return f", at {seconds(e.from_ms)}"
    length_ms = e.to_ms - e.from_ms
    held_ms = (e.latest_ms or 0.0) + (e.over_ms or 0.0)  # what was allowed and what was over: all that was measured
    is_a_part = e.latest_ms and e.measured_ms is not None and abs(e.measured_ms - held_ms) < 1.0 <= held_ms - length_ms
    took = f"{length(held_ms)} in all" if is_a_part else length(length_ms)
    return f", from {tenths(e.from_ms)} to {seconds(e.to_ms)} ({took})"


def _words(e: Example, from_ms: float, measured_ms: float) -> Mapping[str, object]:
    owners = [str(name) for name in e.more.get("clients") or ()]
    return {
        **{name: e.more.get(name) for name in ("holder", "masters", "queue_id")},
        "who": e.who,
        "what": e.what,
        "about": _about(e),
        "of_topic": _of(e.topic),
        "because": f" ({because})" if (because := e.more.get("because")) else "",
        "at": seconds(from_ms),
        "end": seconds(from_ms if e.too_early else e.to_ms or from_ms),
        "until": _until(e, from_ms, measured_ms),
        "took": length(measured_ms),
        "still": "still " if e.is_of_due_time else "",
        "owners": " and ".join(owners),
        "operation": str(e.more.get("kind")).removeprefix(_RECOVERED),
        "since": f" after {e.after}" if e.after else "",
    }


def _of(topic: str) -> str:
    return f" of {topic}" if topic else ""


def _about(e: Example) -> str:
    return f"{e.what} ({e.topic})" if e.what and e.topic else e.what or e.topic


def _until(e: Example, from_ms: float, measured_ms: float) -> str:
    """`until 80.0 s, 60.0 s after f1 end`, or `from 42.0 to 70.0 s, for 28.0 s`."""
    end = seconds(from_ms if e.to_ms is None else e.to_ms)
    if e.is_of_due_time:
        return f"until {end}, {length(measured_ms)} after {'the start' if e.after in ('', 'begin') else e.after}"
    began_ms = from_ms if e.to_ms is None else min(from_ms, e.to_ms - measured_ms)  # what was allowed is part of it
    return f"from {tenths(began_ms)} to {end}, for {length(measured_ms)}"


def _dropped(e: Example) -> str:
    reason, age_ms = e.more.get("reason"), e.more.get("registered_before_ms")
    said = f"{e.who} dropped {e.what} at {seconds(e.from_ms or 0.0)}" + (f" ({reason})" if reason else "")
    said += "" if age_ms is None else f", {length(age_ms)} after {e.what}'s last registration"
    return said if e.too_early else f"{said}; {e.what} was missing for {length(e.measured_ms or 0.0)}"


def _missing(e: Example) -> str:
    from_ms, measured_ms = e.from_ms or 0.0, e.measured_ms or 0.0
    if e.too_early:
        since = f", {length(measured_ms)} after {e.after}" if e.after else ""
        return f"{e.who} dropped {_about(e)} at {seconds(from_ms)}{since}"
    return f"{e.who} did not list {_about(e)} {_until(e, from_ms, measured_ms)}"

"""An import's page says first what is thought to have happened, as incident.json has it. Nothing is inferred here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ...verdict import Validity, Verdict
from ..summary import INCIDENT

EPISODES_MAX = 4
HEADINGS = {
    "lateness": (
        "How exact the stamps are",
        "What a log's time may be off by; the tolerance of the checks is made of it.",
    ),
    "faults": (
        "What is thought to have happened",
        "The inferred faults that are certain or likely; unsure ones are in incident.json.",
    ),
}
"""Of sections that an import calls otherwise than a run."""


def read_incident(run_dir: Path) -> dict[str, Any] | None:
    """The document beside the history; None where the run is no import."""
    try:
        document = json.loads((run_dir / INCIDENT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) and isinstance(document.get("episodes"), list) else None


def said(document: Mapping[str, Any], verdicts: Sequence[Verdict], left_out: int) -> str:
    """The faults that explain the logs, as HTML; then what checks found, and how many could decide nothing."""
    told = [escape(_hypothesis(episode)) for episode in document["episodes"][:EPISODES_MAX]]
    more = len(document["episodes"]) - len(told)
    told += [f"And {more} more in {INCIDENT}."] if more > 0 else []
    told = told or ["Nothing in these logs asks for a fault."]
    wrong = [v.name for v in verdicts if v.verdict is Validity.INVALID]
    unknown = sum(v.verdict is Validity.UNKNOWN for v in verdicts) + left_out
    found = f"INVALID: {', '.join(wrong)}." if wrong else "No check found anything wrong."
    undecided = f" {unknown} checks cannot be decided by these logs; {INCIDENT} says by which." if unknown else ""
    return " ".join(told) + f" {escape(found)}{escape(undecided)}"


def facts(document: Mapping[str, Any]) -> list[tuple[str, object]]:
    """What stands beneath: how many logs there are, and how much of them was understood."""
    sources = document.get("sources") or []
    lines = sum(int(source.get("lines") or 0) for source in sources)
    understood = sum(int(source.get("understood") or 0) for source in sources)
    return [("logs of", f"{len(sources)} processes"), ("lines understood", f"{understood:,} of {lines:,}")]


def _hypothesis(episode: Mapping[str, Any]) -> str:
    first = next(iter(episode.get("hypotheses") or ()), None)
    if first is None:
        return "Something happened that no fault explains."
    sentence = str(first.get("sentence") or first.get("fault") or "")
    return f"{str(first.get('certainty') or 'unsure').capitalize()}: {sentence.rstrip('.')}."

"""replay.json in words: what a person reads on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

SHOWN_MAX = 12
"""So many transitions that are in one of the two only are listed."""


def lines_of(document: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """What `nemesrv replay` prints."""
    yield f"{document['scenario']}: {document['sentence']}"
    yield from document["notes"]
    for found, said in (("original", "only in the original"), ("replay", "only in the replay")):
        alone = [one for one in document["transitions"] if one["found"] == found]
        if alone:
            yield f"{said}:"
            for one in alone[:SHOWN_MAX]:
                yield f"  {one[f'{found}_ms'] / 1000:8.1f} s  {one['told']}"
            if len(alone) > SHOWN_MAX:
                yield f"  and {len(alone) - SHOWN_MAX} more, in replay.json"
    if document["not_compared"]:
        yield f"not in the original's logs, so not compared: {', '.join(document['not_compared'])}"
    yield from _variants(document["variants"])
    yield f"scenario: {folder / 'scenario.yaml'}"
    if (folder / "report.html").is_file():
        yield f"report: {folder / 'report.html'}"


def _variants(variants: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each, and a table of the clients."""
    if not variants:
        return
    for one in variants:
        yield one["sentence"]
    width = max(len(client) for one in variants for client in one["clients"]) if variants[0]["clients"] else 6
    head = f"{'failed sends':>14}  {'longest gap':>20}  {'recovered after':>20}  {'transitions':>11}"
    yield f"  {'client':{width}}  {head}"
    for one in variants:
        yield f"  {one['vary']}"
        for client, (was, now) in one["clients"].items():
            failed = f"{was['failed']} -> {now['failed']}"
            gap, recovered = (f"{_s(was[name])} -> {_s(now[name])}" for name in ("longest_gap_ms", "recovered_ms"))
            changes = f"{was['transitions']} -> {now['transitions']}"
            yield f"  {client:{width}}  {failed:>14}  {gap:>20}  {recovered:>20}  {changes:>11}"


def _s(ms: float | None) -> str:
    return "-" if ms is None else f"{ms / 1000:.1f} s"


def told(one: Mapping[str, Any]) -> str:
    """`ns-0 lost broker-a (silent)`."""
    node, kind, subject, how = one["node"], one["kind"], one["subject"], one["how"]
    if kind in ("started", "stopped"):
        return f"{node} {kind}"
    if kind == "came":
        return f"{node} has {subject}"
    if kind == "lost":
        return f"{node} lost {subject} ({how})"
    if kind == "route":
        return f"{node}: {subject} is at {how}"
    if kind == "took":
        return f"{node} takes the route of {subject}: {how}"
    if kind == "chose":
        return f"{node} chose {subject}"
    if kind == "looks up":
        return f"{node} looks up {subject}: {how}"
    if kind == "registers":
        return f"{node} registers at {subject}" if how == "ok" else f"{node} cannot register at {subject}"
    if kind == "permission":
        return f"{node}: write permission of {subject} {how}"
    return f"{node}: {kind} {subject}" + (f" ({how})" if how else "")

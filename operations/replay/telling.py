"""replay.json in words: what a person reads on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...chaos.proof.statistics.per_client import client_lines

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
    yield from client_lines(document["variants"])
    yield f"scenario: {folder / 'scenario.yaml'}"
    if (folder / "report.html").is_file():
        yield f"report: {folder / 'report.html'}"

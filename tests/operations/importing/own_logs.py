"""What the nodes of a recorded run logged themselves, at DEBUG: our NameServers speak RocketMQ's own words.

`loud` makes virtual nodes log each channel as it opens and closes, so that a log has the ephemeral port of each dial.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from nemesrv.actors.actor import NodeSpec
from nemesrv.chaos.experiment.virtual import recording
from nemesrv.remoting.node.clock import Clock

_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) ([A-Z]+) \S+: (.*)")


class Said(NamedTuple):
    """A record of a node's own log, with the lines that go on with it."""

    wall_ms: float
    level: str
    text: str


def said(run: Path, node: str) -> Iterator[Said]:
    """In order; nothing where the node has no log."""
    path = run / "logs" / f"{node}.log"
    last: Said | None = None
    for line in path.read_text().splitlines() if path.is_file() else ():
        if (found := _LINE.fullmatch(line)) is None:
            last = last and last._replace(text=f"{last.text}\n{line}")
            continue
        if last is not None:
            yield last
        at = datetime.fromisoformat(found[1]).replace(tzinfo=UTC).timestamp() * 1000 + int(found[2])
        last = Said(at, "WARN" if found[3] == "WARNING" else found[3], found[4])
    if last is not None:
        yield last


def loud() -> mock._patch[Callable[..., object]]:
    """While it lasts, nodes on the virtual clock log at DEBUG."""

    def at_debug(spec: NodeSpec, clock: Clock) -> tuple[logging.Logger, Callable[[], None]]:
        log, close = recording.node_logger(spec, clock)
        log.setLevel(logging.DEBUG)
        return log, close

    return mock.patch("nemesrv.chaos.experiment.virtual.cluster.node_logger", at_debug)

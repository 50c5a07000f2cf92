"""Nodes whose dials go through fronts of their own are told which servers they cannot reach (fronts/behaviour.py).

A row `fault` of the harness ─► what each of those nodes' dials now meet, whole ─► its method `faulted`

Nobody waits for it. Who cannot be asked, because it is paused or gone, is told when its own fault ends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...actors.actor import ClosableRecorder
from ...actors.watch import ClusterError
from ..fronts.behaviour import Unreachable


class FaultNews:
    """`submit` calls a node's method without waiting, as Cluster's does."""

    def __init__(self, nodes: Iterable[str], submit: Callable[[str, str, Mapping[str, str]], object]) -> None:
        self._of = {node: Unreachable(node) for node in nodes}
        self._submit = submit

    def heard(self, event: str, fields: Mapping[str, Any]) -> None:
        """The harness has recorded this."""
        if event != "fault":
            return
        ended = str(fields.get("source")) if fields.get("phase") == "end" and fields.get("target") is None else ""
        for node, unreachable in self._of.items():
            if unreachable.faulted(fields) is not None or node == ended:
                with contextlib.suppress(ClusterError):
                    self._submit(node, "faulted", dict(unreachable.meets))


class Heard:
    """A recorder of which somebody hears what it is told."""

    def __init__(self, record: ClosableRecorder, heard: Callable[[str, Mapping[str, object]], None]) -> None:
        self._record, self._heard = record, heard
        self.close = record.close

    def __call__(self, event: str, /, **fields: object) -> None:
        self._record(event, **fields)
        self._heard(event, fields)

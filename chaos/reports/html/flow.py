"""How long look-ups, pulls and messages took end to end, and how far consumers were behind: columns, no rows.

name_server_call, pull        ─► when it ended, how long it took
send (ok), receive            ─► joined by the message's key: from the send's beginning to its first receipt
acknowledged − first received ─► the lag: messages that were acknowledged and not received yet
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .codes import Array, numbers
from .data import batches, history_files

_COLUMNS = ("time_ms", "event", "type", "duration_ms", "msg_key")
_NO_TIMES: Array = np.empty(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Operations of one kind: when each ended, and how long it took."""

    time_ms: Array
    took_ms: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What went through the cluster, besides the sends themselves."""

    look_ups: Timed
    pulls: Timed
    end_to_end: Timed
    acknowledged_ms: Array
    """When each message was acknowledged that was not received before, in order."""
    received_ms: Array
    """When each of the acknowledged messages was first received, in order."""

    def lag(self, edges: Array) -> Array:
        """How many messages were acknowledged and not yet received, at each of these times."""
        behind = np.searchsorted(self.acknowledged_ms, edges, side="right")
        found: Array = behind - np.searchsorted(self.received_ms, edges, side="right")
        return np.maximum(found, 0)


def read_flow(run_dir: Path, timeline_ms: float) -> Flow:
    """The flow of the run whose history is in `run_dir`; times count from `timeline_ms`."""
    timed: dict[str, list[tuple[Array, Array]]] = {"name_server_call": [], "pull": []}
    acknowledged: list[tuple[pa.Array, Array, Array]] = []
    received: list[tuple[pa.Array, Array]] = []
    for _, batch in batches(history_files(run_dir), _COLUMNS):
        time_ms = numbers(batch["time_ms"], "f8") - timeline_ms
        took_ms = numbers(batch["duration_ms"], "f8")
        ended = _is(batch["type"], "ok")
        for event, parts in timed.items():
            here = _is(batch["event"], event) & ended & ~np.isnan(took_ms)
            if here.any():
                parts.append((time_ms[here], took_ms[here]))
        keyed = ~batch["msg_key"].is_null().to_numpy(zero_copy_only=False)
        here = _is(batch["event"], "send") & ended & keyed
        if here.any():
            acknowledged.append((batch["msg_key"].filter(pa.array(here)), time_ms[here], took_ms[here]))
        here = _is(batch["event"], "receive") & keyed
        if here.any():
            received.append((batch["msg_key"].filter(pa.array(here)), time_ms[here]))
    end_to_end, acknowledged_ms, received_ms = _joined(acknowledged, received)
    return Flow(
        look_ups=_timed(timed["name_server_call"]),
        pulls=_timed(timed["pull"]),
        end_to_end=end_to_end,
        acknowledged_ms=acknowledged_ms,
        received_ms=received_ms,
    )


def _is(column: pa.Array, text: str) -> Array:
    found: Array = pc.fill_null(pc.equal(column, text), False).to_numpy(zero_copy_only=False)
    return found


def _timed(parts: Sequence[tuple[Array, Array]]) -> Timed:
    if not parts:
        return Timed(time_ms=_NO_TIMES, took_ms=_NO_TIMES)
    return Timed(time_ms=np.concatenate([t for t, _ in parts]), took_ms=np.concatenate([d for _, d in parts]))


def _joined(
    acknowledged: Sequence[tuple[pa.Array, Array, Array]], received: Sequence[tuple[pa.Array, Array]]
) -> tuple[Timed, Array, Array]:
    """From the send to the first receipt of each acknowledged message; when each was acknowledged, and received."""
    if not acknowledged or not received:  # nobody consumes: there is no lag to tell
        return _timed([]), _NO_TIMES, _NO_TIMES
    keys = pa.chunked_array([pc.cast(key, pa.string()) for key, _, _ in acknowledged])
    ended_ms = np.concatenate([t for _, t, _ in acknowledged])
    sent_ms = ended_ms - np.nan_to_num(np.concatenate([d for _, _, d in acknowledged]))
    seen = pa.chunked_array([pc.cast(key, pa.string()) for key, _ in received])
    seen_ms = np.concatenate([t for _, t in received])
    which = pc.fill_null(pc.index_in(seen, value_set=keys.combine_chunks()), -1).to_numpy()
    known = which >= 0
    first_ms = np.full(len(keys), np.inf)
    np.minimum.at(first_ms, which[known], seen_ms[known])
    got = np.isfinite(first_ms)
    end_to_end = Timed(time_ms=first_ms[got], took_ms=np.maximum(first_ms[got] - sent_ms[got], 0.0))
    # A message may be received before its acknowledgement is: it was never behind.
    behind_ms = np.where(got, np.minimum(ended_ms, first_ms), ended_ms)
    return end_to_end, np.sort(behind_ms), np.sort(first_ms[got])

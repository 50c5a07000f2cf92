"""Traffic over time: sends a second by outcome, single sends, lag, and how late the machine's timers were.

    a million sends ──► 60 to 1200 slices of time, each with how many ended how
                   └──► single sends: all while they are few, else of each slice the slowest; and those that did not
                        end ok, every one while they are few, else the first of each slice with its count

So a spike or a failure is always seen as a point of its own, whatever lies beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .data import Array, Lags, Recorded, Texts, Traffic, numbers

SLICES_MAX = 1200
PER_SLICE = 20
"""So many sends a slice on average."""
POINTS_MAX = 2500
FAILURES_MAX = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Slices:
    """The run in equal slices of time; every array has one element a slice."""

    start_ms: Array
    end_ms: Array
    ok: Array
    unknown: Array
    failed: Array

    @property
    def availability(self) -> Array:
        """Share of the sends that ended in this slice and ended ok; NaN where none ended."""
        ended = self.ok + self.unknown + self.failed
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Array = np.where(ended > 0, self.ok / ended, np.nan)
        return found

    @property
    def width_s(self) -> float:
        return float(self.end_ms[0] - self.start_ms[0]) / 1000 if len(self.start_ms) else 0.0


def slices(traffic: Traffic, start_ms: float, end_ms: float) -> Slices:
    """The sends of the run, by the time at which they ended."""
    sends = traffic.where("send", "ok", "fail", "info") & (traffic.time_ms >= start_ms) & (traffic.time_ms <= end_ms)
    number = int(np.clip(sends.sum() / PER_SLICE, 60, SLICES_MAX))
    edges = np.linspace(start_ms, max(end_ms, start_ms + 1), number + 1)
    time_ms, outcome = traffic.time_ms[sends], traffic.outcome[sends]
    slice_of = np.clip(np.searchsorted(edges, time_ms, side="right") - 1, 0, number - 1)
    ok, failed, unknown = (np.bincount(slice_of[outcome == code], minlength=number) for code in (1, 2, 3))
    return Slices(start_ms=edges[:-1], end_ms=edges[1:], ok=ok, unknown=unknown, failed=failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Single sends: positions in Traffic, and how many others in the same slice each stands for."""

    index: Array
    others: Array


def shown_sends(traffic: Traffic) -> Points:
    """Sends that ended ok: all, or of each slice of time the slowest."""
    return _strongest(traffic, np.flatnonzero(traffic.where("send", "ok")), POINTS_MAX)


def shown_failures(traffic: Traffic) -> Points:
    """Sends that did not end ok: all, or of each slice of time the slowest, with the number of the others."""
    return _strongest(traffic, np.flatnonzero(traffic.where("send", "fail", "info")), FAILURES_MAX)


def _strongest(traffic: Traffic, index: Array, most: int) -> Points:
    if len(index) <= most:
        return Points(index=index, others=np.zeros(len(index), "i8"))
    time_ms, duration_ms = traffic.time_ms[index], np.nan_to_num(traffic.duration_ms[index], nan=-1.0)
    span_ms = max(float(time_ms[-1] - time_ms[0]), 1e-9)
    slice_of = np.minimum(((time_ms - time_ms[0]) / span_ms * most).astype("i8"), most - 1)
    order = np.lexsort((duration_ms, slice_of))
    last = np.flatnonzero(np.diff(slice_of[order], append=-1))
    _, count = np.unique(slice_of, return_counts=True)
    return Points(index=index[order[last]], others=count - 1)


def lateness(lags: Lags, start_ms: float, end_ms: float) -> tuple[Array, Array]:
    """(times, largest lateness of any node) in slices of the run; without a measurement NaN."""
    number = int(np.clip(len(lags.time_ms) / PER_SLICE, 60, SLICES_MAX))
    edges = np.linspace(start_ms, max(end_ms, start_ms + 1), number + 1)
    here = (lags.time_ms >= start_ms) & (lags.time_ms <= end_ms) & ~np.isnan(lags.lag_ms)
    slice_of = np.clip(np.searchsorted(edges, lags.time_ms[here], side="right") - 1, 0, number - 1)
    worst = np.full(number, -1.0)
    np.maximum.at(worst, slice_of, lags.lag_ms[here])
    return (edges[:-1] + edges[1:]) / 2, np.where(worst < 0, np.nan, worst)


# -- how long messages took end to end, and how far consumers were behind: columns, no rows.
#
# send (ok), receive            ─► joined by the message's key: from the send's beginning to its first receipt
# acknowledged − first received ─► the lag: messages that were acknowledged and not received yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What messages went through, besides the sends themselves."""

    took_ms: Array
    """From the beginning of each message's send to its first receipt."""
    acknowledged_ms: Array
    """When each message was acknowledged that was not received before, in order."""
    received_ms: Array
    """When each of the acknowledged messages was first received, in order."""

    def lag(self, edges: Array) -> Array:
        """How many messages were acknowledged and not yet received, at each of these times."""
        behind = np.searchsorted(self.acknowledged_ms, edges, side="right")
        found: Array = behind - np.searchsorted(self.received_ms, edges, side="right")
        return np.maximum(found, 0)


def read_flow(recorded: Recorded) -> Flow:
    """The flow of the run."""
    table = recorded.table
    event, ended = Texts(table["event"]), Texts(table["type"]).among("ok")
    time_ms = numbers(table["time_ms"], "f8") - recorded.timeline_ms
    took_ms = numbers(table["duration_ms"], "f8")
    keyed = table["msg_key"].is_valid().to_numpy()
    sent, received = event.among("send") & ended & keyed, event.among("receive") & keyed
    end_to_end_ms = acknowledged_ms = received_ms = np.empty(0)
    if sent.any() and received.any():  # where nobody consumes there is no lag to tell
        keys, seen = (table["msg_key"].filter(pa.array(here)).combine_chunks() for here in (sent, received))
        which = pc.fill_null(pc.index_in(seen, value_set=keys), -1).to_numpy(zero_copy_only=False)
        known = which >= 0
        first_ms = np.full(len(keys), np.inf)
        np.minimum.at(first_ms, which[known], time_ms[received][known])
        got = np.isfinite(first_ms)
        began_ms = time_ms[sent] - np.nan_to_num(took_ms[sent])
        end_to_end_ms = np.maximum(first_ms[got] - began_ms[got], 0.0)
        # A message may be received before its acknowledgement is: it was never behind.
        behind_ms = np.where(got, np.minimum(time_ms[sent], first_ms), time_ms[sent])
        acknowledged_ms, received_ms = np.sort(behind_ms), np.sort(first_ms[got])
    return Flow(took_ms=end_to_end_ms, acknowledged_ms=acknowledged_ms, received_ms=received_ms)

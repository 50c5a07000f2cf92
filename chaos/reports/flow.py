"""Computes how long each message took from send to receipt, and how many messages consumers were behind.

send (ok), receive            ─► joined by the message's key: from the send's beginning to its first receipt
acknowledged − first received ─► the lag: messages that were acknowledged and not received yet
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .columns import Array, Recorded, TextColumn, numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFlow:
    took_ms: Array
    """From the beginning of each message's send to its first receipt."""
    acknowledged_ms: Array
    """When each message was acknowledged that was not received before, in order."""
    received_ms: Array
    """When each of the acknowledged messages was first received, in order."""

    def lag(self, edges: Array) -> Array:
        """Return for each time in `edges` how many messages were acknowledged and not yet received."""
        behind = np.searchsorted(self.acknowledged_ms, edges, side="right")
        found: Array = behind - np.searchsorted(self.received_ms, edges, side="right")
        return np.maximum(found, 0)


def read_flow(recorded: Recorded) -> MessageFlow:
    table = recorded.table
    event, ended = TextColumn(table["event"]), TextColumn(table["type"]).among("ok")
    time_ms, took_ms = (numbers(table[name], "f8") for name in ("time_ms", "duration_ms"))
    keyed, is_prompt = table["msg_key"].is_valid().to_numpy(), table["f"].is_null().to_numpy()
    sent = event.among("send") & ended & keyed & is_prompt  # not what its broker has to delay
    received = event.among("receive", "sent_back") & keyed
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
    return MessageFlow(took_ms=end_to_end_ms, acknowledged_ms=acknowledged_ms, received_ms=received_ms)

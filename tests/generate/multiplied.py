"""A recorded run with each of its messages N times: what the nodes did stays as it is, only the messages are more.

    recorded    … commit 7 · send m7 · timer_lag · receive m7 (offset 7) …
    three times … commit 21 · send m7.0 m7.1 m7.2 · timer_lag · receive m7.0 (21) m7.1 (22) m7.2 (23) …

The copies of a row stand between it and the next row of the whole history, within a microsecond, so no two rows of
the recording change places: what was before, during or after a fault, a rebalance or another message still is. Every
offset is N times the recorded one, plus the copy's number where the row is of one message; a pull brings the copies of
what it brought. Rows of each process are numbered anew. So whatever was right of the recording is right of its copies.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nemesrv.chaos.history.merge import write_clustered
from nemesrv.chaos.history.rows import to_table
from nemesrv.chaos.history.schema import EVENTS, STAMPED, Row, arrow_schema, parquet_path
from nemesrv.remoting.node.profile import Profile

from .recorded import LARGE_EVENTS, recorded, scenario_for

SLICE_ROWS = 1_000_000
"""About as many rows are made at a time; memory is about 500 bytes for each of them."""
ORDERED_ROWS = 1_000_000
"""A history up to this size is one file in order of time, as a recorded run's; beyond, row groups are of one event."""
SPREAD_MS = 0.001
"""Within so much time are the copies of one row."""

MESSAGE_EVENTS = ("send", "send_attempt", "receive", "read")
"""A row of these is of one message, and is there once for each of its copies."""
_COPY_BITS = 32
_HEX = np.frombuffer("".join(f"{value:04x}" for value in range(1 << 16)).encode(), dtype=np.uint32)
"""Four digits for each 16 bits."""

Ints = NDArray[np.int64]


class Written(NamedTuple):
    """What was made: the run folder, and how many rows."""

    path: Path
    rows: int


def rows_of(events: int, seed: int) -> list[Row]:
    """The rows that `write` would write, in order, `value` decoded and nulls left out; for tests of some thousand."""
    tables = [table for slice_ in _Run(events, seed).slices(SLICE_ROWS) for table in slice_]
    found = []
    for row in _in_order(tables).to_pylist():
        if row["value"] is not None:
            row["value"] = orjson.loads(row["value"])
        found.append({name: cell for name, cell in row.items() if cell is not None})
    return found


def write(
    out: Path | str, *, events: int, seed: int, profile: Profile = Profile.V4_9, slice_rows: int = SLICE_ROWS
) -> Written:
    """A run folder with a history of about `events` rows, or as many as the recorded run has, and its scenario.yaml.

    The same arguments write the same rows. Replaces what a run folder there had; OSError when the disk refuses.
    """
    run, folder = _Run(events, seed, profile), Path(out)
    history = parquet_path(folder).parent
    history.mkdir(parents=True, exist_ok=True)
    if events <= ORDERED_ROWS:
        table = _in_order([table for slice_ in run.slices(slice_rows) for table in slice_])
        for old in history.glob("*.parquet"):
            old.unlink()
        pq.write_table(table, parquet_path(folder), compression="zstd")
        count = len(table)
    else:
        count = write_clustered(run.slices(slice_rows), history)
    (folder / "scenario.yaml").write_text(scenario_for(events, seed, profile).to_yaml(), encoding="utf-8")
    return Written(folder, count)


def _in_order(tables: Iterable[pa.Table]) -> pa.Table:
    order = [(name, "ascending") for name in ("time_ms", "node", "incarnation", "seq")]
    return pa.concat_tables(tables).sort_by(order).combine_chunks()


class _Run:
    """The recorded rows as columns, and how often each is there."""

    def __init__(self, events: int, seed: int, profile: Profile = Profile.V4_9) -> None:
        rows: Sequence[Row] = recorded(events >= LARGE_EVENTS, seed, profile)
        of_messages = sum(row["event"] in MESSAGE_EVENTS for row in rows)
        copies = max(1, round((events - len(rows) + of_messages) / of_messages))
        rows = [_of_more(row, copies) for row in rows]
        self._messages = _numbers_of_messages(rows)
        self._rows = to_table(rows)
        event = self._rows["event"].to_numpy()
        self._of_event = {name: np.flatnonzero(event == name) for name in sorted({*event})}
        self._counts = np.where(self._messages < 0, 1, copies)
        self._seqs = _first_seqs(rows, self._counts)
        times = self._rows["time_ms"].to_numpy()
        gaps = np.append(np.diff(times), 0.0)
        self._times, self._steps = times, np.minimum(gaps, SPREAD_MS) / self._counts

    def slices(self, slice_rows: int) -> Iterator[Iterator[pa.Table]]:
        """Every row, a table an event; a slice has the rows of a stretch of time. A table is made when it is taken."""
        slice_of = (np.cumsum(self._counts) - 1) // slice_rows
        for number in np.unique(slice_of):
            first, until = np.searchsorted(slice_of, (number, number + 1))
            yield self._tables(first, until)

    def _tables(self, first: int, until: int) -> Iterator[pa.Table]:
        for event, places in self._of_event.items():
            here = places[slice(*np.searchsorted(places, (first, until)))]
            if len(here):
                yield self._table(event, here)

    def _table(self, event: str, places: Ints) -> pa.Table:
        """These rows of one event, each as often as it is there."""
        counts = self._counts[places]
        at = np.repeat(places, counts)
        copy = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        numbers = (self._messages[at] << _COPY_BITS) + copy
        filled, of_message = STAMPED | {*EVENTS[event].columns}, event in MESSAGE_EVENTS
        made: dict[str, Any] = {
            "time_ms": pa.array(self._times[at] + copy * self._steps[at]),
            "seq": pa.array(self._seqs[at] + copy),
        }
        if of_message and "msg_key" in filled:
            made["msg_key"] = _hexadecimal(numbers, "")
        if event in ("send", "send_attempt"):
            made["op_id"] = _hexadecimal(numbers, "7F00000100000000")
        taken = [name for name in arrow_schema().names if name in filled and name not in made]
        made |= zip(taken, self._rows.select(taken).take(pa.array(at)).combine_chunks().columns, strict=True)
        if of_message and "offset" in filled:
            made["offset"] = pc.add(made["offset"], pa.array(copy))
        columns = [made[f.name] if f.name in made else pa.nulls(len(at), f.type) for f in arrow_schema()]
        return pa.Table.from_arrays(columns, schema=arrow_schema())


def _of_more(row: Row, copies: int) -> Row:
    """The row where each message is there so often: its offset, and what it says of them."""
    row = {name: cell for name, cell in row.items() if cell is not None}
    if "offset" in row:
        row["offset"] *= copies
    if row["event"] == "pull":  # copies are spread over time, so an answer's ends would be those of another moment
        row.pop("value", None)
    if row["event"] == "commit":
        row["value"] = {**row["value"], "before": max(-1, row["value"]["before"] * copies)}
    if row["event"] == "queue_taken" and (answered := row.get("value", {}).get("answered")) is not None:
        row["value"] = {**row["value"], "answered": max(-1, answered * copies)}
    if row["event"] == "boot":  # each queue is recovered as far as its copies reach
        recovered = row["value"].get("recovered") or {}
        ends = {topic: {queue: end * copies for queue, end in of.items()} for topic, of in recovered.items()}
        row["value"] = {**row["value"], "recovered": ends}
    if row["event"] == "run_begin":  # each producer sends so many messages where it sent one, no more often
        workload = row["value"]["workload"]
        row["value"] = {**row["value"], "workload": {**workload, "producers": workload["producers"] * copies}}
    return row


def _numbers_of_messages(rows: Sequence[Row]) -> Ints:
    """The number of each row's message; -1 for a row that is of none."""
    key_of = {row["op_id"]: row["msg_key"] for row in rows if row["event"] == "send"}
    numbers: dict[str, int] = {}
    found = np.full(len(rows), -1, dtype=np.int64)
    for place, row in enumerate(rows):
        if row["event"] in MESSAGE_EVENTS:
            key = row["msg_key"] if "msg_key" in row else key_of[row["op_id"]]
            found[place] = numbers.setdefault(key, len(numbers))
    return found


def _first_seqs(rows: Sequence[Row], counts: Ints) -> Ints:
    """The number, within its process, of the first copy of each row."""
    so_far: Counter[tuple[str, int]] = Counter()
    found = np.empty(len(rows), dtype=np.int64)
    for place, row in enumerate(rows):
        process = (row["node"], row["incarnation"])
        found[place] = so_far[process]
        so_far[process] += int(counts[place])
    return found


def _hexadecimal(numbers: Ints, before: str) -> pa.Array:
    """Each number as 16 hexadecimal digits, `before` in front, whose length is a multiple of four."""
    width = len(before) // 4 + 4
    digits = np.empty((len(numbers), width), dtype=np.uint32)
    digits[:, : width - 4] = np.frombuffer(before.encode(), dtype=np.uint32)
    digits[:, width - 4 :] = _HEX[np.ascontiguousarray(numbers).astype(">i8").view(">u2").reshape(-1, 4)]
    ends = np.arange(0, (len(numbers) + 1) * width * 4, width * 4, dtype=np.int32)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(ends), pa.py_buffer(digits))

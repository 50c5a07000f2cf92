"""A made-up run put together: slices of time, each with its control rows, its traffic, and its numbers in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nemesrv.chaos.faults.process_faults import Pause
from nemesrv.chaos.history.rows import to_table
from nemesrv.chaos.history.schema import Row

from .columns import Columns, holding_id
from .control import Simulation
from .outcome import PROBER, TOXIPROXY, Control, role_of
from .plan import ROWS_A_MESSAGE, Plan
from .planted import Planted
from .traffic import Rows, Traffic, rows

SLICE_ROWS = 1_000_000
"""About as many rows are made at a time; memory is about 500 bytes for each of them."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows of a stretch of time, and reads, which belong to the end of the run. Each table is in order of time."""

    control: list[Row]
    traffic: dict[str, pa.Table]
    """Event → table; names are dictionary arrays."""

    @property
    def count(self) -> int:
        return len(self.control) + sum(len(table) for table in self.traffic.values())

    def tables(self) -> Iterator[pa.Table]:
        """Every row, a table an event, with the history's columns; names may be dictionary arrays."""
        by_event: dict[str, list[Row]] = defaultdict(list)
        for row in self.control:
            by_event[row["event"]].append(row)
        for event in sorted({*by_event, *self.traffic}):
            if event in by_event:
                yield to_table(by_event[event])
            if event in self.traffic and len(self.traffic[event]):
                yield self.traffic[event]


class GeneratedRun:
    """The whole of a run, slice by slice. `defect` may change what the simulation came to and what messages do."""

    def __init__(self, plan: Plan, defect: Planted | None = None) -> None:
        self.plan = plan
        simulation = Simulation(plan)
        if defect is not None and defect.before is not None:
            defect.before(simulation)
        self.control: Control = simulation.run()
        if defect is not None and defect.control is not None:
            defect.control(simulation)
        self.control.rows.sort(key=lambda row: row["time_ms"])
        self.lag = _lag_rows(plan, self.control)
        processes = sorted(
            {(row["node"], row["incarnation"]) for row in self.control.rows}
            | {(node, max(0, inc)) for node, steps in self.control.lives.items() for _, inc in steps}
            | {process for _, process in self.lag}
        )
        self._who = {process: number for number, process in enumerate(processes)}
        for lag, (node, incarnation) in self.lag:
            lag["who"] = self._who[node, incarnation]
        who = {node: number for (node, incarnation), number in self._who.items() if incarnation == 0}
        plant = defect.traffic(plan) if defect is not None and defect.traffic is not None else None
        self.traffic = Traffic(plan, self.control, who, plant, self._who)
        self._columns = Columns(
            [(node, role_of(node), incarnation) for node, incarnation in processes],
            plan.topic_names,
            plan.broker_names,
            self.control.addresses,
            len(self.traffic.taken),
        )
        self._holdings = self.traffic.holdings()
        self._seqs = np.zeros(len(processes), dtype=np.int64)
        self._late: dict[str, Rows] = {}

    @property
    def fixed_rows(self) -> int:
        """How many rows there are besides those of the messages."""
        queues = self.plan.topics * self.plan.brokers * self.plan.queues
        return len(self.control.rows) + len(self._holdings) + sum(len(lag) for lag, _ in self.lag) + queues

    def slices(self, slice_rows: int = SLICE_ROWS) -> Iterator[Slice]:
        """Every row of the run, once. A story can be told once."""
        each = max(1, slice_rows // ROWS_A_MESSAGE)
        lag = np.sort(np.concatenate([lag for lag, _ in self.lag] or [rows(0)]), order="time_ms")
        told, lag_told, messages = 0, 0, self.plan.messages
        before_reads = sum(1 for row in self.control.rows if row["node"] == PROBER)
        before_reads += int((lag["who"] == self.traffic.who[PROBER]).sum())
        for first in range(0, messages, each) if messages else (0,):
            until = min(first + each, messages)
            last = until == messages
            end_ms = np.inf if last else self.traffic.time_of(until)
            made = self.traffic.rows(self.traffic.messages(first, until), end_ms)
            reads = made.pop("read")
            reads["seq"] += before_reads
            lag_until = int(np.searchsorted(lag["time_ms"], end_ms))
            made["timer_lag"] = lag[lag_told:lag_until]
            lag_told = lag_until
            told_until = told
            while told_until < len(self.control.rows) and self.control.rows[told_until]["time_ms"] < end_ms:
                told_until += 1
            control = self.control.rows[told:told_until]
            told = told_until
            control = sorted(control + self._held(end_ms), key=lambda row: row["time_ms"])
            slice_ = self._in_order(control, made, end_ms)
            slice_.traffic["read"] = self._columns.table("read", reads)
            if last:
                slice_.control.extend(self._read_done(before_reads))
            yield slice_

    def _held(self, end_ms: float) -> list[Row]:
        """`queue_taken` and `queue_dropped` before that time; offsets are what earlier messages came to."""
        plan, found = self.plan, []
        while self._holdings and self._holdings[0][0] < end_ms:
            at_ms, consumer, event, queue, holding = self._holdings.pop(0)
            topic, rest = divmod(queue, plan.brokers * plan.queues)
            broker, queue_id = divmod(rest, plan.queues)
            dropped = event == "queue_dropped"
            found.append(
                {
                    **{"time_ms": at_ms, "node": plan.consumer_names[consumer], "role": "consumer", "incarnation": 0},
                    **{"event": event, "op_id": holding_id(holding), "topic": plan.topic_names[topic]},
                    **{"broker_name": plan.broker_names[broker], "queue_id": queue_id},
                    "offset": self.traffic.taken_before(queue, holding + dropped),
                }
            )
        return found

    def _in_order(self, control: list[Row], made: dict[str, Rows], end_ms: float) -> Slice:
        """Rows before `end_ms` numbered and sorted; later ones wait for the next slice."""
        parts: dict[str, Rows] = {}
        for event, new in made.items():
            every = np.concatenate((self._late.pop(event), new)) if event in self._late else new
            early = every["time_ms"] < end_ms
            if not early.all():
                self._late[event] = every[~early]
                every = every[early]
            parts[event] = every
        events = [*parts]
        control_who = np.array([self._who[row["node"], row["incarnation"]] for row in control], dtype=np.int64)
        control_ms = np.array([row["time_ms"] for row in control], dtype=np.float64)
        times = np.concatenate([control_ms, *(parts[event]["time_ms"] for event in events)])
        who = np.concatenate([control_who, *(parts[event]["who"] for event in events)]).astype(np.int16)
        part = np.repeat(np.arange(len(events) + 1, dtype=np.int16), [len(control), *map(len, parts.values())])
        order = np.argsort(times, kind="stable")
        by_who = order[np.argsort(who[order], kind="stable")]
        counts = np.bincount(who, minlength=len(self._seqs))
        begins = np.concatenate(([0], np.cumsum(counts)[:-1]))
        seqs = np.empty(len(times), dtype=np.int64)
        sorted_who = who[by_who]
        seqs[by_who] = np.arange(len(times)) - begins[sorted_who] + self._seqs[sorted_who]
        self._seqs += counts
        numbered = [{**row, "seq": int(seq)} for row, seq in zip(control, seqs, strict=False)]
        tables: dict[str, pa.Table] = {}
        at = len(control)
        part_in_order = part[order]
        for number, event in enumerate(events, start=1):
            here = order[part_in_order == number] - at
            rows_ = parts[event][here]
            rows_["seq"] = seqs[here + at]
            tables[event] = self._columns.table(event, rows_)
            at += len(parts[event])
        return Slice(numbered, tables)

    def _read_done(self, before_reads: int) -> list[Row]:
        """The prober read every queue whole; the offset is each queue's end."""
        plan, traffic = self.plan, self.traffic
        found: list[Row] = []
        for number, end in enumerate(traffic.ends):
            topic, rest = divmod(number, plan.brokers * plan.queues)
            broker, queue_id = divmod(rest, plan.queues)
            found.append(
                {
                    "time_ms": plan.settled_ms + 9_100.0 + number / 10,
                    "seq": before_reads + traffic.read + number,
                    **{"node": PROBER, "role": PROBER, "incarnation": 0, "event": "read_done", "attempt": 0},
                    **{"topic": plan.topic_names[topic], "broker_name": plan.broker_names[broker]},
                    **{"queue_id": queue_id, "offset": int(end)},
                }
            )
        return found


def _lag_rows(plan: Plan, control: Control) -> list[tuple[Rows, tuple[str, int]]]:
    """Each process's `timer_lag`: while it runs, and not while it is paused; the prober's until the final reads.

    Toxiproxy's as well, which has no faults.
    """
    found: list[tuple[Rows, tuple[str, int]]] = []
    for number, (node, steps) in enumerate([*sorted(control.lives.items()), (TOXIPROXY, [(0.0, 0)])]):
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((plan.seed, 1, number))))
        until_ms = plan.settled_ms if node == PROBER else plan.end_ms
        for (from_ms, incarnation), (to_ms, _) in zip(steps, [*steps[1:], (until_ms, -1)], strict=True):
            if incarnation < 0:
                continue
            every_ms = plan.lag_every_ms
            times = np.arange(from_ms + every_ms + rng.random() * 10, to_ms, every_ms)
            for fault in plan.faults:
                if fault.source == node and isinstance(fault.kind, Pause):
                    times = times[(times < fault.start_ms) | (times - every_ms > fault.end_ms)]
            lag = rows(len(times), time_ms=times, duration_ms=every_ms, lag_ms=rng.exponential(2.0, len(times)))
            found.append((lag, (node, incarnation)))
    return found

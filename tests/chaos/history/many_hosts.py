"""A run that was recorded on one host, as three hosts with clocks of their own would have recorded it."""

import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from nemesrv.chaos.history.files import process_of, raw_name, read_raw
from nemesrv.chaos.history.host_clocks import CLOCKS, HARNESS
from nemesrv.chaos.history.schema import raw_dir

HOSTS = ("h0", "h1", "h2")
"""The harness is on the first, whose clock is its own."""
Clock = Callable[[float], float]
Row = dict[str, Any]


def true_clock(at_ms: float) -> float:
    return at_ms


def ahead(by_ms: float) -> Clock:
    return lambda at_ms: at_ms + by_ms


def jumping(by_ms: float, at_ms: float) -> Clock:
    return lambda now_ms: now_ms + (by_ms if now_ms >= at_ms else 0.0)


def host_of(node: str) -> str:
    """ns-0, broker-a and producer-0 are on the first host, ns-1, broker-b … on the second."""
    last = node.partition("/")[0][-1]
    return HOSTS[(int(last) if last.isdigit() else ord(last) - ord("a")) % len(HOSTS)]


def rows_of(folder: Path) -> dict[tuple[str, int], list[Row]]:
    """What each process of the run recorded, as it was recorded."""
    return {
        process_of(path): [row for row in read_raw(path) if row is not None]
        for path in sorted(raw_dir(folder).glob("*.jsonl"))
    }


def written(out: Path, rows: Mapping[tuple[str, int], Iterable[Row]]) -> Path:
    """The run folder with these rows, not merged yet."""
    raw_dir(out).mkdir(parents=True)
    for (node, incarnation), of in rows.items():
        text = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in of)
        (raw_dir(out) / raw_name(node, incarnation)).write_bytes(text)
    return out


def spread(
    rows: Mapping[tuple[str, int], Iterable[Row]],
    clocks: Mapping[str, Clock],
    *,
    bound_ms: float = 0.5,
    measured: bool = True,
    lost: Iterable[str] = (),
) -> dict[tuple[str, int], list[Row]]:
    """The same as hosts with these `clocks` record it, whom the harness asks once a second.

    A reading is wrong by any part of its bound; `measured` False: nobody asked. Of hosts that are `lost` no row is
    there, and the harness says so.
    """
    rng, end_ms, lost = random.Random("1 hosts"), 0.0, set(lost)
    found: dict[tuple[str, int], list[Row]] = {}
    nodes: dict[str, str] = {}
    for (node, incarnation), of in rows.items():
        of = [dict(row) for row in of]
        for row in of:
            end_ms = max(end_ms, row["time_ms"])
            if node == HARNESS and row["event"] == "node":
                nodes[row["source"]] = host_of(row["source"])
                row["value"] = {**row["value"], "host": nodes[row["source"]]}
            elif node != HARNESS:
                row["time_ms"] = clocks.get(host_of(node), true_clock)(row["time_ms"])
        if node == HARNESS or host_of(node) not in lost:
            found[node, incarnation] = of
    harness = found[HARNESS, 0]
    for node, host in sorted(nodes.items()):
        if host in lost:
            about = {"host": host, "why": "the host is gone"}
            last = harness[-1]
            harness.append({**_stamp(HARNESS, len(harness), last["time_ms"]), "event": "rows_missing"})
            harness[-1] |= {"source": node, "value": about}
    if measured:
        found[CLOCKS, 0] = []
        for host in HOSTS:
            for number in range(int(end_ms / 1000) + 1):
                at_ms, shows = number * 1000.0, clocks.get(host, true_clock)
                width_ms = bound_ms if host in clocks else 0.0
                wrong_ms = width_ms * rng.uniform(-1, 1)
                value = {"host_ms": shows(at_ms), "offset_ms": shows(at_ms) - at_ms + wrong_ms, "bound_ms": width_ms}
                row = {**_stamp(CLOCKS, len(found[CLOCKS, 0]), at_ms), "event": "host_clock", "source": host}
                found[CLOCKS, 0].append({**row, "value": value})
    return found


def _stamp(node: str, seq: int, at_ms: float) -> Row:
    return {"time_ms": at_ms, "seq": seq, "node": node, "role": HARNESS, "incarnation": 0}

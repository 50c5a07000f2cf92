"""Whether two histories of one seed differ in anything that a peer could see, for longer than "at once": 50 ms of the
machine's time, which every check allows.

What only the node itself knows of (when its timers fired, whom it means to avoid) is left out: the windows are about
what peers see. Of a topic's table at a NameServer what is undone within that is left out, and so is a drop whose broker
registers again within it (and 2 ms more: a broker that is back has to dial and register first): nobody can be asked to
see it. Of all that is left each row of one history must be in the other, of the same process, in the same order among
its like, and no more than that earlier or later. How long a call took is the time of its row, and not asked for again.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from nemesrv.chaos.oracle.world import World

Row = Mapping[str, Any]
_OF_MOMENTS = ("time_ms", "seq", "duration_ms", "lag_ms")
_REGISTERS_MS = 2.0
"""What a registration takes on the virtual clock's network, its dial included."""
_OF_ITSELF = ("broker_isolated", "pull_delayed", "run_begin", "scheduled_task", "timed_out", "timer_lag")


def near(one: Sequence[Row], other: Sequence[Row]) -> bool:
    """Whether nothing that a peer could see differs in them for longer than "at once"."""
    at_once_ms = World.of_rows(one).timers.at_once_ms
    times, others = (_times(_lasting(rows, at_once_ms + _REGISTERS_MS)) for rows in (one, other))
    return times.keys() == others.keys() and all(
        len(of) == len(others[what]) and all(abs(a - b) <= at_once_ms for a, b in zip(of, others[what], strict=True))
        for what, of in times.items()
    )


def _times(rows: Iterable[Row]) -> dict[Hashable, list[float]]:
    """What happened to when it did, in order of time."""
    found: dict[Hashable, list[float]] = defaultdict(list)
    for row in rows:
        if row["event"] not in _OF_ITSELF:
            what = {name: value for name, value in row.items() if name not in _OF_MOMENTS and value is not None}
            found[orjson.dumps(what, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)].append(row["time_ms"])
    return {what: sorted(of) for what, of in found.items()}


def _lasting(rows: Sequence[Row], undone_ms: float) -> Iterator[Row]:
    """Without what was undone at once in tables, and without the drops that were."""
    tables: dict[Hashable, list[Row]] = defaultdict(list)
    again: dict[Hashable, list[float]] = defaultdict(list)
    for row in rows:
        if row["event"] == "route":
            tables[row["node"], row["incarnation"], row["topic"]].append(row)
        elif row["event"] == "registration":
            again[row["node"], row["incarnation"], row["broker_name"]].append(row["time_ms"])
        elif row["event"] != "broker_dropped":
            yield row
    for row in rows:
        if row["event"] == "broker_dropped":
            back = again.get((row["node"], row["incarnation"], row["broker_name"]), ())
            if not any(0 <= at_ms - row["time_ms"] <= undone_ms for at_ms in back):
                yield row
        elif row["event"] == "registration":
            yield row
    for states in tables.values():
        yield from _states(states, undone_ms)


def _states(states: Sequence[Row], undone_ms: float) -> Iterator[Row]:
    """The states of one table's topic that lasted, each once."""
    kept: list[Row] = []
    for number, row in enumerate(states):
        later = states[number + 1]["time_ms"] if number + 1 < len(states) else float("inf")
        if later - row["time_ms"] > undone_ms and not (kept and kept[-1]["value"] == row["value"]):
            kept.append(row)
    return iter(kept)

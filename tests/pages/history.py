"""docs/history.md, written from the schema and the catalogue of events, so that it cannot drift.

`python -m tests.pages.history > docs/history.md` writes it again; a test compares the two.
"""

from __future__ import annotations

from nemesrv.chaos.history.schema import EVENTS, SCHEMA

_HEAD = """# The history of a run

`<run>/history/part-00000.parquet`: one row an event, ordered by `time_ms`, `node`, `seq`. Written from
`chaos/history/schema.py`; a test compares. While a run lasts, each process appends JSON
lines to `<run>/history/_raw/<node>.<incarnation>.jsonl`; a process killed with SIGKILL loses at most its last 20 ms. A
cluster that stays up (`nemesrv up`) moves them into `_parts/` as it goes, whose rows far from every change hold one
`timer_lag` a process and minute, the worst; judged meanwhile it also has `_live/`: micro-batches, carried rows, a
checkpoint. At its end all is in the files above, and these folders are gone.

A history of more than a million events has several files, `part-00000.parquet`, `part-00001.parquet` …: each row group
holds one event kind only, in order of `time_ms`, `node`, `seq`, so that a reader who wants some events skips the other
row groups by their statistics. The files of a recorded run follow each other in time.

One time axis for all: milliseconds of RocketMQ time since the run's origin, taken from the host's monotonic clock,
times the run's time scale. Addresses are a node's own view of its peer, never a proxy's.

Of a run on several hosts it is the harness's clock. Each host's nodes stamp their lines by their own, the harness asks
every host again and again what its clock shows (`host_clock`, recorded by the node `clocks`), and when the lines are
merged each row's time is corrected by its host's offset then. How far that may still be from the truth, and what it
means for verdicts: [oracle](oracle.md#the-clocks-of-several-hosts).
"""


def render() -> str:
    """The whole of docs/history.md."""
    lines = [_HEAD, "## Columns", "", "| column | type | null | meaning |", "|---|---|---|---|"]
    lines += [f"| `{c.name}` | {c.type} | {'yes' if c.nullable else 'no'} | {c.doc} |" for c in SCHEMA]
    lines += ["", "## Events", ""]
    lines += ["Every row has `time_ms`, `seq`, `node`, `role`, `incarnation` and `event`; an event fills also:", ""]
    lines += ["| event | recorded by | group | columns | meaning |", "|---|---|---|---|---|"]
    for event in EVENTS.values():
        filled = ", ".join(f"`{column}`" for column in event.columns) or "–"
        lines.append(f"| `{event.name}` | {event.by} | {event.group} | {filled} | {event.doc} |")
    return "\n".join(lines) + "\n"


def unknown_columns() -> set[str]:
    """Columns that the catalogue names and the schema lacks; empty when they agree."""
    return {column for event in EVENTS.values() for column in event.columns} - {column.name for column in SCHEMA}


if __name__ == "__main__":
    print(render(), end="")

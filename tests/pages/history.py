"""docs/history.md, written from the schema and the catalogue of events, so that it cannot drift.

`python -m tests.pages.history > docs/history.md` writes it again; a test compares the two.
"""

from nemesrv.chaos.history.schema import EVENTS, SCHEMA

_HEAD = """# The history of a run

`<run>/history/part-00000.parquet` has one row an event, ordered by `time_ms`, `node`, `seq`. This page is written
from `chaos/history/` (`columns.toml`, `events.toml`). During a run each process appends JSON lines to
`<run>/history/_raw/<node>.<incarnation>.jsonl`; a process that is killed with SIGKILL loses at most its last 20 ms. A
cluster that stays up (`nemesrv up`) moves the lines into `_parts/`; far from every change it keeps only the largest
`timer_lag` of each process and minute. With `--check` it also has `_live/`: micro-batches, carried rows, a checkpoint.
At the end of the run all rows are in the Parquet files, and these folders are gone.

A history of more than a million events has several files, `part-00000.parquet`, `part-00001.parquet` … Each row group
has one kind of event only, ordered by `time_ms`, `node`, `seq`, so a reader of some kinds skips the other row groups
by their statistics. The files of a recorded run follow each other in time.

All rows have one time axis: milliseconds of RocketMQ time since the experiment began, from the host's monotonic clock
times the run's time scale. Addresses are a node's own view of its peer, never a proxy's.

The time axis of a run on several hosts is the harness's clock. Nodes stamp their lines by their host's clock. The
harness asks every host repeatedly for its clock (`host_clock`, recorded by the node `clocks`), and the merge corrects
each row's time by its host's offset at that time. The possible error, and its effect on verdicts:
[oracle](oracle.md#the-clocks-of-several-hosts).
"""


def render() -> str:
    """The whole of docs/history.md."""
    lines = [_HEAD, "## Columns", "", "| column | type | null | meaning |", "|---|---|---|---|"]
    lines += [f"| `{c.name}` | {c.type} | {'yes' if c.nullable else 'no'} | {c.doc} |" for c in SCHEMA]
    lines += ["", "## Events", ""]
    lines += ["Every row has `time_ms`, `seq`, `node`, `role`, `incarnation` and `event`; each event also fills:", ""]
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

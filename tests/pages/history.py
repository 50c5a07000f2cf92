"""docs/history.md, written from the schema and the catalogue of events, so that it cannot drift.

`python -m tests.pages.history > docs/history.md` writes it again; a test compares the two.
"""

from nemesrv.chaos.history.schema import EVENTS, SCHEMA

_HEAD = """# The history of a run

`<run>/history/part-00000.parquet` has one row for each event, ordered by `time_ms`, `node`, `seq`. `python -m
tests.generated` writes this page from `columns.toml` and `events.toml` in `chaos/history/`. During a run each process
appends JSON lines to `<run>/history/_raw/<node>.<incarnation>.jsonl`; a process that is killed with SIGKILL loses at
most its last 20 ms. `nemesrv up` moves the lines into `_parts/`; far from every change `up` keeps only the largest
`timer_lag` of each process and minute. At the end of the run all rows are in the Parquet files, and `up` deletes `_raw`
and `_parts`.

A large history (of `nemesrv up` more than 400,000 events, else more than about a million) has several files,
`part-00000.parquet`, `part-00001.parquet` … Each row group of these files has one kind of event only, ordered by
`time_ms`, `node`, `seq`, so a reader of some kinds of events skips the other row groups. The files of a recorded run
are in the order of time.

A row's time is in milliseconds of RocketMQ time since the experiment began: the host's monotonic clock times the run's
time scale. An address in a row is the address by which the recording node knows its peer, never a proxy's address. The
rows of a run on several hosts have the harness's time ([oracle](oracle.md#the-clocks-of-several-hosts)).
"""


def render() -> str:
    """The whole of docs/history.md."""
    lines = [_HEAD, "## Columns", "", "| column | type | null | meaning |", "|---|---|---|---|"]
    lines += [f"| `{c.name}` | {c.type} | {'yes' if c.nullable else 'no'} | {c.doc} |" for c in SCHEMA]
    lines += ["", "## Events", ""]
    lines += ["Every row has `time_ms`, `seq`, `node`, `role`, `incarnation` and `event`; each event also fills:", ""]
    lines += ["| event | recorded by | columns | meaning |", "|---|---|---|---|"]
    for event in EVENTS.values():
        filled = ", ".join(f"`{column}`" for column in event.columns) or "–"
        lines.append(f"| `{event.name}` | {event.by} | {filled} | {event.doc} |")
    return "\n".join(lines) + "\n"


def unknown_columns() -> set[str]:
    """Columns that the catalogue names and the schema lacks; empty when they agree."""
    return {column for event in EVENTS.values() for column in event.columns} - {column.name for column in SCHEMA}


if __name__ == "__main__":
    print(render(), end="")

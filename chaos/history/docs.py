"""docs/history.md, written from the schema and the catalogue of events, so that it cannot drift.

`python -m nemesrv.chaos.history.docs > docs/history.md` writes it again; a test compares the two.
"""

from __future__ import annotations

from typing import NamedTuple

from .recorder import COLUMNS, SCHEMA


class Event(NamedTuple):
    name: str
    by: str
    """Who records it."""
    columns: tuple[str, ...]
    """The columns it fills besides those that every row has."""
    doc: str


EVENTS: tuple[Event, ...] = (
    # The harness
    Event(
        "run_begin",
        "harness",
        ("value",),
        "value: scenario, seed, profile, time_scale, timers (symbol_ms), workload, timeline (what it does), "
        "availability_floor",
    ),
    Event("run_end", "harness", (), "nothing after this row is judged"),
    Event("node", "harness", ("source", "address", "value"), "a node of the run; value.kind is its role"),
    Event("link", "harness", ("source", "target", "address", "injection"), "source dials target through this proxy"),
    Event("phase", "harness", ("phase",), "this phase begins: steady, fault, heal, settle, final_reads, end"),
    Event(
        "fault",
        "harness",
        ("fault_id", "fault", "injection", "source", "target", "stream", "phase", "value"),
        "phase start or end took effect; one row per process (target null) or directed link (source dials target); "
        "value: the numbers of the fault, e.g. latency_ms, jitter_ms",
    ),
    Event(
        "gone",
        "harness",
        ("fault_id", "source"),
        "the process that this fault ended is gone, and its connections are closed",
    ),
    Event(
        "verified",
        "harness",
        ("fault_id", "value"),
        "a measurement that proves a fault; of a bandwidth limit: value has the link, stream, rate_kb_s (allowed), "
        "kb_s (measured), bytes and took_ms",
    ),
    # Every node
    Event("started", "every node", ("address", "value"), "this process of the node begins its work"),
    Event("stopped", "every node", (), "this process of the node has ended cleanly"),
    Event(
        "timer_lag",
        "every node",
        ("lag_ms", "duration_ms"),
        "how late timers were at most in the last duration_ms; of the node toxiproxy: its longest round trip",
    ),
    # NameServers
    Event("route", "NameServer", ("topic", "value"), "the topic's route changed; null: it is gone"),
    Event(
        "registration",
        "NameServer",
        ("broker_name", "broker_id", "address", "code"),
        "a broker's registration was handled",
    ),
    Event(
        "broker_dropped",
        "NameServer",
        ("broker_name", "broker_id", "address", "value"),
        "value.reason: unregistered, closed, exception, idle or expired",
    ),
    # Brokers
    Event(
        "register",
        "broker",
        ("type", "name_server", "code", "duration_ms", "value"),
        "how its registration at one NameServer ended",
    ),
    Event("topic", "broker", ("topic", "value"), "the broker has this topic, or no longer (null)"),
    Event("boot", "broker", ("value",), "what the store recovered, and how many bytes it cut off"),
    # Clients
    Event("name_server_list", "client", ("op_id", "value"), "the NameServers in the shuffled order in use"),
    Event(
        "name_server_chosen",
        "client",
        ("op_id", "name_server", "value"),
        "value: old, index (in the shuffled list), reason (first, not_active, connect_failed)",
    ),
    Event(
        "name_server_call",
        "client",
        ("op_id", "f", "type", "name_server", "topic", "code", "duration_ms", "value"),
        "how a call of the chosen NameServer ended; f is route for route queries; value.tried: each try of it in order "
        "with name_server and outcome (connect_failed, no_answer, answered, not_sent)",
    ),
    Event("channel", "client", ("f", "address", "value"), "f: open, close, connect_failed; value.reason"),
    Event(
        "unasked_answer",
        "client",
        ("address", "value"),
        "a response came that no request of this channel asked for; value.reason: its code and opaque",
    ),
    Event("route_changed", "client", ("topic", "value"), "the client took a new route"),
    Event(
        "send",
        "producer",
        ("type", "op_id", "topic", "msg_key", "broker_name", "queue_id", "offset", "code", "attempt", "duration_ms"),
        "a send, invoked and ended; attempt at its end: how many of its tries may have stored it",
    ),
    Event(
        "send_attempt",
        "producer",
        ("type", "op_id", "attempt", "broker_name", "address", "queue_id", "code", "duration_ms"),
        "one try of a send",
    ),
    Event(
        "pull",
        "consumer",
        ("type", "broker_name", "address", "topic", "queue_id", "offset", "code", "duration_ms"),
        "one pull request, and how it ended",
    ),
    Event(
        "receive",
        "consumer",
        ("msg_key", "topic", "broker_name", "queue_id", "offset", "op_id"),
        "a message reached the listener; op_id is that of the queue's queue_taken",
    ),
    Event("assigned", "consumer", ("topic", "value"), "value: [broker_name, queue_id] of every queue it now has"),
    Event(
        "queue_taken",
        "consumer",
        ("op_id", "topic", "broker_name", "queue_id", "offset"),
        "the consumer holds the queue from here on and pulls it from offset; op_id names this holding",
    ),
    Event(
        "queue_dropped",
        "consumer",
        ("op_id", "topic", "broker_name", "queue_id", "offset"),
        "the holding has ended; offset is what it committed last, null when nothing",
    ),
    Event(
        "read", "final reads", ("msg_key", "topic", "broker_name", "queue_id", "offset"), "a message is in the queue"
    ),
    Event(
        "read_done",
        "final reads",
        ("topic", "broker_name", "queue_id", "offset", "attempt"),
        "the queue was read whole; offset is its end",
    ),
)

_HEAD = """# The history of a run

`<run>/history/part-00000.parquet`: one row an event, ordered by `time_ms`, `node`, `seq`. Written from
`chaos/history/recorder.py` and `chaos/history/docs.py`; a test compares. While a run lasts, each process appends JSON
lines to `<run>/history/_raw/<node>.<incarnation>.jsonl`; a process killed with SIGKILL loses at most its last 20 ms. A
history that is judged while it grows (`nemesrv up --check`) also has `_live/`: micro-batches, carried rows, a
checkpoint.

A history of more than a million events has several files, `part-00000.parquet`, `part-00001.parquet` …: each row group
holds one event kind only, in order of `time_ms`, `node`, `seq`, so that a reader who wants some events skips the other
row groups by their statistics. The files of a recorded run follow each other in time.

One time axis for all: milliseconds of RocketMQ time since the run's origin, taken from the host's monotonic clock,
times the run's time scale. Addresses are a node's own view of its peer, never a proxy's.
"""


def render() -> str:
    """The whole of docs/history.md."""
    lines = [_HEAD, "## Columns", "", "| column | type | null | meaning |", "|---|---|---|---|"]
    lines += [f"| `{c.name}` | {c.type} | {'yes' if c.nullable else 'no'} | {c.doc} |" for c in SCHEMA]
    lines += ["", "## Events", ""]
    lines += ["Every row has `time_ms`, `seq`, `node`, `role`, `incarnation` and `event`; an event fills also:", ""]
    lines += ["| event | recorded by | columns | meaning |", "|---|---|---|---|"]
    for event in EVENTS:
        filled = ", ".join(f"`{column}`" for column in event.columns) or "–"
        lines.append(f"| `{event.name}` | {event.by} | {filled} | {event.doc} |")
    return "\n".join(lines) + "\n"


def unknown_columns() -> set[str]:
    """Columns that the catalogue names and the schema lacks; empty when they agree."""
    return {column for event in EVENTS for column in event.columns} - COLUMNS


if __name__ == "__main__":
    print(render(), end="")

"""The catalogue of the history's columns and events, for recorder, merge, checks, report and docs/history.md.

A new event is one entry of _CATALOGUE.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]


class Column(NamedTuple):
    name: str
    type: str
    """string | long | int | double, in Spark's words; for Arrow's see arrow_type."""
    nullable: bool
    doc: str


SCHEMA: tuple[Column, ...] = (
    Column("time_ms", "double", False, "when it happened: RocketMQ milliseconds since the experiment's origin"),
    Column("seq", "long", False, "position among the events of this node's incarnation, from 0"),
    Column("node", "string", False, "who recorded it: ns-0, broker-a, producer-0, prober, harness …"),
    Column("role", "string", False, "name_server, broker, producer, consumer, prober or harness"),
    Column("incarnation", "int", False, "0 for the first process of this node, one more after each restart"),
    Column("event", "string", False, "what happened; the list is below"),
    Column("type", "string", True, "of an operation: invoke, ok, fail (it certainly had no effect) or info (unknown)"),
    Column("f", "string", True, "which function or change, within the event"),
    Column("op_id", "string", True, "joins the rows of one operation (or, for the prober, of one start)"),
    Column("topic", "string", True, "topic"),
    Column("broker_name", "string", True, "broker name"),
    Column("broker_id", "long", True, "0 = master"),
    Column("address", "string", True, "host:port of the peer as the node knows it, never a proxy's"),
    Column("name_server", "string", True, "host:port of a NameServer as the node knows it"),
    Column("queue_id", "int", True, "queue of the topic at that broker"),
    Column("offset", "long", True, "queue offset, in messages"),
    Column("msg_key", "string", True, "the message's key, unique in a run"),
    Column("digest", "long", True, "CRC-32 of a message's body, keys, tags and user's properties"),
    Column("code", "int", True, "RocketMQ's response code"),
    Column("attempt", "int", True, "0 for the first try of an operation"),
    Column("duration_ms", "double", True, "how long it took, or the span that a measurement covers"),
    Column("lag_ms", "double", True, "how late timers of this process fired at most"),
    Column("fault_id", "string", True, "joins the rows of one fault"),
    Column("fault", "string", True, "kind of fault: kill, stop, pause, black_hole, cut, latency, bandwidth, reset …"),
    Column("injection", "string", True, "the way it was injected, which decides the window that applies"),
    Column(
        "source",
        "string",
        True,
        "the node that is affected, or that dials the link; of an imported route or list: FILE:LINE",
    ),
    Column("target", "string", True, "the peer of the link; null for a fault of a process"),
    Column("stream", "string", True, "both, upstream (dialler to peer) or downstream"),
    Column("phase", "string", True, "start or end of a fault; or the phase of the run that begins"),
    Column("value", "string", True, "anything else, as JSON text with sorted keys"),
)

STAMPED = frozenset({"time_ms", "seq", "node", "role", "incarnation", "event"})
"""Columns of every row, which the recorder fills."""


@cache
def arrow_type(column: Column) -> pa.DataType:
    """The column's Arrow type."""
    import pyarrow as pa  # a third of a second and 40 MB, which the processes that only record need not

    types = {"string": pa.string(), "long": pa.int64(), "int": pa.int32(), "double": pa.float64()}
    return types[column.type]


def arrow_schema() -> pa.Schema:
    """SCHEMA as an Arrow schema."""
    import pyarrow as pa

    return pa.schema([pa.field(c.name, arrow_type(c), nullable=c.nullable) for c in SCHEMA])


def raw_dir(run_dir: Path | str) -> Path:
    """Where a run's processes append their lines."""
    return Path(run_dir) / "history" / "_raw"


def parquet_path(run_dir: Path | str) -> Path:
    """The first file of the run's history, and the only one unless it is large."""
    return Path(run_dir) / "history" / "part-00000.parquet"


class Group(StrEnum):
    """How many rows an event has, and their use."""

    ENVIRONMENT = "environment"
    """What the harness did; as many rows as the scenario has actions. The World is made from these."""
    CONTROL = "control"
    """What nodes say about tables, registrations, choices and channels; as many as the run is long."""
    LATENESS = "lateness"
    """How late timers were: one row a second and node."""
    TRAFFIC = "traffic"
    """As many rows as messages."""
    ANSWERS = "answers"
    """None in a correct run; in a wrong one up to one per call."""


class Event(NamedTuple):
    name: str
    group: Group
    by: str
    """The recorder of it."""
    columns: tuple[str, ...]
    """The columns that it may have, besides those of every row."""
    doc: str


_CATALOGUE: tuple[Event, ...] = (
    # The harness
    Event(
        "run_begin",
        Group.ENVIRONMENT,
        "harness",
        ("value",),
        "value: scenario, seed, profile, time_scale, timers (symbol_ms), workload, timeline (what it does), "
        "availability_floor, promises, defect (planted), clock (real or virtual), origin_wall_ms (the wall clock at "
        "the origin, in milliseconds since 1970)",
    ),
    Event("run_end", Group.ENVIRONMENT, "harness", (), "nothing after this row is judged"),
    Event(
        "node",
        Group.ENVIRONMENT,
        "harness",
        ("source", "address", "value"),
        "a node of the run; value.kind is its role, value.implementation who made it where it is not ours, value.host "
        "its host where a run has several; with another address than its row before: where its next process listens",
    ),
    Event(
        "host_clock",
        Group.ENVIRONMENT,
        "harness",
        ("source", "value"),
        "of a run on several hosts: when the clock of the host (source) showed value.host_ms it was value.offset_ms "
        "ahead of the harness's, to ± value.bound_ms, which is half the round trip of the question; the rows of its "
        "nodes are corrected by these when the history is merged",
    ),
    Event(
        "rows_missing",
        Group.ENVIRONMENT,
        "harness",
        ("source", "value"),
        "what this node recorded since value.since_ms (without it: all) could not be collected: value.host, and why; "
        "of an import, and where rows are not there: what nobody knows of this node until value.until_ms, in words "
        "(value.says); value.reaches: what the node did then may show later",
    ),
    Event(
        "link",
        Group.CONTROL,
        "harness",
        ("source", "target", "address", "injection"),
        "source dials target through this proxy",
    ),
    Event(
        "phase",
        Group.ENVIRONMENT,
        "harness",
        ("phase",),
        "this phase begins: steady, fault, act (by hand), heal, join, settle, final_reads, end",
    ),
    Event(
        "fault",
        Group.ENVIRONMENT,
        "harness",
        ("fault_id", "fault", "injection", "source", "target", "stream", "phase", "value"),
        "phase start or end took effect; one row per process (target null) or directed link (source dials target); "
        "value: the numbers of the fault, e.g. latency_ms, jitter_ms",
    ),
    Event(
        "served_list",
        Group.ENVIRONMENT,
        "harness",
        ("fault_id", "value"),
        "the address server answers with this list from now on; value: NameServers by name, or host:port",
    ),
    Event(
        "gone",
        Group.ENVIRONMENT,
        "harness",
        ("fault_id", "source"),
        "the process that this fault ended is gone, its connections are closed, and dials to it are refused",
    ),
    Event(
        "not_done",
        Group.CONTROL,
        "harness",
        ("source", "value"),
        "the node did not do what the harness asked of it, and the run went on: value has f (what was asked) and why",
    ),
    Event(
        "first_answer",
        Group.CONTROL,
        "harness",
        ("source", "duration_ms"),
        "how long this broker of Apache's took for the send that warmed it up, before clients began (cluster.warm_up)",
    ),
    # Every node
    Event("started", Group.ENVIRONMENT, "every node", ("address", "value"), "this process of the node begins its work"),
    Event("stopped", Group.ENVIRONMENT, "every node", (), "this process of the node has ended cleanly"),
    Event(
        "timer_lag",
        Group.LATENESS,
        "every node",
        ("lag_ms", "duration_ms"),
        "how late timers were at most in the last duration_ms; of the node toxiproxy: its longest round trip",
    ),
    Event(
        "scheduled_task",
        Group.CONTROL,
        "every node",
        ("f", "duration_ms", "value"),
        "a periodic task has run, for duration_ms until now; f: scanNotActiveBroker of a NameServer; "
        "registerBrokerAll, checkHoldRequest and scanExceptionChannel of a broker, and sendHeartbeat (904) with "
        "enableSlaveActingMaster; "
        "fetchNameServerAddr of a broker or client with lists by HTTP; "
        "updateTopicRouteInfoFromNameServer, sendHeartbeatToAllBroker, persistAllConsumerOffset and doRebalance of a "
        "client; value of doRebalance: woken (before its time), balanced (it left nothing undone) and shared (the "
        "topics whose queues and members it knew); of checkHoldRequest, of the pulls that were answered since then: "
        "notified (how many found a message) and "
        "slowest_ms (after it was stored), timed_out (how many found none), shortest_ms and longest_ms (after the time "
        "for which they wanted to be held)",
    ),
    Event(
        "timed_out",
        Group.CONTROL,
        "broker, client",
        ("f", "address", "op_id", "attempt", "duration_ms", "value"),
        "a wait has run out: f is connect, send (with all its tries, value.attempt_ms being the last one's) or the "
        "name of the request that was not answered; duration_ms: how long was waited, connecting and a NameServer's "
        "choice included",
    ),
    # Who acts by hand
    Event(
        "admin",
        Group.ENVIRONMENT,
        "admin",
        (
            *("f", "type", "fault_id", "target", "broker_name", "broker_id", "address", "topic"),
            *("code", "duration_ms", "value"),
        ),
        "somebody asked this node (target) by hand, and how it ended; f is the timeline's `do`, or closed: the "
        "connection over which a broker was registered by hand is gone; value: the entry's other keys, and why where "
        "it failed",
    ),
    Event(
        "offset_reset",
        Group.ENVIRONMENT,
        "broker",
        ("f", "topic", "broker_name", "value"),
        "an operator sets a group's offsets (code 222); f: here (5.x: its next pull of each queue is sent there) or "
        "by_consumers (4.9: the group's consumers are told); value: group, and offsets by queue id",
    ),
    Event(
        "clock",
        Group.ENVIRONMENT,
        "harness",
        ("source", "f", "fault_id", "value"),
        "the node's wall clock was changed; value: step_ms (null: it shows the right time again) and rate, how many "
        "times as fast it goes",
    ),
    # NameServers
    Event(
        "route",
        Group.CONTROL,
        "NameServer",
        ("f", "topic", "value", "source"),
        "the topic's route changed; null: it is gone; f, of a NameServer seen from outside: how that was learnt (wire, "
        "poll)",
    ),
    Event(
        "write_perm",
        Group.CONTROL,
        "NameServer",
        ("broker_name", "value"),
        "somebody had the broker's write permission wiped here, or added; value: wiped or added, the number of topics",
    ),
    Event(
        "registration",
        Group.CONTROL,
        "NameServer",
        ("broker_name", "broker_id", "address", "code", "value"),
        "a broker's registration was handled; value.learnt, here and in all rows of a server seen from outside: wire, "
        "log or poll",
    ),
    Event(
        "request_read",
        Group.CONTROL,
        "NameServer's transport",
        ("f", "op_id", "topic", "broker_name", "broker_id", "address", "value"),
        "the transport has read a request off a channel (op_id), whatever the NameServer makes of it: f is the name of "
        "its code, of those that routes are made of; address: the broker's, as it says; value.registers: what is "
        "registered, left out where a broker of this name, id and address registered the same with this process last, "
        "by any channel: version (stateVersion, timestamp, counter), topics (name to readQueueNums, writeQueueNums, "
        "perm, topicSysFlag), cluster, timeout_ms, acting; null where it cannot be read; value.version: the version "
        "that QUERY_DATA_VERSION asks about",
    ),
    Event(
        "channel_ended",
        Group.CONTROL,
        "NameServer's transport",
        ("f", "op_id", "value"),
        "a channel that such a request came by has ended; f: peer, or self where this process closed it; value.reason: "
        "closed, exception or idle",
    ),
    Event(
        "broker_dropped",
        Group.CONTROL,
        "NameServer",
        ("broker_name", "broker_id", "address", "value"),
        "value.reason: unregistered, closed, exception, idle or expired; unknown, where only a poll showed it",
    ),
    # Brokers
    Event(
        "register",
        Group.CONTROL,
        "broker",
        ("type", "name_server", "code", "duration_ms", "value"),
        "how its registration at one NameServer ended; value: topics (how many it sent) and version (the counter of "
        "their dataVersion), and, of Apache's that are elected, id",
    ),
    Event(
        "topic",
        Group.CONTROL,
        "broker",
        ("topic", "value"),
        "the broker has this topic, or no longer (null); value: read and write (queues), perm as it registers it, and "
        "version, the counter of the dataVersion that has it so",
    ),
    Event(
        "client_heartbeat",
        Group.CONTROL,
        "broker",
        ("op_id", "address", "value"),
        "a client's heartbeat was handled; op_id names its channel; value: client, its clientId",
    ),
    Event(
        "client_gone",
        Group.CONTROL,
        "broker",
        ("op_id", "f", "address", "duration_ms", "value"),
        "a client is no longer known: f is unregistered, closed (its channel) or expired (by scanExceptionChannel); "
        "duration_ms: since its last heartbeat; value: client, its clientId, and groups, which consumer groups it left",
    ),
    Event("boot", Group.CONTROL, "broker", ("value",), "what the store recovered, and how many bytes it cut off"),
    # Clients
    Event(
        "name_server_list",
        Group.CONTROL,
        "client",
        ("op_id", "f", "value", "source"),
        "the NameServers in the shuffled order in use; f: fetchNameServerAddr where that task brought them in "
        "mid-run; of a broker with lists by HTTP: in the order of its list",
    ),
    Event(
        "name_server_chosen",
        Group.CONTROL,
        "client",
        ("op_id", "name_server", "value"),
        "value: old, index (in the shuffled list), reason (first, not_active, connect_failed)",
    ),
    Event(
        "name_server_call",
        Group.CONTROL,
        "client",
        ("op_id", "f", "type", "name_server", "topic", "code", "duration_ms", "value"),
        "how a call of the chosen NameServer ended; f is route for route queries; value.tried: each try of it in order "
        "with name_server and outcome (connect_failed, no_answer, answered, not_sent)",
    ),
    Event(
        "route_answer",
        Group.CONTROL,
        "client",
        ("op_id", "name_server", "topic", "value"),
        "a NameServer's answer to a look-up of the topic is another than its last one to this process, or the first; "
        "the answer of a name_server_call is the last such row before it; value: the route, or unreadable",
    ),
    Event(
        "channel",
        Group.CONTROL,
        "client",
        ("f", "address", "value"),
        "f: open, close, connect_failed; value.reason, which says of a close by whom it was: self or peer; of a client "
        "seen from outside client, server or front",
    ),
    Event(
        "unasked_answer",
        Group.ANSWERS,
        "client",
        ("address", "value"),
        "a response came that no request of this channel asked for; value.reason: its code and opaque",
    ),
    Event("route_changed", Group.CONTROL, "client", ("topic", "value", "source"), "the client took a new route"),
    Event(
        "send",
        Group.TRAFFIC,
        "producer",
        (
            *("type", "op_id", "topic", "msg_key", "broker_name", "queue_id", "offset"),
            *("digest", "code", "attempt", "duration_ms"),
        ),
        "a send, invoked and ended; attempt at its end: how many of its tries may have stored it; digest, where it "
        "ended ok: of the message as the producer gave it",
    ),
    Event(
        "send_attempt",
        Group.TRAFFIC,
        "producer",
        ("type", "op_id", "attempt", "broker_name", "address", "queue_id", "code", "duration_ms"),
        "one try of a send",
    ),
    Event(
        "pull",
        Group.TRAFFIC,
        "consumer",
        ("type", "broker_name", "address", "topic", "queue_id", "offset", "code", "duration_ms"),
        "one pull request, and how it ended",
    ),
    Event(
        "pull_delayed",
        Group.CONTROL,
        "consumer",
        ("f", "topic", "broker_name", "queue_id", "duration_ms", "value"),
        "the queue's next pull was put off (executePullRequestLater); f says why: exception, flow_control, "
        "broker_flow_control, illegal_offset, first (5.x); duration_ms: the longest of value.times that followed each "
        "other within a second; value.shortest_ms: the shortest",
    ),
    Event(
        "broker_isolated",
        Group.CONTROL,
        "producer",
        ("f", "broker_name", "duration_ms", "value"),
        "with sendLatencyFaultEnable; f is isolated: an attempt that took duration_ms, or failed (value.failed), has "
        "the broker avoided for value.isolation_ms from now; or selected: the next attempt goes there, for the first "
        "time since",
    ),
    Event(
        "receive",
        Group.TRAFFIC,
        "consumer",
        ("msg_key", "topic", "broker_name", "queue_id", "offset", "op_id", "digest"),
        "a message reached the listener; op_id is that of the queue's queue_taken; digest: of the message as it came",
    ),
    Event(
        "commit",
        Group.TRAFFIC,
        "broker; a consumer that broadcasts",
        ("f", "topic", "broker_name", "queue_id", "offset", "value"),
        "a group's offset of the queue is another from here on: all before it counts as consumed; f: update (a commit "
        "by itself), pull (a pull carried it), persist (kept by the consumer itself), reset (mqadmin); value: group, "
        "before (the offset until now, -1: none), and client, its id where a heartbeat of this channel has told it",
    ),
    Event(
        "assigned",
        Group.CONTROL,
        "consumer",
        ("topic", "value"),
        "value: [broker_name, queue_id] of every queue it now has",
    ),
    Event(
        "queue_taken",
        Group.CONTROL,
        "consumer",
        ("op_id", "topic", "broker_name", "queue_id", "offset"),
        "the consumer holds the queue from here on and pulls it from offset; op_id names this holding",
    ),
    Event(
        "queue_dropped",
        Group.CONTROL,
        "consumer",
        ("op_id", "topic", "broker_name", "queue_id", "offset"),
        "the holding has ended; offset is what it committed last, null when nothing",
    ),
    Event(
        "read",
        Group.TRAFFIC,
        "final reads",
        ("msg_key", "topic", "broker_name", "queue_id", "offset"),
        "a message is in the queue",
    ),
    Event(
        "read_done",
        Group.CONTROL,
        "final reads",
        ("topic", "broker_name", "queue_id", "offset", "attempt"),
        "the queue was read whole; offset is its end",
    ),
)

EVENTS: Mapping[str, Event] = {event.name: event for event in _CATALOGUE}
"""Name to event, in the order of docs/history.md."""


def named(*groups: Group) -> tuple[str, ...]:
    """Names of the events of these groups."""
    return tuple(event.name for event in _CATALOGUE if event.group in groups)


def object_of(value: object) -> dict[str, Any]:
    """`value` as an object, from an object or its JSON text; empty for anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return dict(value) if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[Any]:
    """`value` as a list, from a list or its JSON text."""
    found = json.loads(value) if isinstance(value, str) else value
    return found if isinstance(found, list) else []

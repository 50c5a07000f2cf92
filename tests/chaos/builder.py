"""Hand-written histories: a story in seconds of RocketMQ time, told event by event.

story = cluster(name_servers=2, brokers=("broker-a", "broker-b"))
story.at(20).fault("f1", "kill", "sigkill", "broker-a")
story.at(20).route("ns-0", "orders", "broker-b")
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nemesrv.chaos.checks.check import Check
from nemesrv.chaos.checks.plain.verdicts import in_memory
from nemesrv.chaos.checks.record.control import Control
from nemesrv.chaos.history.rows import to_table
from nemesrv.chaos.history.schema import SCHEMA
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.topology import CONSUMER_GROUP, broker_id, broker_name, is_slave
from nemesrv.chaos.verdict import Example, Validity, Verdict
from tests.chaos.parts import InParts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROLES = {"ns": "name_server"}
BOTH = ("broker-a", "broker-b")
# the commonest faults: story.at(20).fault(*KILL)
KILL = ("f1", "kill", "sigkill", "broker-a")
PAUSE = ("f1", "pause", "sigstop", "broker-a")
HOLE = ("f1", "black_hole", "toxiproxy.bandwidth.rate=0", "broker-a", "ns-0")


def role_of(node: str) -> str:
    if is_slave(node):
        return "slave"
    prefix = node.split("-")[0]
    return ROLES.get(prefix, prefix)


def address_of(node: str) -> str:
    prefix, _, rest = node.partition("-")
    if prefix == "ns":
        return f"127.0.0.1:{9876 + int(rest)}"
    return f"127.0.0.1:{10911 + 100 * (ord(rest[0]) - ord('a')) + 10 * broker_id(node)}"


def route_of(*brokers: str) -> dict[str, Any]:
    """The canonical route of a topic with 4 queues on each of these brokers, masters or slaves."""
    names = dict.fromkeys(map(broker_name, brokers))
    return {
        "brokers": {n: {str(broker_id(b)): address_of(b) for b in brokers if broker_name(b) == n} for n in names},
        "queues": {name: [4, 4, 6, 0] for name in names},
    }


class HistoryBuilder:
    """Rows in the order told. `at(seconds)` sets the time of what follows."""

    def __init__(self, **run: Any) -> None:
        self.rows: list[dict[str, Any]] = []
        self.now_s = 0.0
        self.incarnations: dict[str, int] = {}
        self.seqs: dict[tuple[str, int], int] = {}
        self.nodes: list[str] = []
        if run:
            self.event("harness", "run_begin", value=run)

    def at(self, seconds: float) -> HistoryBuilder:
        self.now_s = seconds
        return self

    def event(self, node: str, event: str, /, **fields: Any) -> HistoryBuilder:
        incarnation = self.incarnations.get(node, 0)
        seq = self.seqs[node, incarnation] = self.seqs.get((node, incarnation), -1) + 1
        row = {"time_ms": self.now_s * 1000.0, "seq": seq, "node": node, "role": role_of(node)}
        self.rows.append(row | {"incarnation": incarnation, "event": event} | fields)
        return self

    def run_says(self, **value: Any) -> HistoryBuilder:
        """So does the row of the run's beginning."""
        self.rows[0]["value"] |= value
        return self

    def made_by(self, implementation: str, *nodes: str, **more: Any) -> HistoryBuilder:
        """Whose programs these are, and what more their rows say of them."""
        for row in self.rows:
            if row["event"] == "node" and row["source"] in nodes:
                row["value"] |= {"implementation": implementation, **more}
        return self

    def node(self, name: str) -> HistoryBuilder:
        """The node exists, and its first process is started now."""
        self.nodes.append(name)
        listens = name.startswith(("ns-", "broker-"))
        kind = role_of(name)
        self.event("harness", "node", source=name, address=address_of(name) if listens else None, value={"kind": kind})
        return self.event(name, "started")

    def moved(self, name: str, address: str) -> HistoryBuilder:
        """Its next process has that address."""
        value = {"kind": role_of(name)}
        return self.event("harness", "node", source=name, address=address, value=value).restarted(name)

    def restarted(self, name: str) -> HistoryBuilder:
        self.incarnations[name] = self.incarnations.get(name, 0) + 1
        return self.event(name, "started")

    def offset_reset(self, topic: str, broker: str, offset: int) -> HistoryBuilder:
        """An operator sets the group's offset of queue 0."""
        value = {"group": CONSUMER_GROUP, "offsets": {"0": offset}}
        return self.event(broker, "offset_reset", f="here", topic=topic, broker_name=broker, value=value)

    def fault(
        self,
        fault_id: str,
        fault: str,
        injection: str,
        source: str,
        target: str | None = None,
        *,
        end: bool = False,
        until_s: float | None = None,
        stream: str | None = None,
        value: object = None,
    ) -> HistoryBuilder:
        """The fault begins, or ends; with `until_s` it begins now and ends then."""
        fields = {"fault_id": fault_id, "fault": fault, "injection": injection, "source": source, "target": target}
        fields |= {"stream": stream or ("both" if target else None), "value": value}
        self.event("harness", "fault", phase="end" if end else "start", **fields)
        return self if until_s is None else self.at(until_s).event("harness", "fault", phase="end", **fields)

    def black_hole(
        self, source: str, target: str, *, until_s: float | None = None, fault_id: str = "f1"
    ) -> HistoryBuilder:
        """Their link loses all bytes from now on."""
        return self.fault(fault_id, *HOLE[1:3], source, target, until_s=until_s)

    def act(self, f: str, target: str, **more: Any) -> HistoryBuilder:
        """Somebody did that by hand, and it was done."""
        about = {"type": "ok", "fault_id": f"{f}-1", "target": target, "code": 0, "duration_ms": 5.0}
        return self.event("admin", "admin", f=f, **{**about, **more})

    def register(
        self, broker: str, name_server: str = "ns-0", *, took_s: float = 0.01, how: str = "ok", **value: Any
    ) -> HistoryBuilder:
        """The broker's registration, which took so long, was acknowledged now; info: was given up."""
        about = {"type": how, "code": 0 if how == "ok" else None, "name_server": address_of(name_server)}
        return self.event(broker, "register", duration_ms=took_s * 1000, value=value or None, **about)

    def registration(self, name_server: str, broker: str, **more: Any) -> HistoryBuilder:
        """The NameServer took the broker's registration; with another `code` it refused it."""
        about = {"broker_name": broker_name(broker), "broker_id": broker_id(broker), "address": address_of(broker)}
        return self.event(name_server, "registration", **{**about, "code": 0, **more})

    def drops(self, name_server: str, broker: str, reason: str = "closed", **more: Any) -> HistoryBuilder:
        about = {"broker_name": broker_name(broker), "broker_id": broker_id(broker), "address": address_of(broker)}
        return self.event(name_server, "broker_dropped", value={"reason": reason}, **{**about, **more})

    def route(self, name_server: str, topic: str, *brokers: str) -> HistoryBuilder:
        return self.event(name_server, "route", topic=topic, value=route_of(*brokers) if brokers else None)

    def read(self, name_server: str, f: str, broker: str = "", channel: str = "", **more: Any) -> HistoryBuilder:
        """The NameServer's transport read a request about the broker, at its own address unless `more` says another."""
        about = {"broker_name": broker_name(broker), "broker_id": broker_id(broker), "address": None}
        if broker:
            about["address"] = address_of(broker) if broker.startswith("broker-") else None
        return self.event(name_server, "request_read", f=f, op_id=channel or broker, **{**about, **more})

    def registers(
        self, name_server: str, broker: str, topics: dict[str, list[int]] | None = None, version: int = 1, **more: Any
    ) -> HistoryBuilder:
        """The NameServer's transport read the registration of these topics (name to read, write, perm, flag)."""
        versions = [more.pop("state_version", 0), 0, version]
        said = {"version": versions, "topics": topics or {"orders": [4, 4, 6, 0]}, "cluster": "DefaultCluster"}
        said |= {"timeout_ms": None, "acting": more.pop("acting", None)}
        return self.read(name_server, "REGISTER_BROKER", broker, value={"registers": said}, **more)

    def learns(
        self, client: str, *brokers: str, topic: str = "orders", route: dict[str, Any] | None = None
    ) -> HistoryBuilder:
        """The client takes the topic's route, which is that to these brokers or the one given."""
        return self.event(
            client, "route_changed", topic=topic, value=route or (route_of(*brokers) if brokers else None)
        )

    def hears(self, broker: str, client: str, channel: str = "", **more: Any) -> HistoryBuilder:
        """The broker handles a heartbeat that came by the channel, by default the client's only one."""
        value = {"client": f"127.0.0.1@{client}#1", **more}
        return self.event(broker, "client_heartbeat", op_id=channel or f"of-{client}", value=value)

    def forgets(
        self, broker: str, client: str, how: str, silent_s: float = 0.001, channel: str = "", **more: Any
    ) -> HistoryBuilder:
        """The broker knows the client at the channel no longer: unregistered, closed or expired."""
        value = {"client": f"127.0.0.1@{client}#1", **more}
        about = {"op_id": channel or f"of-{client}", "duration_ms": silent_s * 1000, "value": value}
        return self.event(broker, "client_gone", f=how, **about)

    def topic(self, broker: str, topic: str) -> HistoryBuilder:
        return self.event(broker, "topic", topic=topic, value={"read": 4, "write": 4, "perm": 6})

    def lag(self, lag_ms: float, *nodes: str, until_s: float | None = None) -> HistoryBuilder:
        """Timers of these nodes (default: all) were this late, from now until `until_s` (default: only now)."""
        for node in nodes or self.nodes:
            covered_s = (until_s or self.now_s) - self.now_s
            here_s, self.now_s = self.now_s, until_s or self.now_s
            self.event(node, "timer_lag", lag_ms=lag_ms, duration_ms=covered_s * 1000)
            self.now_s = here_s
        return self

    def end(self, seconds: float, lag_ms: float | None = 1.0) -> HistoryBuilder:
        """The run ends; unless None, every node measured `lag_ms` throughout."""
        if lag_ms is not None:
            self.at(0).lag(lag_ms, until_s=seconds)
        return self.at(seconds).event("harness", "phase", phase="end")

    def facts(self) -> tuple[Control, World]:
        """What a check of control rows judges by, without Spark."""
        return Control.of_rows(self.rows), World.of_rows(self.rows)

    def frame(self, spark: SparkSession) -> DataFrame:
        return frame(spark, self.rows)

    def judged(self, check: Check, spark: SparkSession | None = None) -> Verdict:
        """The check's verdict of the whole history, which is that of its parts; or of what Spark gathers."""
        if spark is not None:
            return judged(check, self.frame(spark))
        history, world = in_memory(to_table(self.rows))
        whole = check.judged(history, world)
        cut = check.judged(InParts(history, random.Random(1)), world)
        assert said(whole) == said(cut)
        return whole

    def in_order(self) -> list[dict[str, Any]]:
        """The rows as a reader of the recorded history gets them."""
        return sorted(
            (dict.fromkeys(column.name for column in SCHEMA) | row for row in self.rows),
            key=lambda row: (row["time_ms"], row["node"], row["incarnation"], row["seq"]),
        )


def judging(judge: Callable[[Control, World], Verdict]) -> Callable[[HistoryBuilder], Verdict]:
    """What a check of control rows says of a history."""
    return lambda history: judge(*history.facts())


def example(
    who: str,
    what: str = "",
    *,
    from_s: float,
    to_s: float | None = None,
    due_s: float | None = None,
    took_s: float | None = None,
    allowed_s: float | None = None,
    topic: str = "",
    after: str = "",
    times: Mapping[str, float] | None = None,
    **more: Any,
) -> Example:
    """A counterexample in seconds; by how much it is over follows from what it took and what was allowed."""
    over_s = None if took_s is None or allowed_s is None else took_s - allowed_s
    ms = [None if at_s is None else at_s * 1000.0 for at_s in (from_s, to_s, due_s, took_s, allowed_s, over_s)]
    named = dict(zip(("from_ms", "to_ms", "due_ms", "measured_ms", "latest_ms", "over_ms"), ms, strict=True))
    moments = {name: at_s * 1000.0 for name, at_s in (times or {}).items()}
    return Example(who=who, what=what, topic=topic, after=after, times=moments, more=more, **named)


def valid(name: str, *, examined: int = 9, **more: Any) -> Verdict:
    """What a check says that found nothing wrong."""
    return Verdict(name=name, verdict=Validity.VALID, examined=examined, **more)


def invalid(name: str, *, examined: int = 9, violations: int = 1, **more: Any) -> Verdict:
    return Verdict(name=name, verdict=Validity.INVALID, examined=examined, violations=violations, **more)


def kinds(of: Verdict) -> list[Any]:
    return [example.more["kind"] for example in of.examples]


def said(verdict: Verdict) -> tuple[object, ...]:
    """All that is said of a check, down to each example and finding."""
    return (verdict.to_json(), *(finding.to_json() for finding in verdict.findings))


def frame(spark: SparkSession, rows: Sequence[dict[str, Any]]) -> DataFrame:
    """Rows as a history DataFrame, through the same conversion as a recorded run's."""
    return spark.createDataFrame(to_table(rows)).coalesce(1)


def judged(check: Check, history: DataFrame) -> Verdict:
    """The check's verdict of what Spark gathers from the history."""
    from nemesrv.chaos.checks.spark.parts import gather

    gathering, world = gather(history)
    return check.judged(gathering, world)


def cluster(
    name_servers: int = 2, brokers: Iterable[str] = BOTH, clients: Iterable[str] = (), topic: str = "orders", **run: Any
) -> HistoryBuilder:
    """Everything started at 0 s, every broker has `topic`, and every NameServer holds its true route at 1 s."""
    builder = HistoryBuilder(**{"profile": "4.9", "time_scale": 1, **run})
    brokers = tuple(brokers)
    for index in range(name_servers):
        builder.node(f"ns-{index}")
    for broker in brokers:
        (builder if is_slave(broker) else builder.topic(broker, topic)).node(broker)
    for client in clients:
        builder.node(client)
    builder.at(1)
    for index in range(name_servers):
        builder.route(f"ns-{index}", topic, *brokers)
    return builder

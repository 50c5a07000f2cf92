"""The edges of windows: for each row a legal run that comes within 2 % of the bound, and what lies just beyond it.

`inside`: nothing is planted, and phases and timeline bring what is measured within 2 % of the edge. `outside`: one node
is wrong by 2 % of the window at most, at phases that let it show. Rows are those of docs/windows.md's sections; those
without an edge stand in NOT_APPROACHED, each with its reason.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from nemesrv.actors.namesrv.server import NameServer
from nemesrv.chaos.defects import around, with_settings
from nemesrv.chaos.experiment.workloads.producer import ProducerNode
from nemesrv.chaos.proof.defects.planting import NS_0, PRODUCER_0, Where, instance_of
from tests.chaos.sensitive_timers import (
    QUIET,
    TIMERS,
    Plant,
    Timer,
    expires_after,
    idles_for,
    leaves_brokers_after,
    takes_routes_after,
)

SHARE = 0.02
_NEVER_IDLE = {"name_servers": {"serverChannelMaxIdleTimeSeconds": 300}}
_ONE = {**QUIET, "cluster": {"name_servers": 1, "brokers": 2}, "workload": {**QUIET["workload"], "sends_per_s": 4}}
_ONE_5X = {**_ONE, "cluster": {"name_servers": 1, "brokers": 2, "profile": "5.x"}}
_TWO = {**_ONE, "cluster": {"name_servers": 2, "brokers": 2}}


@dataclass(frozen=True)
class Edge:
    """One end of one row's window."""

    name: str
    row: str
    """Section and row of the table."""
    check: str
    """Which check says INVALID just outside, and in which findings the inside comes near to the edge."""
    window_ms: float
    where: Where
    plant: Plant
    _: KW_ONLY
    early: bool = False
    """Whether it is the early end."""
    is_measured: bool = True
    """Whether the inside has a finding with this bound; not where nothing at all may happen."""
    measured: Callable[[Sequence[Mapping[str, Any]]], Iterable[float]] | None = None
    """What comes near to it in the inside's rows, where the check has no finding of it."""
    base: Mapping[str, Any] = field(default_factory=lambda: _ONE)
    timeline: Sequence[Mapping[str, Any]]
    config: Mapping[str, Any] = field(default_factory=dict)
    inside: Mapping[str, float]
    """Phases at which nothing wrong comes nearest."""
    outside: Mapping[str, float] | None = None
    """Phases at which the deviation shows; None: the same."""
    factor: float = 1 + SHARE

    def document(self, *, planted_: bool) -> dict[str, Any]:
        phases = self.inside if self.outside is None or not planted_ else self.outside
        runs = {"timeline": list(self.timeline), "phases": dict(phases), "config": self.config, "settle_s": 60}
        return {"name": "edge", **self.base, **runs, "checks": ["timers_kept"]}


def _drops_after(server: NameServer, factor: float) -> None:
    """A NameServer that acts on a closed channel so much of 10 s later."""
    clock = server._context.clock
    around(server, "_channel_lost")(lambda lost, *about: clock.call_later(10 * (factor - 1), lost, *about))


def _asks_another_after(node: ProducerNode, late_s: float) -> None:
    """A client whose poll is so late when its NameServer's channel is gone."""
    instance = instance_of(node)

    @around(instance, "poll_routes")
    async def poll_late(poll: Any) -> None:
        chosen = instance.name_server.chosen
        if chosen is not None and not instance.remoting.is_active(chosen):
            await instance._context.clock.sleep(late_s)
        await poll()


def _waits_for_service(server: NameServer, factor: float) -> None:
    """A NameServer that waits so many times W before it answers look-ups."""
    longer_s = server.processor.config.wait_seconds_for_service * factor
    with_settings(server.processor, "config", wait_seconds_for_service=longer_s)


def _code_1_after(rows: Sequence[Mapping[str, Any]]) -> Iterable[float]:
    """How long after the NameServer's last start each look-up was answered with code 1."""
    started_ms = max(row["time_ms"] for row in rows if (row["node"], row["event"]) == ("ns-0", "started"))
    return (row["time_ms"] - started_ms for row in rows if row["event"] == "name_server_call" and row["code"] == 1)


def _cut(links: Sequence[str], at_s: float, heal_s: float, **more: Any) -> list[dict[str, Any]]:
    return [{"at_s": at_s, "do": "black_hole", "links": list(links), **more}, {"at_s": heal_s, "do": "heal"}]


_A_FROM_NS = ["broker-a <-> name_servers"]
_KILLED = [{"at_s": 40, "do": "kill", "nodes": ["broker-a"]}, {"at_s": 110, "do": "restart", "nodes": ["broker-a"]}]
_FROZEN = [{"at_s": 40, "do": "pause", "nodes": ["broker-a"]}, {"at_s": 90, "do": "resume", "nodes": ["broker-a"]}]
_ACTING: Mapping[str, Any] = {
    "base": {**_ONE_5X, "cluster": {"name_servers": 1, "brokers": 2, "slaves": 1, "profile": "5.x"}},
    "timeline": _FROZEN,
    "config": {"name_servers": {"supportActingMaster": True}, "brokers": {"enableSlaveActingMaster": True}},
}
_HUNG = [{"at_s": 40, "do": "pause", "nodes": ["broker-a"]}, {"at_s": 260, "do": "resume", "nodes": ["broker-a"]}]

EDGES: tuple[Edge, ...] = (
    Edge(
        "crash",
        "2: process crash: about 0",
        "routes_are_true",
        0,
        NS_0,
        _drops_after,
        timeline=_KILLED,
        inside={},
    ),
    # registered 0.1 s before, a scan 9.9 s after E
    Edge(
        "silent-4.9-latest",
        "2: silent, 4.x: at most E + S = 130 s",
        "routes_are_true",
        130_000,
        NS_0,
        expires_after,
        timeline=_cut(_A_FROM_NS, 40, 230),
        inside={"broker-a": 9.9, "ns-0": 9.8},
        outside={"broker-a": 9.9, "ns-0": 0.1},
        config=_NEVER_IDLE,
    ),
    Edge(
        "silent-4.9-earliest",
        "2: silent, 4.x: not before E - R = 90 s",
        "no_false_eviction",
        120_000,
        NS_0,
        expires_after,
        early=True,
        timeline=_cut(_A_FROM_NS, 40, 230),
        inside={"broker-a": 10.1, "ns-0": 0.2},
        outside={"broker-a": 10.1, "ns-0": 9.9},
        factor=1 - SHARE,
        config=_NEVER_IDLE,
    ),
    Edge(
        "silent-5.x-latest",
        "2: silent, 5.x: at most E + S = 125 s",
        "routes_are_true",
        125_000,
        NS_0,
        expires_after,
        base=_ONE_5X,
        timeline=_cut(_A_FROM_NS, 40, 230),
        inside={"broker-a": 9.9, "ns-0": 4.8},
        outside={"broker-a": 9.9, "ns-0": 0.1},
        config=_NEVER_IDLE,
    ),
    Edge(
        "idle",
        "2: idle close: I = 120 s after the last registration",
        "registrations_are_kept",
        120_000,
        NS_0,
        idles_for,
        timeline=_cut(_A_FROM_NS, 40, 230),
        inside={"broker-a": 4, "ns-0": 3.9},
    ),
    Edge(
        "backward-packets",
        "2: NameServer to broker loss, packets: E .. R + E + S = 160 s",
        "routes_are_true",
        160_000,
        NS_0,
        expires_after,
        timeline=[
            {"at_s": 40, "do": "packet_loss", "links": _A_FROM_NS, "stream": "downstream"},
            {"at_s": 250, "do": "heal"},
        ],
        inside={"broker-a": 9.9, "ns-0": 9.8},
        outside={"broker-a": 9.9, "ns-0": 0.1},
        config=_NEVER_IDLE,
    ),
    # 88.8 s: within 2 % of the gap
    Edge(
        "partition-length",
        "2: how long may a partition last: within 60 s (gap 90 s) no drop for silence",
        "no_false_eviction",
        90_000,
        NS_0,
        lambda node, _: expires_after(node, 0.74),
        is_measured=False,
        timeline=_cut(_A_FROM_NS, 40, 99.9),
        inside={"broker-a": 10.1, "ns-0": 9.9},
    ),
    Edge(
        "acting-master-latest",
        "1: h, and 2: slave-acting-master: at most E + S = 15 s",
        "routes_are_true",
        15_000,
        NS_0,
        lambda node, factor: expires_after(node, 1 + (factor - 1) * 15 / 120),
        inside={"broker-a": 9.9, "ns-0": 4.8},
        outside={"broker-a": 9.9, "ns-0": 0.1},
        **_ACTING,
    ),
    # the last heartbeat 0.1 s before
    Edge(
        "acting-master-earliest",
        "1: h, and 2: slave-acting-master: not before E - h = 9 s",
        "no_false_eviction",
        10_000,
        NS_0,
        lambda node, factor: expires_after(node, 1 + (factor - 1) * 10 / 120),
        early=True,
        inside={"broker-a": 9.9, "ns-0": 0.05},
        outside={"broker-a": 9.9, "ns-0": 4.75},
        factor=1 - SHARE,
        **_ACTING,
    ),
    # polls 44.5 s after
    Edge(
        "waits-for-service",
        "1: W: code 1 for at most W = 45 s after its start",
        "answers_are_true",
        45_000,
        NS_0,
        _waits_for_service,
        is_measured=False,
        measured=_code_1_after,
        base=_ONE_5X,
        timeline=[{"at_s": 55.4, "do": "restart", "nodes": ["ns-0"]}],
        inside={"producer-0": 9.9},
        outside={"producer-0": 10.9},
        config={"name_servers": {"needWaitForService": True}},
    ),
    Edge(
        "producer-leaves-a-crash",
        "3: crash: producer leaves within P = 30 s",
        "dead_brokers_avoided",
        30_000,
        PRODUCER_0,
        leaves_brokers_after,
        timeline=_KILLED,
        inside={"producer-0": 9.9},
    ),
    Edge(
        "producer-leaves-a-hang",
        "3: hang, 4.x: producer leaves within E + S + P = 160 s, and J = A of the broker that hangs",
        "dead_brokers_avoided",
        163_000,
        PRODUCER_0,
        lambda node, factor: leaves_brokers_after(node, 1 + ((factor - 1) * 163 + 3) / 30),
        timeline=_HUNG,
        inside={"broker-a": 9.95, "ns-0": 9.9, "producer-0": 19.85},
        config={**_NEVER_IDLE, "producers": {"sendMsgTimeout": 500}},
    ),
    Edge(
        "producer-leaves-a-hang-acting",
        "3: slave-acting-master: producer leaves within E + S + P = 45 s, and J = 0.5 s",
        "dead_brokers_avoided",
        45_500,
        PRODUCER_0,
        lambda node, factor: takes_routes_after(node, 1 + ((factor - 1) * 45.5 + 0.5) / 30),
        base={**_ACTING["base"], "workload": {**_ONE["workload"], "sends_per_s": 20}},
        timeline=[_HUNG[0], {**_HUNG[1], "at_s": 130}],
        config={**_ACTING["config"], "producers": {"sendMsgTimeout": 100, "mqClientApiTimeout": 500}},
        inside={"broker-a": 9.98, "ns-0": 4.97, "producer-0": 24.94},
    ),
    Edge(
        "name-server-refuses",
        "4: port refused: left at the next call, P = 30 s",
        "dead_name_servers_left",
        30_000,
        PRODUCER_0,
        lambda node, factor: _asks_another_after(node, (factor - 1) * 30 + 0.2),
        base=_TWO,
        timeline=[{"at_s": 40, "do": "cut", "links": ["clients <-> chosen"]}, {"at_s": 100, "do": "heal"}],
        inside={"producer-0": 9.9},
    ),
    Edge(
        "name-server-hangs",
        "4: accepts, never answers: P + 1·P = 60 s",
        "dead_name_servers_left",
        60_000,
        PRODUCER_0,
        lambda node, factor: _asks_another_after(node, (factor - 1) * 60),
        base=_TWO,
        timeline=_cut(["clients <-> chosen"], 40, 120),
        inside={"producer-0": 9.9},
    ),
)

OF_TIMERS: Mapping[str, str] = {
    "1: R": "R: registration",
    "1: B": "B: patience with a NameServer, of a broker",
    "1: E": "E: expiry",
    "1: S": "S: scan",
    "1: I": "I: idle close of a broker's channel",
    "1: h": "h: light heartbeat of a broker whose slave may act for it",
    "1: P": "P: route poll",
    "1: N": "N: list of NameServers by HTTP",
    "1: A": "A: patience with a NameServer, of a client",
    "1: C": "C: connect",
    "1: H": "H: heartbeat",
    "1: T": "T: send with all its tries",
    "1: Qr": "Qr: rebalance",
    "1: latency table": "isolation by latency",
    "2: byte proxy, Z: B of every R": "B: patience with a NameServer, of a broker",
    "3: J: commits each 5 s": "persistConsumerOffsetInterval: commit",
}
"""Rows whose edge is a timer's own: a clean run is on it, and 2 % more or less is found (sensitive_timers.py)."""
TIMER_OF: Mapping[str, Timer] = {timer.name: timer for timer in TIMERS}

NOT_APPROACHED: Mapping[str, str] = {
    "1: m": "our brokers do not poll for each other's metadata",
    "1: L": "a lock is waited for within a call, whose own time-out is measured",
    "1: Z, SO_KEEPALIVE": "no window: true or false",
    "2: graceful shutdown, 3 s for each dead NameServer": "the time-out of each (3 s) is judged by timers_kept",
    "2: NameServer to broker loss, byte proxy, Z = false": "never dropped: no window",
    "2: broker stuck, its registrations alive (also 3)": "never dropped: no window",
    "2: NameServer restart, R + C": "30 s of 33 at most: a legal run reaches C only in a dial that nobody answers",
    "2: NameServer pause of 90 s and more": "may be dropped, and need not: ours reads the registrations that wait for "
    "it before it scans, so that no length of a pause alone loses a route",
    "2: partitions over 60 s": "phases decide, within the edges of 60 s (partition-length) and of E",
    "3: last broker of a topic": "never left: no window",
    "3: consumer releases dead queues, P + Qr": "our consumers pull no broker whose address their routes have lost, so "
    "they leave at P; Apache's may keep an address until the rebalance",
    "3: pull to a dead master: backs off 1 s": "2 % are 20 ms, and 50 ms are always allowed: 5 % are found",
    "3: consumer reads from a slave": "that a slave is read is living_are_used's; nothing here bounds how soon",
    "4: SYN dropped, C more": "another one counts as left for when it is chosen, before it is dialled: 59.9 s of 63; C "
    "itself is an edge",
    "4: other clients and versions": "our clients are those of the profiles 4.9 and 5.x",
    "5": "what a fault looks like, no window: tests/chaos/oracle/test_dials.py",
}


def table() -> str:
    """The edges that no timer of its own has, by the check that finds a run just outside, for docs/oracle.md."""
    limits: dict[str, list[str]] = {}
    for edge in EDGES:
        limits.setdefault(edge.check, []).append(re.sub(r"^\d: (h, and \d: )?", "", edge.row))
    rows = (f"| `{check}` | {'; '.join(rows)} |" for check, rows in limits.items())
    return "\n".join(["| check | limits |", "|---|---|", *rows])

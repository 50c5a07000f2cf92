"""The periodic tasks of every kind of node, as RocketMQ schedules them, and what may hold one of them up. Plain.

| task                               | node       | first                 | then                       | thread  |
|------------------------------------|------------|-----------------------|----------------------------|---------|
| scanNotActiveBroker                | NameServer | 5 s (5.x: 5 ms)       | S after the last was due   | its own |
| registerBrokerAll                  | broker     | 10 s after its start  | R after the last was due   | its own |
| scanExceptionChannel               | broker     | 10 s                  | 10 s after the last was due | its own |
| sendHeartbeat, of acting masters   | broker     | 1 s after its start   | h after the last was due   | its own |
| checkHoldRequest                   | broker     | 5 s                   | 5 s after the last ended   | its own |
| SlaveSynchronize                   | slave      | 3 s                   | 10 s after the last was due | its own |
| updateTopicRouteInfoFromNameServer | client     | 10 ms                 | P after the last was due   | shared  |
| sendHeartbeatToAllBroker           | client     | 1 s                   | H after the last was due   | shared  |
| persistAllConsumerOffset           | client     | 10 s                  | 5 s after the last was due | shared  |
| fetchNameServerAddr                | both, by HTTP | 10 s               | N after the last was due   | as above|
| doRebalance                        | consumer   | at once               | Qr after the last ended    | its own |

"After the last was due" is scheduleAtFixedRate: a task that was held up runs late, and the ones that it missed run
right behind it. Upstream: `NamesrvController`, `BrokerController.start`, `BrokerController.handleSlaveSynchronize`,
`MQClientInstance.startScheduledTask`, `RebalanceService`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from ...remoting.node.profile import Profile
from ...remoting.top_addressing import FIRST_S, TASK
from ..topology import is_slave
from .link import Cause, process_causes, resend_ms
from .lists import period_ms
from .timers import Timers
from .world import World

SCAN, REGISTER, LIGHT_HEARTBEAT = "scanNotActiveBroker", "registerBrokerAll", "sendHeartbeat"
AFTER_THE_FIRST_REGISTRATION = (REGISTER, LIGHT_HEARTBEAT)
POLL, HEARTBEAT, PERSIST = "updateTopicRouteInfoFromNameServer", "sendHeartbeatToAllBroker", "persistAllConsumerOffset"
REBALANCE = "doRebalance"
HOLD_CHECK, CLIENT_SCAN = "checkHoldRequest", "scanExceptionChannel"
CLIENT_SCAN_MS = 10_000.0
"""Of `ClientHousekeepingService`: no setting's."""
FETCH = TASK
SYNCHRONIZE = "SlaveSynchronize"
SYNCHRONIZED_TABLES, SYNCHRONIZE_CALL_MS = 4, 3_000.0
"""Topics, consumer offsets, delay offsets and groups, one call after the other: no setting's."""

OFFSET_CALL_MS = 5_000.0
"""Of calls about consumer offsets (`RemoteBrokerOffsetStore`, `MQClientAPIImpl`): no setting's."""
FIRST_SCAN_MS = {Profile.V4_9: 5_000.0, Profile.V5_X: 5.0}
"""From the start of a NameServer's process to its first scanNotActiveBroker."""


class Schedule(NamedTuple):
    """One periodic task of one node."""

    task: str
    symbol: str
    first_ms: float
    """How long after the node's start, and for AFTER_THE_FIRST_REGISTRATION after its first registration."""
    period_ms: float
    row: str
    shared: bool = False
    """Whether one thread runs it and the node's other shared tasks."""


def schedules(world: World, node: str, kind: str) -> tuple[Schedule, ...]:
    """The fixed-rate tasks of this node, by its own settings."""
    timers = world.timers_of(node)
    if kind == "name_server":
        return (Schedule(SCAN, "S", FIRST_SCAN_MS[timers.profile], timers.S_ms, "NamesrvController: scan each S"),)
    if kind == "broker":
        return (
            Schedule(REGISTER, "R", 10_000.0, timers.R_ms, "BrokerController: registers each R"),
            Schedule(CLIENT_SCAN, "10 s", CLIENT_SCAN_MS, CLIENT_SCAN_MS, "ClientHousekeepingService: each 10 s"),
            *_light_heartbeats(world, node),
            *_synchronizations(world, node),
            *_fetches(world, node, "BrokerController: fetches its list each N", shared=False),
        )
    if kind not in ("producer", "consumer"):
        return ()
    commit_ms = float(str(world.setting(node, "persistConsumerOffsetInterval"))) if kind == "consumer" else 5_000.0
    row = "MQClientInstance: {} at a fixed rate, one thread for all"
    return (
        Schedule(POLL, "P", 10.0, timers.P_ms, row.format("polls each P"), shared=True),
        Schedule(HEARTBEAT, "H", 1_000.0, timers.H_ms, row.format("heartbeats each H"), shared=True),
        Schedule(PERSIST, "persistConsumerOffsetInterval", 10_000.0, commit_ms, row.format("commits"), shared=True),
        *_fetches(world, node, row.format("fetches its list each N"), shared=True),
    )


def _light_heartbeats(world: World, node: str) -> tuple[Schedule, ...]:
    """Where a slave may act for its master."""
    if world.timers.profile is not Profile.V5_X or not world.setting(node, "enableSlaveActingMaster"):
        return ()
    period_ms = float(str(world.setting(node, "brokerHeartbeatInterval")))
    return (Schedule(LIGHT_HEARTBEAT, "h", 1_000.0, period_ms, "BrokerController: 904 each h"),)


def _synchronizations(world: World, node: str) -> tuple[Schedule, ...]:
    """Of a slave that nobody made a master by hand."""
    if not is_slave(node) or any(act.f == "switch" and act.node == node for act in world.acts):
        return ()
    row = "BrokerController: a slave synchronizes its tables each 10 s"
    return (Schedule(SYNCHRONIZE, "10 s", 3_000.0, 10_000.0, row),)


def _fetches(world: World, node: str, row: str, *, shared: bool) -> tuple[Schedule, ...]:
    """Where an address server has the list."""
    if not world.asks_for_list(node):
        return ()
    return (Schedule(FETCH, "N", 1000 * FIRST_S, period_ms(world, node), row, shared=shared),)


def pauses(world: World, node: str) -> list[Cause]:
    """When the node's process stood still."""
    return [cause for cause in process_causes(world, node, "itself") if not cause.loss.closes]


class Troubles:
    """When calls of one node to another may have waited for their time-outs."""

    def __init__(self, world: World, node: str) -> None:
        self._world, self._node, self._timers = world, node, world.timers_of(node)
        self._spans: dict[tuple[str, float], list[tuple[float, float]]] = {}

    def among(self, targets: Iterable[str], from_ms: float, to_ms: float) -> list[str]:
        """Those of the targets that something kept from answering at some time in [from_ms, to_ms]."""
        tail_ms = self._tail_ms(self._timers)
        return [name for name in targets if any(s <= to_ms and e >= from_ms for s, e in self._of(name, tail_ms))]

    def between(self, target: str, from_ms: float, to_ms: float) -> bool:
        """Whether what the target sends this node may be lost or late that it sends at some time in [from_ms, to_ms].

        Older calls that still wait for their time-outs are no matter here.
        """
        return any(s <= to_ms and e >= from_ms for s, e in self._of(target, 0.0))

    def _of(self, target: str, tail_ms: float) -> list[tuple[float, float]]:
        """When the target, or a link to it, was not as it should be, and so much longer."""
        if (target, tail_ms) not in self._spans:
            world, timers = self._world, self._timers
            links = [Cause.of(fault, "link", timers) for fault in world.link_faults(self._node, target)]
            causes = [*process_causes(world, target), *links]
            self._spans[target, tail_ms] = [
                (c.start_ms, max(c.end_ms + self._late_ms(c), c.end_ms + tail_ms)) for c in causes if c.end_ms > 0
            ]
        return self._spans[target, tail_ms]

    def _tail_ms(self, timers: Timers) -> float:
        """A call that began in the fault waits on: for its lock, and for its answer."""
        name_servers = len(self._world.of_kind("name_server"))
        lock_ms = look_up_ms = max(timers.A_ms, timers.C_ms * name_servers, timers.B_ms)
        return lock_ms + look_up_ms

    @staticmethod
    def _late_ms(cause: Cause) -> float:
        if math.isinf(cause.end_ms):
            return 0.0
        return resend_ms(cause, cause.end_ms) + (cause.delay.round_trip_max_ms if cause.delay else 0.0)

"""When each node starts to work, so that its timer meets the timeline at a phase of its own. Pure.

    NameServers ├ S ┤ brokers ├── R ──┤ topic ├ clients ├── P ──┤ timeline
                                                                 ├ phase ┤ tick ── period ── tick …

A phase is how long after the timeline's start the node's timer fires next: a broker registers, a client polls, a
NameServer looks for silent brokers. The scenario sets it (`phases`), or the seed draws it: nodes that all began in one
moment would tick at the same seconds of every run, and no fault would ever meet another edge.
"""

from __future__ import annotations

import math
import random

from ....actors.namesrv.server import FIRST_SCAN_S
from ....remoting.node.profile import Profile
from ....remoting.top_addressing import FIRST_S, TIMEOUT_S
from ...scenarios.model import Scenario
from ...topology import NodeKind
from ..nodes import timers_and_differing, timers_of
from ..stage import Starts

_FIRST_TICK_S = {
    NodeKind.NAME_SERVER: None,
    NodeKind.BROKER: 10.0,
    NodeKind.SLAVE: 10.0,
    NodeKind.PRODUCER: 0.010,
    NodeKind.CONSUMER: 0.010,
}
"""How long after its start the timer of a node fires first (`BrokerController.start`, `MQClientInstance`); None: by
profile."""
_BROKERS = (NodeKind.BROKER, NodeKind.SLAVE)
TOPIC_S = 5.0
"""For making the topic and for its routes, which take no time where nothing is wrong."""
LAST_STARTS_S = 1.0
"""For the clients that start last: one that starts fetches its route and sends heartbeats."""


def starts(scenario: Scenario, seed: int) -> Starts:
    """Node to its start, within its group's time; the prober's is none of them, for it starts with the brokers."""
    kinds = scenario.topology().kinds
    periods = {name: _period(scenario, name, kind) for name, kind in kinds.items() if kind in _FIRST_TICK_S}

    def longest_s(*of: NodeKind) -> float:
        return max((period_s for name, period_s in periods.items() if kinds[name] in of), default=0.0)

    brokers_s = longest_s(NodeKind.NAME_SERVER)
    lists_s = 0.0 if scenario.cluster.name_server_list is None else FIRST_S + TIMEOUT_S  # brokers ask for it first
    clients_s = brokers_s + longest_s(*_BROKERS) + TOPIC_S + lists_s + (timers_of(scenario).W_ms or 0.0) / 1000
    begin_s = {NodeKind.NAME_SERVER: 0.0, **dict.fromkeys(_BROKERS, brokers_s)}
    timeline_s = math.ceil(clients_s + longest_s(NodeKind.CONSUMER, NodeKind.PRODUCER) + LAST_STARTS_S)
    of: dict[str, float] = {}
    for name, period_s in periods.items():
        drawn_s = random.Random(f"{seed}/phase/{name}").random() * period_s
        after_s = begin_s.get(kinds[name], clients_s)
        first_s = _FIRST_TICK_S[kinds[name]] or FIRST_SCAN_S[Profile(scenario.cluster.profile)]
        phase_s = scenario.phases.get(name, drawn_s)
        of[name] = after_s + (timeline_s + phase_s - first_s - after_s) % period_s
    return Starts(of=of, timeline_s=timeline_s)


def _period(scenario: Scenario, name: str, kind: NodeKind) -> float:
    timers, differing = timers_and_differing(scenario)
    own = timers.with_(**differing.get(name, {}))
    period_ms = {NodeKind.NAME_SERVER: own.S_ms, **dict.fromkeys(_BROKERS, own.R_ms)}.get(kind, own.P_ms)
    return period_ms / 1000

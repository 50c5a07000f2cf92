"""Whose rows are derived, and whom they are given to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...remoting.node.profile import Profile
from ..fronts.rows import Row
from ..topology import NodeKind

SETTLES_MS = 50.0
"""What was seen is decided so much later, of the machine's time: what came before it may be told after it
(fronts/behind.py)."""

Put = Callable[[Row], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAbout:
    """Whose rows they are. All addresses as everybody is told them."""

    name: str
    kind: NodeKind
    profile: Profile
    broker_name: str = ""
    broker_id: int = 0
    elects: bool = False
    """Of a broker: whether it is one of a name that elects its master, so that its id changes."""
    name_servers: Mapping[str, str] = field(default_factory=dict)
    """Of a broker: NameServer → host:port. What a dialler's front of that name shows is a broker's doing there."""
    fronts: Mapping[str, str] = field(default_factory=dict)
    """Of a broker: host:port of its dialler's front, as its log has it → NameServer."""
    scale: float = 1.0
    """How many times as fast as the machine's the run's time goes."""
    register_timeout_ms: float = 6_000.0
    """Of a broker: how long a registration waits for its answer (registerBrokerTimeoutMills)."""

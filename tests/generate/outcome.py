"""What the simulation of a made-up cluster comes to: rows, and who was alive, reachable, known and owner when."""

from __future__ import annotations

from dataclasses import dataclass, field

from nemesrv.chaos.history.schema import Row

UP, CLOSED, SILENT = 0, 1, 2
"""What a broker is to someone who sends to it."""

HARNESS, PROBER, TOXIPROXY = "harness", "prober", "toxiproxy"
Steps = list[tuple[float, int]]


def role_of(node: str) -> str:
    if node == TOXIPROXY:  # the harness measures its lateness
        return HARNESS
    return "name_server" if node.startswith("ns-") else node.partition("-")[0]


@dataclass(slots=True)
class Control:
    """What the simulation came to. Rows have no `seq` yet and are in no order."""

    rows: list[Row] = field(default_factory=list)
    addresses: dict[str, str] = field(default_factory=dict)
    lives: dict[str, Steps] = field(default_factory=dict)
    """Node → (from_ms, incarnation), -1 while it has no running process."""
    status: list[Steps] = field(default_factory=list)
    """Broker → UP, CLOSED or SILENT."""
    known: list[Steps] = field(default_factory=list)
    """Producer → the brokers that it sends to, as bits."""
    owners: list[Steps] = field(default_factory=list)
    """Queue (topic, broker, queue_id) → the consumer that pulls from it; -1 is nobody."""

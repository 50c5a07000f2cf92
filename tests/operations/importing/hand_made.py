"""Histories of an incident written by hand: a small cluster whose brokers register every 30 s, and what goes wrong."""

from collections.abc import Iterable, Sequence
from typing import Any

NAME_SERVERS = {"ns-0": "10.0.1.1:9876", "ns-1": "10.0.1.2:9876"}
BROKERS = {"broker-a": "10.0.2.1:10911", "broker-b": "10.0.2.2:10911"}
PHASES = {"broker-a": 5.0, "broker-b": 17.0}
ADDRESSES = NAME_SERVERS | BROKERS
PERIOD_S = 30.0


class Incident:
    """Rows as an import has them, from 0 to `until_s`; 4.9's timers."""

    def __init__(self, until_s: float = 600.0, servers: Sequence[str] = ("ns-0", "ns-1"), profile: str = "4.9") -> None:
        self.until_s, self.servers = until_s, tuple(servers)
        self.rows: list[dict[str, Any]] = []
        self.put(0.0, "harness", "run_begin", value={"profile": profile, "imported": True})
        for node, address in ADDRESSES.items():
            if node in servers or node in BROKERS:
                kind = "name_server" if node in NAME_SERVERS else "broker"
                self.node(node, kind, address=address)
                self.put(1.0 if kind == "name_server" else 2.0, node, "started", address=address)

    def put(self, at_s: float, node: str, event: str, **columns: Any) -> None:
        self.rows.append({"time_ms": at_s * 1000, "node": node, "event": event, "seq": len(self.rows), **columns})

    def node(self, node: str, kind: str, **columns: Any) -> None:
        self.put(0.0, "harness", "node", source=node, **columns, value={"kind": kind})

    def channel(self, at_s: float, node: str, f: str, address: str) -> None:
        reason = "connected" if f == "open" else "closed"
        self.put(at_s, node, "channel", f=f, address=address, value={"reason": reason})

    def registers(self, broker: str, *, at: Iterable[float], with_: Sequence[str] | None = None) -> None:
        """Registrations that came and were answered."""
        for at_s in at:
            for server in with_ or self.servers:
                self.arrives(broker, server, at_s)
                self.put(at_s, broker, "register", type="ok", name_server=ADDRESSES[server])

    def arrives(
        self, broker: str, server: str, at_s: float, *, address: str = "", broker_id: int = 0, **columns: Any
    ) -> None:
        about = {"broker_name": broker, "broker_id": broker_id, "address": address or ADDRESSES[broker]}
        self.put(at_s, server, "registration", **about, code=0, **columns)

    def fails(self, broker: str, server: str, at_s: float, *, how: str) -> None:
        """`refused`, `no_answer` (after 6 s) or `no_dial` (after 3 s) of a registration begun then."""
        type_, took_s = {"refused": ("fail", 0.001), "no_answer": ("info", 6.0), "no_dial": ("fail", 3.0)}[how]
        self.put(
            at_s + took_s, broker, "register", type=type_, name_server=ADDRESSES[server], duration_ms=took_s * 1000
        )

    def drops(self, server: str, broker: str, at_s: float, reason: str) -> None:
        about = {"broker_name": broker, "broker_id": 0, "address": ADDRESSES[broker]}
        self.put(at_s, server, "broker_dropped", **about, value={"reason": reason})

    def all_drop(self, broker: str, at_s: float, reason: str) -> None:
        for server in self.servers:
            self.drops(server, broker, at_s, reason)

    def ticks(self, broker: str, from_s: float = 0.0, to_s: float | None = None) -> list[float]:
        """When its registrations are due in [from_s, to_s)."""
        ends_s, at_s = self.until_s if to_s is None else to_s, PHASES[broker]
        found = []
        while at_s < ends_s:
            if at_s >= from_s:
                found.append(at_s)
            at_s += PERIOD_S
        return found

    def well(self, *brokers: str, but: Sequence[tuple[float, float]] = (), with_: Sequence[str] | None = None) -> None:
        """All registrations of these brokers but those due in the stretches."""
        for broker in brokers:
            due = [at for at in self.ticks(broker) if not any(lo <= at < hi for lo, hi in but)]
            self.registers(broker, at=due, with_=with_)


def killed(*, boots: bool = True) -> Incident:
    """broker-a was gone from 200 s to 296 s; its channels closed at 210 s."""
    incident = Incident()
    incident.well("broker-b")
    incident.well("broker-a", but=[(200.0, 300.0)])
    incident.all_drop("broker-a", 210.0, "closed")
    if boots:
        incident.put(296.0, "broker-a", "started", address=ADDRESSES["broker-a"])
    return incident

"""Faults that the timeline's last entries begin and nothing ends: everything is healed behind the last entry, so that
they last no time, and whoever asked for them would see a cluster without them called VALID."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from ...remoting.node.recording import Recorder
from ..faults.injector import LinkFaultInjector
from ..faults.processes import ProcessFaults, not_done
from ..scenarios.model import Scenario
from ..topology import NodeKind

_AT_ONCE_S = 0.05
"""Of the machine's time."""


@dataclass(slots=True)
class LastFaults:
    """Those that began with the last action, and with what came with no time before it."""

    _ids: tuple[str, ...] = ()
    _at_s: float = float("-inf")

    def began(self, fault_ids: Iterable[str], now_s: float) -> None:
        """These began; or other things were done."""
        self._ids = (*(self._ids if now_s - self._at_s <= _AT_ONCE_S else ()), *fault_ids)
        self._at_s = now_s

    def tell(
        self, record: Recorder, now_s: float, processes: ProcessFaults, links: LinkFaultInjector, scenario: Scenario
    ) -> None:
        """Record of each that is still in force that nothing of it was done, where no time has passed since.

        Of servers and links: a client that has just left is back with the heal, and nobody else has missed it.
        """
        if now_s - self._at_s > _AT_ONCE_S * scenario.timers.time_scale:
            return
        clients = scenario.topology().of(NodeKind.PRODUCER, NodeKind.CONSUMER)
        for who, fault_id, ended_by in _in_force(processes, links, but=clients):
            if fault_id in self._ids:
                why = (
                    f"{fault_id} lasted 0 s, for everything is healed behind the timeline's last entry: "
                    f"an entry that ends it ({ended_by}) says how long it lasts"
                )
                not_done(record, who, "last", why)


def _in_force(
    processes: ProcessFaults, links: LinkFaultInjector, *, but: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """Whom each fault hits, its id, and what ends it; without those that nothing ends, and `but` of these processes."""
    ids = processes.ids
    for node, fault in processes.active.items():
        if fault.ended_by and node not in but:
            yield node, ids[node], fault.ended_by
    for fault_id, (_, hit) in links.active.items():
        if hit:  # who records faults by hand may begin one of no links
            yield str(hit[0].node), fault_id, "heal"

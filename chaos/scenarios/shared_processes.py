"""What a scenario may ask of clients that share a process (`workload.clients_per_process`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import ScenarioError
from ..topology import NodeKind, Topology
from .timeline import Step

OWN_MAX = 32
"""Producers, or consumers, with a process each."""
PROCESSES_MAX = 64


def check_processes(topology: Topology, timeline: Sequence[Step], *, file: str) -> None:
    """ScenarioError for more processes than a machine of ours runs, and for a pause of some nodes of a process: the
    kernel stops it whole."""
    per_process = topology.clients_per_process
    for kind, key in ((NodeKind.PRODUCER, "producers"), (NodeKind.CONSUMER, "consumers")):
        count = len(topology.of(kind))
        if per_process == 1 and count > OWN_MAX:
            allowed = f"a whole number from 0 to {OWN_MAX}, or more beside clients_per_process, e.g. 100"
            raise ScenarioError(file, f"workload.{key}", str(count), allowed)
    if len(topology.processes) > PROCESSES_MAX:
        clients = sum(map(len, topology.processes.values()))
        allowed = (
            f"at least {math.ceil(clients / PROCESSES_MAX)}, so that {clients} clients have {PROCESSES_MAX} processes"
        )
        raise ScenarioError(file, "workload.clients_per_process", str(per_process), allowed)
    for index, step in enumerate(timeline):
        for node in step.nodes if step.do == "pause" else ():
            process = topology.process_of.get(node)
            if process is not None and not set(topology.processes[process]) <= set(step.nodes):
                mates = topology.processes[process]
                allowed = (
                    f"pause of all {len(mates)} that share its process ({', '.join(mates[:3])}, ...), or black_hole of "
                    "its links: SIGSTOP stops a process whole (clients_per_process)"
                )
                raise ScenarioError(file, f"timeline.{index}.nodes", f"pause of {node} alone", allowed)

"""Tests, before a command starts anything, whether this machine has what the command needs. For each missing thing, a
sentence names the thing and says what to do.

    measure (machine.py) ─► Machine ─┐
         the command ─► MachineNeeds ─┴─► MachinePart … ─► require: HarnessError with the first missing part
                                                       └► `nemesrv preflight`: all parts, a line each

The needs were measured in runs of the shipped scenarios (Ray 2.60, PySpark 4.3, JDK 17): a JVM opens 322 files;
Toxiproxy opens 1 file for each link and 2 files for each connection. All processes of a run of eight nodes take 1.9 GB
of memory, of which Spark takes 0.6 GB.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..actors.processes import allow_open_files
from ..remoting.node.clock import RealClock
from .apache import libfaketime
from .apache.distribution import ProgramPart, class_path, distribution
from .errors import HarnessError
from .installation import how_to_get_toxiproxy
from .machine import Machine, java_found, measure
from .scenarios.implementations import SERVERS

if TYPE_CHECKING:
    from .scenarios.model import Scenario

MB = 1024 * 1024
ADDRESS_SPACE_MIN = 16_384 * MB
_JVM_FILES, _JVM_MEMORY = 512, 600 * MB
_PLAIN_FILES, _PLAIN_MEMORY = 64, 250 * MB
"""For a run of 50,000 rows, on the virtual clock or judged in plain Python."""
_RAY_FILES, _RAY_MEMORY = 1024, 700 * MB
_OWN_TASKS, _JVM_TASKS, _RAY_TASKS, _TASKS_A_NODE = 40, 60, 120, 30
"""Processes and threads; a run of eleven nodes had 501 at most on two cores."""
_FILES_A_LINK, _MEMORY_A_NODE = 4, 60 * MB
_MEMORY_A_JAVA_NODE = 200 * MB
"""Measured on three of Apache's NameServers (125 MB each) and three brokers (210 MB each)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineNeeds:
    """What a command needs of the machine; sizes are in bytes."""

    open_files: int = _JVM_FILES
    tasks: int = _OWN_TASKS + _JVM_TASKS
    """Processes and threads."""
    memory: int = _JVM_MEMORY
    run_disk: int = 64 * MB
    temporary_disk: int = 64 * MB
    ports: float = 0.0
    """Share of our port range that must be free."""
    toxiproxy: bool = False
    java: bool = True

    @classmethod
    def of_judging(cls, *, spark: bool) -> MachineNeeds:
        """Return the needs of judging a history, or a run on the virtual clock, with Spark or plain Python."""
        plain = cls(open_files=_PLAIN_FILES, tasks=_OWN_TASKS, memory=_PLAIN_MEMORY, java=False)
        return cls() if spark else plain

    @classmethod
    def of_run(cls, scenario: Scenario, *, spark: bool) -> MachineNeeds:
        """Return the needs of a run on the real clock. `spark`: Spark judges it."""
        topology = scenario.topology()
        links, processes = len(topology.links), len(topology.nodes)
        of_java = _MEMORY_A_JAVA_NODE * len(scenario.implementations())
        return cls(
            open_files=_RAY_FILES + _FILES_A_LINK * links,
            tasks=_OWN_TASKS + (_JVM_TASKS if spark else 0) + _RAY_TASKS + _TASKS_A_NODE * processes,
            memory=(_JVM_MEMORY if spark else _PLAIN_MEMORY) + _RAY_MEMORY + _MEMORY_A_NODE * processes + of_java,
            run_disk=128 * MB,
            temporary_disk=256 * MB,
            ports=min(0.9, max(0.1, min(links / 5_000, links / 10_000 + 0.1))),
            toxiproxy=True,
            java=spark,
        )

    @classmethod
    def of_all(cls, scenarios: Iterable[Scenario], *, spark: bool) -> MachineNeeds:
        """For each part of the machine, return the largest need among these runs."""
        needs = [cls.of_run(scenario, spark=spark) for scenario in scenarios]
        return max(needs, key=lambda each: (each.memory, each.open_files), default=cls.of_judging(spark=spark))


@dataclass(frozen=True, slots=True)
class MachinePart:
    """One part of the machine: what was found and, if it is not enough, a sentence that says what to do."""

    part: str
    found: str
    mend: str = ""


def machine_parts(machine: Machine, needs: MachineNeeds) -> tuple[MachinePart, ...]:
    parts = [
        *([MachinePart("Java", *java_found(machine.java))] if needs.java else []),
        _open_files(machine, needs),
        _tasks(machine, needs),
        _memory(machine, needs),
        _disk("run folder", machine.run_folder, machine.run_disk, needs.run_disk, "name another folder with --out"),
        _disk(
            "temporary files",
            machine.temporary_folder,
            machine.temporary_disk,
            needs.temporary_disk,
            "point TMPDIR to a larger one",
        ),
    ]
    if needs.ports:
        parts.append(_ports(machine, needs))
    if needs.toxiproxy:
        parts.append(_toxiproxy(machine))
    return tuple(parts)


def _open_files(machine: Machine, needs: MachineNeeds) -> MachinePart:
    allowed = machine.open_files
    mend = (
        ""
        if allowed >= needs.open_files
        else f"a process may open {allowed} files (ulimit -n), and this needs {needs.open_files}: run "
        f"`ulimit -n {max(4096, needs.open_files)}` before it, as root or after raising the hard limit"
    )
    return MachinePart("open files", "any number" if allowed > 1 << 40 else f"{allowed} allowed", mend)


def _tasks(machine: Machine, needs: MachineNeeds) -> MachinePart:
    if machine.tasks is None:
        return MachinePart("processes", "any number")
    found = f"{machine.tasks} more processes and threads allowed"
    mend = f"{found} (ulimit -u, or pids.max of the container), and this needs {needs.tasks}: allow more, or end others"
    return MachinePart("processes", found, "" if machine.tasks >= needs.tasks else mend)


def _memory(machine: Machine, needs: MachineNeeds) -> MachinePart:
    found = f"{machine.memory // MB} MB free"
    starts_others = needs.java or needs.toxiproxy
    if starts_others and machine.address_space is not None and machine.address_space < ADDRESS_SPACE_MIN:
        allowed = f"{machine.address_space // MB} MB of address space"
        mend = f"a process may have {allowed} (ulimit -v), and a JVM reserves more: run `ulimit -v unlimited` before it"
        return MachinePart("memory", allowed, mend)
    if machine.memory < needs.memory:
        short = f"{found}, and this needs {needs.memory // MB} MB"
        return MachinePart("memory", found, f"{short}: end other programs, or give this machine or container more")
    return MachinePart("memory", found)


def _disk(part: str, folder: Path, free: int, need: int, else_: str) -> MachinePart:
    found = f"{free // MB} MB free at {folder}"
    mend = "" if free >= need else f"the disk of {folder} has {free // MB} MB left, and this needs {need // MB} MB"
    return MachinePart(part, found, mend and f"{mend}: free some of it, or {else_}")


def _ports(machine: Machine, needs: MachineNeeds) -> MachinePart:
    from .faults.ports import FIRST, LAST

    found = f"{machine.ports:.0%} of {FIRST} to {LAST} free on 127.0.0.1"
    mend = f"{found}, and this needs {needs.ports:.0%}: end what uses them, or bring the loopback device up"
    return MachinePart("ports", found, "" if machine.ports >= needs.ports else mend)


def _toxiproxy(machine: Machine) -> MachinePart:
    toxiproxy = machine.toxiproxy
    if toxiproxy.path is None:
        return MachinePart("Toxiproxy", "none", toxiproxy.why)
    mend = toxiproxy.why and f"{toxiproxy.path} is no Toxiproxy server: {toxiproxy.why}; {how_to_get_toxiproxy()}"
    return MachinePart("Toxiproxy", str(toxiproxy.path), mend)


def require(needs: MachineNeeds, run_folder: Path) -> None:
    """Raise HarnessError for the first missing part, before anything is started. Also raise the limit of open files to
    the needed number."""
    if sys.platform != "linux":
        return
    wrong = [each.mend for each in machine_parts(measure(run_folder), needs) if each.mend]
    if wrong:
        more = f" ({len(wrong) - 1} more: see `nemesrv preflight`)" if len(wrong) > 1 else ""
        raise HarnessError(wrong[0] + more)
    allow_open_files(needs.open_files)


def require_programs(scenario: Scenario, scale: float) -> None:
    """Fetch all of Apache's programs in the scenario by Maven, if necessary, and test that they can run at the
    scenario's time scale. If not, raise HarnessError. No node is started."""
    if programs := programs_of(scenario):
        try:
            bring(programs, scale)
        except PaceMissing as exc:
            raise HarnessError(f"{scenario.name}: {exc}") from exc


class PaceMissing(HarnessError):
    """Apache's programs cannot run at this time scale on this machine."""


def programs_of(scenario: Scenario, nodes: Container[str] | None = None) -> tuple[tuple[str, ProgramPart], ...]:
    """Return Apache's programs (implementation and part) that these nodes run at any time; None means all nodes."""
    kinds = scenario.topology().kinds
    made_by_turns = {**{node: (text,) for node, text in scenario.implementations().items()}, **scenario.upgrades()}
    parts = {
        (text, ProgramPart.SERVERS if kinds[node] in SERVERS else ProgramPart.CLIENTS)
        for node, texts in made_by_turns.items()
        if nodes is None or node in nodes
        for text in texts
    }
    return tuple(sorted(parts))


def bring(programs: Iterable[tuple[str, ProgramPart]], scale: float) -> None:
    """Fetch these programs by Maven, if necessary, and test that they run at this time scale. Raises HarnessError."""
    for text, part in programs:
        if part is ProgramPart.CLIENTS:
            class_path(text)
            continue
        made_by = distribution(text)
        assert made_by is not None
        made_by.class_path(part)
    if why := libfaketime.wrong(RealClock.starting_now(scale)):
        raise PaceMissing(why)

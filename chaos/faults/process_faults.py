"""Faults of processes, and the actions that end these faults, one class each. processes.py executes them."""

from typing import ClassVar, Literal, get_args

from pydantic import Field

from .fault import Action, Dial, Fault, Loss, by_do


class ProcessFault(Fault):
    acts_on = "nodes"
    ended_by: ClassVar[Literal["resume", "restart", ""]] = "restart"
    """The action that ends it; empty if nothing does."""
    done_by: ClassVar[Literal["kill", "stop", "pause"]]
    """The call of the cluster that executes it."""


class Gone(ProcessFault):
    """The process ends without unregistering, or is not running yet."""

    done_by = "kill"
    dial = Dial.REFUSED
    ends_process = True
    looks_like = Loss.CRASH


class Kill(Gone):
    do: Literal["kill"] = "kill"
    title = "killed"
    injection = "sigkill"
    injected = (
        "SIGKILL: the kernel closes every connection, unwritten bytes are lost; new connections are refused until it "
        "listens again"
    )
    equals = "a crash"


class PortTaken(Gone):
    """A start that fails: the harness itself is bound to the port of a process that it killed, and does not listen."""

    do: Literal["port_taken"] = "port_taken"
    title = "without its port"
    injection = "sigkill.port_taken"
    injected = "SIGKILL; another program is bound to the port, so that no process can listen there until the restart"
    equals = "a start that fails because the port is in use"


class Stop(ProcessFault):
    do: Literal["stop"] = "stop"
    done_by = "stop"
    title = "stopped"
    injection = "sigterm"
    injected = "a clean stop: a broker first unregisters at every NameServer; then as a kill"
    equals = "a shutdown"
    dial = Dial.REFUSED
    ends_process = True
    looks_like = Loss.GRACEFUL


class Pause(ProcessFault):
    do: Literal["pause"] = "pause"
    done_by = "pause"
    title = "paused"
    injection = "sigstop"
    injected = "SIGSTOP: connections stay, the kernel acknowledges, nothing is answered"
    equals = "a hang"
    dial = Dial.SILENT
    ended_by = "resume"
    looks_like = Loss.SILENT


class StoodStill(Pause):
    """A time in which the machine did not run the process, noticed by the process because its timers were late.
    Scenarios cannot use this fault."""

    title = "stood still"
    injection = "timer_lag"


class Remove(Gone):
    """Ends a NameServer's process for the rest of the run. Brokers cannot be removed, because every queue is read at
    the end of a run."""

    do: Literal["remove"] = "remove"
    title = "removed"
    injection = "sigkill.for_good"
    injected = "SIGKILL; no process listens there again until the run ends"
    equals = "a NameServer that is taken away"
    ended_by = ""


class Absent(Gone):
    """The absence of a NameServer before it joins (`joins_at_s`). Scenarios cannot use this fault."""

    do: Literal["absent"] = "absent"
    title = "not there yet"
    injection = "not_started"


class Resume(Action):
    """Ends the pause of a node."""

    do: Literal["resume"] = "resume"
    acts_on = "nodes"


class Restart(Action):
    """Ends a kill or stop: the node gets a new process with the same files and, without `new_address`, the same port. A
    running node is stopped first."""

    do: Literal["restart"] = "restart"
    implementation: str | None = None
    """For Apache's programs: the version from now on; None: unchanged."""
    new_address: bool = False
    """Whether the new process has an address that was never used, with the same files and name."""
    acts_on = "nodes"

    @property
    def about(self) -> str:
        return "at another address" if self.new_address else ""


class RollingRestart(Action):
    """Restarts the nodes one after another: each node a fixed time after the previous node listens again."""

    do: Literal["rolling_restart"] = "rolling_restart"
    pause_s: float = Field(30, ge=0, le=100_000)
    down_s: float = Field(0, ge=0, le=100_000)
    by: Literal["stop", "kill"] = "stop"
    implementation: str | None = None
    """As in a restart: upgrades one node after the other."""
    new_address: bool = False
    """As in a restart: each node gets another address."""
    acts_on = "nodes"

    @property
    def about(self) -> str:
        return "at another address" if self.new_address else ""


class RestartStorm(Action):
    """Restarts random nodes at random times, drawn from the run's seed."""

    do: Literal["restart_storm"] = "restart_storm"
    restarts: int = Field(10, ge=1, le=1000)
    for_s: float = Field(60, gt=0, le=100_000)
    down_s: float = Field(0, ge=0, le=100_000)
    by: Literal["kill", "stop"] = "kill"
    acts_on = "nodes"


AnyProcessFault = Kill | PortTaken | Stop | Pause | Remove
PROCESS_FAULTS: dict[str, type[ProcessFault]] = by_do(*get_args(AnyProcessFault))


# -- what is done to a broker's disk, which its process survives


class DiskAction(Action):
    acts_on = "nodes"


class FillDisk(DiskAction):
    """From now on the broker's disk is full: the broker refuses messages with code 14, and does all else."""

    do: Literal["fill_disk"] = "fill_disk"
    ended_by: ClassVar[str] = "free_disk"


class FreeDisk(DiskAction):
    """Ends fill_disk."""

    do: Literal["free_disk"] = "free_disk"


AnyDiskAction = FillDisk | FreeDisk
DISK_ACTIONS: dict[str, type[DiskAction]] = by_do(*get_args(AnyDiskAction))


# -- what can be done to a whole host: each is taken apart into the ordinary faults of its links and nodes
#
# (scenarios/host_actions.py), so that history, oracle and checks know no others. What Ray itself sends between hosts is
# no link of the experiment and goes on.


class HostAction(Action):
    acts_on = "hosts"
    consists_of: ClassVar[str]
    """What it consists of, in words, for docs/scenarios.md."""


class LoseHost(HostAction):
    """Kills the nodes of a host in such a way that peers get no answer and see no connection close."""

    do: Literal["lose_host"] = "lose_host"
    consists_of = "`black_hole` of every link between the host and another host, then `kill` of the host's nodes"


class IsolateHost(HostAction):
    """Cuts a host off from all other hosts. The nodes of an isolated host keep running and reach one another."""

    do: Literal["isolate_host"] = "isolate_host"
    consists_of = "`black_hole` of every link between the host and another host"


class PauseHost(HostAction):
    do: Literal["pause_host"] = "pause_host"
    consists_of = "`pause` of the host's nodes"


class ReturnHost(HostAction):
    """Ends lose_host, isolate_host or pause_host."""

    do: Literal["return_host"] = "return_host"
    consists_of = "`heal` of that `black_hole`, then `restart` or `resume` of the host's nodes"


AnyHostAction = LoseHost | IsolateHost | PauseHost | ReturnHost
HOST_ACTIONS: dict[str, type[HostAction]] = by_do(*get_args(AnyHostAction))

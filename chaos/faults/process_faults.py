"""What can be done to a process: one class a fault, and what ends it. Who does it is processes.py."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

from pydantic import Field

from .fault import Action, Dial, Fault, Loss, by_do


class ProcessFault(Fault):
    acts_on = "nodes"
    ended_by: ClassVar[Literal["resume", "restart", ""]] = "restart"
    """The action that ends it; empty: it is for good."""
    done_by: ClassVar[Literal["kill", "stop", "pause"]]
    """What the cluster is asked to do to the process."""


class Kill(ProcessFault):
    do: Literal["kill"] = "kill"
    done_by = "kill"
    title = "killed"
    injection = "sigkill"
    injected = (
        "SIGKILL: the kernel closes every connection, unwritten bytes are lost; new connections are refused until it "
        "listens again"
    )
    equals = "a crash"
    dial = Dial.REFUSED
    ends_process = True
    looks_like = Loss.CRASH


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
    equals = "a hang or a lost host"
    dial = Dial.SILENT
    ended_by = "resume"
    looks_like = Loss.SILENT


class StoodStill(Pause):
    """Nobody's act: the machine did not run the process, as its own timers measured. No timeline can say it."""

    title = "stood still"
    injection = "timer_lag"


class Remove(ProcessFault):
    """Of NameServers only: nothing is healed, and final reads need every broker."""

    do: Literal["remove"] = "remove"
    done_by = "kill"
    title = "removed"
    injection = "sigkill.for_good"
    injected = "SIGKILL; no process listens there again until the run ends"
    equals = "a NameServer that is taken away"
    dial = Dial.REFUSED
    ends_process = True
    ended_by = ""
    looks_like = Loss.CRASH


class Absent(ProcessFault):
    """Of a NameServer that joins later; no timeline can say it."""

    do: Literal["absent"] = "absent"
    done_by = "kill"
    title = "not there yet"
    injection = "not_started"
    dial = Dial.REFUSED
    ends_process = True
    looks_like = Loss.CRASH


class Resume(Action):
    """Ends a pause."""

    do: Literal["resume"] = "resume"
    acts_on = "nodes"


class Restart(Action):
    """Ends a kill or a stop: a new process over the same files and port. A node that runs is stopped first."""

    do: Literal["restart"] = "restart"
    implementation: str | None = None
    """Of a node that is Apache's: the version that it is from now on; None: what it was."""
    new_address: bool = False
    """Whether the new process has an address that nobody has had, over the same files and under the same name."""
    acts_on = "nodes"

    @property
    def about(self) -> str:
        return "at another address" if self.new_address else ""


class RollingRestart(Action):
    """Restarts one node after the other, each so long after the one before listens again."""

    do: Literal["rolling_restart"] = "rolling_restart"
    pause_s: float = Field(30, ge=0, le=100_000)
    down_s: float = Field(0, ge=0, le=100_000)
    by: Literal["stop", "kill"] = "stop"
    implementation: str | None = None
    """As a restart's: an upgrade, one node after the other."""
    new_address: bool = False
    """As a restart's: each comes back at another address."""
    acts_on = "nodes"

    @property
    def about(self) -> str:
        return "at another address" if self.new_address else ""


class RestartStorm(Action):
    """Restarts nodes at random, which and when the run's seed draws."""

    do: Literal["restart_storm"] = "restart_storm"
    restarts: int = Field(10, ge=1, le=1000)
    for_s: float = Field(60, gt=0, le=100_000)
    down_s: float = Field(0, ge=0, le=100_000)
    by: Literal["kill", "stop"] = "kill"
    acts_on = "nodes"


AnyProcessFault = Kill | Stop | Pause | Remove
PROCESS_FAULTS: dict[str, type[ProcessFault]] = by_do(*get_args(AnyProcessFault))


# -- what can be done to a whole host: each is taken apart into the ordinary faults of its links and nodes
#
# (scenarios/host_actions.py), so that history, oracle and checks know no others. What Ray itself sends between hosts is
# no link of the experiment and goes on.


class HostAction(Action):
    acts_on = "hosts"
    consists_of: ClassVar[str]
    """In words, for docs/scenarios.md."""


class LoseHost(HostAction):
    """Of a host: nobody answers any more, and nobody says so."""

    do: Literal["lose_host"] = "lose_host"
    consists_of = "`black_hole` of every link between a node of it and one of another host, then `kill` of its nodes"


class IsolateHost(HostAction):
    """Its nodes run on and reach one another."""

    do: Literal["isolate_host"] = "isolate_host"
    consists_of = "`black_hole` of every link between a node of it and one of another host"


class PauseHost(HostAction):
    do: Literal["pause_host"] = "pause_host"
    consists_of = "`pause` of its nodes"


class ReturnHost(HostAction):
    """Ends what was done to it by these."""

    do: Literal["return_host"] = "return_host"
    consists_of = "`heal` of that `black_hole`, then `restart` or `resume` of its nodes"


AnyHostAction = LoseHost | IsolateHost | PauseHost | ReturnHost
HOST_ACTIONS: dict[str, type[HostAction]] = by_do(*get_args(AnyHostAction))

"""What can be done to a process: one class a fault, and what ends it. Who does it is processes.py."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

from .fault import Action, Fault
from .losses import Dial, Loss, TimeLimits


class ProcessFault(Fault):
    acts_on = "nodes"
    ended_by: ClassVar[Literal["resume", "restart"]] = "restart"


class Kill(ProcessFault):
    do: Literal["kill"] = "kill"
    title = "killed"
    injection = "sigkill"
    injected = (
        "SIGKILL: the kernel closes every connection, what was not written is lost; dials are refused until it listens "
        "again"
    )
    equals = "a crash"
    dial = Dial.REFUSED
    ends_process = True

    def loss(self, timers: TimeLimits) -> Loss:
        return Loss.CRASH


class Stop(ProcessFault):
    do: Literal["stop"] = "stop"
    title = "stopped"
    injection = "sigterm"
    injected = "a clean stop: a broker takes its leave of every NameServer first; then as a kill"
    equals = "a shutdown"
    dial = Dial.REFUSED
    ends_process = True

    def loss(self, timers: TimeLimits) -> Loss:
        return Loss.GRACEFUL


class Pause(ProcessFault):
    do: Literal["pause"] = "pause"
    title = "paused"
    injection = "sigstop"
    injected = "SIGSTOP: connections stay, the kernel acknowledges, nothing is answered"
    equals = "a hang or a lost host"
    dial = Dial.SILENT
    ended_by = "resume"

    def loss(self, timers: TimeLimits) -> Loss:
        return Loss.SILENT


class Resume(Action):
    """Ends a pause."""

    do: Literal["resume"] = "resume"
    acts_on = "nodes"


class Restart(Action):
    """Ends a kill or a stop: a new process over the same files and port. A node that runs is stopped first."""

    do: Literal["restart"] = "restart"
    acts_on = "nodes"


AnyProcessFault = Kill | Stop | Pause
PROCESS_FAULTS: dict[str, type[ProcessFault]] = {
    kind.model_fields["do"].default: kind for kind in get_args(AnyProcessFault)
}

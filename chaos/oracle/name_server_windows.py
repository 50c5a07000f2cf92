"""When a client leaves a NameServer that is lost to it: found out at a poll, left at the next call, or the one after.

    found out ≤ P ── one failed call, but where the channel closes by itself ── next call chooses another

From section 4 of the project's failure-detection table, of which these are the columns of the two profiles, 4.9.8 and
5.3.3 (`NettyRemotingClient`, `MQClientInstance`), most of it measured on the Java clients. A client that takes the next
one at every request (Go's, ali-ons) leaves without finding anything out: by then its next request was due, and the try
of one that had just begun is over.
"""

from __future__ import annotations

from enum import StrEnum

from ...remoting.node.profile import Profile
from ..faults.losses import Delay, Loss
from .windows import NEVER, Timers, Window

_CLIENTS = {Profile.V4_9: "4.9.1 to 4.9.8", Profile.V5_X: "5.3.0 on"}
"""The Java clients that choose and leave NameServers as ours of a profile do."""


class Reach(StrEnum):
    """How a lost NameServer looks to a client: the rows of the table."""

    REFUSED = "port refused"
    SYN_DROPPED = "SYN dropped"
    UNANSWERED = "accepts, never answers"
    RESETS = "resets at its next bytes"

    @classmethod
    def of(cls, loss: Loss, delay: Delay | None, timers: Timers, *, packets: bool = False) -> Reach | None:
        """The row of a loss, of `packets` or of bytes; None where the table has none.

        Who dials a process that is gone is refused, as by a disabled proxy.
        """
        if delay is not None:
            return cls.UNANSWERED if delay.round_trip_min_ms >= timers.A_ms else None
        if loss in (Loss.CLOSED, Loss.CRASH, Loss.GRACEFUL):
            return cls.REFUSED
        if loss is Loss.RESET:
            return cls.RESETS
        if loss in (Loss.SILENT, Loss.BACKWARD_PACKETS) and packets:
            return cls.SYN_DROPPED
        if loss in (Loss.SILENT, Loss.BACKWARD_PACKETS, Loss.BACKWARD_PROXY, Loss.DROPPED):
            return cls.UNANSWERED
        return None

    @property
    def closes(self) -> bool:
        """Whether the client's channel closes at once, so that its next call chooses another."""
        return self is Reach.REFUSED


def leave_window(timers: Timers, reach: Reach, *, name_servers: int = 3, each_request: bool = False) -> Window:
    """When a client has chosen another NameServer than the one that is lost: found out at a poll, left at the next.

    A channel that closes says so by itself, so the next call chooses, and dials that are refused cost nothing; one that
    does not answer, or is reset by the call's own bytes, costs one call first. Polls keep to their ticks, so the call
    that fails (A) lies within the P until the next. Where a dial itself has no answer, it is the one to another
    NameServer that comes C later. A client that takes the next one at `each_request` makes one within P, and its try of
    the lost one takes C at most where it cannot connect, and A where it waits, whether or not the channel closes.
    """
    who = "that takes the next one at every request" if each_request else _CLIENTS[timers.profile]
    row = f"client leaves a NameServer: {reach}, client {who}"
    if name_servers < 2:
        return Window(0, NEVER, "there is no other", row)
    if reach.closes:
        return Window(0, timers.P_ms, "P", row, 2)
    if each_request and reach is Reach.SYN_DROPPED:
        return Window(0, timers.P_ms + timers.C_ms, "P + C", row, 3)
    if each_request:
        return Window(0, timers.P_ms + timers.A_ms, "P + A", row, 3)
    if reach in (Reach.UNANSWERED, Reach.SYN_DROPPED) and not timers.Z:
        return Window(0, NEVER, "never: its channel stays open (clientCloseSocketIfTimeout=false)", row)
    if reach is Reach.SYN_DROPPED:
        return Window(0, 2 * timers.P_ms + timers.C_ms, "P + 1·P + C", row, 3)
    return Window(0, 2 * timers.P_ms, "P + 1·P", row, 3)

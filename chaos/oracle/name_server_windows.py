"""When a client leaves a NameServer that is lost to it: failed calls by client version, and the time they cost.

    k = calls that fail before the client has moved on            staleness of its routes ≤ k·P + A
    found out ≤ P ── k failed calls, one a poll ── next call chooses another        left ≤ P + k·P + A

The table is section 4 of the project's failure-detection table: read from Apache RocketMQ 4.8.0 to 5.3.3
(`NettyRemotingClient`, `MQClientInstance`), most of it measured on the Java clients. Other languages' clients are not
bounded here: they choose at every request.
"""

from __future__ import annotations

from enum import StrEnum

from ...remoting.node.profile import Profile
from .windows import NEVER, Delay, Loss, Timers, Window

TCP_ABORT_MS = 924_600.0
"""When a kernel gives up a connection whose packets are lost (Linux, tcp_retries2 = 15), in the machine's time."""


class ClientEra(StrEnum):
    """Java clients that choose and leave NameServers alike."""

    UP_TO_4_9_0 = "up to 4.9.0"
    FROM_4_9_1 = "4.9.1 to 4.9.8"
    FROM_5_0_0 = "5.0.0 to 5.1.3"
    FROM_5_1_4 = "5.1.4 to 5.2.0"
    FROM_5_3_0 = "5.3.0 on"

    @classmethod
    def of_profile(cls, profile: Profile) -> ClientEra:
        """4.9 is 4.9.8 and 5.x is 5.3.3."""
        return cls.FROM_4_9_1 if profile is Profile.V4_9 else cls.FROM_5_3_0

    @classmethod
    def of_version(cls, version: str) -> ClientEra:
        """The era of `4.9.8` and the like. ValueError when it is no version."""
        try:
            number = tuple(int(part) for part in version.split("."))
        except ValueError:
            raise ValueError(f"client version {version!r}: allowed are three numbers, e.g. 5.1.3") from None
        for first, era in (((5, 3), cls.FROM_5_3_0), ((5, 1, 4), cls.FROM_5_1_4), ((5,), cls.FROM_5_0_0)):
            if number >= first:
                return era
        return cls.FROM_4_9_1 if number >= (4, 9, 1) else cls.UP_TO_4_9_0


class Reach(StrEnum):
    """How a lost NameServer looks to a client: the rows of the table."""

    REFUSED = "port refused"
    SYN_DROPPED = "SYN dropped"
    UNANSWERED = "accepts, never answers"
    CLOSES = "closes"
    RESETS = "resets at its next bytes"

    @classmethod
    def of(cls, loss: Loss, injection: str, delay: Delay | None, timers: Timers) -> Reach | None:
        """The row of a loss; None where the table has none. Through a proxy a dial succeeds whatever is behind it."""
        if delay is not None:
            return cls.UNANSWERED if delay.round_trip_min_ms >= timers.A_ms else None
        if loss is Loss.CLOSED:
            return cls.REFUSED
        if loss in (Loss.CRASH, Loss.GRACEFUL):
            return cls.CLOSES
        if loss is Loss.RESET:
            return cls.RESETS
        if loss in (Loss.SILENT, Loss.BACKWARD_PACKETS) and injection.startswith("packet"):
            return cls.SYN_DROPPED
        if loss in (Loss.SILENT, Loss.BACKWARD_PACKETS, Loss.BACKWARD_PROXY, Loss.DROPPED):
            return cls.UNANSWERED
        return None

    @property
    def closes(self) -> bool:
        """Whether the client's channel closes at once, so that its next call chooses another."""
        return self in (Reach.REFUSED, Reach.CLOSES)


def calls_failed(
    era: ClientEra,
    reach: Reach,
    *,
    name_servers: int,
    dead: int = 1,
    calls_apart_ms: float = 30_000,
    probe_ms: float = 3_000,
) -> float:
    """k at worst, over all orders of a list of `name_servers` of which `dead` are lost alike; NEVER: it may not leave.

    `calls_apart_ms`: the pause between calls, P for a client that only polls. 5.0.0 to 5.2.0 probe the chosen address
    every C (`probe_ms`), which opens a good channel in between, or the bad one again.
    """
    if dead >= name_servers:
        return NEVER
    if reach is Reach.CLOSES:
        return 0
    if reach is Reach.REFUSED:
        return dead if era is ClientEra.FROM_5_3_0 else 0
    if reach is Reach.RESETS:  # the dial succeeds, and the call itself meets the reset
        return dead
    seldom = calls_apart_ms >= probe_ms
    probes = era in (ClientEra.FROM_5_0_0, ClientEra.FROM_5_1_4)
    if reach is Reach.UNANSWERED:
        if era is ClientEra.UP_TO_4_9_0 or (probes and seldom):
            return NEVER
        return dead
    if era is ClientEra.UP_TO_4_9_0:
        return 1
    if era is ClientEra.FROM_5_3_0:
        return dead
    if era is ClientEra.FROM_5_1_4 or (probes and seldom):
        return dead
    # A call that met a dead entry closes the live channel right behind it, having no time left: the client recovers
    # at the first live entry behind a live one, and the worst order has none unless the live are in the majority.
    return dead if dead < name_servers - dead else NEVER


def leave_window(timers: Timers, reach: Reach, era: ClientEra | None = None, *, name_servers: int = 3) -> Window:
    """When a client has chosen another NameServer than the one that is lost: found out at a poll, left at the next.

    A channel that closes says so by itself, so the next call chooses; one that does not answer, or is reset by the
    call's own bytes, costs one call first.
    """
    era = era or ClientEra.of_profile(timers.profile)
    row = f"client leaves a NameServer: {reach}, client {era}"
    if name_servers < 2:
        return Window(0, NEVER, "there is no other", row)
    if reach.closes:
        return Window(0, timers.P_ms + timers.A_ms, "P + A", row, 2)
    if reach is Reach.UNANSWERED and calls_failed(era, reach, name_servers=name_servers) == NEVER:
        return Window(0, NEVER, "not bounded", row)
    return Window(0, 2 * timers.P_ms + timers.A_ms, "P + (1·P + A)", row, 3)

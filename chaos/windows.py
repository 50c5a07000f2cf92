"""RocketMQ's timers, and the windows that follow from them: how soon and how late a loss or a return may show.

    t = 0 is the moment the fault (or the heal) took effect; all values are milliseconds of RocketMQ time.
    φ = age of the broker's last accepted registration at that moment, 0 ≤ φ < R.

The rows, symbols and formulas are those of the project's failure-detection table, read from Apache RocketMQ 4.9.8 and
5.3.3 (`RouteInfoManager`, `BrokerController`, `MQClientInstance`) and partly measured on the Java programs. Which row
applies is decided by how the fault was injected: a disabled proxy is a crash, not a partition.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from typing import Any, NamedTuple

from ..remoting.profile import Profile

NEVER = math.inf


class Window(NamedTuple):
    """From the moment of the change: not before `earliest_ms`, and by `latest_ms` (NEVER: no bound at all)."""

    earliest_ms: float
    latest_ms: float
    formula: str
    row: str
    timers: int = 1
    """How many timers (or hand-overs) stand one behind the other in the formula: each may fire late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timers:
    """The timers of a run in RocketMQ milliseconds, under the symbols of the table."""

    profile: Profile = Profile.V4_9
    R_ms: float = 30_000  # BrokerConfig.registerNameServerPeriod, clamped to 10..60 s
    B_ms: float = 6_000  # BrokerConfig.registerBrokerTimeoutMills
    E_ms: float = 120_000  # RouteInfoManager.BROKER_CHANNEL_EXPIRED_TIME
    S_ms: float = 10_000  # expiry scan period
    I_ms: float = 120_000  # NettyServerConfig.serverChannelMaxIdleTimeSeconds
    h_ms: float | None = None  # light heartbeat, acting-master only
    P_ms: float = 30_000  # ClientConfig.pollNameServerInterval
    A_ms: float = 3_000  # ClientConfig.mqClientApiTimeout
    C_ms: float = 3_000  # NettyClientConfig.connectTimeoutMillis
    H_ms: float = 30_000  # ClientConfig.heartbeatBrokerInterval
    T_ms: float = 3_000  # DefaultMQProducer.sendMsgTimeout, all attempts together
    Qr_ms: float = 20_000  # RebalanceService.waitInterval
    time_scale: float = 1.0
    """How many RocketMQ milliseconds pass in one of the machine's."""

    def __post_init__(self) -> None:
        for spec in fields(self):
            value = getattr(self, spec.name)
            if spec.name != "profile" and value is not None and not 0 < value < math.inf:
                raise ValueError(f"timer {spec.name} is {value!r}; allowed is a positive number")

    @classmethod
    def for_profile(cls, profile: Profile | str, *, acting_master: bool = False, **overrides: Any) -> Timers:
        """The defaults of a profile with `overrides` (field names); ValueError for an unknown or impossible one."""
        profile = Profile(profile)
        defaults: dict[str, Any] = {"profile": profile}
        if profile is Profile.V5_X:
            defaults |= {"B_ms": 24_000, "S_ms": 5_000}
            if acting_master:
                defaults |= {"E_ms": 10_000, "h_ms": 1_000}
        elif acting_master:
            raise ValueError("slave-acting-master exists in profile 5.x only")
        known = {spec.name for spec in fields(cls)} - {"profile"}
        if unknown := overrides.keys() - known:
            raise ValueError(f"unknown timer {sorted(unknown)[0]!r}; allowed are {', '.join(sorted(known))}")
        return cls(**defaults | {name: value for name, value in overrides.items() if value is not None})

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Timers:
        """From the value of a `run_begin` row: profile, time_scale and `timers` (symbol_ms: number)."""
        known = {spec.name for spec in fields(cls)} - {"profile"}
        overrides = {name: value for name, value in (document.get("timers") or {}).items() if name in known}
        if document.get("time_scale") is not None:
            overrides["time_scale"] = document["time_scale"]
        return cls.for_profile(document.get("profile") or Profile.V4_9, **overrides)

    def to_json(self) -> dict[str, Any]:
        """Symbol to milliseconds, as `run_begin` keeps it under `timers`."""
        document = asdict(self)
        del document["profile"], document["time_scale"]
        return {name: value for name, value in document.items() if value is not None}

    def with_(self, **changes: Any) -> Timers:
        return replace(self, **changes)

    @property
    def beat_ms(self) -> float:
        """Longest time between two signs of life of a healthy broker: h where there is a light heartbeat, else R."""
        return self.R_ms if self.h_ms is None else self.h_ms

    @property
    def delivery_ms(self) -> float:
        """What "at once" may take: one close through kernel, proxy and event loop, 45 ms of a machine's time at most
        when measured on the Java programs, here in RocketMQ time."""
        return 50.0 * self.time_scale

    @property
    def lateness_cap_ms(self) -> float:
        """A machine whose timers fired later than this altogether cannot be judged: a tenth of R."""
        return self.R_ms / 10


class Loss(StrEnum):
    """What a fault looks like to the NameServer that holds the broker's route."""

    CRASH = "process crash, kernel closes its connections"
    GRACEFUL = "graceful shutdown"
    SILENT = "host loss, hang, two-way partition, or broker→NameServer loss only"
    BACKWARD_PACKETS = "NameServer→broker loss only, packet level"
    BACKWARD_PROXY = "NameServer→broker loss only, byte proxy"
    CLOSED = "proxy disabled: both sides closed at once, later dials refused"
    DROPPED = "timeout toxic: data dropped, closes pass"
    RESET = "reset_peer toxic"
    SLOW = "slow link"
    HARMLESS = "slower than before, far from every time-out"
    OTHER = "a fault without a row of its own"

    @classmethod
    def of(cls, fault: str, injection: str, stream: str | None, value: Mapping[str, Any], timers: Timers) -> Loss:
        """The row of a `fault` event. The injection decides; the kind of fault only where it says nothing."""
        stream = stream or "both"
        if injection == "sigkill":
            return cls.CRASH
        if injection == "sigterm":
            return cls.GRACEFUL
        if injection == "sigstop":
            return cls.SILENT
        if injection == "toxiproxy.disabled":
            return cls.CLOSED
        if injection.startswith("toxiproxy.timeout"):
            return cls.DROPPED
        if injection == "toxiproxy.bandwidth.rate=0":
            return cls.BACKWARD_PROXY if stream == "downstream" else cls.SILENT
        if injection.startswith("packet"):
            return cls.BACKWARD_PACKETS if stream == "downstream" else cls.SILENT
        if injection == "toxiproxy.reset_peer":
            return cls.RESET
        if injection == "toxiproxy.latency":
            one_way_ms = value.get("latency_ms")
            if one_way_ms is None:
                return cls.SLOW
            round_trip_ms = 2 * (float(one_way_ms) + float(value.get("jitter_ms") or 0))
            return cls.HARMLESS if 2 * round_trip_ms < min(timers.B_ms, timers.A_ms, timers.C_ms) else cls.SLOW
        if injection.startswith("toxiproxy.bandwidth"):
            return cls.SLOW
        return {"kill": cls.CRASH, "stop": cls.GRACEFUL, "pause": cls.SILENT, "cut": cls.CLOSED}.get(fault, cls.OTHER)

    @property
    def closes(self) -> bool:
        """Whether peers see their connections close."""
        return self in (Loss.CRASH, Loss.GRACEFUL, Loss.CLOSED)

    @property
    def swallows_closes(self) -> bool:
        """Whether a close of the other kind of fault cannot get through while this one lasts."""
        return self in (Loss.SILENT, Loss.BACKWARD_PACKETS, Loss.SLOW, Loss.OTHER)


def drop_window(timers: Timers, loss: Loss, *, dead_name_servers: int = 0) -> Window:
    """When a NameServer drops the route of a broker lost in this way; NEVER where the table promises nothing."""
    t, row = timers, str(loss)
    beat = "R" if t.h_ms is None else "h"
    match loss:
        case Loss.CRASH | Loss.CLOSED:
            return Window(0, 0, "RTT + event thread", row)
        case Loss.GRACEFUL:
            return Window(0, t.A_ms * dead_name_servers, f"A·{dead_name_servers} dead NameServers", row)
        case Loss.SILENT:
            # The idle close (I - φ') lies inside these bounds: the channel's last byte is never older than φ.
            return Window(min(t.E_ms, t.I_ms) - t.beat_ms, t.E_ms + t.S_ms, f"E - {beat} .. E + S", row, 2)
        case Loss.BACKWARD_PACKETS:
            formula = f"E .. {beat} + E + S"
            return Window(min(t.E_ms, t.I_ms), t.beat_ms + t.E_ms + t.S_ms, formula, row, 3)
        case Loss.DROPPED:
            latest_ms = min(t.R_ms + t.B_ms, t.E_ms + t.S_ms)
            return Window(0, latest_ms, "min(R + B, E + S)", row, 2)
        case Loss.HARMLESS:
            return Window(NEVER, NEVER, "no change", row)
        case _:
            return Window(0, NEVER, "not bounded", row)


def return_window(timers: Timers) -> Window:
    """When a broker is back in a NameServer's table after a heal, or after either of them was started again."""
    row = "after a heal or a restart the broker comes back on its own tick"
    return Window(0, timers.R_ms + timers.C_ms, "R + C", row, 2)


def topic_window(timers: Timers) -> Window:
    """When a new or changed topic is at every NameServer: at once, or, when that call failed, at the next tick."""
    return Window(0, timers.R_ms + timers.B_ms, "R + B", "a topic registers at once, or at the next tick", 2)


def poll_delay_ms(timers: Timers, hung_brokers: int) -> float:
    """J: how long hung brokers hold up a client's only scheduler thread, one heartbeat time-out each."""
    return timers.A_ms * hung_brokers


def client_leave_window(
    timers: Timers, removal: Window, *, consumer: bool = False, hung_brokers: int = 0, failed_calls: int = 0
) -> Window:
    """When a client no longer uses a broker that its NameServer drops within `removal`.

    t_rm + P + J; a consumer releases the queues at its next rebalance, Qr later; a client whose NameServer failed too
    waits k·P + A more.
    """
    latest_ms = removal.latest_ms + timers.P_ms
    formula, chained = f"({removal.formula}) + P", removal.timers + 1
    if consumer:
        latest_ms, formula, chained = latest_ms + timers.Qr_ms, f"{formula} + Qr", chained + 1
    if hung_brokers:
        latest_ms += poll_delay_ms(timers, hung_brokers)
        formula = f"{formula} + J (A·{hung_brokers} hung brokers)"
    if failed_calls:
        staleness = staleness_window(timers, failed_calls)
        latest_ms, formula = latest_ms + staleness.latest_ms, f"{formula} + {staleness.formula}"
        chained += staleness.timers
    who = "consumer releases dead queues" if consumer else "producer stops targeting the broker"
    return Window(0, latest_ms, formula, f"{who} after: {removal.row}", chained)


def staleness_window(timers: Timers, failed_calls: int) -> Window:
    """How long a client's routes are stale after its NameServer failed: k·P + A for k failed calls."""
    row = "client leaves a bad NameServer"
    latest_ms = failed_calls * timers.P_ms + timers.A_ms
    return Window(0, latest_ms, f"{failed_calls}·P + A", row, failed_calls + 1)


def failed_calls(profile: Profile, loss: Loss) -> int:
    """k: calls that fail before a client with other NameServers left has moved on from one lost in this way.

    4.9 tries the whole list within one call, so a refused dial costs none; 5.3 tries one address a call.
    """
    if loss in (Loss.CRASH, Loss.GRACEFUL, Loss.CLOSED, Loss.RESET):
        return 0 if profile is Profile.V4_9 else 1
    return 0 if loss is Loss.HARMLESS else 1

"""RocketMQ's timers in a run, under the symbols of the project's failure-detection table, with each profile's defaults.

They are what every window is computed from (windows.py, lost_name_servers.py). Read from Apache RocketMQ 4.9.8 and
5.3.3; the class and field that sets each stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

from ...remoting.node.profile import Profile
from ..settings.catalogue import settings_for
from ..settings.resolve import Settings
from ..settings.setting import Value
from ..topology import NodeKind

UNREGISTER_MS = 3_000.0
"""How long a broker that leaves waits for each NameServer (`BrokerOuterAPI.unregisterBroker`): no setting's."""
ACTING_E_MS, ACTING_H_MS = 10_000, 1_000
"""E and h of brokers with enableSlaveActingMaster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timers:
    """The timers of a run in RocketMQ milliseconds, under the symbols of the table."""

    profile: Profile = Profile.V4_9
    R_ms: float = 30_000  # BrokerConfig.registerNameServerPeriod, clamped to 10..60 s
    B_ms: float = 6_000  # BrokerConfig.registerBrokerTimeoutMills
    E_ms: float = 120_000  # RouteInfoManager.BROKER_CHANNEL_EXPIRED_TIME
    S_ms: float = 10_000  # expiry scan period
    I_ms: float = 120_000  # NettyServerConfig.serverChannelMaxIdleTimeSeconds
    i_ms: float = 120_000  # NettyClientConfig.clientChannelMaxIdleTimeSeconds, of a broker
    h_ms: float | None = None  # light heartbeat, acting-master only
    P_ms: float = 30_000  # ClientConfig.pollNameServerInterval
    A_ms: float = 3_000  # ClientConfig.mqClientApiTimeout
    C_ms: float = 3_000  # NettyClientConfig.connectTimeoutMillis
    H_ms: float = 30_000  # ClientConfig.heartbeatBrokerInterval
    T_ms: float = 3_000  # DefaultMQProducer.sendMsgTimeout, all attempts together
    Qr_ms: float = 20_000  # RebalanceService.waitInterval
    W_ms: float | None = None  # NamesrvConfig.waitSecondsForService, with needWaitForService only
    F_ms: float | None = None  # BrokerConfig.forceRegister=false: B, which the question before (322) may take
    Z: bool = True  # NettyClientConfig.clientCloseSocketIfTimeout: false up to 4.9.0
    time_scale: float = 1.0
    """How many RocketMQ milliseconds pass in one of the machine's."""
    clocks_ms: float = 0.0
    """By how much the times of two nodes on different hosts may be wrong against each other, as far as it was measured;
    0 where the run has one host."""

    def __post_init__(self) -> None:
        for spec in fields(self):
            value = getattr(self, spec.name)
            if spec.name not in ("profile", "Z", "clocks_ms") and value is not None and not 0 < value < math.inf:
                raise ValueError(f"timer {spec.name} is {value!r}; expected a positive number")

    @classmethod
    def for_profile(cls, profile: Profile | str, **overrides: Any) -> Timers:
        """The defaults of a profile with `overrides` (field names); ValueError for an unknown or impossible one."""
        profile = Profile(profile)
        defaults: dict[str, Any] = {"B_ms": 24_000, "S_ms": 5_000} if profile is Profile.V5_X else {}
        known = {spec.name for spec in fields(cls)} - {"profile"}
        if unknown := overrides.keys() - known:
            raise ValueError(f"unknown timer {sorted(unknown)[0]!r}; expected one of {', '.join(sorted(known))}")
        return cls(
            profile=profile, **defaults | {name: value for name, value in overrides.items() if value is not None}
        )

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
        del document["profile"], document["time_scale"], document["clocks_ms"]
        return {name: value for name, value in document.items() if value is not None}

    def with_(self, **changes: Any) -> Timers:
        return replace(self, **changes)

    @property
    def silence_ms(self) -> float:
        """How long a NameServer is sure to have a broker that it does not hear: until it expires, or its channel counts
        as idle at either end. (A broker that hangs closes nothing, so no drop is due by i.)"""
        return min(self.E_ms, self.I_ms, self.i_ms)

    @property
    def beat_ms(self) -> float:
        """Longest time between two signs of life of a healthy broker: h where there is a light heartbeat, else R."""
        return self.R_ms if self.h_ms is None else self.h_ms

    @property
    def delivery_ms(self) -> float:
        """What "at once" may take: one close through kernel, proxy and event loop, 45 ms of a machine's time at most
        when measured on the Java programs, here in RocketMQ time; and what the hosts' clocks may be apart."""
        return self.at_once_ms + self.clocks_ms

    @property
    def at_once_ms(self) -> float:
        """The same where all clocks are one."""
        return 50.0 * self.time_scale

    @property
    def lateness_cap_ms(self) -> float:
        """How late a machine may be where nobody asks how late it was: a tenth of R."""
        return self.R_ms / 10

    @property
    def registers_ms(self) -> float:
        """Within what a broker's next registration has reached a NameServer: R, its time-out B, and a connect C."""
        return self.R_ms + self.B_ms + self.C_ms

    @property
    def serves_ms(self) -> float:
        """How long after its start a NameServer may have no route to give: R + C, or W where it waits longer."""
        return max(self.R_ms + (self.F_ms or 0.0) + self.C_ms, self.W_ms or 0.0)


def timers_of_nodes(
    profile: Profile, time_scale: float, settings: Settings, nodes: Mapping[str, NodeKind]
) -> tuple[Timers, dict[str, dict[str, float | bool]]]:
    """The run's timers, and by node what differs from them there. Where nodes of a kind differ the run's own are the
    longest (Z: whether all close), so that a window which asks for no node in particular is wide enough for each."""
    own = Timers.for_profile(profile, time_scale=time_scale)
    by_symbol: dict[str, dict[str, Any]] = {}
    for node, kind in nodes.items():
        for symbol, value in _symbols(settings.get(node, {}), kind, profile).items():
            by_symbol.setdefault(symbol, {})[node] = value
    changed: dict[str, Any] = {}
    differing: dict[str, dict[str, float | bool]] = {}
    for symbol, values in by_symbol.items():
        some = [value for value in values.values() if value is not None]
        longest = all(some) if symbol == "Z" else max(some, default=None)
        if longest != getattr(own, symbol):
            changed[symbol] = longest
        for node, value in values.items():
            if value != longest:
                differing.setdefault(node, {})[symbol] = value
    return own.with_(**changed), differing


def _symbols(values: Mapping[str, Value], kind: NodeKind, profile: Profile) -> dict[str, Any]:
    """Field of Timers to its value, of all that a node of this kind decides."""
    found: dict[str, Any] = {}
    acting = profile is Profile.V5_X and bool(values.get("enableSlaveActingMaster"))
    for setting in settings_for(kind).values():
        if setting.symbol is None or profile not in setting.profiles:
            continue
        value = values.get(setting.name, setting.default(profile))
        if setting.name == "brokerNotActiveTimeoutMillis" and acting:
            value = values.get(setting.name, ACTING_E_MS)
        if setting.symbol == "Z":
            found["Z"] = value
        else:
            found[f"{setting.symbol}_ms"] = float(str(value)) * (1000 if setting.symbol in "Ii" else 1)
    if kind in (NodeKind.BROKER, NodeKind.SLAVE):
        found["h_ms"] = float(str(values.get("brokerHeartbeatInterval", ACTING_H_MS))) if acting else None
        found["F_ms"] = found["B_ms"] if values.get("forceRegister") is False else None
    if kind is NodeKind.NAME_SERVER:
        seconds = values.get("waitSecondsForService", 45)
        found["W_ms"] = float(str(seconds)) * 1000 if values.get("needWaitForService") and seconds else None
    return found


class Schedule(NamedTuple):
    """One periodic task of one node (`scheduleAtFixedRate`): one that was held up runs late, and those that it missed
    run right behind it."""

    task: str
    symbol: str
    first_ms: float
    """How long after the node's start, or `after_registering`: after its first registration."""
    period_ms: float
    row: str
    shared: bool = False
    """Whether one thread runs it and the node's other shared tasks."""
    after_registering: bool = False


class Act(NamedTuple):
    """What was measured of one run, or call, and what is allowed. Counted from `from_ms`."""

    from_ms: float
    measured_ms: float
    earliest_ms: float | None
    latest_ms: float
    formula: str
    missing: bool = False
    peers: Sequence[str] = ()
    """Whose lateness it suffers from, besides its node's: who has to answer."""
    calls: int = 1
    """How many calls follow one another in it, each of which the lateness of both its ends may hold up."""
    since_ms: float | None = None
    """From when on the lateness of its node counts, where the act is one of several and nobody knows when."""

    @property
    def over_ms(self) -> float:
        early_ms = 0.0 if self.earliest_ms is None else self.earliest_ms - self.measured_ms
        return max(self.measured_ms - self.latest_ms, early_ms, 0.0)

    @property
    def due_ms(self) -> float:
        """The time of the bound that it broke: it came too early, or too late."""
        earliest_ms = -math.inf if self.earliest_ms is None else self.earliest_ms
        return self.from_ms + (earliest_ms if self.measured_ms < earliest_ms else self.latest_ms)

    @property
    def at_ms(self) -> float:
        return self.from_ms + self.measured_ms

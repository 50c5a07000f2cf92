"""What can be done to a link: one class a fault, with its fields, its words, what it does to bytes, and its loss.

    LinkFault ── effect() ──► combine: what all faults of a link amount to ──► LinkState, for each direction
                                                                               │
        through Toxiproxy (toxiproxy_links.py)  ◄──────────────────────────────┴──► in memory (experiment/virtual/)

A class is what a scenario's timeline says after `do:`; pydantic checks it. Nothing is injected here, and nothing of
Toxiproxy's is imported, so that the oracle can ask a recorded fault for its loss. The `timeout` toxic is no scenario's
fault: removing it closes every connection, a heal that no network has. Who sets it by hand finds it recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from pydantic import Field

from .fault import Action, Delay, Dial, Fault, Loss, TimeLimits, by_do

Direction = Literal["upstream", "downstream"]
Stream = Literal["both", "upstream", "downstream"]
DIRECTIONS: tuple[Direction, Direction] = ("upstream", "downstream")


class Effect(NamedTuple):
    """What one fault does to the bytes of a direction that it acts on, in RocketMQ's time."""

    refused: bool = False
    """Of the whole link: connections close, dials are refused."""
    rate_kb_s: float | None = None
    """At most so much passes; 0 holds all."""
    latency_ms: float | None = None
    jitter_ms: float = 0.0
    reset: bool = False
    lost: bool = False
    """No packet arrives."""
    stale: bool = False
    """Of the whole link: what passes over connections made before is held."""
    resets: bool = False
    """Of the whole link: connections made before are reset at once."""
    oldest: int | None = None
    """How many connections made before that is about, the oldest; None: all."""
    undialled: bool = False
    """Of the whole link: no dial is answered."""


class LinkFault(Fault):
    """Of a link from the node that dials (`upstream` is from it to its peer). Numbers are in RocketMQ's time."""

    acts_on = "links"
    stream: Stream = "both"

    does: ClassVar[Effect]
    """What it does to each direction of `stream`, where that depends on nothing."""

    def effect(self) -> Effect:
        """What it does to each direction of `stream`."""
        return self.does

    def works_on(self, direction: Direction) -> bool:
        return self.stream in ("both", direction)

    @classmethod
    def of_toxic(cls, toxic: str, attributes: Mapping[str, Any], scale: float) -> LinkFault | None:
        """The fault that a toxic which somebody else has set amounts to; None where it is none of these."""
        return None


class Cut(LinkFault):
    do: Literal["cut"] = "cut"
    title = "cut"
    injection = "toxiproxy.disabled"
    injected = "the proxy is disabled: connections close, new connections are refused"
    equals = "a crash, not a partition"
    dial = Dial.REFUSED
    looks_like = Loss.CLOSED
    does = Effect(refused=True)


class BlackHole(LinkFault):
    do: Literal["black_hole"] = "black_hole"
    title = "black hole"
    injection = "toxiproxy.bandwidth.rate=0"
    injected = "bytes and closes wait and arrive when the fault ends, over the same connection; new connections succeed"
    equals = "a short partition"
    dial = Dial.SILENT
    does = Effect(rate_kb_s=0)

    def loss(self, timers: TimeLimits) -> Loss:
        return Loss.BACKWARD_PROXY if self.stream == "downstream" else Loss.SILENT

    @classmethod
    def of_toxic(cls, toxic: str, attributes: Mapping[str, Any], scale: float) -> LinkFault | None:
        return cls() if toxic == "bandwidth" and not attributes.get("rate") else None


class Latency(LinkFault):
    """Each direction of `stream` is later by latency_ms ± jitter_ms; with both, a round trip has it twice."""

    do: Literal["latency"] = "latency"
    latency_ms: float = Field(gt=0)
    jitter_ms: float = Field(0.0, ge=0)
    title = "latency"
    injection = "toxiproxy.latency"
    injected = "Toxiproxy's `latency` toxic: every byte comes so much later"
    equals = "a slow link"
    dial = Dial.LATE

    def effect(self) -> Effect:
        return Effect(latency_ms=self.latency_ms, jitter_ms=self.jitter_ms)

    def loss(self, timers: TimeLimits) -> Loss:
        round_trip_ms = 2 * (self.latency_ms + self.jitter_ms)
        return Loss.HARMLESS if 2 * round_trip_ms < min(timers.B_ms, timers.A_ms, timers.C_ms) else Loss.SLOW

    @property
    def delay(self) -> Delay:
        upstream_ms, downstream_ms = (self.latency_ms if self.works_on(way) else 0.0 for way in DIRECTIONS)
        return Delay(upstream_ms, downstream_ms, self.jitter_ms)

    @property
    def call_takes_ms(self) -> float:
        return max(1.0, self.latency_ms - self.jitter_ms)

    @classmethod
    def of_toxic(cls, toxic: str, attributes: Mapping[str, Any], scale: float) -> LinkFault | None:
        if toxic != "latency":
            return None
        jitter_ms = attributes.get("jitter", 0) * scale
        return cls.model_construct(latency_ms=attributes["latency"] * scale, jitter_ms=jitter_ms)


class Bandwidth(LinkFault):
    do: Literal["bandwidth"] = "bandwidth"
    rate_kb_s: int = Field(gt=0)
    title = "bandwidth"
    injection = "toxiproxy.bandwidth"
    injected = "Toxiproxy's `bandwidth` toxic: at most so much passes, which is measured on the link"
    equals = "a narrow link"
    shows_in_rows = False
    looks_like = Loss.SLOW

    def effect(self) -> Effect:
        return Effect(rate_kb_s=self.rate_kb_s)

    @classmethod
    def of_toxic(cls, toxic: str, attributes: Mapping[str, Any], scale: float) -> LinkFault | None:
        rate = attributes.get("rate") if toxic == "bandwidth" else None
        return cls.model_construct(rate_kb_s=rate / scale) if rate else None


class Reset(LinkFault):
    """With `connections` only so many of a link are reset, the oldest, at once; only in memory are they told apart."""

    do: Literal["reset"] = "reset"
    connections: int | None = Field(None, ge=1)
    title = "reset"
    injection = "toxiproxy.reset_peer"
    injected = (
        "Toxiproxy's `reset_peer` toxic: a new connection is reset at its first bytes, an older one closes at its next "
        "bytes"
    )
    equals = "a middlebox that resets"
    dial = Dial.RESET

    def effect(self) -> Effect:
        return Effect(reset=True) if self.connections is None else Effect(resets=True, oldest=self.connections)

    def loss(self, timers: TimeLimits) -> Loss:
        return Loss.RESET if self.connections is None else Loss.OTHER

    @property
    def meets(self) -> Dial:
        return self.dial if self.connections is None else Dial.ANSWERED

    @property
    def needs_memory(self) -> bool:
        return self.connections is not None

    @classmethod
    def of_toxic(cls, toxic: str, attributes: Mapping[str, Any], scale: float) -> LinkFault | None:
        return cls() if toxic == "reset_peer" else None


class PacketLoss(LinkFault):
    do: Literal["packet_loss"] = "packet_loss"
    title = "packet loss"
    injection = "packet_drop"
    injected = "no packet arrives, SYN and FIN included, and kernels send again; with `--clock virtual` only"
    equals = "a partition, a pulled cable"
    dial = Dial.DROPPED
    loses_packets = True
    does = Effect(lost=True)

    def loss(self, timers: TimeLimits) -> Loss:
        return Loss.BACKWARD_PACKETS if self.stream == "downstream" else Loss.SILENT


class HalfOpen(LinkFault):
    """Of connections that were there when it began; those made since are as if nothing were. With `connections` of so
    many only, the oldest; only in memory are they told apart."""

    do: Literal["half_open"] = "half_open"
    connections: int | None = Field(None, ge=1)
    title = "half-open"
    injection = "toxiproxy.second_proxy"
    injected = (
        "new connections go through a second proxy; on older ones bytes, and closes behind them, wait and arrive when "
        "the fault ends"
    )
    equals = "a NAT or conntrack entry that is gone, a failover of a firewall without its state"
    looks_like = Loss.STALE

    def effect(self) -> Effect:
        return Effect(stale=True, oldest=self.connections)

    @property
    def needs_memory(self) -> bool:
        return self.connections is not None


class SynDrop(LinkFault):
    do: Literal["syn_drop"] = "syn_drop"
    title = "SYN drop"
    injection = "full_accept_queue"
    injected = (
        "the node connects to a port whose accept queue is full, so the kernel drops its SYNs; older connections work"
    )
    equals = "a full accept queue, a SYN flood's victim, a firewall that admits no new connection"
    dial = Dial.DROPPED
    looks_like = Loss.UNDIALLED
    does = Effect(undialled=True)


class Timeout(LinkFault):
    """Toxiproxy's `timeout` toxic, set by somebody else: seen and recorded, never injected."""

    do: Literal["timeout"] = "timeout"
    timeout: int = 0
    title = "timeout toxic"
    injection = "toxiproxy.timeout"
    looks_like = Loss.DROPPED
    does = Effect()

    @property
    def recorded_injection(self) -> str:
        return f"{self.injection}={self.timeout}"

    @property
    def numbers(self) -> dict[str, float]:
        return {}

    @classmethod
    def of_toxic(cls, toxic: str, attributes: Mapping[str, Any], scale: float) -> LinkFault | None:
        return cls(timeout=attributes.get("timeout", 0)) if toxic == "timeout" else None


class Heal(Action):
    """Ends every fault of every link; with links every fault there, with faults those of these names."""

    do: Literal["heal"] = "heal"
    faults: tuple[str, ...] = ()
    acts_on = "links"
    needs_targets = False


AnyLinkFault = Cut | BlackHole | Latency | Bandwidth | Reset | PacketLoss | HalfOpen | SynDrop
"""What a scenario may do to a link: the order is that of docs/faults.md."""
LINK_FAULTS: dict[str, type[LinkFault]] = by_do(*get_args(AnyLinkFault))


class Toxic(NamedTuple):
    """One of Toxiproxy's, on one direction of a proxy; with toxicity 0 every byte passes."""

    name: str
    kind: str
    direction: Direction
    attributes: Mapping[str, int]
    toxicity: float = 1.0


class DirectionState(NamedTuple):
    """What one direction of a link should do, in the machine's time: None means let every byte pass at once."""

    rate_kb_s: int | None = None
    delay_ms: tuple[int, int] | None = None
    reset: bool = False
    lost: bool = False
    """No packet arrives."""
    unacknowledged: bool = False
    """What is sent arrives, but no acknowledgement of it comes back."""


class LinkState(NamedTuple):
    enabled: bool = True
    upstream: DirectionState = DirectionState()
    downstream: DirectionState = DirectionState()
    stale: int = 0
    """How many faults hold the connections that were there when they began."""
    resets: int = 0
    """How many faults have reset the connections that were there when they began."""
    oldest: int | None = None
    """How many connections the newest of these is about, the oldest; None: all."""
    undialled: bool = False
    """No dial is answered."""

    @property
    def of_stale(self) -> LinkState:
        """What it is to a connection of before: everything is held."""
        return LinkState(self.enabled, self.upstream._replace(rate_kb_s=0), self.downstream._replace(rate_kb_s=0))

    @property
    def held(self) -> bool:
        """Whether bytes of at least one direction wait for the fault's end, so a new connection gets no answer."""
        return self.upstream.rate_kb_s == 0 or self.downstream.rate_kb_s == 0


def combine(faults: Iterable[LinkFault], scale: float) -> LinkState:
    """What faults that overlap on one link amount to, in the machine's time, `scale` times RocketMQ's.

    A cut, a reset or a loss of packets holds while any does; the lowest rate counts, a black hole being rate 0;
    latencies add up.
    """
    effects = [(fault, fault.effect()) for fault in faults]

    def direction(which: Direction) -> DirectionState:
        acting = [effect for fault, effect in effects if fault.works_on(which)]
        rates = [max(1, round(e.rate_kb_s * scale)) if e.rate_kb_s else 0 for e in acting if e.rate_kb_s is not None]
        late = [(e.latency_ms, e.jitter_ms) for e in acting if e.latency_ms is not None]
        delay = (
            max(1, round(sum(latency_ms for latency_ms, _ in late) / scale)),
            round(sum(jitter_ms for _, jitter_ms in late) / scale),
        )
        return DirectionState(
            min(rates, default=None),
            delay if late else None,
            any(e.reset for e in acting),
            lost=any(e.lost for e in acting),
            unacknowledged=any(effect.lost for fault, effect in effects if not fault.works_on(which)),
        )

    return LinkState(
        not any(e.refused for _, e in effects),
        direction("upstream"),
        direction("downstream"),
        stale=sum(e.stale for _, e in effects),
        undialled=any(e.undialled for _, e in effects),
        resets=sum(e.resets for _, e in effects),
        oldest=next((e.oldest for _, e in reversed(effects) if e.stale or e.resets), None),
    )

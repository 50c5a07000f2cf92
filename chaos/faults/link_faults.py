"""Faults of links. A fault's class defines the fault's keys in a scenario, the effect on bytes, and how peers see the
fault.

    LinkFault ── effect() ──► combine: the effect of all faults of a link ──► LinkState, for each direction
                                                                               │
        through Toxiproxy (toxiproxy_links.py)  ◄──────────────────────────────┴──► in memory (experiment/virtual/)

An entry of a scenario's timeline names the fault after `do:`; pydantic validates the entry. This module has no code
that injects faults, so the oracle can import the classes. Scenarios cannot use the `timeout` toxic, because the toxic
closes every connection when it ends, which no network does. A `timeout` toxic that a person sets is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal, NamedTuple, get_args

from pydantic import Field

from ..shapes import Stream
from .fault import Action, Delay, Dial, Fault, Loss, TimeLimits, by_do

Direction = Literal["upstream", "downstream"]
DIRECTIONS: tuple[Direction, Direction] = ("upstream", "downstream")


class Effect(NamedTuple):
    """The effect of one fault on the bytes of one direction of a link, in RocketMQ's time."""

    refused: bool = False
    """The whole link: connections close, and new ones are refused."""
    rate_kb_s: float | None = None
    """Bandwidth limit in kB/s; 0 lets nothing pass."""
    latency_ms: float | None = None
    jitter_ms: float = 0.0
    reset: bool = False
    lost: bool = False
    """No packet arrives."""
    stale: bool = False
    """The whole link: data on connections made before the fault is kept back."""
    undialled: bool = False
    """The whole link: no connection attempt is answered."""


class LinkFault(Fault):
    """A fault of a link. Upstream means from the connecting node to its peer. Milliseconds and kB/s are in RocketMQ's
    time: with `time_scale: 10`, 1000 ms last 100 ms on the machine's clock."""

    acts_on = "links"
    stream: Stream = "both"

    does: ClassVar[Effect]
    """What it does to each direction of `stream`, if that depends on nothing else."""

    def effect(self) -> Effect:
        """Return the fault's effect on each direction of `stream`."""
        return self.does

    def works_on(self, direction: Direction) -> bool:
        return self.stream in ("both", direction)


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
    injected = (
        "bytes, and closes behind them, wait and arrive when the fault ends, over the same connection; new connections "
        "succeed"
    )
    equals = "a short partition"
    dial = Dial.SILENT
    does = Effect(rate_kb_s=0)

    def loss(self, timers: TimeLimits) -> Loss:
        return Loss.BACKWARD_PROXY if self.stream == "downstream" else Loss.SILENT


class Latency(LinkFault):
    """Delays each direction of `stream` by latency_ms ± jitter_ms. If both directions have latency, a round trip is
    delayed twice."""

    do: Literal["latency"] = "latency"
    latency_ms: float = Field(gt=0, le=100_000_000)
    jitter_ms: float = Field(0.0, ge=0, le=100_000_000)
    title = "latency"
    injection = "toxiproxy.latency"
    injected = "Toxiproxy's `latency` toxic: every byte arrives `latency_ms` later, more or less by up to `jitter_ms`"
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


class Bandwidth(LinkFault):
    do: Literal["bandwidth"] = "bandwidth"
    rate_kb_s: int = Field(gt=0, le=100_000_000)
    title = "bandwidth"
    injection = "toxiproxy.bandwidth"
    injected = "Toxiproxy's `bandwidth` toxic: at most `rate_kb_s` kilobytes pass per second"
    equals = "a narrow link"
    shows_in_rows = False
    looks_like = Loss.SLOW

    def effect(self) -> Effect:
        return Effect(rate_kb_s=self.rate_kb_s)


class Reset(LinkFault):
    do: Literal["reset"] = "reset"
    title = "reset"
    injection = "toxiproxy.reset_peer"
    injected = (
        "Toxiproxy's `reset_peer` toxic: a new connection is reset at its first bytes, an older one closes at its next "
        "bytes"
    )
    equals = "a middlebox that resets"
    dial = Dial.RESET
    looks_like = Loss.RESET
    does = Effect(reset=True)


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
    """Blocks the connections that existed when the fault began. Connections made later are not affected."""

    do: Literal["half_open"] = "half_open"
    title = "half-open"
    injection = "toxiproxy.second_proxy"
    injected = (
        "new connections go through a second proxy; on older ones bytes, and closes behind them, wait and arrive when "
        "the fault ends"
    )
    equals = "a NAT or conntrack entry that is gone, a failover of a firewall without its state"
    looks_like = Loss.STALE
    does = Effect(stale=True)


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
    """Toxiproxy's `timeout` toxic. nemesrv records a `timeout` toxic that a person sets, but never injects one."""

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


class Heal(Action):
    """Ends every fault of every link. `links`: end only the faults on these links. `faults`: end only the faults with
    these names."""

    do: Literal["heal"] = "heal"
    faults: tuple[str, ...] = ()
    acts_on = "links"
    needs_targets = False


AnyLinkFault = Cut | BlackHole | Latency | Bandwidth | Reset | PacketLoss | HalfOpen | SynDrop
"""Every fault that a scenario may put on a link, in the order of docs/faults.md."""
LINK_FAULTS: dict[str, type[LinkFault]] = by_do(*get_args(AnyLinkFault))


class Toxic(NamedTuple):
    """A toxic of Toxiproxy on one direction of a proxy. A toxic with toxicity 0 affects no byte."""

    name: str
    kind: str
    direction: Direction
    attributes: Mapping[str, int]
    toxicity: float = 1.0


class DirectionState(NamedTuple):
    """What one direction of a link should do with bytes, in the machine's time. If a field is None, the field does not
    change the bytes or their time."""

    rate_kb_s: int | None = None
    delay_ms: tuple[int, int] | None = None
    reset: bool = False
    lost: bool = False
    """No packet arrives."""
    unacknowledged: bool = False
    """Data arrive, but their acknowledgements do not come back."""


class LinkState(NamedTuple):
    enabled: bool = True
    upstream: DirectionState = DirectionState()
    downstream: DirectionState = DirectionState()
    stale: int = 0
    """Number of faults that block the connections older than themselves."""
    undialled: bool = False
    """No connection attempt is answered."""

    @property
    def of_stale(self) -> LinkState:
        """Return the link's state for connections made before the fault: all their bytes are kept back."""
        return LinkState(self.enabled, self.upstream._replace(rate_kb_s=0), self.downstream._replace(rate_kb_s=0))

    @property
    def held(self) -> bool:
        """Whether a direction's bytes are kept back until the end of the fault, so a new connection gets no answer."""
        return self.upstream.rate_kb_s == 0 or self.downstream.rate_kb_s == 0


def combine(faults: Iterable[LinkFault], scale: float) -> LinkState:
    """Return the combined effect of one link's faults, in the machine's time (RocketMQ's time divided by `scale`).

    A link is cut, reset or loses packets while at least one of its faults does this. The lowest bandwidth of all faults
    counts; a black hole has bandwidth 0. Latencies add up.
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
    )

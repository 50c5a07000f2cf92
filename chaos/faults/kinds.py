"""Faults of a link as data, and what faults that overlap on one link amount to. Nothing is injected here.

What each looks like to the peers stands in links.py; the network in memory does the same
(chaos/experiment/virtual/network.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

Direction = Literal["upstream", "downstream"]
Stream = Literal["both", "upstream", "downstream"]
DIRECTIONS: tuple[Direction, Direction] = ("upstream", "downstream")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFault:
    """What is done to a link. Numbers are in RocketMQ time, as in a scenario."""

    name: ClassVar[str]
    injection: ClassVar[str]
    stream: Stream = "both"

    def acts_on(self, direction: Direction) -> bool:
        return self.stream in ("both", direction)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(LinkFault):
    name: ClassVar[str] = "cut"
    injection: ClassVar[str] = "toxiproxy.disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlackHole(LinkFault):
    name: ClassVar[str] = "black_hole"
    injection: ClassVar[str] = "toxiproxy.bandwidth.rate=0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency(LinkFault):
    """Each direction of `stream` is later by latency_ms ± jitter_ms; with both, a round trip has it twice."""

    name: ClassVar[str] = "latency"
    injection: ClassVar[str] = "toxiproxy.latency"
    latency_ms: float
    jitter_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth(LinkFault):
    name: ClassVar[str] = "bandwidth"
    injection: ClassVar[str] = "toxiproxy.bandwidth"
    rate_kb_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset(LinkFault):
    name: ClassVar[str] = "reset"
    injection: ClassVar[str] = "toxiproxy.reset_peer"


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketLoss(LinkFault):
    """Every packet of a direction is lost, SYN and FIN too; the kernels send again. Only in memory: no proxy can."""

    name: ClassVar[str] = "packet_loss"
    injection: ClassVar[str] = "packet_drop"


class DirectionState(NamedTuple):
    """What one direction of a link should do: None means let every byte pass at once."""

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


def combine(faults: Iterable[LinkFault], scale: float) -> LinkState:
    """What faults that overlap on one link amount to, in the machine's time, `scale` times RocketMQ's.

    A cut, a reset or a loss of packets holds while any does; the lowest rate counts, a black hole being rate 0;
    latencies add up.
    """
    faults = tuple(faults)

    def direction(which: Direction) -> DirectionState:
        acting = [fault for fault in faults if fault.acts_on(which)]
        rates = [max(1, round(f.rate_kb_s * scale)) for f in acting if isinstance(f, Bandwidth)]
        rates += [0 for f in acting if isinstance(f, BlackHole)]
        late = [f for f in acting if isinstance(f, Latency)]
        delay = (
            max(1, round(sum(f.latency_ms for f in late) / scale)),
            round(sum(f.jitter_ms for f in late) / scale),
        )
        return DirectionState(
            min(rates, default=None),
            delay if late else None,
            any(isinstance(f, Reset) for f in acting),
            lost=any(isinstance(f, PacketLoss) for f in acting),
            unacknowledged=any(isinstance(f, PacketLoss) for f in faults if f not in acting),
        )

    return LinkState(not any(isinstance(f, Cut) for f in faults), direction("upstream"), direction("downstream"))

"""Faults on links: as calls for a timeline (`begin`, `end`) and as context managers; all healed on every way out.

    fault        how it is injected              what peers see                                     (windows.md, 5)
    cut          proxy disabled                  connections close, dials are refused: a crash, no partition
    black_hole   bandwidth toxic with rate 0     bytes and closes are held, and arrive after the heal over the same
                                                 connection; dials still succeed: a short partition
    latency      latency toxic                   every byte later, in each direction named
    bandwidth    bandwidth toxic                 at most so many KB/s, in each direction named
    reset        reset_peer toxic                a connection made meanwhile is reset at its first bytes, an older one
                                                 closes at its next bytes

The `timeout` toxic is not used: removing it closes every connection, a heal that no network has.

Toxics of one chain are not independent. Adding one after a black hole lets out what it holds; removing one before it
blocks Toxiproxy for good, or loses bytes after 5 s. So the chain of a direction is laid down once, before its first
fault, and afterwards only retuned in place; what overlapping faults add up to is computed here:

    bytes ──► gate (bandwidth) ──► delay (latency) ──► [reset] ──►       at rest both have toxicity 0: every byte passes
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import ClassVar, Literal, NamedTuple

from ...remoting.clock import RealClock
from ...remoting.network import Address
from ...remoting.recording import Recorder
from ..errors import HarnessError, ToxiproxyError
from ..ports import PortHolder
from ..topology import Link
from .toxiproxy import Direction, Toxiproxy

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


class DirectionState(NamedTuple):
    """What one direction of a link should do: None means let every byte pass at once."""

    rate_kb_s: int | None = None
    delay_ms: tuple[int, int] | None = None
    reset: bool = False


class LinkState(NamedTuple):
    enabled: bool = True
    upstream: DirectionState = DirectionState()
    downstream: DirectionState = DirectionState()


def combine(faults: Iterable[LinkFault], scale: float) -> LinkState:
    """What faults that overlap on one link amount to, in the machine's time, `scale` times RocketMQ's.

    A cut or a reset holds while any does; the lowest rate counts, a black hole being rate 0; latencies add up.
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
            min(rates, default=None), delay if late else None, any(isinstance(f, Reset) for f in acting)
        )

    return LinkState(not any(isinstance(f, Cut) for f in faults), direction("upstream"), direction("downstream"))


@dataclass(slots=True)
class _Proxied:
    """One link: its proxy, the faults on it, and the state they have put it in (None: a call failed, nobody knows)."""

    proxy: str
    listen: Address
    peer: Address
    active: dict[str, LinkFault] = field(default_factory=dict)
    state: LinkState | None = field(default_factory=LinkState)
    laid: bool = False


class LinkFaults:
    """The proxies of all links and the faults on them. Context manager: leaving it heals everything.

    `record` gets one `fault` row a link when a fault begins and one when it ends, right after the call took effect.
    Methods raise ToxiproxyError when Toxiproxy refuses; a fault that could not begin on every link begins on none.
    """

    def __init__(self, api: Toxiproxy, clock: RealClock, record: Recorder) -> None:
        self._api, self._clock, self._record = api, clock, record
        self._links: dict[Link, _Proxied] = {}
        self._active: dict[str, tuple[LinkFault, list[Link]]] = {}
        self._begun = 0
        self._lock = threading.RLock()

    def open(self, upstreams: Mapping[Link, Address], ports: PortHolder) -> dict[Link, Address]:
        """One proxy a link: link to its peer's own address in, link to the address to dial instead out."""
        made = {link: _Proxied(str(link), ports.take(), peer) for link, peer in upstreams.items()}
        self._api.create({proxied.proxy: (proxied.listen, proxied.peer) for proxied in made.values()})
        self._links |= made
        for link, proxied in made.items():
            self._record("link", source=link.node, target=link.peer, address=str(proxied.listen), injection="toxiproxy")
        return {link: proxied.listen for link, proxied in made.items()}

    def dials_of(self, node: str) -> dict[Address, Address]:
        """For TcpNetwork: each peer's own address to the address at which `node` must dial it."""
        return {proxied.peer: proxied.listen for link, proxied in self._links.items() if link.node == node}

    @property
    def active(self) -> dict[str, tuple[LinkFault, tuple[Link, ...]]]:
        """Faults that have begun and not ended, by id."""
        return {fault_id: (fault, tuple(links)) for fault_id, (fault, links) in self._active.items()}

    def begin(self, fault: LinkFault, links: Sequence[Link], *, fault_id: str | None = None) -> str:
        """The id of the fault, now in effect on every one of the links."""
        with self._lock:
            self._begun += 1
            fault_id = fault_id or f"{fault.name}-{self._begun}"
            if fault_id in self._active:
                raise HarnessError(f"a fault called {fault_id} is already active: give each fault an id of its own")
            chosen = {link: self._proxied(link) for link in links}
            if not isinstance(fault, Cut):
                for proxied in chosen.values():  # all of the slow part first, so that the links go down close together
                    self._lay_chain(proxied)
            begun: list[Link] = []
            self._active[fault_id] = (fault, begun)
            try:
                for link, proxied in chosen.items():
                    asked_ms = self._now_ms()
                    proxied.active[fault_id] = fault
                    self._apply(proxied)
                    begun.append(link)
                    self._note(fault_id, fault, link, "start", asked_ms)
            except BaseException:
                self._take_back(fault_id, chosen)
                raise
            return fault_id

    def _take_back(self, fault_id: str, chosen: Mapping[Link, _Proxied]) -> None:
        """End a fault that is only half begun; the error that stopped it matters more than one met here."""
        for link, proxied in chosen.items():
            if proxied.active.pop(fault_id, None) is not None and link not in self._active[fault_id][1]:
                with suppress(ToxiproxyError):
                    self._apply(proxied)
        with suppress(ToxiproxyError):
            self.end(fault_id)

    def end(self, fault_id: str) -> None:
        """Heal one fault; others on the same links stay. Nothing happens when it has ended already."""
        with self._lock:
            if fault_id not in self._active:
                return
            fault, links = self._active[fault_id]
            failed: list[ToxiproxyError] = []
            for link in tuple(links):
                proxied = self._proxied(link)
                proxied.active.pop(fault_id, None)
                asked_ms = self._now_ms()
                try:
                    self._apply(proxied)
                except ToxiproxyError as exc:  # heal the other links all the same; heal_all will try this one again
                    failed.append(exc)
                else:
                    links.remove(link)
                    self._note(fault_id, fault, link, "end", asked_ms)
            if failed:
                text = f"{fault_id} could not be healed on {len(failed)} links: {failed[0]}"
                raise ToxiproxyError(text) from failed[0]
            del self._active[fault_id]

    def heal_all(self) -> None:
        """Heal every fault, the newest first. Tries all of them before it raises the first failure."""
        with self._lock:
            failed: ToxiproxyError | None = None
            for fault_id in reversed(tuple(self._active)):
                try:
                    self.end(fault_id)
                except ToxiproxyError as exc:
                    failed = failed or exc
            if failed is not None:
                raise failed

    @contextmanager
    def fault(self, fault: LinkFault, links: Sequence[Link]) -> Iterator[str]:
        """The fault holds within the block."""
        fault_id = self.begin(fault, links)
        try:
            yield fault_id
        finally:
            self.end(fault_id)

    def _proxied(self, link: Link) -> _Proxied:
        proxied = self._links.get(link)
        if proxied is None:
            raise HarnessError(f"link {link} has no proxy; there are {len(self._links)} links")
        return proxied

    def _lay_chain(self, proxied: _Proxied) -> None:
        if proxied.laid:
            return
        for direction in DIRECTIONS:
            self._api.add_toxic(proxied.proxy, _gate(direction), "bandwidth", direction, {"rate": 0}, 0.0)
            self._api.add_toxic(proxied.proxy, _delay(direction), "latency", direction, {"latency": 0}, 0.0)
        proxied.laid = True

    def _apply(self, proxied: _Proxied) -> None:
        now, wanted = proxied.state, combine(proxied.active.values(), self._clock.scale)
        proxied.state = None
        if now is None or wanted.enabled != now.enabled:
            self._api.set_enabled(proxied.proxy, wanted.enabled)
        if proxied.laid:
            self._retune(proxied.proxy, "upstream", now and now.upstream, wanted.upstream)
            self._retune(proxied.proxy, "downstream", now and now.downstream, wanted.downstream)
        proxied.state = wanted

    def _retune(self, proxy: str, direction: Direction, now: DirectionState | None, wanted: DirectionState) -> None:
        if now is None or wanted.rate_kb_s != now.rate_kb_s:
            # Through toxicity 0, because a rate must not grow under a chunk that is being doled out: Toxiproxy would
            # slice past the chunk's end.
            if now is None or now.rate_kb_s is not None:
                self._api.update_toxic(proxy, _gate(direction), toxicity=0.0)
            if wanted.rate_kb_s is not None:
                self._api.update_toxic(proxy, _gate(direction), toxicity=1.0, attributes={"rate": wanted.rate_kb_s})
        if now is None or wanted.delay_ms != now.delay_ms:
            latency, jitter = wanted.delay_ms or (0, 0)
            self._api.update_toxic(
                proxy,
                _delay(direction),
                toxicity=0.0 if wanted.delay_ms is None else 1.0,
                attributes={"latency": latency, "jitter": jitter},
            )
        if now is None or wanted.reset != now.reset:
            if wanted.reset:
                self._api.add_toxic(proxy, _reset(direction), "reset_peer", direction, {"timeout": 0})
            else:
                self._api.remove_toxic(proxy, _reset(direction))

    def _now_ms(self) -> float:
        return self._clock.monotonic_s() * 1000

    def _note(self, fault_id: str, fault: LinkFault, link: Link, phase: str, asked_ms: float) -> None:
        self._record(
            "fault",
            fault_id=fault_id,
            fault=fault.name,
            injection=fault.injection,
            source=link.node,
            target=link.peer,
            stream=fault.stream,
            phase=phase,
            value={"asked_ms": asked_ms, **_numbers(fault)},
        )

    def __enter__(self) -> LinkFaults:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.heal_all()


def _gate(direction: Direction) -> str:
    return f"gate_{direction}"


def _delay(direction: Direction) -> str:
    return f"delay_{direction}"


def _reset(direction: Direction) -> str:
    return f"reset_peer_{direction}"


def _numbers(fault: LinkFault) -> dict[str, float]:
    if isinstance(fault, Latency):
        return {"latency_ms": fault.latency_ms, "jitter_ms": fault.jitter_ms}
    if isinstance(fault, Bandwidth):
        return {"rate_kb_s": fault.rate_kb_s}
    return {}

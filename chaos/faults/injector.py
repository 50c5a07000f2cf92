"""Keeps track of the faults in force on an experiment's links, and records the faults' begin and end. Subclasses inject
the faults.

`LinkFaults` (toxiproxy_links.py) injects through Toxiproxy, `MemoryLinkFaults` (experiment/virtual/network.py) into the
network in memory.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, Self

from ...remoting.node.recording import Recorder
from ..errors import HarnessError, ToxiproxyError
from ..shapes import Stream
from ..topology import Link, first_address, later_address
from .link_faults import LinkFault, LinkState, combine
from .processes import held_if_free


class ScaledClock(Protocol):
    """A clock that shows the history's times. One second of the machine has `scale` seconds of RocketMQ time."""

    @property
    def scale(self) -> float: ...

    def monotonic_s(self) -> float: ...


@dataclass(slots=True, kw_only=True)
class LinkUnderFault:
    """One link, its faults, and the link's state under these faults. The state is None (unknown) after a call of
    Toxiproxy failed."""

    link: Link
    active: dict[str, LinkFault] = field(default_factory=dict)
    state: LinkState | None = field(default_factory=LinkState)


def note_on_link(
    record: Recorder, fault_id: str, fault: LinkFault, source: str, target: str, phase: str, **also: float
) -> None:
    about = {"fault": fault.do, "injection": fault.recorded_injection, "stream": fault.stream}
    on = {"source": source, "target": target, "value": {**also, **fault.numbers}}
    record("fault", fault_id=fault_id, phase=phase, **about, **on)


class LinkFaultInjector(ABC):
    """Keeps track of the links and of the faults in force on each link. As a context manager, LinkFaultInjector ends
    every fault when the block ends. When a fault begins or ends, `record` is called with one `fault` row per link,
    right after the change took effect. Methods raise ToxiproxyError if Toxiproxy refuses a request. If a fault cannot
    begin on every link, the fault begins on no link.
    """

    loses_packets: ClassVar[bool] = False
    """Whether single packets can be dropped here."""

    def __init__(self, clock: ScaledClock, record: Recorder) -> None:
        self._clock, self._record = clock, record
        self._links: dict[Link, LinkUnderFault] = {}
        self._later: dict[Link, list[Link]] = {}
        """The links to the later addresses of a link's peer: what is done to the link is done to these."""
        self._moved: dict[str, int] = {}
        self._active: dict[str, tuple[LinkFault, list[Link]]] = {}
        self._begun = 0
        self._lock = threading.RLock()

    @abstractmethod
    def _prepare(self, link: Link) -> None:
        """Prepare what is slow, for a fault on several links, so that the links then change close together."""

    @abstractmethod
    def _inject(self, link: Link, now: LinkState | None, wanted: LinkState) -> None:
        """Bring the link from state `now` (None: unknown) to `wanted`."""

    def _apply(self, under: LinkUnderFault) -> None:
        now, wanted = under.state, combine(under.active.values(), self._clock.scale)
        under.state = None
        for link in self._with_later(under.link):
            self._inject(link, now, wanted)
        under.state = wanted

    def _add(self, link: Link) -> bool:
        """Add the link. Returns False if it leads to a later address of a node, True for all other links."""
        of = Link(link.node, first_address(link.peer))
        if of == link:
            self._links[link] = LinkUnderFault(link=link)
        else:
            self._later.setdefault(of, []).append(link)
        return of == link

    def _with_later(self, link: Link) -> tuple[Link, ...]:
        return (link, *self._later.get(link, ()))

    def move(self, node: str) -> None:
        """Note that the node's next process listens at another address, and that nothing listens at the old address."""
        self._moved[node] = self._moved.get(node, 1) + 1

    def _at(self, node: str) -> str:
        """Return the node's name, with the number of its current address if the node has moved (`broker-a@2`)."""
        return later_address(node, self._moved[node]) if node in self._moved else node

    @property
    def active(self) -> dict[str, tuple[LinkFault, tuple[Link, ...]]]:
        return {fault_id: (fault, tuple(links)) for fault_id, (fault, links) in self._active.items()}

    def unchanged(self) -> AbstractContextManager[bool]:
        """Keep faults from beginning and ending within the block. The block gets False if a fault is already beginning
        or ending."""
        return held_if_free(self._lock)

    def begin(
        self, fault: LinkFault, links: Sequence[Link] | Mapping[Link, Stream], *, fault_id: str | None = None
    ) -> str:
        """Begin a fault on each of the links. If `links` is a mapping, it gives the fault's direction on each link.
        Returns the fault's id."""
        with self._lock:
            self._begun += 1
            fault_id = fault_id or f"{fault.do}-{self._begun}"
            if fault_id in self._active:
                raise HarnessError(f"a fault called {fault_id} is already active: give each fault an id of its own")
            if fault.loses_packets and not self.loses_packets:
                raise HarnessError(f"{fault.do} cannot be injected through a proxy: use --clock virtual")
            chosen = {link: self._under(link) for link in links}
            if not fault.effect().refused:
                for link in chosen:
                    for each in self._with_later(link):
                        self._prepare(each)
            begun: list[Link] = []
            self._active[fault_id] = (fault, begun)
            try:
                for link, under in chosen.items():
                    asked_ms = self._now_ms()
                    under.active[fault_id] = here = _on(fault, links, link)
                    self._apply(under)
                    begun.append(link)
                    self._note(fault_id, here, link, "start", asked_ms)
            except BaseException:
                self._take_back(fault_id, chosen)
                raise
            return fault_id

    def _take_back(self, fault_id: str, chosen: Mapping[Link, LinkUnderFault]) -> None:
        """End a fault that began on only some of its links. The caller raises the error that stopped the fault; an
        error of this clean-up is suppressed."""
        for link, under in chosen.items():
            if under.active.pop(fault_id, None) is not None and link not in self._active[fault_id][1]:
                with suppress(ToxiproxyError):
                    self._apply(under)
        with suppress(ToxiproxyError):
            self.end(fault_id)

    def end(self, fault_id: str, on: Collection[Link] | None = None) -> None:
        """End one fault on all its links, or only `on` these links; other faults continue. Nothing happens if the fault
        has ended already."""
        with self._lock:
            if fault_id not in self._active:
                return
            fault, links = self._active[fault_id]
            ending = [link for link in links if on is None or link in on]
            if not ending and on is not None:
                return
            failed: list[ToxiproxyError] = []
            for link in ending:
                under = self._under(link)
                here = under.active.pop(fault_id, fault)
                asked_ms = self._now_ms()
                try:
                    self._apply(under)
                except ToxiproxyError as exc:  # heal the other links all the same; heal_all will try this one again
                    failed.append(exc)
                else:
                    links.remove(link)
                    self._note(fault_id, here, link, "end", asked_ms)
            if failed:
                text = f"{fault_id} could not be healed on {len(failed)} links: {failed[0]}"
                raise ToxiproxyError(text) from failed[0]
            if not links:
                del self._active[fault_id]

    def heal(self, on: Collection[Link]) -> None:
        with self._lock:
            for fault_id in reversed(tuple(self._active)):
                self.end(fault_id, on)

    def heal_all(self) -> None:
        """End every fault, the newest first. An error is raised only after all other faults were ended."""
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
        """Keep the fault in force while its block runs."""
        fault_id = self.begin(fault, links)
        try:
            yield fault_id
        finally:
            self.end(fault_id)

    def _under(self, link: Link) -> LinkUnderFault:
        under = self._links.get(link)
        if under is None:
            raise HarnessError(f"link {link} has no proxy; there are {len(self._links)} links")
        return under

    def _now_ms(self) -> float:
        return self._clock.monotonic_s() * 1000

    def _note(self, fault_id: str, fault: LinkFault, link: Link, phase: str, asked_ms: float) -> None:
        note_on_link(self._record, fault_id, fault, link.node, link.peer, phase, asked_ms=asked_ms)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.heal_all()


def _on(fault: LinkFault, links: Sequence[Link] | Mapping[Link, Stream], link: Link) -> LinkFault:
    stream = links[link] if isinstance(links, Mapping) else "both"
    return fault if stream == "both" else fault.model_copy(update={"stream": stream})

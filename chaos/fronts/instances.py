"""Tells apart clients that share fronts (proxies) or a process: which client caused which observation. Does no I/O.

    process    the process that /proc gives for the connection
    clientID   heartbeats have it: the number of clients in a process, at least one
    NameServer a client that is connected to a NameServer and goes on asking it has not connected to another one
               meanwhile, if the process has clients not yet seen; nor has it connected to the same one again
    thread     each Java client connects from one thread of its own, known by the port of the connection's client end
    topics     of several candidates, the client that asks for these topics

Observations of a connection wait until the connection's client is known, and are then passed on in order. If two
clients cannot be told apart, `unclear` gives the reason. A client whose process cannot be seen counts as ended when its
last connection ends.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from .behaviour import PASSES, Behaviour, Dials
from .decode import ROUTE
from .observed import Answered, Asked, Behaved, Closed, Dialled, Foreign, GaveUp, Observation, Opened, Pushed

HEART_BEAT = 34
WAITS_MS = 35_000.0
"""Within this time every known client asks its NameServer again and sends a heartbeat (30 s each)."""
PATIENT_MS = 2_500.0
"""No client gives up a request sooner (Java: 3 s)."""
SKEW_MS = 1_000.0
"""A client's old connection may be seen to close this long after it made a new one."""
POOL = 3
"""So many connections of a process to one NameServer are a pool, or as many clients."""
HELD_MAX = 100
"""While more connects are kept back, none waits for its thread: all that wait are looked at after each observation."""
DIAL_SKEW_MS = 50.0
"""Another thread notes connect() calls, so the connection itself may be seen first."""
_CLIENT_ID = re.compile(rb'"clientID"\s*:\s*"([^"]+)"')
_BORROWED = frozenset({"TBW102"})
"""Topics that any client asks for, so they tell nothing."""


@dataclass(slots=True, eq=False)
class Instance:
    """One client; clients are numbered in order of appearance."""

    number: int
    process: int | None
    since_ms: float
    open: dict[int, str] = field(default_factory=dict)
    """Its connections: connection number to front name."""
    topics: set[str] = field(default_factory=set)
    """Topics whose routes it asked for."""
    groups: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    """The clientIDs in its heartbeats."""
    threads: set[int] = field(default_factory=set)
    """The threads that made its connections to NameServers, as far as that was seen."""
    turned_to: list[str] = field(default_factory=list)
    """The NameServers that it connected to, in order."""
    unclear: str = ""
    """Why it cannot be told apart from another client; "" if it can."""
    ended: bool = False
    asked_ms: float = float("-inf")
    """When it last asked a NameServer."""
    waiting: dict[tuple[int, int], float] = field(default_factory=dict)
    """Send times of its requests to NameServers that have no answer yet."""


@dataclass(slots=True)
class _Held:
    """A connection, or failed connect, whose client is not known yet."""

    front: str
    process: int | None
    since_ms: float
    seen: list[Observation]
    topics: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    asked_ms: float | None = None
    """When its first request came."""
    closed: bool = False

    @property
    def asked(self) -> bool:
        return self.asked_ms is not None

    @property
    def was_idle(self) -> bool:
        """Whether its first request came long after it was made: so a client uses a pool of connections."""
        return self.asked_ms is not None and self.asked_ms - self.since_ms >= SKEW_MS

    @property
    def thread(self) -> int | None:
        return next((one.thread for one in self.seen if isinstance(one, Dialled)), None)


class Instances:
    """Finds the client of each observation. `came` is called when a client appears, `went` when the client ends, and
    `saw` for each observation. `clients` is the number of clients in a process, if known."""

    def __init__(
        self,
        came: Callable[[Instance], None],
        saw: Callable[[Instance, Observation], None],
        went: Callable[[Instance, float], None],
        name_servers: Collection[str],
        *,
        every_request: bool = False,
        clients: int | None = None,
    ) -> None:
        self._came, self._saw, self._went = came, saw, went
        self._name_servers = frozenset(name_servers)
        self._every_request = every_request
        self._clients = clients
        self._ids: dict[int | None, set[str]] = defaultdict(set)
        self._java: set[int | None] = set()
        self._all: list[Instance] = []
        self._of: dict[int, Instance] = {}
        self._held: dict[int, _Held] = {}
        self._dials: list[Dialled] = []
        self._undialled: dict[str, Opened] = {}
        self._made = 0
        self._pooled: set[int] = set()
        self._behave: dict[str, Behaviour] = {}

    def see(self, one: Observation) -> None:
        """Pass the observation to `saw`, now or once its client is known. A front's change of behaviour is reported for
        every client."""
        match one:
            case Behaved():
                self._behave[one.front] = one.behaviour
                for each in [*self.living()]:
                    self._saw(each, one)
            case Dialled():
                self._dialled(one)
            case GaveUp():
                self._in_vain(one)
            case Opened():
                dials = [each for each in self._dials if each.front == one.front]
                own = [each for each in dials if each.local == one.peer.port]
                dials = own or [each for each in dials if each.local is None]
                dialled = next(iter(dials), None)
                if dialled is not None:
                    self._dials.remove(dialled)
                    if len({each.thread for each in dials}) > 1:  # which of them was let in is not seen
                        self._dials = [replace(each, thread=None) if each in dials else each for each in self._dials]
                        dialled = replace(dialled, thread=None)
                else:
                    self._undialled[one.front] = one
                first: list[Observation] = [one] if dialled is None else [dialled, one]
                self._held[one.connection] = _Held(one.front, one.process, first[0].at_ms, [*first])
            case Asked() | Answered() | Pushed() | Foreign() | Closed():
                if (held := self._held.get(one.connection)) is not None:
                    self._held_saw(held, one)
                elif (owner := self._of.get(one.connection)) is not None:
                    self._owner_saw(owner, one)
            case _:
                return
        self._decide(one.at_ms)

    def look(self, now_ms: float, lives: Callable[[int], bool]) -> None:
        """Report as ended each client without a connection whose process is gone."""
        self._decide(now_ms)
        doubtful = {held.process for held in self._held.values()}
        for each in [*self.living()]:
            is_gone = not each.open and (each.process is None or not lives(each.process))
            if is_gone and each.process not in doubtful:
                self._end(each, now_ms)

    def end(self, now_ms: float) -> None:
        for dialled in [*self._dials]:
            self._in_vain(dialled)
        self._decide(now_ms, is_last=True)
        for each in [*self.living()]:
            self._end(each, now_ms)

    def living(self) -> Iterator[Instance]:
        return (each for each in self._all if not each.ended)

    def _end(self, instance: Instance, now_ms: float) -> None:
        instance.ended = True
        self._went(instance, now_ms)

    # --- what is seen -------------------------------------------------------------------------------------------------

    def _dialled(self, one: Dialled) -> None:
        if one.front is None:
            return
        opened = self._undialled.get(one.front)
        if opened is not None and one.local in (None, opened.peer.port):
            del self._undialled[one.front]
        else:
            opened = None
        if opened is not None and one.at_ms - opened.at_ms <= DIAL_SKEW_MS:
            if (held := self._held.get(opened.connection)) is not None:
                held.seen.insert(0, one)
            elif (owner := self._of.get(opened.connection)) is not None:
                self._saw(owner, one)
            return
        self._dials.append(one)
        if self._behave.get(one.front, PASSES).dials is Dials.REFUSED:
            self._in_vain(one)

    def _in_vain(self, one: Dialled | GaveUp) -> None:
        """Handle a connect that was not accepted, and the end of such a connect."""
        dialled = next((each for each in self._dials if each is one or each.front == one.front), None)
        if dialled is None or dialled.front is None:
            return
        self._dials.remove(dialled)
        seen = [dialled] if one is dialled else [dialled, one]
        self._made -= 1
        self._held[self._made] = _Held(dialled.front, dialled.process, dialled.at_ms, [*seen], closed=True)

    def _held_saw(self, held: _Held, one: Observation) -> None:
        held.seen.append(one)
        if isinstance(one, Asked):
            held.asked_ms = one.at_ms if held.asked_ms is None else held.asked_ms
            held.topics |= topics_of(one)
            held.groups |= groups_of(one)
            held.ids |= ids_of(one)
            self._said(held.process, one)
        held.closed = held.closed or isinstance(one, Closed)

    def _said(self, process: int | None, one: Asked) -> None:
        self._ids[process] |= ids_of(one)
        if one.language == "JAVA":
            self._java.add(process)

    def _thread(self, instance: Instance) -> int | None:
        """Return the id of the thread that made all connections of a Java client; None for other languages, or for
        several threads. One client's request shows the language of all clients in its process."""
        is_one = instance.process in self._java and len(instance.threads) == 1
        return next(iter(instance.threads)) if is_one else None

    def _owner_saw(self, owner: Instance, one: Observation) -> None:
        if isinstance(one, Asked):
            owner.topics |= topics_of(one) if one.front in self._name_servers else set()
            owner.groups |= groups_of(one)
            owner.ids |= ids_of(one)
            self._said(owner.process, one)
            if one.front in self._name_servers:
                owner.asked_ms = max(owner.asked_ms, one.at_ms)
                owner.waiting[one.connection, one.opaque] = one.at_ms
        elif isinstance(one, Answered):
            owner.waiting.pop((one.connection, one.opaque), None)
        elif isinstance(one, Closed):
            owner.open.pop(one.connection, None)
            owner.waiting = {key: at_ms for key, at_ms in owner.waiting.items() if key[0] != one.connection}
            self._of.pop(one.connection, None)
        self._saw(owner, one)

    # --- whose it is --------------------------------------------------------------------------------------------------

    def _decide(self, now_ms: float, *, is_last: bool = False) -> None:
        again = True
        while again:
            again = False
            for connection, held in [*self._held.items()]:
                owner = self._owner(held, now_ms, is_last)
                if owner is not None:
                    del self._held[connection]
                    self._own(connection, held, owner)
                    again = True

    def _own(self, connection: int, held: _Held, owner: Instance) -> None:
        if held.front in self._name_servers:
            owner.turned_to.append(held.front)
            owner.threads |= {held.thread} if held.thread is not None else set()
        if connection > 0 and not held.closed:
            self._of[connection] = owner
        if connection > 0:
            owner.open[connection] = held.front
        for one in held.seen:
            self._owner_saw(owner, one)

    def _owner(self, held: _Held, now_ms: float, is_last: bool) -> Instance | None:
        living = [each for each in self.living() if each.process == held.process]
        if not living:
            return self._new(held)
        if not is_last and self._clients is not None and self._waits_for_its_thread(held, living):
            return None
        if held.thread is not None and any(map(self._thread, living)):
            own = [each for each in living if self._thread(each) == held.thread]
            living = own or [each for each in living if self._thread(each) is None]
            if len(own) == 1 or not living:
                return own[0] if own else self._new(held)
        is_over = is_last or held.closed or now_ms - held.since_ms >= WAITS_MS
        if not held.asked and not is_over and now_ms - held.since_ms < SKEW_MS:
            return None
        if held.front in self._name_servers:
            return self._asker(held, living, now_ms, is_over)
        return self._of_broker(held, living, is_over)

    def _waits_for_its_thread(self, held: _Held, living: Sequence[Instance]) -> bool:
        """Whether the connection must wait: nothing was asked on it, and only the thread that made it can show its Java
        client."""
        if held.thread is None or held.asked or not held.closed or len(self._held) > HELD_MAX:
            return False
        threads = [*map(self._thread, living)]
        return held.process in self._java and None in threads and held.thread not in threads

    def _of_broker(self, held: _Held, living: Sequence[Instance], is_over: bool) -> Instance | None:
        named = [each for each in living if held.ids & each.ids]
        if named:
            return named[0]
        if held.ids:
            unnamed = [each for each in living if not each.ids]
            if unnamed:
                return self._alike(held, unnamed)[0]
            return self._new(held)
        doubts = any(each.front in self._name_servers and each.process == held.process for each in self._held.values())
        if doubts and not is_over:
            return None
        if held.topics and not is_over and not any(each.topics & held.topics for each in living):
            return None
        lacking = [each for each in living if held.front not in each.open.values()]
        return self._alike(held, lacking or living)[0]

    def _asker(self, held: _Held, living: Sequence[Instance], now_ms: float, is_over: bool) -> Instance | None:
        lacking = [each for each in living if held.front not in each.open.values()]
        known = max(len(self._ids[held.process]), self._clients or 0)
        has_more = known > sum(each.process == held.process for each in self.living())  # `living` may be fewer
        if len(lacking) > 1 and not held.topics and not is_over:
            return None
        if not lacking:
            return self._second(held, living, now_ms, is_over, has_more=has_more, is_known=bool(known))
        free = [each for each in lacking if not any(front in self._name_servers for front in each.open.values())]
        lost = free or [each for each in lacking if self._is_lost(each, held.since_ms)]
        if lost:
            if has_more and not held.topics and not is_over:
                return None
            alike = self._alike(held, lost)
            if has_more and held.topics and all(each.topics and not each.topics & held.topics for each in alike):
                return self._new(held)
            return self._one_of(alike, held)
        if not has_more and (self._every_request or self._clients is not None):
            return self._one_of(self._alike(held, lacking), held)
        is_strange = bool(held.topics) and all(not each.topics & held.topics for each in lacking)
        is_used = self._used(lacking, held)
        if has_more and (is_strange or is_used or is_over):
            return self._new(held)
        if not is_over:
            return None
        if is_used and (is_strange or not known):
            if not is_strange and held.process is not None:
                self._pooled.add(held.process)
            return self._new(held)
        resting = [each for each in lacking if each.asked_ms <= held.since_ms]
        return self._one_of(self._alike(held, resting or lacking), held)

    def _second(
        self, held: _Held, living: Sequence[Instance], now_ms: float, is_over: bool, *, has_more: bool, is_known: bool
    ) -> Instance | None:
        """Return the client of an additional connection, if each candidate has one already. The client is a new one,
        unless the first connection closes a moment later or stays idle from now on (as when two threads connect at
        once), or heartbeats name no more clients, or it was idle until now (then one client has a pool of connections).
        """
        may_be_new = has_more or not is_known
        if held.asked and self._used(living, held):
            is_strange = bool(held.topics) and all(not each.topics & held.topics for each in living)
            if is_strange or (may_be_new and not (held.was_idle and not has_more)):
                return self._new(held)
            if self._clients is not None or held.was_idle:  # else a heartbeat may still name another client
                return self._one_of(self._alike(held, living), held)
        if may_be_new and (held.asked or has_more) and now_ms - held.since_ms >= SKEW_MS:
            return self._new(held)
        if not is_over:
            return None
        return self._new(held) if has_more else self._one_of(self._alike(held, living), held)

    def _used(self, instances: Sequence[Instance], held: _Held) -> bool:
        """Whether every possible client of the connection has asked its NameServers since the connection was made."""
        return all(each.asked_ms > held.since_ms for each in instances)

    def _is_lost(self, instance: Instance, at_ms: float) -> bool:
        """Whether the client's NameServer did not answer at that time, or is behaving badly."""
        fronts = {front for front in instance.open.values() if front in self._name_servers}
        waited_ms = at_ms - min(instance.waiting.values(), default=at_ms)
        behave = [self._behave.get(front, PASSES) for front in fronts]
        return waited_ms >= PATIENT_MS or any(one.swallows or one.dials is not Dials.ACCEPTED for one in behave)

    def _alike(self, held: _Held, instances: Sequence[Instance]) -> Sequence[Instance]:
        """Return the candidates that share most topics and groups with the connection, oldest first."""
        common = [len(each.topics & held.topics) + len(each.groups & held.groups) for each in instances]
        return [each for each, number in zip(instances, common, strict=True) if number == max(common)]

    def _one_of(self, instances: Sequence[Instance], held: _Held) -> Instance:
        """Return the first candidate. If there are several possible clients, all of them become `unclear`."""
        if len(instances) == 1 or all(each.unclear for each in instances):
            return instances[0]  # before all that they turned to is compared, at each of 10,000 dials
        is_one_like_the_other = len({tuple(each.turned_to) for each in instances}) == 1
        if not (is_one_like_the_other and not any(each.topics for each in instances)):
            are_alike = len({frozenset(each.topics) for each in instances}) == 1
            why = (
                f"{len(instances)} clients of one process ask for the same topics, and which of them connected to "
                f"{held.front} is not seen"
                if are_alike
                else f"which of {len(instances)} clients of one process connected to {held.front} is not seen"
            )
            for each in instances:
                each.unclear = each.unclear or why
        return instances[0]

    def _new(self, held: _Held) -> Instance:
        instance = Instance(len(self._all), held.process, held.since_ms)
        self._all.append(instance)
        self._came(instance)
        self._mark_pool(held)
        return instance

    def _mark_pool(self, held: _Held) -> None:
        """Make all clients of a process unclear that has three connections to one NameServer, or asks for a topic at
        several, and whose heartbeats do not say how many clients it has: it may be one client with a pool."""
        if held.process is None or self._ids[held.process] or self._clients or held.front not in self._name_servers:
            return
        own = [each for each in self.living() if each.process == held.process]
        fronts = [front for each in own for front in each.open.values()]
        fronts += [one.front for one in self._held.values() if one.process == held.process and not one.closed]
        if fronts.count(held.front) >= POOL:
            self._pooled.add(held.process)
        if held.process in self._pooled:
            for each in own:
                each.unclear = each.unclear or (
                    "the process has a pool of connections or several clients, and no heartbeat says how many"
                )


def topics_of(one: Asked) -> set[str]:
    topic = one.fields.get("topic") or one.fields.get("b") if one.code != HEART_BEAT else None
    return {topic} - _BORROWED if topic else set()


def groups_of(one: Asked) -> set[str]:
    fields = one.fields
    group = fields.get("producerGroup") or fields.get("consumerGroup") or (fields.get("a") if one.code != ROUTE else "")
    return {group} if group else set()


def ids_of(one: Asked) -> set[str]:
    if one.code != HEART_BEAT:
        return set()
    return {found.decode(errors="replace") for found in _CLIENT_ID.findall(one.body)}

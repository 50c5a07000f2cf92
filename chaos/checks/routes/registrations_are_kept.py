"""A NameServer's table follows from the brokers' registrations and the ends of their channels.

    read     registration ─┬──────────────────── registration ───── …
    table    must hold     ├──── until a channel may end, or min(E, I, i) of silence ────┤
             must not hold                                  the end of the channel, or the scan after E, or I ├── …

Oracle/name_server.py says both, from what the NameServer's transport read. A broker that came back although nothing was
read is no_resurrection's. Presence is read from the NameServer's `route` rows.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ...oracle.intervals import until_next
from ...oracle.name_server import UNREGISTERED, BrokerAtNameServer, Kept, Silence, joined
from ...oracle.recorded import Life
from ...oracle.roles import elects
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Group, Needs, Section, check
from ..findings import Rule, at_no_time, counted, finding, verdict_of
from ..record.control import Control
from ..record.received import received
from ..record.registered_rows import registered_rows
from ..record.route_tables import RouteStretch, route_tables

_HOLD_ROW = "an acknowledged broker stays until it unregisters, its channel ends, or it is silent for min(E, I, i)"
_NEVER = "must not hold an unknown broker", "registerBroker: only a registration brings a broker into the table"
_SILENT = "must not hold a silent broker", "scanNotActiveBroker, IdleStateHandler: a silent broker goes"
_CLOSED = (
    "must not hold a broker that left",
    "onChannelDestroy: a broker goes when the channel of its last registration ends",
)
_LEFT = "must not hold an unregistered broker", "unregisterBroker: a broker goes at once; 4.9 ignores the address"
_GONE = {"closed": _CLOSED, UNREGISTERED: _LEFT}


@check(
    says="a NameServer lists a broker until the broker unregisters, loses its channel, or is silent for too long",
    group=Group.ROUTES,
    section=Section.ROUTES,
    needs=(Needs.TABLES, Needs.BROKERS, Needs.ACKNOWLEDGEMENTS),
    tells=lambda m: f"{m.get('acknowledged', 0):,} acknowledged registrations, {m.get('silences', 0):,} silences",
)
def judge(control: Control, world: World) -> Verdict:
    """Examined: registrations that were taken in, and silences. Violations: where the broker was missing, or still
    there."""
    holds: list[Finding] = []
    expiries: list[Finding] = []
    for life, broker, machine in received(control, world).every():
        if not isinstance(machine, BrokerAtNameServer):
            continue
        pair = _Pair(control, world, life, broker, machine)
        holds += pair.holds()
        expiries += (f for f in map(pair.expiry_finding, machine.must_not()) if f.kind != _NEVER[0] or f.over_ms)
    return verdict_of(
        [*holds, *expiries],
        measured={
            "acknowledged": sum(f.examined for f in holds),
            "silences": sum(f.kind == _SILENT[0] for f in expiries),
        },
        nothing="no NameServer acknowledged a registration, or no broker recorded an acknowledgement",
        noun="acknowledged registrations or silences did not show in the NameServer's table",
    )


class _Pair:
    """One NameServer process and one broker."""

    def __init__(self, control: Control, world: World, life: Life, broker: str, machine: BrokerAtNameServer) -> None:
        self.control, self.world, self.broker, self.machine = control, world, broker, machine
        self.life, self.process = life, life.process
        self.tables = route_tables(control, world)
        self.routes = received(control, world).routes(life) if machine.is_witnessed else None

    def holds(self) -> Iterator[Finding]:
        """Of what the NameServer must have; registrations of the same topics from one address that touch are one."""
        rows, by_id = registered_rows(self.control, self.world), elects(self.world, self.broker)
        alike: dict[tuple[tuple[str, ...], str | None], list[Kept]] = defaultdict(list)
        for kept in self.machine.must():
            topics: tuple[str, ...] = ()
            if self.routes is not None:
                topics = tuple(self.routes.shown)
            elif kept.sent is not None and not (by_id and kept.sent.id_):  # topics are taken of a master only
                topics = rows.topics(self.broker, kept.sent.version)
            address = None if kept.sent is None else self.world.address_at(self.broker, kept.sent.began_ms)
            alike[topics, address].append(kept)
        for (topics, address), stretches in alike.items():
            for group in joined(stretches) if topics else ():
                span = group[0].start_ms, max(kept.end_ms for kept in group)
                yield self._hold(topics, address, *span, acknowledged=len(group))

    def _hold(
        self, topics: Sequence[str], address: str | None, from_ms: float, to_ms: float, *, acknowledged: int
    ) -> Finding:
        """In that time the NameServer has what the broker registered so many times from that address."""
        tolerance = received(self.control, self.world).tolerance(self.life, self.broker, from_ms, to_ms)
        ends = {self.world.address_at(self.broker, at_ms) for at_ms in (from_ms, to_ms)}
        moves = len(ends if address is None else {address, *ends}) > 1
        over_ms, topic, stretch = self._missing(topics, from_ms, to_ms, moves=moves)
        said = counted(over_ms, tolerance)
        if said["wrong"] and stretch is not None and not self.machine.is_witnessed:
            is_explained = self.control.lateness.explains(self.world, (self.life.node, self.broker), *stretch)
            said = {"wrong": 0, "late": 1} if is_explained else said
        return finding(
            (self.life.node, self.broker, topic),
            "must hold an acknowledged broker",
            (from_ms, to_ms),
            at_no_time(_HOLD_ROW),
            out=stretch,
            tolerance=tolerance,
            examined=acknowledged,
            **said,
        )

    def expiry_finding(self, silence: Silence) -> Finding:
        due_ms, never = silence.start_ms, silence.last_ms is None
        kind, row = _NEVER if never else _GONE.get(silence.formula, _SILENT)
        last_ms = due_ms if silence.last_ms is None else silence.last_ms
        counted_ms = last_ms if kind == _SILENT[0] else due_ms  # an end of a channel, and a request, count at once
        held = [
            (min(stretch.e, silence.end_ms), topic, max(stretch.s, due_ms))
            for topic in self.tables.topics
            for stretch in self.tables.presence(self.process, topic, self.broker, anywhere=True)
            if stretch.present and stretch.e > last_ms and stretch.s < (silence.end_ms if never else due_ms)
        ]
        gone_ms, topic, since_ms = max(held, default=(None, "", 0.0))
        over_ms = max((gone_ms or 0.0) - max(since_ms, due_ms), 0.0)
        until_ms = max(due_ms, gone_ms or 0.0)
        tolerance = received(self.control, self.world).tolerance(self.life, self.broker, last_ms, until_ms, timers=2)
        return finding(
            (self.life.node, self.broker, topic if over_ms else ""),
            kind,
            (due_ms, silence.end_ms),
            Rule(row, silence.formula, due_ms - counted_ms),
            out=(since_ms, gone_ms) if over_ms else None,
            tolerance=tolerance,
            measured_ms=None if gone_ms is None else gone_ms - counted_ms,
            over_ms=over_ms,
            after=received(self.control, self.world).after(self.life, self.broker, due_ms),
            times={} if never else {"last registered": last_ms},
        )

    def _missing(
        self, topics: Sequence[str], from_ms: float, to_ms: float, *, moves: bool
    ) -> tuple[float, str, tuple[float, float] | None]:
        """The longest time for which a topic lacked the broker, where it `moves` at any of its addresses: how long,
        which topic, from when to when."""
        worst: tuple[float, str, tuple[float, float] | None] = (0.0, "", None)
        # the run's own topics first: of equal times the first is told
        for topic in sorted(topics, key=lambda topic: topic not in self.world.topics):
            due = [*self._due(topic, from_ms, to_ms)]
            for held in self.tables.presence(self.process, topic, self.broker, anywhere=moves):
                for due_ms, until_ms in due if not held.present else ():
                    s, e = max(held.s, due_ms), min(held.e, until_ms)
                    if e - s > worst[0]:
                        worst = e - s, topic, (s, e)
        return worst

    def _due(self, topic: str, from_ms: float, to_ms: float) -> Iterator[tuple[float, float]]:
        """When the broker's registrations, and what somebody did by hand, made the topic's route name it."""
        if self.routes is None:
            deleted = "delete_topic", self.life.node, topic
            acts = (act.began_ms for act in self.world.acts if (act.f, act.node, act.topic) == deleted)
            yield from_ms, min([to_ms, *acts])
            return
        shown = until_next(self.routes.shown[topic], to_ms)
        stretches = [RouteStretch(at_ms, until_ms, route) for (at_ms, route), until_ms in shown]
        for due in self.tables.present(stretches, self.broker, anywhere=True):
            if due.present and due.s < to_ms:
                yield max(due.s, from_ms), min(due.e, to_ms)

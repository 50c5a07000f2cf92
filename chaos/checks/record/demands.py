"""The demands of promises.py on a NameServer's table, for each topic, and the lateness that the machine explains."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...oracle.intervals import Stretch, grouped, merged, without
from ...oracle.link import resent_after_ms
from ...oracle.promises import Obligation, ObligationKind, obligations, route_states, told_by_hand
from ...oracle.recorded import STALL
from ...oracle.roles import elects
from ...oracle.slaves import Table, held_names, made_masters, table_of
from ...oracle.windows import topic_window
from ...oracle.world import World
from ...topology import broker_name, is_slave
from ...verdict import length
from ..tolerance import Tolerance
from .control import Control, once
from .route_tables import Process, RouteTables
from .settling import Due


def demand_tolerance(control: Control, world: World, o: Obligation) -> Tolerance:
    """How far the obligation may be off."""
    # A registration one period before the change is where φ is counted from.
    span = o.at_ms - world.timers.R_ms, o.to_ms if o.demand is ObligationKind.KEEP else o.from_ms
    return control.lateness.tolerance(world, (o.name_server, o.broker), *span, o.window.timers)


class Demands:
    """The demands of every obligation."""

    def __init__(self, tables: RouteTables, world: World) -> None:
        self._tables, self._world = tables, world
        self._of_broker = grouped(_topics_of(tables))
        self.memo: dict[Any, Any] = {}

    def of(self, o: Obligation) -> Iterator[Due]:
        """One for each topic: one that the broker made while it was up is due R + B later."""
        own = o.window._replace(latest_ms=o.from_ms - o.at_ms)
        if o.demand is ObligationKind.DROP:
            yield from (Due(topic, o.from_ms, o.to_ms, o.at_ms, own) for topic in self._tables.topics)
            return
        if elects(self._world, o.broker):
            yield from self._of_elected(o)
            return
        if is_slave(o.broker):
            yield from self._of_slave(o)
            return
        window = topic_window(self._world.timers)
        for topic, started_ms, made_ms, gone_ms in self._of_broker.get((o.broker, self._incarnation(o)), ()):
            until_ms = o.to_ms if gone_ms is None else min(o.to_ms, gone_ms)
            if o.demand is ObligationKind.KEEP and made_ms > started_ms and made_ms + window.latest_ms > o.at_ms:
                continue  # the broker was lost to the NameServer before it had to have told it of the topic
            due = Due(topic, o.from_ms, until_ms, o.at_ms, own)
            if made_ms > started_ms and made_ms + window.latest_ms > o.from_ms:
                due = Due(topic, made_ms + window.latest_ms, until_ms, made_ms, window)
            yield from self._but_deleted(o.name_server, due)

    def _of_slave(self, o: Obligation) -> Iterator[Due]:
        """A slave is in the route of each topic that its master brought there: from then on, for as long as the
        NameServer has had some broker of the name all the time."""
        own = o.window._replace(latest_ms=o.from_ms - o.at_ms)
        for held in held_names(self._world).get(table_of(o), ()):
            from_ms, to_ms = max(o.from_ms, held.start_ms), min(o.to_ms, held.end_ms)
            for topic, brought in self._brought(table_of(o)).items() if from_ms < to_ms else ():
                first = next((d for d in brought if held.start_ms <= d.from_ms < to_ms), None)
                if first is None:
                    continue
                late = first.from_ms > o.from_ms
                at_ms, window = (first.at_ms, first.window) if late else (o.at_ms, own)
                due = Due(topic, max(from_ms, first.from_ms), to_ms, at_ms, window)
                yield from self._but_deleted(o.name_server, due, self._displaced(o))

    def _displaced(self, o: Obligation) -> list[Stretch]:
        """When the last registrations of a dead master may still be read, and take the place of its slave, which was
        made master by hand, until the slave registers again."""
        world, made = self._world, made_masters(self._world).get(broker_name(o.broker))
        if made is None or made.node != o.broker:
            return []
        again_ms = world.timers_of(o.broker).registers_ms
        faults = (*world.link_faults(broker_name(o.broker), o.name_server), *world.process_faults(o.name_server))
        return [Stretch(one.start_ms, one.end_ms + resent_after_ms(one) + again_ms) for one in faults]

    def _of_elected(self, o: Obligation) -> Iterator[Due]:
        """Where brokers elect their master each is in the route of each topic that any of them brought as master."""
        own, window = o.window._replace(latest_ms=o.from_ms - o.at_ms), topic_window(self._world.timers)
        for held in held_names(self._world).get(table_of(o), ()):
            for topic, made_ms in self._made_by(broker_name(o.broker)).items():
                due_ms, from_ms = made_ms + window.latest_ms, max(o.from_ms, held.start_ms)
                late = due_ms > from_ms
                due = Due(topic, max(due_ms, from_ms), min(o.to_ms, held.end_ms), o.at_ms, own)
                due = due._replace(at_ms=made_ms, window=window) if late else due
                yield from self._but_deleted(o.name_server, due) if due.from_ms < due.to_ms else ()

    def _made_by(self, name: str) -> Mapping[str, float]:
        """Topic → when a broker of the name had it first; none that one of them deleted."""
        of = sorted((c for c in self._tables.topic_changes if broker_name(c.broker) == name), key=lambda c: -c.time_ms)
        made = {change.topic: change.time_ms for change in of if change.is_there}
        return {topic: at_ms for topic, at_ms in made.items() if all(c.is_there for c in of if c.topic == topic)}

    @once
    def _brought(self, table: Table) -> Mapping[str, Sequence[Due]]:
        """Topic → what is demanded of its master there, in order of time; none of a topic that the master deleted."""
        of_master = (o for o in obligations(self._world) if o.demand is not ObligationKind.DROP)
        demands = (d for o in of_master if (o.name_server, o.incarnation, o.broker) == table for d in self.of(o))
        gone = {change.topic for change in self._tables.topic_changes if not change.is_there}
        found = grouped((demand.topic, demand) for demand in demands if demand.topic not in gone)
        return {topic: sorted(of, key=lambda d: d.from_ms) for topic, of in found.items()}

    def _but_deleted(self, name_server: str, due: Due, displaced: Sequence[Stretch] = ()) -> Iterator[Due]:
        """Without the time in which somebody had the topic deleted there, or another broker took the broker's place."""
        deleted = told_by_hand(self._world).deleted(name_server, due.topic)
        for from_ms, to_ms in without(due.from_ms, due.to_ms, merged([*deleted, *displaced])):
            yield due._replace(from_ms=from_ms, to_ms=to_ms)

    def _incarnation(self, o: Obligation) -> int:
        living = [life.incarnation for life in self._world.lives_of(o.broker) if life.start_ms <= o.at_ms]
        return living[-1] if living else -1


def _topics_of(tables: RouteTables) -> Iterator[tuple[Process, tuple[str, float, float, float | None]]]:
    """Broker process, and a topic of it: name, when the process was started, when it made the topic, and lost it."""
    of = grouped(((c.broker, c.incarnation, c.topic, c.started_ms), c) for c in tables.topic_changes)
    for (broker, incarnation, topic, started_ms), changes in sorted(of.items()):
        if made := [change.time_ms for change in changes if change.is_there]:
            gone_ms = min((change.time_ms for change in changes if not change.is_there), default=None)
            yield (broker, incarnation), (topic, started_ms, min(made), gone_ms)


def open_at_the_end(tables: RouteTables, world: World) -> str:
    """Which broker a table lacked when the run ended, and had still time to get back; "" for none. What the machine
    took, by letting a process stand still just before the end, no scenario asked about."""
    for state in route_states(world):
        fault_id = state.label.fault_id or STALL
        last = state.up and state.judged and not fault_id.startswith(STALL) and state.end_ms >= world.end_ms
        if not last or state.settled_ms <= world.end_ms:
            continue
        process = state.name_server, state.incarnation
        lacked = [
            topic
            for topic in tables.topics
            if any(one.present for life in tables.stretches for one in tables.presence(life, topic, state.broker))
            and not any(one.present for one in tables.presence(process, topic, state.broker)[-1:])
        ]
        if lacked:
            return (
                f"{state.name_server} did not list {state.broker} (topic {lacked[0]}) when the history ended, "
                f"{length(world.end_ms - state.start_ms)} after {state.label}; "
                f"{length(state.window.latest_ms)} are allowed: "
                f"`settle_s: {world.settle_s_until(state.settled_ms, state.start_ms)}` decides it"
            )
    return ""

"""Makes the history's rows of a NameServer that is observed from outside: registrations, dropped brokers with the
reason, and every topic's route over time.

    103 and its answer           registration                                             as exact as the front
    a line of namesrv.log        broker_dropped; its reason from the wire or the log:
                                     104 ─► unregistered   closed ─► closed, exception, idle   "expired" ─► expired
    the broker gone from 106     broker_dropped, if no line said so within UNSAID_MS
    a look-up's answer           route: the topic's route at a moment between question and answer

A route changed between the last look-up that was answered with the old route and the first answer with the new route. A
`route` row has the time of the changed broker's registration, unregistration or closed connection, if the front saw one
between the look-ups with the old and the new route. A `route` row without an observed cause has the middle between the
two look-ups (Inexact), and is written only after a poll has also seen the new route.
"""

import math
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...remoting.bodies.register import RegisterBrokerBody
from ...remoting.codes import RequestCode, ResponseCode
from ...remoting.errors import RocketMQError
from ..fronts.decode import ROUTE
from ..fronts.observed import Answered, Asked, By, Closed, How, Observation, Opened
from ..fronts.rows import number_of
from ..oracle.intervals import Stretch
from .server_rows import SETTLES_MS, Put, ServerAbout, ServerRows
from .tables import Route, Table, route_of

UNSAID_MS = 1_500.0
"""Machine time after which a drop that no log line reports is taken from the poll."""
_LED_TO_MS = 3_000.0
"""Machine time: the cause of a drop is at most this much older."""
_KEPT = 256
_PERMS = {
    int(RequestCode.WIPE_WRITE_PERM_OF_BROKER): ("wiped", "wipeTopicCount"),
    int(RequestCode.ADD_WRITE_PERM_OF_BROKER): ("added", "addTopicCount"),
}
_BY_BROKER = frozenset({*map(int, (RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER)), *_PERMS})
_BY_TOPIC = frozenset({int(RequestCode.DELETE_TOPIC_IN_NAMESRV), int(RequestCode.REGISTER_TOPIC_IN_NAMESRV)})
_TAKE_AWAY = frozenset({int(RequestCode.UNREGISTER_BROKER), int(RequestCode.DELETE_TOPIC_IN_NAMESRV)})


@dataclass(slots=True)
class _Connection:
    waiting: dict[int, Asked] = field(default_factory=dict)
    brokers: set[str] = field(default_factory=set)
    """Addresses of brokers that registered on the connection."""


class _Sighting(NamedTuple):
    """A time span [from_ms, to_ms] within which the topic had this route. In order of `to_ms`."""

    to_ms: float
    from_ms: float
    topic: str
    route: Route | None
    learnt: str


@dataclass(slots=True)
class _Held:
    route: Route | None = None
    since_ms: float = -math.inf
    seen_ms: float = -math.inf
    """Time of the latest question that was answered with this route."""
    before: Route | None = None
    doubted: list[_Sighting] = field(default_factory=list)
    """Other clients' answers since the last poll with another route that nothing on the wire explains."""


class _Why(NamedTuple):
    at_ms: float
    reason: str


class _Cause(NamedTuple):
    at_ms: float
    takes_away: bool
    """Whether the broker leaves the route; otherwise it joins it or its row changes."""


class NameServerRows(ServerRows):
    def __init__(self, put: Put, about: ServerAbout) -> None:
        super().__init__(put, about)
        self._settles_ms, self._unsaid_ms = SETTLES_MS * about.scale, UNSAID_MS * about.scale
        self._led_to_ms = _LED_TO_MS * about.scale
        self._connections: dict[int, _Connection] = defaultdict(_Connection)
        self._who: dict[str, tuple[str, int]] = {}
        """Address → broker name and id, as it was registered last."""
        self._why: dict[str, deque[_Why]] = defaultdict(lambda: deque(maxlen=_KEPT))
        """Address → what it may be dropped for, and was not yet: many closes may be over before a line is read."""
        self._idle_ms = self._failed_ms = -math.inf
        self._stops = False
        self._dropped_ms: dict[str, float] = {}
        self._gone: dict[str, Stretch] = {}
        """Address → between which moments it left the table, by the polls."""
        self._last: tuple[float, Table] | None = None
        self._held: dict[str, _Held] = defaultdict(_Held)
        self._topics: dict[str, float] = {}
        """Topic → since when it is known, so that it is asked for."""
        self._sightings: list[_Sighting] = []
        self._causes: dict[str, deque[_Cause]] = defaultdict(lambda: deque(maxlen=_KEPT))
        """Broker name, or topic → what was done that may have changed what routes say of it."""

    def topics(self) -> tuple[str, ...]:
        """Return the topics whose routes the next poll must look up."""
        return tuple(self._topics)

    def saw(self, one: Observation) -> None:
        match one:
            case Opened() if one.front == self._about.name:
                self._connections[one.connection] = _Connection()
            case Asked() if one.front == self._about.name:
                self._asked(one)
            case Answered() if one.front == self._about.name and one.by is By.SERVER:
                self._answered(one)
            case Closed() if one.front == self._about.name:
                self._closed(one)
            case _:
                pass
        self._decide(one.at_ms)

    def _decide(self, now_ms: float) -> None:
        for address, gone in [*self._gone.items()]:
            if now_ms - gone.end_ms >= self._unsaid_ms:
                del self._gone[address]
                self._drop(self._inexact.between(*gone), address, "poll")
        due = [one for one in self._sightings if one.to_ms <= now_ms - self._settles_ms]
        if due:
            self._sightings = [one for one in self._sightings if one.to_ms > now_ms - self._settles_ms]
            for one in sorted(due, key=lambda sighting: sighting[:2]):
                self._sighted(one)

    def stops(self) -> None:
        """Note that the process gets SIGTERM now, so connections that close from now on drop no broker. Call after all
        log lines until now have been read."""
        self._stops = True

    def end(self, now_ms: float) -> None:
        self._decide(now_ms + self._settles_ms)
        self._inexact.flush(now_ms)

    # --- the wire -----------------------------------------------------------------------------------------------------

    def _asked(self, one: Asked) -> None:
        connection = self._connections[one.connection]
        if not one.oneway:
            connection.waiting[one.opaque] = one
        if one.code == RequestCode.REGISTER_BROKER:
            self._know_topics(one)
            if one.oneway:  # of a broker whose role has changed: nobody is told how it went
                self._is_registered(one.at_ms, ResponseCode.SUCCESS, one, connection)
        elif one.code == ROUTE:
            self._topics.setdefault(one.fields.get("topic", ""), one.at_ms)
        elif one.code == RequestCode.UNREGISTER_BROKER:
            self._why[one.fields.get("brokerAddr", "")].append(_Why(one.at_ms, "unregistered"))
        self._caused(one, one.at_ms)

    def _answered(self, one: Answered) -> None:
        connection = self._connections[one.connection]
        asked = connection.waiting.pop(one.opaque, None)
        if asked is None:
            return
        self._caused(asked, one.at_ms)
        fields, code = asked.fields, asked.code
        if code == ROUTE and not fields.get("__ZONE_NAME"):
            is_known, route = route_of(one.code, one.body)
            if is_known:
                self._sightings.append(_Sighting(one.at_ms, asked.at_ms, fields.get("topic", ""), route, "wire"))
        elif code == RequestCode.REGISTER_BROKER:
            self._is_registered(one.at_ms, one.code, asked, connection)
        elif code == RequestCode.UNREGISTER_BROKER:
            self._unregistered(one, asked, fields.get("brokerAddr", ""))
        elif code in _PERMS and one.code == ResponseCode.SUCCESS:
            how, count = _PERMS[code]
            value = {how: number_of(one.fields.get(count)), "learnt": "wire"}
            self._put(one.at_ms, "write_perm", broker_name=fields.get("brokerName"), value=value)

    def _is_registered(self, at_ms: float, code: int, asked: Asked, connection: _Connection) -> None:
        name, address = asked.fields.get("brokerName", ""), asked.fields.get("brokerAddr", "")
        id_ = number_of(asked.fields.get("brokerId")) or 0
        if code == ResponseCode.SUCCESS:
            for other in self._connections.values():
                other.brokers.discard(address)
            connection.brokers.add(address)
            self._who[address] = name, id_
        who = {"broker_name": name, "broker_id": id_, "address": address}
        self._put(at_ms, "registration", **who, code=code, value={"learnt": "wire"})

    def _unregistered(self, one: Answered, asked: Asked, address: str) -> None:
        for connection in self._connections.values():
            connection.brokers.discard(address)
        why = _Why(asked.at_ms, "unregistered")
        if why in self._why[address]:
            self._why[address].remove(why)
            if one.code == ResponseCode.SUCCESS:
                self._why[address].append(why._replace(at_ms=one.at_ms))

    def _closed(self, one: Closed) -> None:
        connection = self._connections.pop(one.connection, None)
        for address in connection.brokers if connection else ():
            reason = "exception" if one.how is How.RST else "closed"
            if one.by is By.SERVER:
                reason = "server"  # why it closed the channel its log says
            self._why[address].append(_Why(one.at_ms, reason))
            if address in self._who:
                self._causes[self._who[address][0]].append(_Cause(one.at_ms, takes_away=True))

    def _caused(self, asked: Asked, at_ms: float) -> None:
        cause = _Cause(at_ms, asked.code in _TAKE_AWAY)
        if asked.code in _BY_BROKER:
            self._causes[asked.fields.get("brokerName", "")].append(cause)
        elif asked.code in _BY_TOPIC:
            self._causes[asked.fields.get("topic", "")].append(cause)
            self._topics.setdefault(asked.fields.get("topic", ""), at_ms)

    def _know_topics(self, one: Asked) -> None:
        try:
            body = RegisterBrokerBody.decode(one.body, version=one.version)
        except RocketMQError:
            return
        for topic in body.topics:
            self._topics.setdefault(topic.topic_name, one.at_ms)

    # --- the log ------------------------------------------------------------------------------------------------------

    def _told(self, at_ms: float, event: str, fields: Mapping[str, str]) -> None:
        if event == "channel_idle":
            self._idle_ms = at_ms
        elif event == "channel_failed":
            self._failed_ms = at_ms
        elif event == "broker_expired":
            closed = self._taken(fields["address"], at_ms, "server")
            self._why[fields["address"]].append(_Why(math.nan if closed is None else closed.at_ms, "expired"))
        elif event == "address_removed" and fields.get("result") != "Failed" and not self._stops:
            self._gone.pop(fields["address"], None)
            self._drop(None, fields["address"], "log", at_ms)

    def _taken(self, address: str, read_ms: float, reason: str = "") -> _Why | None:
        """Return the first event that may have dropped the address for this reason. Old ones are forgotten."""
        whys = self._why[address]
        while whys and read_ms - whys[0].at_ms > self._led_to_ms:
            whys.popleft()
        found = next((why for why in whys if reason in ("", why.reason)), None)
        if found is not None:
            whys.remove(found)
        return found

    def _drop(self, at_ms: float | None, address: str, learnt: str, read_ms: float = 0.0) -> None:
        """Record that the address left the table at `at_ms`; None: when a log line, read at `read_ms`, says."""
        why = self._taken(address, read_ms if at_ms is None else at_ms)
        reason = self._reason(why, read_ms) if at_ms is None or why is not None else "unknown"
        if at_ms is None:
            led_ms = math.nan if why is None else why.at_ms
            is_near = 0.0 <= read_ms - led_ms <= self._led_to_ms
            at_ms = led_ms if is_near else self._inexact.between(self._inexact.written_ms(read_ms), read_ms)
        name, id_ = self._who.get(address, ("", 0))
        self._dropped_ms[address] = at_ms
        self._causes[name].append(_Cause(at_ms, takes_away=True))
        value = {"reason": reason, "learnt": learnt}
        self._put(at_ms, "broker_dropped", broker_name=name, broker_id=id_, address=address, value=value)

    def _reason(self, why: _Why | None, read_ms: float) -> str:
        at_ms = read_ms if why is None else why.at_ms
        if why is not None and why.reason in ("unregistered", "exception", "expired"):
            return why.reason
        if abs(at_ms - self._idle_ms) <= self._led_to_ms and (why is None or why.reason == "server"):
            return "idle"
        if read_ms - self._inexact.written_ms(read_ms) >= abs(at_ms - self._failed_ms):
            return "exception"
        return "expired" if why is not None and why.reason == "server" else "closed"

    # --- polls --------------------------------------------------------------------------------------------------------

    def polled(self, began_ms: float, ended_ms: float, table: Table | None) -> None:
        """Process the tables that a poll between these times found; None if the NameServer did not answer."""
        if table is None:
            if self._last is not None:  # until its first answer it is not up
                self._inexact.polled(began_ms, ended_ms)
            return
        self._inexact.polled(began_ms, ended_ms)
        for topic, route in table.routes.items():
            self._sightings.append(_Sighting(ended_ms, began_ms, topic, route, "poll"))
        asked_ms, before = self._last or (began_ms, Table())
        for broker, id_, address in sorted(before.places - table.places):
            if table.brokers.get(broker, {}).get(id_, address) != address:
                continue  # another has registered with its id
            is_elsewhere = any(address in ids.values() for ids in table.brokers.values())
            if self._dropped_ms.get(address, -math.inf) < asked_ms - self._settles_ms and not is_elsewhere:
                self._gone[address] = Stretch(asked_ms, ended_ms)
        for broker, id_, address in sorted(table.places - before.places):
            self._who[address] = broker, id_
            self._gone.pop(address, None)
        self._last = began_ms, table
        self._decide(ended_ms)

    # --- routes -------------------------------------------------------------------------------------------------------

    def _sighted(self, one: _Sighting) -> None:
        held = self._held[one.topic]
        if one.route == held.route:
            held.seen_ms = max(held.seen_ms, one.from_ms)
            return
        if one.from_ms <= held.since_ms and one.route == held.before:
            return  # it was asked before the change
        known_ms = self._topics.get(one.topic, one.from_ms)
        from_ms = max(held.since_ms, held.seen_ms, known_ms)
        if one.learnt == "poll":
            early = [other.to_ms for other in held.doubted if other.route == one.route and other.to_ms >= from_ms]
            one = one._replace(to_ms=min((*early, one.to_ms)))
            held.doubted.clear()
        from_ms = min(from_ms, one.to_ms)
        left = _parts(one.route)
        caused = {
            name: self._cause(one.topic, name, from_ms, one.to_ms, takes_away=name not in left)
            for name in _differ(held.route, one.route)
        }
        if one.learnt == "wire" and None in caused.values():
            held.doubted.append(one)
            return
        moments = {
            name: (self._inexact.between(from_ms, one.to_ms), False) if at_ms is None else (at_ms, True)
            for name, at_ms in caused.items()
        }
        for at_ms in sorted({at_ms for at_ms, _ in moments.values()}):
            done = [name for name, moment in moments.items() if moment[0] <= at_ms]
            route = one.route if len(done) == len(moments) else _mixed(held.route, one.route, done)
            learnt = "poll" if one.learnt == "poll" and any(not moments[name][1] for name in done) else "wire"
            self._put(at_ms, "route", topic=one.topic, value=route, f=learnt)
            held.before, held.since_ms = held.route, at_ms
        held.route, held.seen_ms = one.route, max(held.seen_ms, one.from_ms)

    def _cause(self, topic: str, broker: str, from_ms: float, to_ms: float, *, takes_away: bool) -> float | None:
        """Return the time of the last event that can have changed the broker's part of the topic's route."""
        causes = (cause for cause in (*self._causes[broker], *self._causes[topic]) if cause.takes_away == takes_away)
        return max((cause.at_ms for cause in causes if from_ms <= cause.at_ms <= to_ms), default=None)


def _parts(route: Route | None) -> Mapping[str, tuple[Any, Any]]:
    if route is None:
        return {}
    brokers, queues = route.get("brokers") or {}, route.get("queues") or {}
    return {name: (brokers.get(name), queues.get(name)) for name in (*brokers, *queues)}


def _differ(old: Route | None, new: Route | None) -> list[str]:
    """Return the brokers whose parts differ, or [""] if no part differs."""
    before, after = _parts(old), _parts(new)
    return [name for name in {**before, **after} if before.get(name) != after.get(name)] or [""]


def _mixed(old: Route | None, new: Route | None, done: list[str]) -> Route | None:
    after = _parts(new)
    parts = {**_parts(old), **{name: after.get(name, (None, None)) for name in done}}
    brokers = {name: parts[name][0] for name in sorted(parts) if parts[name][0] is not None}
    queues = {name: parts[name][1] for name in sorted(parts) if parts[name][1] is not None}
    return {"brokers": brokers, "queues": queues} if brokers and queues else None

"""How long after a fault or a heal a client's first good operation may take: one bound an operation. Plain.

Per client and operation, q being the queues of the brokers lost to it, k the failed calls of its lost NameServers:

| operation | bound                                                                                          |
|-----------|------------------------------------------------------------------------------------------------|
| send      | where all lost brokers refuse, as after a crash: 1/rate, for the retry goes to another broker; |
|           | T before it where a call under way waits out a close, as with Apache's client 4.9; (q + 1)     |
|           | of them where more than one is lost, or messages keep to their queues. Else                     |
|           | (q + 2)·(T + 1/rate): the send under way, one on each lost queue in turn, and the good one; q   |
|           | as often as a new route may come meanwhile, with which the round of queues begins anew;        |
|           | or, if sooner, when the producer has left the lost brokers (t_rm + P), and two sends; with so  |
|           | few queues that each failure's retry takes a good one away (`passed_over`), only that          |
| pull      | two long polls of 15 + 5 s; where a broker is lost, t_rm + P + Qr before: it may hold no other  |
| look-up   | P + (k·P + A) + J                                                                              |

A client that has lost every broker, or every NameServer, is bounded only from the heal on, R + C + P later; a consumer
whose group has fewer queues left than consumers, from R + C + P + Qr after the heal on. A broker that NameServers need
not name to the client (lost_brokers.py) is neither lost nor left until they must, and P + J later. Who is cut off from
every NameServer of its list hears of a removal, or a return, only when it can ask again: so much later each of these
ends. A producer that never had a route fails until a NameServer gives it one.

How many of a producer's sends may fail while brokers are lost to it: each lost queue in its turn. Plain.

How long a producer that has no route yet may go on failing: until a NameServer answers it with one. Plain.

A client that has a route keeps it whatever its NameServer says or does not say. One that never had any asks with every
send, and fails with it: at a NameServer that is lost to it, and at one that holds no broker.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from ..faults.fault import Dial
from ..topology import is_slave
from .intervals import Stretch, merged
from .link import hung_brokers
from .lists import changing, fetch_ms, without_list
from .lost_brokers import named_to, new_routes, unnamed
from .promises import route_states
from .quiet import changed_by_hand, joined_in_trouble, settle_ms
from .reach import Moment, cut_offs, delayed_by_commits, failed_calls, lost, sticks, told_ms, unlearnt_since_ms
from .recorded import OURS
from .roles import removal
from .windows import NEVER, Window, client_leave_window, poll_delay_ms, serves_window, staleness_window
from .world import World

HOLD_MS = 20_000.0
"""A pull is held 15 s (`brokerSuspendMaxTimeMillis`), and the broker looks at held ones every 5 s."""
LOOK_UP = "name_server_call"


def bound(world: World, client: str, operation: str, moment: Moment, *, routed: bool = True) -> Window:
    """How long after the moment the client's first good operation may take; NEVER where nothing bounds it.

    `routed`: whether a producer has had a route, for one of its sends was good before.
    """
    if operation == LOOK_UP:
        return _look_up_bound(world, client, moment)
    timers, brokers = world.timers_of(client), world.seen_by(client, "broker")
    if act := changed_by_hand(world, moment.at_ms, moment.at_ms + settle_ms(world)):
        return Window(0, NEVER, "never", f"{act} may have changed what clients are told, or may use")
    if len(world.views_of(client)) > 1:
        return Window(0, NEVER, "never", "by the lists of `nodes:` its NameServers name different brokers to it")
    settled_ms = settle_ms(world)
    if any(
        one.start_ms <= moment.at_ms + settled_ms and one.end_ms + settled_ms > moment.at_ms for one in changing(world)
    ):
        return Window(0, NEVER, "never", "another list of NameServers is being taken")
    if joined_in_trouble(world, client, moment.at_ms):
        return Window(
            0, NEVER, "never", "it joined while faults were in force, or soon after, and may have no route yet"
        )
    k = _calls(world, client)
    learns = _learns(world, client, k, moment.at_ms)
    back = _back(world, learns)
    gone = lost(world, client, "broker", moment.at_ms)
    unlearnt_ms = unlearnt_since_ms(world, client, moment.at_ms, back.latest_ms)
    missing = lost(world, client, "broker", moment.at_ms, for_ms=moment.at_ms - unlearnt_ms)  # or not yet in the routes
    if brokers and len(gone) == len(brokers):
        return Window(0, NEVER, "never", "every broker is lost to the client")
    hung = sum(not loss.closes for loss in gone.values())
    waits, workload, queues = Window(0, 0, "", "", 2), world.workload, world.queues_of(client) or 4
    each_ms = timers.T_ms + 1000.0 / float(workload.get("sends_per_s") or 1.0)
    since_ms = unlearnt_since_ms(world, client, moment.at_ms, learns.latest_ms)
    tried = turns_lost(world, len(brokers), len(missing), queues) if brokers and operation == "send" else 0
    lasts_ms = (tried + 2) * each_ms if tried else 0.0
    away_from_ms = since_ms - timers.Qr_ms * (operation == "pull")
    away = unnamed(world, client, away_from_ms, moment.at_ms + lasts_ms) - missing.keys()
    named = len(brokers) - len(away)
    if brokers and len(missing) == len(brokers):
        waits = _when_told(world, client, moment.at_ms, back, serves_window(world.timers).latest_ms)
    elif away and len(missing) == named:
        waits, named = _named_again(world, client, away, moment.at_ms, learns, for_ms=lasts_ms), len(brokers)
        if waits.latest_ms == NEVER:
            return waits
    unrouted = unrouted_window(world, client, moment) if operation == "send" and not routed else None
    if unrouted is not None:
        if unrouted.latest_ms == NEVER:
            return unrouted
        waits = max(waits, unrouted, key=lambda window: window.latest_ms)
    leaving = [_leaving(world, client, moment, removal(world, one, loss), hung, k) for one, loss in missing.items()]
    leave = max(leaving, key=lambda window: window.latest_ms, default=None)
    if operation == "pull":
        consumers = 1 if workload.get("broadcasting") else len(world.members_of(client))
        if idle := _may_stay_idle(world, client, moment, queues, consumers, missing):
            return Window(0, NEVER, "never", idle)
        shares = _shares(world, client, moment, queues, consumers, missing, gone, learns)
        if leave is not None and not waits.latest_ms and leave.latest_ms > shares.latest_ms < NEVER:
            shares = waits  # its queues may lie on what it has to leave first, and by then the others are there
        waits = max(waits, shares, key=lambda window: window.latest_ms)
        if waits.latest_ms == NEVER:
            return waits
        latest_ms, formula, chained = 2 * HOLD_MS, f"2·{HOLD_MS / 1000:g} s", waits.timers
        if leave is not None and not waits.latest_ms:
            latest_ms, formula = latest_ms + leave.latest_ms, f"{leave.formula} + {formula}"
            chained = leave.timers + 1
        return _after(waits, latest_ms, formula, "consumer's first answered pull", chained)
    refused = all(loss.closes for loss in missing.values())
    none_left = bool(brokers) and share_lost(world, named, len(missing), queues) >= 1
    keys_lost = none_left and bool(workload.get("ordered"))  # every key's queue may be a lost one, and has no other
    if routed and refused and moment.phase == "start" and not waits.latest_ms and not keys_lost:
        return _refused_bound(world, client, moment, missing, queues, since_ms)
    tried = turns_lost(world, named, len(missing), queues) if brokers else 0
    latest_ms, formula, chained = (tried + 2) * each_ms, f"({tried} lost queues + 2)·(T + 1/rate)", waits.timers
    from_ms = moment.at_ms + waits.latest_ms
    if late_ms := _late_for_new_routes(world, client, from_ms, moment.at_ms - since_ms, tried, each_ms, missing):
        latest_ms, formula = latest_ms + late_ms, f"{formula}, begun anew for {late_ms / 1000:g} s"
    if none_left and any(_stays_in_the_routes(world, client, moment, broker) for broker in missing):
        return Window(0, NEVER, "never", "every send may go to a broker that only this producer cannot reach")
    if leave is not None and (none_left or leave.latest_ms + 2 * each_ms < latest_ms):
        latest_ms, formula = leave.latest_ms + 2 * each_ms, f"{leave.formula} + 2·(T + 1/rate)"
        chained = leave.timers + 1
    return _after(waits, latest_ms, formula, "producer's first good send", chained)


def _leaving(world: World, client: str, moment: Moment, removal: Window, hung: int, k: float) -> Window:
    """When the client has left a broker that its NameServers drop within `removal`, and a consumer has other queues."""
    consumer = any(node.name == client for node in world.of_kind("consumer"))
    window = client_leave_window(world.timers_of(client), removal, consumer=consumer, hung_brokers=hung, failed_calls=k)
    window = delayed_by_commits(world, client, window, moment.at_ms)
    return _when_told(world, client, moment.at_ms, window, removal.latest_ms)


def _when_told(world: World, client: str, at_ms: float, window: Window, known_ms: float) -> Window:
    """The window from this time on, as much later as the client can ask nobody what NameServers know `known_ms` after
    it."""
    if math.isinf(window.latest_ms):
        return window
    from_ms = at_ms + known_ms
    hung_ms = poll_delay_ms(world.timers_of(client), hung_brokers(world, client, at_ms, from_ms))
    late_ms = told_ms(world, client, from_ms, hung_ms) - from_ms
    return window.plus(late_ms, "until it can ask a NameServer") if late_ms else window


def _late_for_new_routes(
    world: World, client: str, from_ms: float, learns_ms: float, tried: int, each_ms: float, missing: Collection[str]
) -> float:
    """How much longer than by one round, of which `tried` sends in a row meet a lost queue, each so long: with each new
    route that comes meanwhile the round begins anew at a random place (`TopicPublishInfo`)."""
    late_ms = 0.0
    while tried and (to_ms := from_ms + (tried + 2) * each_ms + late_ms) < world.end_ms:
        most, until_ms = new_routes(world, client, from_ms, to_ms, learns_ms, missing)
        longer_ms = min(most * tried * each_ms, until_ms - from_ms)
        if longer_ms <= late_ms:
            break
        late_ms = longer_ms
    return late_ms


def _refused_bound(
    world: World, client: str, moment: Moment, missing: Collection[str], queues: int, since_ms: float
) -> Window:
    """Of a send while every lost broker refuses: no time-out is waited for, and the next try is another broker's."""
    brokers, workload, lost_ = world.seen_by(client, "broker"), world.workload, len(missing)
    period_ms = 1000.0 / float(workload.get("sends_per_s") or 1.0)
    once = lost_ > 1 or workload.get("ordered") or not _retries(world, client)  # the next try may be refused, too
    tried = turns_lost(world, len(brokers), lost_, queues) if lost_ and once else 0
    again_ms = _late_for_new_routes(world, client, moment.at_ms, moment.at_ms - since_ms, tried, period_ms, missing)
    due_ms, late_ms = moment.at_ms + (tried + 1) * period_ms + again_ms, 0.0
    for _ in range(2):  # what it sends until then, and, each so much later, what it sends by then
        until_ms = due_ms + (tried + 1) * late_ms
        late_ms = max((_round_trip_ms(world, client, one.name, moment.at_ms, until_ms) for one in brokers), default=0.0)
    formula = f"({tried} lost queues + 1)/rate" if tried else "1/rate"
    if late_ms:
        formula = f"{formula}, each a round trip of {late_ms / 1000:g} s later"
    if again_ms:
        formula = f"{formula}, begun anew for {again_ms / 1000:g} s"
    latest_ms = (tried + 1) * (period_ms + late_ms) + again_ms
    if lost_ and waits_out_a_close(world, client):
        latest_ms, formula = latest_ms + world.timers_of(client).T_ms, f"T + {formula}"
    return Window(0, latest_ms, formula, "producer's first good send, lost brokers refuse", 2)


def waits_out_a_close(world: World, client: str) -> bool:
    """Whether a call under way as its server closes the connection waits for its time-out: Apache's client up to 4.9
    hears of a close by a reset alone (its handler has no channelInactive); 5.x, and ours, fail it at once."""
    return world.made_by(client) != OURS and world.client_profile_of(client).name.startswith(("java-3", "java-4"))


def _retries(world: World, client: str) -> bool:
    """Whether a send that fails is tried again at all (retryTimesWhenSendFailed)."""
    return not world.run.get("settings") or bool(world.setting(client, "retryTimesWhenSendFailed"))


def _round_trip_ms(world: World, client: str, broker: str, from_ms: float, to_ms: float) -> float:
    """How late latencies, harmless ones too, make the answers of this broker at some time of [from_ms, to_ms)."""
    delays = [f.kind.delay for f in world.link_faults(client, broker) if f.start_ms < to_ms and f.end_ms > from_ms]
    return sum(delay.round_trip_max_ms for delay in delays if delay is not None)


def _stays_in_the_routes(world: World, client: str, moment: Moment, broker: str) -> bool:
    """Whether the broker is lost to this client alone, by its link, so that no NameServer drops it."""
    return any(fault.start_ms <= moment.at_ms < fault.end_ms for fault in world.link_faults(client, broker))


def _learns(world: World, client: str, k: float, at_ms: float) -> Window:
    """When a client has what all its NameServers name from that time on; `k`: calls that fail meanwhile."""
    timers, table = world.timers_of(client), serves_window(world.timers)
    longest_ms = table.latest_ms + timers.P_ms + poll_delay_ms(timers, len(world.of_kind("broker")))
    hung = hung_brokers(world, client, at_ms - longest_ms, at_ms + longest_ms)
    latest_ms = timers.P_ms + poll_delay_ms(timers, hung)
    formula = "P" + (f" + J (A·{hung} hung brokers)" if hung else "")
    if k:
        stale = staleness_window(timers, k)
        latest_ms, formula = latest_ms + stale.latest_ms, f"{formula} + {stale.formula}"
    return Window(0, latest_ms, formula, "client has a healed broker in its routes", 2 if k == NEVER else 2 + int(k))


def _back(world: World, learns: Window) -> Window:
    """When a client has a broker in its routes that is healed now."""
    table = serves_window(world.timers)
    return learns._replace(
        latest_ms=table.latest_ms + learns.latest_ms,
        formula=f"{table.formula} + {learns.formula}",
        timers=learns.timers + 2,
    )


def _named_again(
    world: World, client: str, away: Iterable[str], at_ms: float, learns: Window, *, for_ms: float
) -> Window:
    """When the client has the first of these brokers in its routes for so long, none of which NameServers need name to
    it all the time until then."""
    waits_ms = min((_again_ms(world, client, broker, at_ms, for_ms=for_ms) for broker in away), default=NEVER)
    if waits_ms == NEVER:
        return Window(0, NEVER, "never", "NameServers need not name a broker to the client that it can reach")
    return _once_named(world, client, at_ms, learns, waits_ms)


def _once_named(world: World, client: str, at_ms: float, learns: Window, waits_ms: float) -> Window:
    if waits_ms:
        formula = f"until NameServers must name another broker + {learns.formula}"
        learns = learns._replace(latest_ms=waits_ms + learns.latest_ms, formula=formula, timers=learns.timers + 2)
    return _when_told(world, client, at_ms, learns, waits_ms)


def _again_ms(world: World, client: str, broker: str, at_ms: float, *, for_ms: float = 0.0) -> float:
    """How long after `at_ms` NameServers must name the broker to the client, and then for so long; NEVER (inf)."""
    stretches = named_to(world, client, broker)
    begins = (s.start_ms for s in stretches if s.end_ms > max(s.start_ms, at_ms) + for_ms)
    return max(0.0, min(begins, default=NEVER) - at_ms)


def _shares(
    world: World,
    client: str,
    moment: Moment,
    queues: int,
    consumers: int,
    missing: Collection[str],
    gone: Collection[str],
    learns: Window,
) -> Window:
    """When enough brokers are in the routes for each consumer of the group to have a queue; 0 where they are."""
    timers, brokers = world.timers_of(client), world.seen_by(client, "broker")
    since_ms = unlearnt_since_ms(world, client, moment.at_ms, learns.latest_ms) - timers.Qr_ms
    until_ms = 2 * HOLD_MS
    away = unnamed(world, client, since_ms, moment.at_ms + until_ms)
    lacks = math.ceil(consumers / queues) - len([node for node in brokers if node.name not in {*missing, *away}])
    if not brokers or lacks <= 0:
        return Window(0, 0, "", "", 2)
    again = [_again_ms(world, client, broker, moment.at_ms, for_ms=until_ms) for broker in away - {*missing}]
    again += [serves_window(world.timers).latest_ms for broker in missing if broker not in gone]
    returns = sorted(at_ms for at_ms in again if at_ms < NEVER)
    if len(returns) < lacks:
        return Window(0, NEVER, "never", "its NameServers may name so few brokers to it that it has no queue")
    once = _once_named(world, client, moment.at_ms, learns, returns[lacks - 1])
    return Window(0, once.latest_ms + timers.Qr_ms, f"{once.formula} + Qr", "", once.timers + 1)


def _after(waits: Window, latest_ms: float, formula: str, row: str, chained: int) -> Window:
    before = f"{waits.formula} + " if waits.latest_ms else ""
    return Window(0, waits.latest_ms + latest_ms, before + formula, row, chained)


def _may_stay_idle(
    world: World,
    client: str,
    moment: Moment,
    queues: int,
    consumers: int,
    missing: Collection[str],
) -> str:
    """Why the consumer may have no queue that it can pull from, for as long as the fault lasts; empty: it will have.

    Queues are handed out in stretches (AllocateMessageQueueAveragely), so one stretch may lie on the lost brokers; only
    a broker that the NameServers drop loses its queues to others.
    """
    if world.views_differ:
        return "consumers may see different brokers, so each shares out queues of its own"
    brokers = len(world.seen_by(client, "broker"))
    if not brokers:
        return ""
    if queues * brokers < consumers:
        return "the group has fewer queues than consumers, so one may have none to pull"
    cut_off = any(_stays_in_the_routes(world, client, moment, broker) for broker in missing)
    if cut_off and queues * brokers // consumers <= queues * len(missing):
        return "all its queues may lie on brokers that only it cannot reach, and those stay in the routes"
    return ""


def _look_up_bound(world: World, client: str, moment: Moment) -> Window:
    timers = world.timers_of(client)
    servers = world.listed(client)
    now = lost(world, client, "name_server", moment.at_ms)
    if servers and len(now) == len(servers):
        return Window(0, NEVER, "never", "every NameServer is lost to the client")
    if any(one.start_ms <= moment.at_ms < one.end_ms for one in cut_offs(world, client)):
        return Window(0, NEVER, "never", "dials to so many NameServers are unanswered that it may reach none in time")
    calls = failed_calls(world, (client,), moment.at_ms - timers.P_ms - timers.A_ms, moment.at_ms)
    stale = staleness_window(timers, calls)
    hung = hung_brokers(world, client, moment.at_ms - timers.P_ms, moment.at_ms + timers.P_ms)
    latest_ms = timers.P_ms + stale.latest_ms + poll_delay_ms(timers, hung)
    formula = f"P + ({stale.formula})" + (f" + J (A·{hung} hung brokers)" if hung else "")
    if listed_ms := _listed_ms(world, client, moment.at_ms):
        latest_ms, formula = listed_ms + latest_ms, f"until it has a list + {formula}"
    window = Window(0, latest_ms, formula, "client's first answered look-up", stale.timers + 1)
    return delayed_by_commits(world, client, window, moment.at_ms)


def _listed_ms(world: World, client: str, at_ms: float) -> float:
    """How much later than that it has a list of NameServers, where it may have none yet; 0 where it has."""
    without = merged(Stretch(one.start_ms, one.end_ms) for one in without_list(world, client))
    have_ms = ((one.start_ms, one.end_ms + fetch_ms(world, client)) for one in without)
    return max((until_ms - at_ms for start_ms, until_ms in have_ms if start_ms <= at_ms < until_ms), default=0.0)


def _calls(world: World, client: str) -> float:
    """k for a removal that a client must learn while NameServers are lost as well; the scenario's worst."""
    hit = {f.source if f.target is None else f.target for f in world.faults if f.injected}
    servers = world.listed(client)
    k = sum(node.name in hit for node in servers) + world.dead_entries(client)
    return NEVER if k and any(sticks(world, client, node.name) for node in servers) else k


def passed_over(brokers: int, lost: int, queues: int) -> float:
    """The share of sends that fail at most when each that fails on a lost broker takes one good queue of the round.

    One of each lost broker's queues is met a round, because a retry goes to another broker's; 1 where no queue is left.
    Source: `DefaultMQProducerImpl.sendDefaultImpl`, which picks the queue of the next try before it looks at the time.
    """
    return 1.0 if queues * (brokers - lost) <= lost else lost / (queues * (brokers - lost))


def turns_lost(world: World, brokers: int, lost: int, queues: int) -> int:
    """How many sends in a row may meet `lost` of the brokers: each of their queues in its turn.

    Messages of a sharding key keep to their queue, so there it is each key whose queue is lost: all keys, where they
    are few.
    """
    workload = world.workload
    keys = int(workload.get("ordered_keys") or 0) if workload.get("ordered") else 0
    return lost * queues * max(1, math.ceil(keys / (queues * brokers)))


def share_lost(world: World, brokers: int, lost: int, queues: int) -> float:
    """The share of sends that may fail while so many brokers are lost: 1 where all may."""
    workload = world.workload
    of_keys = 0.0
    if workload.get("ordered"):
        of_keys = turns_lost(world, brokers, lost, queues) / max(1, int(workload.get("ordered_keys") or 1))
    return min(1.0, max(lost / brokers, passed_over(brokers, lost, queues), of_keys))


_ROW = "producer without a route asks with each send"


def unrouted_window(world: World, client: str, moment: Moment) -> Window | None:
    """From the moment to the first good send of a producer without a route; None where every NameServer has one."""
    timers, servers = world.timers_of(client), world.seen_by(client, "name_server")
    now = lost(world, client, "name_server", moment.at_ms)
    failing = lost(world, client, "name_server", moment.at_ms, for_ms=timers.P_ms + timers.A_ms)
    if len(now) == len(servers):
        return Window(0, NEVER, "never", "no route, and every NameServer is lost to the client") if servers else None
    if any(_takes_the_whole_call(world, client, node.name, moment.at_ms) for node in servers):
        return Window(
            0, NEVER, "never", "no route, and a NameServer in the list whose dial takes a look-up's whole time"
        )
    if any(sticks(world, client, node.name, moment.at_ms - timers.A_ms, moment.at_ms) for node in servers):
        return Window(0, NEVER, "never", "no route, and a NameServer that it stays with though it does not answer")
    held_ms = max(_held_ms(world, node.name, moment.at_ms) for node in servers if node.name not in now)
    if not failing and held_ms <= moment.at_ms:
        return None
    if math.isinf(held_ms):
        return Window(0, NEVER, "never", "no route, and a NameServer that holds no broker")
    rate = float(world.workload.get("sends_per_s") or 1.0)
    k, waits_ms = len(failing), max(0.0, held_ms - moment.at_ms)
    latest_ms = waits_ms + (k + 1) * (2 * timers.A_ms + 1000.0 / rate)
    formula = f"({k} + 1)·(2·A + 1/rate)"
    return Window(0, latest_ms, f"R + C + {formula}" if waits_ms else formula, _ROW, k + 2)


def _takes_the_whole_call(world: World, client: str, name_server: str, at_ms: float) -> bool:
    """Whether a dial to it, whose SYNs are lost, leaves a look-up no time: the next NameServer of the list is dialled,
    not asked, and its connection closed for the call's time-out, so that the next look-up begins with the same dial."""
    timers = world.timers_of(client)
    if timers.C_ms < timers.A_ms:
        return False
    faults = world.link_faults(client, name_server)
    return any(fault.kind.dial is Dial.DROPPED and fault.start_ms <= at_ms < fault.end_ms for fault in faults)


def _held_ms(world: World, name_server: str, at_ms: float) -> float:
    """From when on this NameServer must hold some broker; inf where nothing says so."""
    settled = [
        state.settled_ms
        for state in route_states(world)
        if not is_slave(state.broker)  # it brings no topics
        and state.name_server == name_server
        and state.up
        and state.start_ms <= at_ms < state.end_ms
    ]
    return min(settled, default=math.inf)

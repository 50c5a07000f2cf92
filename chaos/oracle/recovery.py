"""How long a client's first successful operation after a fault, or after its end, may take, if one fault at a time
affects the client.

| operation | bound                                                                                           |
|-----------|-------------------------------------------------------------------------------------------------|
| send      | where all lost brokers refuse: 1/rate, as the retry goes to another broker; (q + 1)/rate where  |
|           | more than one is lost, or messages keep to their queues; T more where a call under way waits    |
|           | out a close (Apache's client 4.9). Else (q + 2)·(T + 1/rate), the send under way, one on each   |
|           | of the q lost queues in its turn and the good one; or, if sooner, t_rm + P + J and two sends.   |
|           | A master that waits for its slave is like a broker that hangs                                   |
| pull      | two long polls of 15 + 5 s; where a broker is lost t_rm + P + J + Qr before                     |
| look-up   | P + (k·P + A) + J                                                                               |

Where every broker was lost, a send and a pull have the same bounds from R + C + P + J after the heal on. Upstream:
`DefaultMQProducerImpl.sendDefaultImpl`, `MQFaultStrategy`, `PullRequestHoldService`, `MQClientInstance`.

Nothing is promised (NEVER) after a fault of another client alone; while several faults meet (quiet.py); where one fault
takes every broker, every NameServer, or a broker and what NameServers know of others; to a producer without a route
whose NameServers are hit; and to a consumer that the group's queues may not be enough for. What each part must do then
is judged part by part.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from .link import MOMENT_MS, hung_brokers, resent_after_ms
from .quiet import felt_by, is_alone, settle_ms
from .reach import Moment, delayed_by_commits, failed_calls, faults_between, is_reached_too_late, lost
from .roles import removal
from .slaves import slaves_of, unreplicated
from .windows import NEVER, Window, client_leave_window, serves_window, staleness_window
from .world import World

HOLD_MS = 20_000.0
"""A pull is held 15 s (`brokerSuspendMaxTimeMillis`), and the broker looks at held ones every 5 s."""
LOOK_UP = "name_server_call"


def bound(
    world: World,
    client: str,
    operation: str,
    moment: Moment,
    *,
    routed: bool = True,
    period_ms: float | None = None,
) -> Window:
    """How long after the moment the client's first good operation may take; NEVER where nothing is promised. `routed`:
    whether the process has had a route, for a send or pull of its was good before. `period_ms`: how far apart its sends
    are; None: as the workload says."""
    if all(fault.fault_id != moment.fault_id for fault in felt_by(world, client)):
        return _never("the fault is another client's")
    if not is_alone(world, client, moment.at_ms):
        return _never("several faults meet: what must happen follows from each part")
    views = world.views_of(client)
    if len(views) > 1 or frozenset() in views:
        return _never("by the lists of `nodes:` its NameServers name different brokers to it, or none")
    hit = _Hit(world, client, moment)
    if not routed and hit.servers:
        return _never("its start may fail at a NameServer that is hit, and begins anew with the first")
    if operation == LOOK_UP:
        return hit.look_up()
    if hides_too_many(world, client, moment.at_ms, hit.brokers):
        return _never("NameServers may name none of the brokers that it can reach")
    if not routed and hit.hidden:
        return _never("it may have no route, and the NameServers that it would ask may name nobody")
    return hit.pull() if operation == "pull" else hit.send(routed, period_ms)


def _never(why: str) -> Window:
    return Window(0, NEVER, "never", why)


class _Hit:
    """What the one fault that is felt then took from the client, or gives back."""

    def __init__(self, world: World, client: str, moment: Moment) -> None:
        self.world, self.client, self.moment, self.timers = world, client, moment, world.timers_of(client)
        at_ms, call_ms = moment.at_ms, self.timers.P_ms + self.timers.A_ms
        self.brokers = lost(world, client, "broker", at_ms, for_ms=settle_ms(world))
        """Lost to it, or back for so short a time that its routes may not name them yet."""
        self.hidden = hidden(world, client, at_ms) - self.brokers.keys()
        """Those that live and that NameServers may not name."""
        self.servers = lost(world, client, "name_server", at_ms, for_ms=call_ms)
        """NameServers that a call of its may have met."""
        self._failed_calls = failed_calls(world, (client,), at_ms - call_ms, at_ms)
        self._all_brokers = len(world.seen_by(client, "broker"))
        self._left = self._all_brokers - len(lost(world, client, "broker", at_ms))
        """How many brokers the client can reach once the moment has come."""
        self._is_all_lost = bool(self.brokers) and len(self.brokers) == self._all_brokers

    # -- what is common

    def _leaves(self) -> Window | None:
        """When the client has left the last of the lost brokers; None if none is lost."""
        hung = sum(not loss.closes for loss in self.brokers.values())
        windows = [
            client_leave_window(
                self.timers,
                removal(self.world, broker, loss),
                consumer=self.world.kind_of(self.client) == "consumer",
                hung_brokers=hung,
                failed_calls=self._failed_calls,
            )
            for broker, loss in self.brokers.items()
        ]
        leaves = max(windows, key=lambda window: window.latest_ms, default=None)
        return leaves and delayed_by_commits(self.world, self.client, leaves, self.moment.at_ms)

    def _is_cut_off(self, broker: str) -> bool:
        """Whether the broker is lost to this client alone, by its link, so that no NameServer drops it."""
        faults = self.world.link_faults(self.client, broker)
        return any(fault.start_ms <= self.moment.at_ms < fault.end_ms for fault in faults)

    def _back(self) -> Window:
        """When what is healed now is in the client's routes again."""
        world, timers, table = self.world, self.timers, serves_window(self.world.timers)
        hung = hung_brokers(world, self.client, self.moment.at_ms - timers.P_ms, self.moment.at_ms)
        window = table.plus(timers.P_ms, "P").behind(timers, hung)._replace(timers=4)
        if self._failed_calls:
            stale = staleness_window(timers, self._failed_calls)
            window = window.plus(stale.latest_ms, stale.formula)
        faults = [f for node in self.brokers for f in faults_between(world, self.client, node)]
        return window.plus(max((resent_after_ms(fault) for fault in faults), default=0.0), "TCP's resending")

    # -- look-ups

    def look_up(self) -> Window:
        world, timers, at_ms = self.world, self.timers, self.moment.at_ms
        listed, now = world.listed(self.client), lost(world, self.client, "name_server", self.moment.at_ms)
        if listed and len(now) == len(listed):
            return _never("every NameServer is lost to the client")
        if is_reached_too_late(world, self.client, at_ms, at_ms + MOMENT_MS):
            return _never("dials to so many NameServers are unanswered that it may reach none in time")
        stale = staleness_window(timers, self._failed_calls)
        hung = hung_brokers(world, self.client, at_ms - timers.P_ms, at_ms + timers.P_ms)
        window = Window(0, timers.P_ms, "P", "client's first answered look-up")
        window = window.plus(stale.latest_ms, f"({stale.formula})", stale.timers).behind(timers, hung)
        return delayed_by_commits(world, self.client, window, at_ms)

    # -- sends

    def send(self, routed: bool, period_ms: float | None) -> Window:
        world, workload, row = self.world, self.world.workload, "producer's first good send"
        waiting = self._waiting()
        queues, lost_ = world.queues_of(self.client) or 4, len(self.brokers) + len(waiting)
        period_ms = period_ms or 1000.0 / float(workload.get("sends_per_s") or 1.0)
        each_ms = self.timers.T_ms + period_ms
        if self._is_all_lost and not self._left:
            return _never("every broker is lost to the client")
        if self._is_all_lost:
            return self._back().plus(2 * each_ms, "2·(T + 1/rate)")._replace(row=row)
        tried = turns_lost(world, self._all_brokers, lost_, queues) if lost_ else 0
        none_left = bool(lost_) and share_lost(world, self._all_brokers, lost_, queues) >= 1
        refused = all(loss.closes for loss in self.brokers.values()) and not waiting
        if none_left and waiting:
            return _never("every master may wait for a slave")
        if routed and refused and self.moment.phase == "start" and not (none_left and workload.get("ordered")):
            return self._refused(tried, period_ms, row)
        if none_left and any(map(self._is_cut_off, self.brokers)):
            return _never("every send may go to a broker that only this producer cannot reach")
        tried *= max(1, lost_)  # a round begins anew with each route, and routes lose one after the other
        window = Window(0, (tried + 2) * each_ms, f"({tried} lost queues + 2)·(T + 1/rate)", row, 2)
        leaves = None if waiting else self._leaves()
        if leaves is not None and (none_left or leaves.latest_ms + 2 * each_ms < window.latest_ms):
            return leaves.plus(2 * each_ms, "2·(T + 1/rate)", 1)._replace(row=row)
        return window

    def _waiting(self) -> list[str]:
        """Masters that live and may wait for a slave that is lost (syncFlushTimeout), longer than the producer does
        (T); no producer leaves them."""
        world, at_ms = self.world, self.moment.at_ms
        names = {node.name for node in world.seen_by(self.client, "broker")} - self.brokers.keys()
        return [
            name
            for name, stretches in unreplicated(world).items()
            if name in names and slaves_of(world, name) and any(one.start_ms <= at_ms < one.end_ms for one in stretches)
        ]

    def _refused(self, tried: int, period_ms: float, row: str) -> Window:
        """While every lost broker refuses: no time-out is waited for, and the next try is another broker's."""
        world, lost_ = self.world, len(self.brokers)
        retries = world.setting(self.client, "retryTimesWhenSendFailed")
        again = lost_ > 1 or world.workload.get("ordered") or not retries
        sends = 1 + (tried if again else 0)
        until_ms = self.moment.at_ms + sends * period_ms
        brokers = [one.name for one in world.seen_by(self.client, "broker")]
        late_ms = max(world.round_trips_ms(self.client, brokers, self.moment.at_ms, until_ms), default=0)
        window = Window(0, sends * (period_ms + late_ms), f"{sends}/rate", row, 2)
        if late_ms:
            window = window._replace(formula=f"{window.formula}, each a round trip of {late_ms / 1000:g} s later")
        window = window.plus(max(late_ms - period_ms, 0.0), "what is left of the send before")
        cap_ms = world.send_cap_ms(self.client)
        if cap_ms is not None and late_ms > cap_ms:
            window = window.plus(cap_ms * int(str(retries)), "the tries before the last")
        if lost_ and waits_out_a_close(world, self.client):
            window = window.plus(self.timers.T_ms, "T")
        return window

    # -- pulls

    def pull(self) -> Window:
        world, row = self.world, "consumer's first answered pull"
        window = Window(0, 2 * HOLD_MS, f"2·{HOLD_MS / 1000:g} s", row, 2)
        if world.views_differ:
            return _never("consumers may see different brokers, so each shares out queues of its own")
        queues = world.queues_of(self.client) or 4
        consumers = 1 if world.workload.get("broadcasting") else len(world.members_of(self.client))
        if queues * self._all_brokers < consumers:
            return _never("the group has fewer queues than consumers, so one may have none to pull")
        left = self._all_brokers - len(self.brokers)
        if self.hidden:
            left = max(1, left - len(self.hidden))  # a route names one at least
        if queues * left < consumers and (self.moment.phase == "start" or queues * self._left < consumers):
            return _never("its NameServers may name so few brokers to it that it has no queue")
        if queues * left < consumers:
            back = self._back().plus(self.timers.Qr_ms, "Qr", 1)._replace(row=row)
            return back.plus(window.latest_ms, window.formula)
        cut_off = sum(map(self._is_cut_off, self.brokers))
        if cut_off and queues * self._all_brokers // consumers <= queues * cut_off:
            return _never("all its queues may lie on brokers that only it cannot reach, and those stay in the routes")
        if self.hidden:  # a broker that leaves the route takes its queue away, and the pull that is held there
            window = Window(0, 3 * HOLD_MS, f"3·{HOLD_MS / 1000:g} s", row, 2)
        leaves = self._leaves()
        return window if leaves is None else leaves.plus(window.latest_ms, window.formula)._replace(row=row)


def hidden(world: World, client: str, at_ms: float) -> frozenset[str]:
    """The brokers that some NameServer of the client's list may not name then: their way to it, or it, was hit."""
    found = (
        node.name
        for node in world.seen_by(client, "broker")
        for server in world.listed(client)
        for fault in (*world.link_faults(node.name, server.name), *world.process_faults(server.name))
        if fault.overlaps(at_ms - settle_ms(world), at_ms + MOMENT_MS) and not world.harmless(fault)
    )
    return frozenset(found)


def hides_too_many(world: World, client: str, at_ms: float, missing: Collection[str]) -> bool:
    """Whether the client's route may have nobody to send to: all that it names are lost, or, as a route without a
    master is taken (one without any broker is not), slaves."""
    away = hidden(world, client, at_ms) - set(missing)
    left = len(world.seen_by(client, "broker")) - len(missing) - len(away)
    return bool(away) and (bool(missing) or (bool(world.of_kind("slave")) and left <= 0))


def waits_out_a_close(world: World, client: str) -> bool:
    """Whether a call under way as its server closes the connection waits for its time-out: Apache's client up to 4.9
    hears of a close by a reset alone (its handler has no channelInactive); 5.x, and ours, fail it at once."""
    return not world.is_ours(client) and world.client_profile_of(client).name.startswith(("java-3", "java-4"))


def passed_over(brokers: int, lost: int, queues: int) -> float:
    """The share of sends that fail at most when each that fails on a lost broker takes one good queue of the round.

    One of each lost broker's queues is met a round, because a retry goes to another broker's; 1 where no queue is left.
    Source: `DefaultMQProducerImpl.sendDefaultImpl`, which picks the queue of the next try before it looks at the time.
    """
    return 1.0 if queues * (brokers - lost) <= lost else lost / (queues * (brokers - lost))


def turns_lost(world: World, brokers: int, lost: int, queues: int) -> int:
    """How many sends in a row may meet `lost` of the brokers: each of their queues in its turn. Messages of a sharding
    key keep to their queue, so there it is each key whose queue is lost: all keys, where they are few."""
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

"""Part of timers_kept: the periodic tasks of a broker, and its registrations (oracle/broker.py).

    ns-0   ├─ ok ┤                  a round: begun at every NameServer of the broker's list at one moment, however long
    ns-1   ├─ ok ┤                  each takes to answer, and over when the last has answered or was given up
    ns-2   ├─ hangs ─────── B ┤

By the broker's own record: `register` (begun duration_ms before its row), `topic`, `name_server_list` where it fetches
its list; `data_version` of the questions before.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ....remoting.codes import MASTER_ID, TABLES_OF_SLAVES
from ...oracle.broker import LIGHT_HEARTBEAT, REGISTER, SYNCHRONIZE, Broker, tasks
from ...oracle.intervals import grouped
from ...oracle.link import EXACT_MS
from ...oracle.lists import must_have
from ...oracle.recorded import Life
from ...oracle.roles import elects
from ...oracle.slaves import slaves_of
from ...oracle.timers import Act
from ...oracle.world import World
from ...topology import broker_name
from ...verdict import Finding
from ..findings import Done, of_done
from ..record.control import Control, Row
from ..record.registered_rows import registered_rows, row_of
from ..record.timer_acts import Run
from .tasks import Tasks

_TASK, _BEAT, _REGISTER = "registration", "BROKER_HEARTBEAT", "REGISTER_BROKER"
_BEATS = "BrokerController.sendHeartbeat: each brokerHeartbeatInterval to every NameServer"


class BrokerTasks(Tasks):
    """Of one process."""

    def __init__(self, control: Control, world: World, life: Life) -> None:
        super().__init__(control, world, life, "broker", tasks(world, life.node))
        self._rows = registered_rows(control, world)
        sent = {
            name: [one for one in self._rows.sent(life.node, name) if one.version[0] == life.incarnation]
            for name in self.name_servers
        }
        self._fetched = self._lists() if world.asks_for_list(life.node) else None
        self._machine = Broker(world, life, sent, self._changes(), [*self._asked()], self._fetched)

    def _changes(self) -> dict[float, float]:
        found: dict[float, float] = {}
        for run in self.rows("topic"):
            version = run.value.get("version")
            if version is not None and row_of(run.row.decoded) is not None:
                found.setdefault(run.ended_ms, float(version))
        return found

    def _asked(self) -> Iterator[tuple[float, bool]]:
        """Of each round of questions, which are asked at one moment: when it was over, and whether one NameServer said
        that the version has changed, or nothing."""
        ended_ms, is_changed = -math.inf, False
        for run in self.rows("data_version"):
            if run.began_ms - EXACT_MS > ended_ms > 0:  # who refuses, answers in the moment in which all are asked
                yield ended_ms, is_changed
                is_changed = False
            ended_ms = run.ended_ms
            is_changed = is_changed or bool(run.value["changed"])
        if ended_ms > 0:
            yield ended_ms, is_changed

    def _lists(self) -> list[tuple[float, list[str]]]:
        names, fetched = self.world.owners, self.rows("name_server_list")
        return [(run.ended_ms, [names.get(at, at) for at in run.row.decoded or ()]) for run in fetched]

    def others(self) -> Iterator[Finding]:
        row = "BrokerOuterAPI: a registration ends by registerBrokerTimeoutMills"
        yield from self.finding(_TASK, "ends by its time-out", row, map(self._registration, self.calls))
        row = "BrokerOuterAPI.registerBrokerAll: a task for each NameServer, all at once"
        yield from self.finding(_TASK, "begins at all NameServers at once", row, self._machine.everywhere(self.end_ms))
        row = "BrokerController.start: registers before its timer does"
        yield from self.finding(_TASK, "registers at its start", row, self._machine.first(self.end_ms))
        row = "BrokerController.registerBrokerAll: at once when a topic, or brokerPermission, changes"
        yield from self.finding(_TASK, "registers changes at once", row, self._machine.changes(self.end_ms))
        row = "BrokerController.registerBrokerAll: at once when a NameServer has another data version"
        yield from self.finding(_TASK, "registers as answered", row, self._machine.answers(self.end_ms))
        row, span = "BrokerOuterAPI: registers with the NameServers of its list", (self.start_ms, self.end_ms)
        for server, registered in self._machine.elsewhere():
            about, done = (self.life.node, server), (Done(*one) for one in registered)
            yield from of_done(about, "registers where its list says", row, done, span=span)
        yield from self._beats()
        row, acts = (
            "BrokerController.start: sends 904 only with enableSlaveActingMaster",
            LIGHT_HEARTBEAT in self._names,
        )
        beats = (Done(run.began_ms, acts) for run in self.runs_of(LIGHT_HEARTBEAT))
        yield from self.done("heartbeat", "heartbeats where a slave may act", row, beats)
        row, is_forced = "BrokerController.registerBrokerAll: forceRegister || needRegister", self._is_forced
        asked = (Done(run.began_ms, not is_forced) for run in self.rows("data_version"))
        yield from self.done("question", "asks only without forceRegister", row, asked)
        yield from self._registrations()
        row = "SlaveSynchronize.syncAll: asks its master for topics, consumer offsets, delay offsets and groups"
        yield from self.done(SYNCHRONIZE, "asks for each table", row, self._copied())
        row = "BrokerController.shutdown: unregisterBrokerAll"
        stops = self.end_ms, self.life.end_ms
        peers = [name for name in self.name_servers if must_have(self.world, self.life.node, name, *stops)]
        yield from self.leave(self._gone(), peers, row)

    @property
    def _names(self) -> set[str]:
        return {one.task for one in self.schedules}

    @property
    def _is_forced(self) -> bool:
        return self.world.is_ours(self.life.node) and bool(self.world.setting(self.life.node, "forceRegister"))

    def _registrations(self) -> Iterator[Finding]:
        """By each NameServer that recorded what it read: it was sent what the broker began, once, on one channel."""
        rows = (row for row in self.control.rows("request_read") if row.f == _REGISTER)
        read = grouped(((row.node, row.incarnation), row) for row in rows if self._is_own(row))
        for (server, number), of in read.items():
            about, every = (self.life.node, server), [row for row in of if self.start_ms <= row.time_ms <= self.end_ms]
            row = "BrokerOuterAPI.registerBrokerAll: one registration a round"
            yield from of_done(about, "registers once a round", row, self._once(server, of, every))
            row = "NettyRemotingClient.getAndCreateChannel: one channel an address"
            yield from of_done(about, "registers on one channel", row, self._on_one_channel(server, number, every))
            row = "NettyRemotingClient.invokeSync: clientCloseSocketIfTimeout"
            yield from of_done(about, "closes channels of time-outs", row, self._after_time_outs(server, every))

    def _is_own(self, row: Row) -> bool:
        """Whether the registration may be this node's: nobody was making one by hand of the same address."""
        acts = (a for a in self.world.acts if a.f == "register" and (a.node, a.address) == (row.node, row.address))
        is_by_hand = any(a.began_ms - self.near_ms <= row.time_ms <= a.ended_ms + self.near_ms for a in acts)
        return self.world.owners.get(row.address) == self.life.node and not is_by_hand

    def _once(self, server: str, of: Sequence[Row], every: Sequence[Row]) -> Iterator[Done]:
        """Each is wrong behind which the NameServer has read more than the broker has begun. What is under way when a
        process ends has no row."""
        begun, lives = self._begun(server), self.world.lives_of(self.life.node)
        for row in every:
            unsaid = sum(life.start_ms <= row.time_ms for life in lives)
            read = bisect_right(of, row.time_ms, key=lambda one: one.time_ms)
            yield Done(row.time_ms, read <= bisect_right(begun, row.time_ms + self.near_ms) + unsaid)

    def _begun(self, server: str) -> Sequence[float]:
        """When each registration of this node with the NameServer began, ascending, whichever process made it."""
        of_node = (row for row in self.control.rows("register") if row.node == self.life.node)
        return sorted(row.began_ms for row in of_node if self.world.owners.get(row.name_server) == server)

    def _after_time_outs(self, server: str, every: Sequence[Row]) -> Iterator[Done]:
        """Of each channel that was open when a call began that timed out: each read since. What was under way as the
        channel closed is still read, so only more reads than that are wrong."""
        closes = all(self.world.values(self.life.node, "clientCloseSocketIfTimeout"))
        waits = [run for run in self.rows("timed_out") if self.world.owners.get(run.row.address) == server]
        begun, near_ms = self._begun(server), self.near_ms
        for read in grouped((row.op_id, row.time_ms) for row in every).values() if closes else ():
            closed_ms = next((run.ended_ms for run in waits if run.began_ms > read[0] + near_ms), math.inf)
            last_ms = read[bisect_right(read, closed_ms + near_ms) - 1]
            under_way = [at_ms for at_ms in begun if last_ms - near_ms <= at_ms <= closed_ms + near_ms]
            for number, at_ms in enumerate(read[bisect_right(read, last_ms) :]):
                yield Done(at_ms, number < len(under_way))

    def _on_one_channel(self, server: str, number: int, every: Sequence[Row]) -> Iterator[Done]:
        """Each is wrong that came on another channel than the one before, which neither end had a reason to close."""
        ended = {
            row.op_id: row.time_ms
            for row in self.control.rows("channel_ended")
            if (row.node, row.incarnation) == (server, number)
        }
        failed = [call.ended_ms for call in self.calls if call.row.type != "ok"]
        for one, other in pairwise(every):
            from_ms, to_ms = one.time_ms - self.timers.B_ms, other.time_ms + self.near_ms
            is_new = one.op_id != other.op_id and ended.get(one.op_id, math.inf) > to_ms
            has_reason = self.within(failed, from_ms, to_ms) or self.troubles.among([server], from_ms, to_ms)
            yield Done(other.time_ms, not is_new or bool(has_reason))

    def _copied(self) -> Iterator[Done]:
        """Of each round in which a slave copied its master's tables: whether the master read a request for each. The
        requests name no slave, so a master with several is left out. A slave that may act as master asks no master that
        a NameServer has dropped, or need not have (`onMinBrokerChange`)."""
        name = broker_name(self.life.node)
        if slaves_of(self.world, name) != (self.life.node,) or not self.world.is_ours(name) or elects(self.world, name):
            return
        told = [run for run in self.rows("register") if run.row.type == "ok" and "ha" in run.value]
        asked = (row for row in self.control.rows("request_read") if row.node == name)
        read = grouped((row.f, row.time_ms) for row in asked)
        dropped = (row for row in self.control.rows("broker_dropped") if row.broker_name == name)
        drops = [row.time_ms for row in dropped if row.broker_id == MASTER_ID]
        may_act = any(self.world.values(self.life.node, "enableSlaveActingMaster"))
        for run in self.runs_of(SYNCHRONIZE):
            from_ms, to_ms = run.began_ms - self.near_ms, run.ended_ms + self.near_ms
            since_ms = from_ms - self.timers.registers_ms
            first = bisect_left(told, since_ms, key=lambda one: one.ended_ms)
            last = bisect_right(told, from_ms, key=lambda one: one.ended_ms)
            known = (one.value["master"] for one in told[first:last])
            names = {self.world.owners.get(address, "") for address in known}
            is_hit = self.held(from_ms, to_ms) or self.troubles.among([name], since_ms, to_ms)
            is_left = may_act and (
                self.within(drops, since_ms, to_ms)
                or not all(must_have(self.world, name, server, since_ms, to_ms) for server in self.name_servers)
            )
            if names == {name} and not is_hit and not is_left and to_ms <= self.end_ms:
                unread = [
                    code.name for code in TABLES_OF_SLAVES if not self.within(read.get(code.name, ()), from_ms, to_ms)
                ]
                yield Done(run.began_ms, not unread, ", ".join(unread))

    def _beats(self) -> Iterator[Finding]:
        """Of each NameServer that recorded what it read: whether each round of light heartbeats (904) reached it."""
        beats = (row for row in self.control.rows("request_read") if row.f == _BEAT)
        own = (row for row in beats if self.world.owners.get(row.address) == self.life.node)
        read, rounds = grouped((row.node, row.time_ms) for row in own), self.runs_of(LIGHT_HEARTBEAT)
        for server in self.name_servers if read and rounds else ():
            span, done = (rounds[0].began_ms, rounds[-1].ended_ms), self._beaten(server, rounds, read.get(server, ()))
            yield from of_done((self.life.node, server), "heartbeats everywhere", _BEATS, done, span=span)

    def _beaten(self, server: str, rounds: Sequence[Run], read: Sequence[float]) -> Iterator[Done]:
        for run in rounds:
            times = run.began_ms - self.near_ms, run.ended_ms + self.near_ms
            is_hit = self.held(*times) or self.troubles.among([server], times[0] - self.timers.R_ms, times[1])
            if times[1] <= self.end_ms and self._has(server, *times) and not is_hit:
                # The broker, Toxiproxy and the NameServer may each be late, one behind the other.
                late = self.control.lateness.tolerance(self.world, (self.life.node, server), *times, 3)
                yield Done(run.began_ms, self.within(read, times[0], times[1] + late.valid_up_to_ms))

    def _has(self, server: str, from_ms: float, to_ms: float) -> bool:
        """Whether the NameServer is on the broker's list in that time, and the process has fetched such a list."""
        fetched = self._fetched is None or any(at_ms <= from_ms and server in listed for at_ms, listed in self._fetched)
        return fetched and must_have(self.world, self.life.node, server, from_ms, to_ms)

    def _gone(self) -> Iterator[tuple[Row, str]]:
        """Where NameServers dropped it, and how. A NameServer that read its 104 then need not have gone by that."""
        who = broker_name(self.life.node), self.world.address_at(self.life.node, self.end_ms)
        said = [r for r in self.control.rows("broker_dropped", "request_read") if (r.broker_name, r.address) == who]
        asked = {r.node for r in said if r.f == "UNREGISTER_BROKER" and self.end_ms <= r.time_ms <= self.life.end_ms}
        for row in said:
            if row.event == "broker_dropped":
                yield row, "unregistered" if row.node in asked else str(row.said.get("reason"))

    def _registration(self, call: Run) -> Act:
        return self.length(call, self.call_ms(1) + self.timers.delivery_ms, "B")

    def longest_ms(self, task: str, from_ms: float, to_ms: float) -> float:
        return self._machine.longest_ms(task, from_ms, to_ms, self.asked_ms(from_ms, to_ms))

    def calls_of(self, task: str, run: Run) -> int:
        of = {SYNCHRONIZE: len(TABLES_OF_SLAVES), REGISTER: 2}
        return of[task] if task in of else super().calls_of(task, run)

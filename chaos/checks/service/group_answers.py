"""Part of timers_kept: what brokers answer consumers about their group.

| a broker                                       | rows                                          | of                |
|------------------------------------------------|-----------------------------------------------|-------------------|
| lists the members of which it has heard (38),  | client_heartbeat, client_gone;                | ConsumerManager   |
| and refuses where there is none, and only then | members_listed, refused                       |                   |
| refuses a pull (24) while no member is there,  | the same; pull_asked, pull_delayed            | PullMessage-      |
| or none has the topic, and only then           |                                               | Processor         |
| refuses a pull (25) that is newer than all     | the same                                      | ConsumerGroupInfo |
| that members said, and only such a pull        |                                               |                   |
| is asked as often for members as the others    | members_listed; client_heartbeat, client_gone | MQClientInstance  |

Which broker of a name refused a pull, nobody records: all that may have been asked are looked at.
"""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from operator import itemgetter

from ....remoting.codes import RequestCode, ResponseCode
from ...oracle.intervals import Stretch, grouped
from ...oracle.queue_owners import heard_by, node_of_client
from ...oracle.quiet import calm
from ...oracle.time_outs import PULL_CALL_MS, REBALANCE
from ...oracle.world import World
from ...topology import broker_name, node_of_client_id
from ...verdict import Finding
from ..findings import Done, of_done
from ..record.control import Control, Row, once
from ..record.lateness import may_time_out
from ..record.timer_acts import Process, Run
from ..record.turns import client_routes

_BY_CHANCE = 1e-9
"""How often a run may call fair draws unfair."""


def _at_least(times: int, draws: int, of: int) -> float:
    """How likely one of so many is to be drawn so often by fair draws."""
    logs = (
        math.lgamma(draws + 1)
        - math.lgamma(n + 1)
        - math.lgamma(draws - n + 1)
        - n * math.log(of)
        + (draws - n) * math.log1p(-1 / of)
        for n in range(times, draws + 1)
    )
    return sum(map(math.exp, logs))


@once
def heard_by_brokers(control: Control, world: World) -> Mapping[str, Mapping[str, Sequence[Stretch]]]:
    return heard_by(world, control.rows)


class GroupAnswers(Process):
    """Those to one process of a consumer."""

    def findings(self) -> Iterator[Finding]:
        yield from self._listed()
        yield from self._drawn()
        row = "ConsumerManager: a group is known while a member is there, with the topics of the last heartbeat"
        yield from self.of_brokers("knows its group", row, self._known())
        row = "ConsumerGroupInfo.updateSubscription: only a newer subscription replaces a group's subscription"
        yield from self.of_brokers("newest subscription", row, self._newest())
        if not self.world.setting(self.life.node, "postSubscriptionWhenPull"):  # else a pull needs no heartbeat
            row = "PullMessageProcessor: a pull of a group without a member is refused"
            yield from self.of_brokers("refuses strangers", row, self._strangers())

    def _listed(self) -> Iterator[Finding]:
        row = "ConsumerManageProcessor.getConsumerListByGroup: the members whose heartbeats the broker read"
        for broker, of in sorted(grouped(self._members_listed()).items()):
            yield from of_done((broker, "members"), "lists its members", row, of)
        row = "ConsumerManageProcessor.getConsumerListByGroup: without a member it refuses the question (code 1)"
        lists = ((self.world.owners.get(run.row.address, ""), run) for run in self.rows("members_listed"))
        for broker, runs in sorted(grouped(lists).items()):
            done = (Done(run.ended_ms, run.row.decoded != []) for run in runs)
            yield from of_done((broker, "members"), "refuses without members", row, done)
        row = "ConsumerManageProcessor.getConsumerListByGroup: refuses the question only without a member"
        yield from self.of_brokers("answers with its members", row, self._refused())

    def _refused(self) -> Iterator[tuple[str, Done]]:
        """Whether each broker that answered without a list had no member whose heartbeat it had read."""
        for run in self.rows("refused"):
            broker = self.world.owners.get(run.row.address, "")
            if run.row.f != RequestCode.GET_CONSUMER_LIST_BY_GROUP.name:
                continue
            span = self.before_pauses(run.ended_ms) - self.timers.A_ms, run.ended_ms + self.near_ms
            yield broker, Done(run.ended_ms, not self._must_answer(broker, run.row.address, *span))

    def _members_listed(self) -> Iterator[tuple[str, Done]]:
        """Whether each broker listed to this consumer all members that the broker had heard of, and nobody else."""
        near_ms = self.near_ms
        for run in self.rows("members_listed"):
            broker = self.world.owners.get(run.row.address, "")
            from_ms = self.before_pauses(run.ended_ms) - self.timers.A_ms
            listed = {node_of_client_id(one) for one in run.row.decoded or ()}
            if not self.world.is_ours(broker) or run.ended_ms + near_ms > self.world.end_ms:
                continue
            members = self.world.members_of(self.life.node)
            if any(one not in members and self.world.node(one) for one in listed):
                yield broker, Done(run.ended_ms, False)
            for member in members:
                channels = heard_by_brokers(self.control, self.world).get(broker, {}).get(member, ())
                is_there = any(c.start_ms + near_ms <= from_ms and run.ended_ms + near_ms <= c.end_ms for c in channels)
                may_be = any(c.start_ms <= run.ended_ms + near_ms and from_ms - near_ms <= c.end_ms for c in channels)
                if is_there or not may_be:
                    yield broker, Done(run.ended_ms, (member in listed) is is_there)

    def _strangers(self) -> Iterator[tuple[str, Done]]:
        """Whether each broker refused the first pulls by a channel of this consumer that came before all heartbeats of
        its group: with code 24, or because it has no such group, or topic, either. Whose channel it is, the channel's
        first heartbeat says."""
        near_ms = self.near_ms
        owner = {(r.process, r.op_id): node_of_client(r) for r in reversed(self.control.rows("client_heartbeat"))}
        refused: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for run in self.rows("pull_delayed"):
            is_other = run.row.code == ResponseCode.SYSTEM_ERROR and not self.world.acts  # else 4.9's of a lost queue
            if run.row.code and not is_other:
                # also by another name: an operator may have registered the address under it
                for name in {run.row.broker_name, *map(broker_name, self._behind(run, _first_ms(run)))}:
                    refused[name].append((_first_ms(run), run.ended_ms))
        for row in self.control.rows("pull_asked"):
            of, at_ms = heard_by_brokers(self.control, self.world).get(row.node, {}), row.time_ms
            known = (one for name in self.world.members_of(self.life.node) for one in of.get(name, ()))
            answered_ms = at_ms + PULL_CALL_MS + near_ms
            if owner.get((row.process, row.op_id)) != self.life.node or not self.start_ms <= at_ms < self.end_ms:
                continue
            if any(one.start_ms <= at_ms + near_ms and at_ms - near_ms <= one.end_ms for one in known):
                continue
            if answered_ms > self.end_ms or self.troubles.between(row.node, at_ms - near_ms, answered_ms):
                continue
            was_refused = any(a <= answered_ms and at_ms - near_ms <= b for a, b in refused[broker_name(row.node)])
            yield row.node, Done(at_ms, was_refused)

    def _newest(self) -> Iterator[tuple[str, Done]]:
        """Whether a broker that refused this consumer's pulls, since the group's subscription was older (code 25), had
        heard of one that was as new as the pulls' own, from a member that was there until then."""
        near_ms, beats = self.near_ms, self.control.rows("client_heartbeat")
        ours = self.life.node, node_of_client_id(None)  # a channel that no heartbeat came by yet may be its own
        asked = [row for row in self.control.rows("pull_asked") if node_of_client(row) in ours]
        for run in self.rows("pull_delayed"):
            if run.row.code != ResponseCode.SUBSCRIPTION_NOT_LATEST:
                continue
            from_ms, topic = self.before_pauses(_first_ms(run)) - PULL_CALL_MS, run.row.topic
            named = self._named(run, from_ms)  # nobody knows which of these refused
            pulls = (row for row in asked if row.node in named and row.time_ms <= run.ended_ms + near_ms)
            version = max((row.said["version"] for row in pulls if row.topic == topic), default=math.inf)
            had = [
                any(
                    channel.start_ms <= row.time_ms < from_ms and run.ended_ms + near_ms <= channel.end_ms
                    for row in beats
                    if row.node == broker and _version(row, topic) >= version
                    for channel in heard_by_brokers(self.control, self.world)
                    .get(broker, {})
                    .get(node_of_client(row), ())
                )
                for broker in named
            ]
            if named:
                yield named[0], Done(run.ended_ms, not all(had))

    def _drawn(self) -> Iterator[Finding]:
        """Whether it drew whom it asks for the members: of its questions that had the same brokers to draw from, no
        broker got so many that fair draws give as many in one run of a thousand million. A question without a list has
        no row: it went to the one broker that may not have answered; in quiet rounds any may have got it."""
        quiet, rounds, near_ms = calm(self.world), self.runs_of(REBALANCE), self.near_ms
        owners, listed = self.world.owners, dict[tuple[int, str], str]()
        for run in self.rows("members_listed"):
            at = bisect_left(rounds, run.row.seq, key=lambda one: one.row.seq)
            if at < len(rounds) and rounds[at].began_ms <= run.ended_ms + self.timers.at_once_ms:
                listed[at, run.row.topic] = broker_name(owners.get(run.row.address, ""))
        topics = sorted({run.row.topic for run in self.rows("members_listed")})
        asked: dict[frozenset[str], list[tuple[float, str]]] = defaultdict(list)
        for (at, run), topic in product(enumerate(rounds), topics):
            # as long as its questions may take, so that what is left out does not hang on whom it drew
            until_ms = max(run.ended_ms, run.began_ms + self.timers.A_ms * len(topics))
            route, then = (client_routes(self.control).at(*self.process, topic, ms) for ms in (run.began_ms, until_ms))
            brokers, silent = route.get("brokers") or {}, set[str]()
            places = [(name, owners.get(to, ""), to) for name, ids in brokers.items() for to in ids.values()]
            if route != then or any(name != broker_name(node) for name, node, _ in places):
                continue  # somebody registered another by hand
            if not any(one.start_ms <= run.began_ms and run.ended_ms <= one.end_ms for one in quiet):
                span = run.began_ms - near_ms, until_ms + near_ms
                silent = {name for name, node, address in places if not self._must_answer(node, address, *span)}
                if len(silent) > 1 or until_ms > self.end_ms or self._is_late({node for _, node, _ in places}, *span):
                    continue
            asked[frozenset(brokers)].append((run.ended_ms, listed.get((at, topic), "".join(silent))))
        for names, of in asked.items():
            most, times = max(Counter(name for _, name in of if name).items(), key=itemgetter(1), default=("", 0))
            processes = sum(len(self.world.lives_of(one.name)) for one in self.world.of_kind("consumer"))
            likely = _at_least(times, len(of), len(names)) if len(names) > 1 else 1.0
            about, span = (self.life.node, most), (of[0][0], of[-1][0])
            row = "MQClientInstance.findBrokerAddrByTopic: a random broker of the topic's route"
            is_wrong = len(names) * processes * likely < _BY_CHANCE
            done = [Done(of[0][0], not is_wrong, f"{times} of {len(of)} times")] if most else []
            yield from of_done(about, "asks a random broker", row, done, span=span, to_ms=of[-1][0])

    def _must_answer(self, broker: str, address: str, from_ms: float, to_ms: float) -> bool:
        """Whether the broker must have answered there: nothing kept it from that, and it knew one member throughout."""
        heard = heard_by_brokers(self.control, self.world).get(broker, {})
        known = (one for name in self.world.members_of(self.life.node) for one in heard.get(name, ()))
        is_there = all(self.world.address_at(broker, at_ms) == address for at_ms in (from_ms, to_ms))
        if not self.world.is_ours(broker) or not is_there or self.troubles.among([broker], from_ms, to_ms):
            return False
        return any(one.start_ms <= from_ms and to_ms <= one.end_ms for one in known)

    def _is_late(self, brokers: Collection[str], from_ms: float, to_ms: float) -> bool:
        """Whether a call to one of these brokers may have run out by itself."""
        lag_ms = self.control.lateness.largest(self.world, (self.life.node, *brokers), from_ms, to_ms)
        return self.held(from_ms, to_ms) or lag_ms is None or may_time_out(self.timers, lag_ms, self.timers.A_ms)

    def _known(self) -> Iterator[tuple[str, Done]]:
        """Whether a broker that answered this consumer that it does not know its group, or no topic of it, had heard of
        no member, or of members without this topic."""
        near_ms = self.near_ms
        members = frozenset(self.world.members_of(self.life.node))
        for run in self.rows("pull_delayed"):
            if run.row.code != ResponseCode.SUBSCRIPTION_NOT_EXIST:
                continue
            ended_ms = run.ended_ms + near_ms
            from_ms = self.before_pauses(_first_ms(run) + near_ms) - self.timers.A_ms
            named = self._named(run, from_ms - PULL_CALL_MS)  # whom it had asked for so long, and who may have refused
            if not named:
                continue
            if any(self.troubles.between(one, from_ms, ended_ms) for one in named):
                from_ms -= PULL_CALL_MS  # asked, and refused, before the link held up the request or the answer
            heard = [self._topics_at(one, members, from_ms, ended_ms) for one in named]
            yield named[0], Done(run.ended_ms, not all(run.row.topic in topics for topics in heard))

    def _named(self, run: Run, from_ms: float) -> Sequence[str]:
        """The nodes that may have answered these pulls; () where one of these is another's, that was registered by
        hand."""
        nodes = self._behind(run, from_ms)
        return nodes if all(broker_name(node) == run.row.broker_name for node in nodes) else ()

    def _behind(self, run: Run, from_ms: float) -> Sequence[str]:
        """The nodes at the addresses that some route of this consumer, of whichever topic, named for the name of the
        pulls' broker in that time (`brokerAddrTable`)."""
        name = run.row.broker_name
        named = self.spans(lambda routes: {at for brokers in routes for at in (brokers.get(name) or {}).values()})
        there = (address for address, of in named.items() if any(a <= run.ended_ms and from_ms <= b for a, b in of))
        return sorted({self.world.owners.get(address, "") for address in there})

    def _topics_at(self, broker: str, members: frozenset[str], from_ms: float, to_ms: float) -> frozenset[str]:
        """Which topics all heartbeats named that held at the broker in this time; none unless a member was there
        throughout."""
        of_members = heard_by_brokers(self.control, self.world).get(broker, {})
        channels = (one for name in members for one in of_members.get(name, ()))
        if not any(one.start_ms <= from_ms and to_ms <= one.end_ms for one in channels):
            return frozenset()
        topics: frozenset[str] | None = None
        for row in self.control.rows("client_heartbeat"):
            if row.node == broker and row.time_ms <= to_ms and node_of_client(row) in members:
                named = frozenset(row.said.get("versions") or ())
                topics = named if topics is None or row.time_ms <= from_ms else topics & named
        return topics or frozenset()


def _version(row: Row, topic: str) -> float:
    """The subVersion of the topic in a heartbeat."""
    return float((row.said.get("versions") or {}).get(topic, -math.inf))


def _first_ms(run: Run) -> float:
    """When the first of a row's pulls was put off (`pull_delayed`)."""
    return run.ended_ms - (run.row.duration_ms or 0.0) * int(run.value.get("times", 1))

"""Part of timers_kept: what a client says of itself to brokers, which these serve it by.

| a client says              | it must be                                                      | rows             |
|----------------------------|-----------------------------------------------------------------|------------------|
| its clientId               | that of its process, and of no other client                     | client_heartbeat,|
|                            |                                                                 | client_id        |
| of its requests: a version | its RocketMQ's                                                  | client_heartbeat |
| its groups, their topics,  | those of the workload, which subscribes to every tag            | client_heartbeat |
| message model, expression  |                                                                 |                  |
| how each group consumes    | CONSUME_PASSIVELY, CONSUME_FROM_FIRST_OFFSET                    | client_heartbeat |
| of a message that it sends | delayLevel 0: the broker chooses the level; its own             | request_read     |
| back                       | maxReconsumeTimes                                               |                  |
| each topic's subVersion    | another one when its queues of the topic have changed           | client_heartbeat,|
|                            |                                                                 | assigned         |
| of a pull: how many        | pullBatchSize; BROKER_SUSPEND_MAX_TIME_MILLIS                   | pull_asked       |
| messages, how long held    |                                                                 |                  |

Upstream: `ClientConfig.changeInstanceNameToPID`, `MQClientInstance.prepareHeartbeatData`,
`RebalancePushImpl.messageQueueChanged`, `DefaultMQPushConsumerImpl`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from ....remoting.node.profile import Profile
from ....remoting.topics import RETRY_GROUP_TOPIC_PREFIX
from ...oracle.intervals import grouped
from ...oracle.queue_owners import least_asked
from ...oracle.time_outs import HEARTBEAT, SUSPEND_MS
from ...topology import PRODUCER_GROUP, node_of_client_id
from ...verdict import Finding
from ..findings import Done, because, of_done
from ..record.control import Control, Row, once
from ..record.timer_acts import Process, of_client

PULL = "pull"
SENT_BACK = "CONSUMER_SEND_MSG_BACK"
PRODUCER = "PRODUCER"
_HEARTBEAT = "MQClientInstance.prepareHeartbeatData: a heartbeat "
_PULL = "DefaultMQPushConsumerImpl.pullMessage: "
_SENT_BACK = "DefaultMQPushConsumerImpl.sendMessageBack: "
_SAID_IN = {
    _HEARTBEAT: ("client_heartbeat", HEARTBEAT),
    _PULL: ("pull_asked", PULL),
    _SENT_BACK: ("request_read", SENT_BACK),
}
"""The event of a rule's rows, and what the client does."""
CONSUMES = "CONSUME_PASSIVELY", "CONSUME_FROM_FIRST_OFFSET"
"""consumeType and consumeFromWhere of the workload's consumers."""
_Said = Mapping[str, Any]


class Told(Process):
    """What one process of a client said."""

    def findings(self) -> Iterator[Finding]:
        node, group = self.life.node, self.world.group_of(self.life.node)
        clients = [(row.said.get("client"), row.node) for row in self.control.rows("client_id")]
        ids = {id_ for id_, of in clients if of == node}
        if ids:
            rule = "ClientConfig.changeInstanceNameToPID: a clientId has the pid and nanoTime of its process"
            own = {run.value.get("client") for run in self.rows("client_id")}
            shared = ((id_, of) for id_, of in clients if id_ in own and node_of_client_id(id_) != node)
            others = because(of for _, of in shared if of != node)
            done = [Done(self.start_ms, not others), *[Done(self.start_ms, True)] * (len(ids) - 1)]
            yield from self.done(HEARTBEAT, "has its own clientId", rule, done, to_ms=self.end_ms, more=others)
            rule = _HEARTBEAT + "has the clientId of its process"
            yield from self._said("has its clientId", rule, lambda said: said["client"] in ids, "client")
        rule, versions = _HEARTBEAT + "has the version of the client's RocketMQ", [each.version for each in Profile]
        if self.world.is_ours(node):
            yield from self._said(
                "has its version", rule, lambda said: said.get("version") in (None, *versions), "version"
            )
        rule = _HEARTBEAT + "names every group of the client"
        if self.kind == "producer":
            yield from self._said("names its group", rule, self._is_named)
            return
        yield from self._said("names its group", rule, lambda said: group in said.get("groups", (group,)))
        broadcasting = bool(self.world.workload.get("broadcasting"))
        model, rule = "BROADCASTING" if broadcasting else "CLUSTERING", _HEARTBEAT + "has each group's message model"
        yield from self._said(
            "has its message model", rule, lambda said: said.get("groups", {}).get(group, model) == model, "groups"
        )
        if topic := self.world.topic_of(node):  # or the run does not say
            topics = {topic} if broadcasting else {topic, RETRY_GROUP_TOPIC_PREFIX + group}
            rule = _HEARTBEAT + "names all topics of each group"
            yield from self._said("names all topics", rule, lambda said: topics <= {*said.get("versions", ())})
            rule = _HEARTBEAT + "has each topic's expression"
            yield from self._said("has its expression", rule, lambda said: "wanted" not in said, "wanted")
            rule = _HEARTBEAT + "has each group's consumeType and consumeFromWhere"
            said_ = [*CONSUMES]
            yield from self._said(
                "consumes as set", rule, lambda said: said.get("consumes", {}).get(group, said_) == said_, "consumes"
            )
            limit, rule = str(self.world.setting(node, "maxReconsumeTimes")), _SENT_BACK + "getMaxReconsumeTimes"
            yield from self._said("sends back with its limit", rule, lambda said: said["limit"] == limit, "limit")
            rule = _SENT_BACK + "delayLevelWhenNextConsume is 0"
            yield from self._said("lets the broker delay", rule, lambda said: said["level"] == "0", "level")
        rule = "RebalancePushImpl.messageQueueChanged: a topic's subVersion is set to now"
        yield from self.done(HEARTBEAT, "has a new subVersion", rule, self._moved())
        messages, rule = int(str(self.world.setting(node, "pullBatchSize"))), _PULL + "pullBatchSize"
        yield from self._said("asks for pullBatchSize", rule, lambda said: said["messages"] == messages, "messages")
        rule = _PULL + "BROKER_SUSPEND_MAX_TIME_MILLIS"
        is_held = least_asked(self.control.rows, "held_ms").get(node) == SUSPEND_MS  # or a broker reads it wrongly
        yield from self._said("asks to be held", rule, lambda said: is_held or said["held_ms"] == SUSPEND_MS, "held_ms")

    def _is_named(self, said: _Said) -> bool:
        """Whether the producer's group is named, or the row names none; of somebody else's nobody knows the name."""
        known = PRODUCER_GROUP if self.world.is_ours(self.life.node) else None
        groups = said.get("groups", {PRODUCER_GROUP: PRODUCER})
        return any(model == PRODUCER and known in (None, group) for group, model in groups.items())

    def _said(self, kind: str, rule: str, is_right: Callable[[_Said], bool], names: str = "") -> Iterator[Finding]:
        """How often brokers were told something; wrong is what is not right, and named by this field."""
        prefix = next(one for one in _SAID_IN if rule.startswith(one))
        event, what = _SAID_IN[prefix]
        told = ((row.time_ms, row.said) for row in self._told(event))
        done = [Done(at_ms, is_right(said), _text(said.get(names)) if names else "") for at_ms, said in told]
        to_ms = self.end_ms if what == PULL and done and not done[-1].is_right else None  # its pulls go on so
        return of_done((self.life.node, what), kind, rule, done, to_ms=to_ms)

    def _told(self, event: str) -> Sequence[Row]:
        of: Iterable[Row] = of_client(self.control, event).get(self.life.node, ())
        if event == "request_read":  # it has no clientId, but the channel of the client's heartbeats
            channels = {(row.process, row.op_id) for row in self._told("client_heartbeat")}
            by_channel = _sent_back(self.control)
            of = sorted((row for channel in channels for row in by_channel.get(channel, ())), key=attrgetter("time_ms"))
        return [row for row in of if self.start_ms <= row.time_ms <= self.end_ms]

    def _moved(self) -> Iterator[Done]:
        """Of each change of its queues of a topic: whether the first heartbeat that was surely made after the change
        has another subVersion of the topic than the last one before it."""
        heard, clocks_ms = self._told("client_heartbeat"), self.timers.clocks_ms
        wait_ms = self.timers.A_ms * len(self.brokers) + self.timers.delivery_ms
        for run in self.rows("assigned"):
            before = bisect_left(heard, run.ended_ms - 1.0 - clocks_ms, key=lambda row: row.time_ms) - 1
            after = bisect_right(heard, run.ended_ms + wait_ms + clocks_ms, key=lambda row: row.time_ms)
            if before < 0 or after == len(heard):
                continue
            from_ms, at_ms = run.ended_ms - wait_ms, heard[after].time_ms
            if self.held(from_ms, at_ms) or self.troubles.among(self.brokers, from_ms, at_ms):
                continue
            versions = (row.said.get("versions") or {} for row in (heard[before], heard[after]))
            was, now = (of.get(run.row.topic) for of in versions)
            if was is not None:
                yield Done(at_ms, was != now)


@once
def _sent_back(control: Control) -> Mapping[tuple[tuple[str, int], str | None], Sequence[Row]]:
    """By the broker's process and channel, what consumers sent back."""
    rows = (row for row in control.rows("request_read") if row.f == SENT_BACK)
    return grouped(((row.process, row.op_id), row) for row in rows)


def _text(said: object) -> str:
    return ", ".join(f"{name}: {of}" for name, of in said.items()) if isinstance(said, Mapping) else str(said)

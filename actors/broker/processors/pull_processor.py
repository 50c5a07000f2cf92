"""Pull requests (11, and 361 in 5.x) with long polling.

A pull request that finds no message waits if the client allows waiting. The broker runs a waiting pull again, and
answers it, when a wanted message arrives, when the check every 5 s finds that the queue has grown, or when its waiting
time is over. A pull returns the messages that match the consumer's tags, or its SQL92 filter if enablePropertyFilter is
set. Upstream: `PullMessageProcessor`, `DefaultPullMessageResultHandler`, `PullRequestHoldService`.
"""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from ....remoting.bodies.client import SubscriptionData, SubscriptionGroupConfig
from ....remoting.bodies.route import TopicConfig
from ....remoting.codes import MASTER_ID, PERM_READ, RequestCode, ResponseCode
from ....remoting.command import RemotingCommand
from ....remoting.headers.broker import PullMessageRequestHeader, PullMessageResponseHeader
from ....remoting.transport import Connection
from ..long_poll import HeldPull
from ..services import HeldRequest, Refused, Services, refuse
from ..sql_filter import SqlError
from ..stored import STORE_TIME, SYS_FLAG_AT, Found, GetStatus, store_time_at
from ..subscriptions import TAG, FilterUnsupported, Wanted, wanted_by
from .client_processor import IN_MEMORY_BYTES


@dataclass(slots=True)
class HoldTimes:
    """The waiting times, in milliseconds, of the pulls answered between two checks, for the history.

    A pull waits until a message comes, or for `suspendTimeoutMillis` and then until the next check. A message's delay
    is measured from its store time to the answer, so a message that wrongly woke no pull counts, too.
    """

    notified: int = 0
    slowest_ms: float = 0.0
    """The longest time from the store time of a wanted message to the answer of the pull that waited for it."""
    timed_out: int = 0
    shortest_ms: float = 0.0
    """The shortest and the longest time by which a pull that found nothing was answered after its own time was over."""
    longest_ms: float = 0.0

    def answered(self, response: RemotingCommand, *, held_ms: int, wait_ms: int, now_ms: int) -> None:
        """Count a pull that is answered now: the pull has waited since `held_ms` and was allowed to wait `wait_ms`."""
        if response.code == ResponseCode.SUCCESS:
            self.notified += 1
            self.slowest_ms = max(self.slowest_ms, now_ms - max(held_ms, _first_stored_ms(response.body, now_ms)))
        elif response.code == ResponseCode.PULL_NOT_FOUND:
            past_ms = now_ms - held_ms - wait_ms
            self.shortest_ms = min(self.shortest_ms, past_ms) if self.timed_out else past_ms
            self.longest_ms = max(self.longest_ms, past_ms) if self.timed_out else past_ms
            self.timed_out += 1

    def taken(self) -> dict[str, float]:
        """Return the waiting times so far, and reset the counters."""
        said: dict[str, float] = {}
        if self.notified:
            said |= {"notified": self.notified, "slowest_ms": self.slowest_ms}
        if self.timed_out:
            said |= {"timed_out": self.timed_out, "shortest_ms": self.shortest_ms, "longest_ms": self.longest_ms}
        self.notified = self.timed_out = 0
        self.slowest_ms = self.shortest_ms = self.longest_ms = 0.0
        return said


def _first_stored_ms(records: bytes, now_ms: int) -> int:
    """The store time of the first of these records; the present time where no record can be read."""
    if len(records) < store_time_at(0x10) + STORE_TIME.size:
        return now_ms
    return int(STORE_TIME.unpack_from(records, store_time_at(records[SYS_FLAG_AT]))[0])


COMMIT_OFFSET, SUSPEND, SUBSCRIPTION = 1, 2, 4
CHECK_PERIOD_S = 5.0
_FORBIDDEN_BROKER, _FORBIDDEN_GROUP, _FORBIDDEN_TOPIC, _FORBIDDEN_BROADCASTING = 1, 2, 3, 4

_CODES = {
    GetStatus.FOUND: ResponseCode.SUCCESS,
    GetStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.NO_MESSAGE_IN_QUEUE: ResponseCode.PULL_OFFSET_MOVED,  # 19 when offset 0 was asked for
}


class _Looked(NamedTuple):
    """The result of a pull's search, before an answer is made from it; most pulls find nothing at first, and wait."""

    code: ResponseCode
    found: Found
    topic: TopicConfig
    group: SubscriptionGroupConfig
    wanted: Wanted


class PullProcessor:
    """Answers pulls, and keeps the pulls that wait in `services.holds`."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._arrived: dict[tuple[str, int], None] = {}
        self._asked: dict[int, dict[str, dict[str, object]]] = defaultdict(dict)
        """Of each channel and topic, what the last pull asked for."""
        self._hold_times = HoldTimes()

    def pull(
        self, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand | asyncio.Future[RemotingCommand | None]:
        """Answer a pull (11, 361) with messages, or with the reason why there are none. Returns a future if the request
        waits."""
        header = PullMessageRequestHeader.from_ext_fields(request.ext_fields)
        self._note(connection, header)
        looked = self._look(connection, request, header, may_commit=True)
        if looked.code != ResponseCode.PULL_NOT_FOUND or not header.sys_flag & SUSPEND:
            return self._answer(connection, header, looked)
        services, config = self._services, self._services.config
        now_ms = services.now_ms
        wait_ms = header.suspend_timeout_millis if config.long_polling_enable else config.short_polling_time_mills
        held = HeldRequest(
            partial(self._run_again, connection, request, header), asyncio.get_running_loop().create_future()
        )
        pull = HeldPull(
            connection.id,
            header.queue_offset,
            now_ms + wait_ms,
            held,
            held_ms=now_ms,
            wait_ms=wait_ms,
            wanted=looked.wanted,
            seen=header.queue_offset,
        )
        if not services.holds.hold(header.topic, header.queue_id, pull):
            # Any answer that a consumer retries at once would have it retry in a tight loop; this one it pauses on.
            remark = f"{len(services.holds)} pull requests are waiting, no more are held"
            return refuse(ResponseCode.SYSTEM_BUSY, remark)
        return held.answer

    def _note(self, connection: Connection, header: PullMessageRequestHeader) -> None:
        if header.topic not in self._services.topics.topic_config_table:
            return
        client = self._services.clients.client_id(header.consumer_group, connection.id)
        held_ms = header.suspend_timeout_millis if header.sys_flag & SUSPEND else None
        asked: dict[str, object] = {"client": client, "group": header.consumer_group}
        asked |= {"messages": header.max_msg_nums, "held_ms": held_ms, "version": header.sub_version}
        of_channel = self._asked[connection.id]
        if of_channel.get(header.topic) != asked:
            of_channel[header.topic] = asked
            channel = {"op_id": str(connection.id), "address": str(connection.remote_address)}
            self._services.context.record("pull_asked", **channel, topic=header.topic, value=asked)

    # Waking

    def arrived(self, topic: str, queue_id: int) -> None:
        """Answer the pulls that wait for messages of this queue, once the request that stored the messages is done."""
        key = (topic, queue_id)
        if key in self._services.holds:
            if not self._arrived:
                asyncio.get_running_loop().call_soon(self._wake)
            self._arrived[key] = None

    def check(self) -> dict[str, float]:
        """Check all waiting pulls (every 5 s). Returns how long the pulls answered since the last check had waited."""
        services = self._services
        for pull in services.holds.check(services.now_ms, services.store.max_offset):
            self._finish(pull)
        return self._hold_times.taken()

    @property
    def check_period_s(self) -> float:
        config = self._services.config
        return CHECK_PERIOD_S if config.long_polling_enable else config.short_polling_time_mills / 1000

    def connection_lost(self, connection: Connection) -> None:
        self._asked.pop(connection.id, None)
        for pull in self._services.holds.drop_connection(connection.id):
            pull.request.abandon()

    def _wake(self) -> None:
        arrived, self._arrived = self._arrived, dict[tuple[str, int], None]()
        for topic, queue_id in arrived:
            for pull in self._services.holds.wake(topic, queue_id, partial(self._wants, topic, queue_id)):
                self._finish(pull)

    def _finish(self, pull: HeldPull[HeldRequest]) -> None:
        response = pull.request.finish()
        if response is not None:
            now_ms = self._services.now_ms
            self._hold_times.answered(response, held_ms=pull.held_ms, wait_ms=pull.wait_ms, now_ms=now_ms)

    def _wants(self, topic: str, queue_id: int, pull: HeldPull[HeldRequest]) -> bool:
        wanted, pull.seen = self._services.store.wanted_in(
            topic, queue_id, pull.seen, pull.wanted.tags_codes, pull.wanted.takes
        )
        return wanted

    # Answering

    def _run_again(
        self, connection: Connection, request: RemotingCommand, header: PullMessageRequestHeader
    ) -> RemotingCommand:
        try:
            return self._answer(connection, header, self._look(connection, request, header, may_commit=False))
        except Refused as exc:
            return exc.response

    def _look(
        self, connection: Connection, request: RemotingCommand, header: PullMessageRequestHeader, *, may_commit: bool
    ) -> _Looked:
        topic, group, wanted = self._checked(connection, request, header)
        services, config = self._services, self._services.config
        max_bytes = config.max_transfer_bytes_on_message_in_memory
        if header.max_msg_bytes is not None and header.max_msg_bytes > 0:
            max_bytes = min(max_bytes, header.max_msg_bytes)
        reset = services.offsets.take_reset(header.consumer_group, header.topic, header.queue_id)
        if reset is not None:
            first, end = (
                find(header.topic, header.queue_id) for find in (services.store.min_offset, services.store.max_offset)
            )
            found = Found(GetStatus.OFFSET_RESET, reset, first, end)
            return _Looked(_CODES[found.status], found, topic, group, wanted)
        found = services.store.get(
            header.topic,
            header.queue_id,
            header.queue_offset,
            max_messages=max(1, min(header.max_msg_nums, config.max_transfer_count_on_message_in_memory)),
            max_bytes=max_bytes,
            tags_codes=wanted.tags_codes,
            takes=wanted.takes,
        )
        services.transferred_messages += found.count
        services.offsets.pulled(header.consumer_group, header.topic, header.queue_id, found.next_offset)
        if may_commit and header.sys_flag & COMMIT_OFFSET and header.commit_offset >= 0 and not config.is_slave:
            services.commit(
                connection, "pull", header.consumer_group, header.topic, header.queue_id, header.commit_offset
            )
        code = _CODES[found.status]
        if config.is_slave and code == ResponseCode.PULL_OFFSET_MOVED and header.queue_offset >= found.max_offset:
            # It has not been copied yet. Apache's slave has the consumer ask again at once, as often as it can.
            code, found = ResponseCode.PULL_NOT_FOUND, replace(found, next_offset=header.queue_offset)
        if found.status is GetStatus.NO_MESSAGE_IN_QUEUE and header.queue_offset == 0:
            code = ResponseCode.PULL_NOT_FOUND
        return _Looked(code, found, topic, group, wanted)

    def _answer(self, connection: Connection, header: PullMessageRequestHeader, looked: _Looked) -> RemotingCommand:
        code, found, topic, group, _ = looked
        if code == ResponseCode.PULL_OFFSET_MOVED:
            self._services.context.log.info(
                "%s: the request offset: %d fix to %d, broker min offset: %d, max offset: %d, consumer: %s %s",
                found.status.value,
                header.queue_offset,
                found.next_offset,
                found.min_offset,
                found.max_offset,
                header.consumer_group,
                connection.remote_address,
            )
        v5 = self._services.config.is_5x
        fields = PullMessageResponseHeader(
            suggest_which_broker_id=self._suggested(header, found, group),
            next_begin_offset=found.next_offset,
            min_offset=found.min_offset,
            max_offset=found.max_offset,
            topic_sys_flag=topic.topic_sys_flag if v5 else None,
            group_sys_flag=(group.group_sys_flag or 0) if v5 else None,
        )
        return RemotingCommand.response(code, found.status.value, header=fields, body=found.data)

    def _suggested(self, header: PullMessageRequestHeader, found: Found, group: SubscriptionGroupConfig) -> int:
        """The broker id to pull from next: a slave's id if the master would have to read from its disk."""
        store = self._services.store
        if self._services.config.slave_read_enable and found.status is GetStatus.FOUND:
            last = store.entry(header.topic, header.queue_id, found.next_offset - 1)
            if last is not None and store.max_physical_offset - last[0] > IN_MEMORY_BYTES:
                return group.which_broker_when_consume_slowly
        return group.broker_id if group.broker_id >= 0 else MASTER_ID

    def _checked(
        self, connection: Connection, request: RemotingCommand, header: PullMessageRequestHeader
    ) -> tuple[TopicConfig, SubscriptionGroupConfig, Wanted]:
        services, config = self._services, self._services.config
        if not config.broker_permission & PERM_READ:
            raise self._forbidden(_FORBIDDEN_BROKER, f"the broker[{services.host}] pulling message is forbidden")
        if request.code == RequestCode.LITE_PULL_MESSAGE and not config.lite_pull_message_enable:
            remark = f"the broker[{services.host}] for lite pull consumer is forbidden"
            raise self._forbidden(_FORBIDDEN_BROKER, remark)
        name = header.consumer_group
        group = services.groups.find(name, now_ms=services.now_ms)
        if group is None:
            raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group [{name}] does not exist")
        if not group.consume_enable:
            raise self._forbidden(_FORBIDDEN_GROUP, f"subscription group no permission, {name}")
        topic = services.topics.get(header.topic)
        if topic is None:
            remark = f"topic[{header.topic}] not exist, apply first please!"
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, remark)
        if not topic.perm & PERM_READ:
            raise self._forbidden(_FORBIDDEN_TOPIC, f"the topic[{header.topic}] pulling message is forbidden")
        if not 0 <= header.queue_id < topic.read_queue_nums:
            raise Refused(
                services.invalid_code,
                f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}] "
                f"topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[{connection.remote_address}]",
            )
        try:
            return topic, group, wanted_by(self._subscription(header, group), config)
        except FilterUnsupported as exc:
            raise Refused(ResponseCode.SYSTEM_ERROR, str(exc)) from exc
        except SqlError as exc:
            if header.sys_flag & SUBSCRIPTION:
                raise Refused(
                    ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed"
                ) from exc
            remark = "The broker's consumer filter data is not exist!Your expression may be wrong!"
            raise Refused(ResponseCode.FILTER_DATA_NOT_EXIST, remark) from exc

    def _subscription(self, header: PullMessageRequestHeader, group: SubscriptionGroupConfig) -> SubscriptionData:
        """The consumer's subscription to the topic, from the request or from its group's heartbeat. Raises Refused."""
        log, name = self._services.context.log, header.consumer_group
        if header.sys_flag & SUBSCRIPTION:
            kind = header.expression_type or TAG
            if kind != TAG:
                return SubscriptionData(topic=header.topic, sub_string=header.subscription or "", expression_type=kind)
            return SubscriptionData.of(header.topic, header.subscription)
        consumers = self._services.clients.consumers.get(name)
        if consumers is None:
            log.warning("the consumer's group info not exist, group: %s", name)
            raise Refused(ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's group info not exist")
        if not group.consume_broadcast_enable and consumers.message_model == "BROADCASTING":
            remark = f"the consumer group[{name}] can not consume by broadcast way"
            raise self._forbidden(_FORBIDDEN_BROADCASTING, remark)
        subscription = consumers.subscriptions.get(header.topic)
        if subscription is None:
            log.warning("the consumer's subscription not exist, group: %s, topic:%s", name, header.topic)
            raise Refused(ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's subscription not exist")
        if subscription.sub_version < header.sub_version:
            log.warning("The broker's subscription is not latest, group: %s %s", name, subscription.sub_string)
            raise Refused(ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
        return subscription

    def _forbidden(self, kind: int, remark: str) -> Refused:
        v5 = self._services.config.is_5x
        fields = {"forbiddenType": str(kind)} if v5 else None
        return Refused(ResponseCode.NO_PERMISSION, remark, fields)

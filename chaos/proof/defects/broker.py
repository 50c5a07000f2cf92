"""Defects of brokers: what a broker registers, with which NameServers and when; what it stores, delivers and keeps."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

from ....actors.broker.client_manager import Client
from ....actors.broker.processors.pull_processor import SUSPEND
from ....actors.broker.server import Broker
from ....actors.broker.services import Refused
from ....actors.broker.stored import Append, Found, GetStatus, PutMessage, StoreFull
from ....remoting.bodies.client import ConsumerData, ConsumerIdList
from ....remoting.bodies.route import DataVersion, TopicConfig
from ....remoting.codes import FLAG_ONEWAY, RequestCode, ResponseCode
from ....remoting.command import RemotingCommand
from ....remoting.message import StoredMessage
from ....remoting.message_properties import TAGS, UNIQ_KEY, format_properties, parse_properties
from ....remoting.node.network import Address
from ....remoting.topics import DLQ_GROUP_TOPIC_PREFIX, SCHEDULE_TOPIC
from ....remoting.transport import Connection
from ...defects import around, does_nothing, does_nothing_async, every, in_its_parts, registers_with, replace_part
from .planting import BROKER_A, BROKERS, Planted, from_its_making, may_find

STORE_DELAY_S = 5.0
"""The broker that acknowledges too early stores a message so long after it acknowledged the message."""
BATCH = 32
"""So many messages a pull asks for (`pullBatchSize`)."""
REVERSED = 4
"""So many messages of a queue are stored from the last to the first: two of them are of one producer."""
REVERSED_WITHIN_S = 12.0
REFUSES_MS = 60_000
"""The next quiet time begins later."""
RARE_PERIOD_S = 220.0
"""Longer than E + S, so that a NameServer gives such a broker up, though a 4.9 one registers once more, 60 s after its
start: with its topic of half messages."""

planted = Planted()


# -- registration


@planted(BROKER_A, "smoke", caught_by="routes_converge routes_are_true timers_kept")
@may_find("answers_are_true client_routes_are_true duplicates messages_delivered prompt_answers")
def broker_skips_a_name_server(broker: Broker) -> None:
    """a broker never registers with the first NameServer of its list"""
    around(broker, "_registration_targets")(lambda targets: targets()[1:])


@planted(BROKER_A, "list-shrinks", caught_by="timers_kept")
@may_find("routes_are_true")
def broker_registers_where_its_list_was(broker: Broker) -> None:
    """a broker goes on registering with a NameServer that is no longer on the broker's list"""
    known: dict[Address, None] = {}
    around(broker, "_registration_targets")(lambda targets: known.update(dict.fromkeys(targets())) or tuple(known))


@planted(BROKER_A, "smoke", caught_by="routes_as_registered")
def broker_makes_a_template_of_four_queues(broker: Broker) -> None:
    """a broker's template topic TBW102 has four queues, not as many as defaultTopicQueueNums says"""
    topics = broker.services.topics.topic_config_table
    topics["TBW102"] = replace(topics["TBW102"], read_queue_nums=4, write_queue_nums=4)


@planted(BROKER_A, "smoke", caught_by="routes_as_registered")
def broker_hands_the_inherit_permission_on(broker: Broker) -> None:
    """a topic that a send makes at a broker gets the template's inherit permission, too"""
    around(broker.services.topics, "put")(lambda put, topic, **of: put(replace(topic, perm=topic.perm | 1), **of))


@planted(BROKERS, "name-server-crash", caught_by="routes_converge routes_are_true")
@may_find("client_routes_are_true messages_delivered timers_kept")
def broker_never_tries_again(broker: Broker) -> None:
    """brokers never register again with a NameServer that once left a registration unanswered"""
    lost = set[Address]()

    @around(broker._registration, "_register")
    async def register_where_it_worked(register: Any, target: Address, *what: Any) -> RemotingCommand | None:
        if target in lost:
            return None
        answer: RemotingCommand | None = await register(target, *what)
        if answer is None:
            lost.add(target)
        return answer


@planted(BROKER_A, "asks-first", caught_by="timers_kept")
@may_find("client_routes_are_true routes_converge routes_are_true")
def broker_registers_no_more_where_it_asks(broker: Broker) -> None:
    """a broker with forceRegister=false does not register after a NameServer has answered that the version changed"""

    @around(broker._registration, "_need_register")
    async def never(need: Any) -> bool:
        await need()
        return False


@planted(BROKER_A, "smoke", caught_by="timers_kept")
def broker_registers_twice(broker: Broker) -> None:
    """a broker sends each registration twice"""

    @around(broker._client, "invoke")
    async def invoke(call: Any, address: Address, command: RemotingCommand, **how: Any) -> RemotingCommand:
        if command.code == RequestCode.REGISTER_BROKER:
            await call(address, replace(command, opaque=command.opaque + (1 << 20)), **how)
        return await call(address, command, **how)


@planted(BROKER_A, "smoke", caught_by="timers_kept")
def broker_registers_on_new_channels(broker: Broker) -> None:
    """a broker opens another channel to a NameServer for each registration, and leaves the last channel open"""
    channels = broker._client._channels
    left_open = []

    @around(broker._client, "invoke")
    async def invoke(call: Any, address: Address, command: RemotingCommand, **how: Any) -> RemotingCommand:
        if command.code == RequestCode.REGISTER_BROKER and address in channels:
            left_open.append(channels.pop(address))
        return await call(address, command, **how)


@planted(BROKER_A, "broker-hole", caught_by="timers_kept")
def broker_keeps_a_silent_channel(broker: Broker) -> None:
    """a broker leaves its channel to a NameServer open after a registration timed out on it"""
    replace_part(broker._client, "close_on_timeout", False)


@planted(BROKER_A, "consumer-crash", caught_by="timers_kept")
@may_find("queue_ownership")
def broker_does_not_notify_the_newest(broker: Broker) -> None:
    """a broker notifies all members of a group but the newest that the group has changed"""

    @around(broker.services.clients, "channels_of")
    def all_but_the_last(channels_of: Any, group: str) -> list[Any]:
        found: list[Any] = channels_of(group)
        return found[:-1] if len(found) > 1 else found


@planted(BROKER_A, "smoke", caught_by="timers_kept")
def broker_asks_although_forced(broker: Broker) -> None:
    """a broker asks NameServers for their data version (322) although forceRegister is true"""
    registration = broker._registration

    @around(registration, "register_all")
    async def ask_first(register: Any) -> None:
        await registration._need_register()
        await register()


@planted(BROKER_A, "slow-brokers-5x", caught_by="timers_kept")
def broker_heartbeats_for_no_slave(broker: Broker) -> None:
    """a broker of 5.x sends heartbeats (904) although enableSlaveActingMaster is false"""

    @around(broker._registration, "start")
    async def start(before: Any) -> None:
        await before()
        broker._tasks.spawn(broker._members.run())


@planted(BROKER_A, "broker-crash", caught_by="timers_kept")
def broker_waits_for_its_timer(broker: Broker) -> None:
    """a broker that is restarted does not register at its start, but 10 s later with its timer"""
    registration = broker._registration

    async def only_periodically() -> None:
        if broker._context.incarnation:
            registration._periodic = registration._spawn(registration._periodically())
        else:
            await type(registration).start(registration)

    replace_part(registration, "start", only_periodically)


@planted(BROKER_A, "name-server-crash", caught_by="routes_as_registered routes_converge routes_are_true")
@may_find("answers_are_true client_routes_are_true messages_delivered")
def broker_registers_half(broker: Broker) -> None:
    """a broker's full registrations contain only the first half of its topics"""

    @around(broker._registration, "_command")
    def command_of_half(command: Any, changed: Sequence[TopicConfig], version: DataVersion) -> Any:
        return command(changed if len(changed) == 1 else changed[: len(changed) // 2], version)


@planted(BROKER_A, "smoke", caught_by="availability")
@may_find("living_are_used recovery_time")
def broker_refuses_sends(broker: Broker) -> None:
    """a broker answers every send with code 14 (SERVICE_NOT_AVAILABLE), although routes list the broker as writable"""

    @around(broker._server, "handler")
    def refuses(handle: Any, connection: Connection, request: RemotingCommand) -> Any:
        if request.code in (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2):
            return RemotingCommand.response(ResponseCode.SERVICE_NOT_AVAILABLE, "service not available now")
        return handle(connection, request)


@planted(BROKER_A, "disk-full", caught_by="availability")
@may_find("messages_delivered")
def broker_ignores_a_full_disk(broker: Broker) -> None:
    """a broker stores messages although its disk is full"""
    replace_part(broker, "fill_disk", does_nothing)


@planted(BROKER_A, "disk-full", caught_by="availability")
def broker_refuses_for_its_full_disk_with_code_1(broker: Broker) -> None:
    """a broker whose disk is full refuses sends with SYSTEM_ERROR (code 1), not with code 14"""
    methods = broker._processor._methods
    send: Any = methods[RequestCode.SEND_MESSAGE_V2]

    def refuse_as_a_wrong_request(connection: Any, request: RemotingCommand) -> Any:
        try:
            return send(connection, request)
        except StoreFull as exc:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, str(exc))

    methods[RequestCode.SEND_MESSAGE_V2] = refuse_as_a_wrong_request


@planted(BROKER_A, "broker-crash", caught_by="availability")
def broker_refuses_a_queue(broker: Broker) -> None:
    """a broker that was started again refuses sends to queue 3 for 60 s as illegal (code 1), and retries hide this"""
    services = broker.services
    until_ms = services.now_ms + REFUSES_MS if services.context.incarnation else 0

    @around(broker._server, "handler")
    def refuses(handle: Any, connection: Connection, request: RemotingCommand) -> Any:
        is_of_queue = request.code == RequestCode.SEND_MESSAGE_V2 and (request.ext_fields or {}).get("e") == "3"
        if is_of_queue and services.now_ms < until_ms:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, "request queueId[3] is illegal")
        return handle(connection, request)


@planted(BROKER_A, "smoke", caught_by="routes_are_true")
@may_find(
    "living_are_used answers_are_true availability client_routes_are_true duplicates one_master queue_ownership "
    "registrations_are_kept routes_as_registered"
)
def broker_registers_a_wrong_address(broker: Broker) -> None:
    """a broker registers an address with a port on which the broker does not listen"""

    def next_port(address: str) -> str:
        parsed = Address.parse(address)
        return str(Address(parsed.host, parsed.port + 1))

    registers_with(broker, brokerAddr=next_port)


@planted(BROKER_A, "smoke", caught_by="routes_as_registered routes_are_true")
@may_find("answers_are_true")
def broker_registers_a_dead_id(broker: Broker) -> None:
    """a broker registers as slave 1 of a master that does not exist"""
    registers_with(broker, brokerId=lambda _: "1")


@planted(BROKER_A, "smoke", caught_by="routes_as_registered routes_are_true")
@may_find("answers_are_true")
def broker_never_steps_its_version(broker: Broker) -> None:
    """a broker registers new topics with the data version of its first registration"""
    first = list[DataVersion]()

    @around(broker._registration, "_command")
    def command_of_the_first_version(command: Any, changed: Sequence[TopicConfig], version: DataVersion) -> Any:
        first.append(version)
        return command(changed, first[0])


@planted(BROKER_A, "quiet", caught_by="routes_are_true")
@may_find(
    "answers_are_true client_routes_are_true duplicates living_are_used messages_delivered no_false_eviction "
    "prompt_answers routes_converge timers_kept"
)
def broker_registers_rarely(broker: Broker) -> None:
    """a broker registers only every 220 s, so NameServers drop the broker after 120 s"""
    registration, clock = broker._registration, broker._context.clock

    async def register_all_rarely() -> None:
        due_s = clock.monotonic_s()
        while True:
            due_s += RARE_PERIOD_S
            await clock.sleep(due_s - clock.monotonic_s())
            await registration.register_all()

    replace_part(registration, "_periodically", register_all_rarely)


@planted(BROKER_A, "broker-crash-5x", caught_by="routes_as_registered")
@may_find("client_routes_are_true no_false_eviction routes_are_true routes_converge")
def broker_registers_its_time_out_in_seconds(broker: Broker) -> None:
    """a broker registers heartbeatTimeoutMillis in seconds, so NameServers drop the broker at their next scan"""
    registers_with(broker, heartbeatTimeoutMillis=lambda text: str(int(text) // 1000))


@planted(BROKER_A, "smoke", caught_by="routes_as_registered")
def broker_registers_another_cluster(broker: Broker) -> None:
    """a broker registers another clusterName than its brokerClusterName"""
    registers_with(broker, clusterName=lambda name: f"{name}-2")


@planted(BROKER_A, "smoke", caught_by="routes_as_registered")
def broker_registers_its_own_port_for_slaves(broker: Broker) -> None:
    """a broker registers its listenPort in haServerAddr, not its haListenPort"""
    registers_with(broker, haServerAddr=lambda _: str(broker.services.address))


@planted(BROKER_A, "smoke", caught_by="routes_as_registered")
def broker_registers_unit_topics(broker: Broker) -> None:
    """a broker registers its topics with topicSysFlag 1, though no client has set unitMode"""

    @around(broker._registration, "as_permitted")
    def as_of_a_unit(permitted: Callable[[TopicConfig], TopicConfig], topic: TopicConfig) -> TopicConfig:
        return replace(permitted(topic), topic_sys_flag=1)


@planted(BROKER_A, "smoke", caught_by="routes_as_registered")
def broker_makes_a_retry_topic_of_eight_queues(broker: Broker) -> None:
    """a broker creates retry topics with as many queues as an ordinary topic has"""

    @around(broker.services.topics, "create_for_group")
    def create_as_any(create: Any, topic: str, queue_nums: int, **more: Any) -> TopicConfig | None:
        return create(topic, broker.services.config.default_topic_queue_nums, **more)


@planted(BROKER_A, "topic-then-kill", caught_by="routes_as_registered")
@may_find("messages_delivered no_acknowledged_loss")
def broker_writes_topics_at_its_stop(broker: Broker) -> None:
    """a broker writes its topics to disk when the broker stops, and not when the topics change"""
    topics, is_running = broker.services.topics, [False]
    around(topics, "persist")(lambda persist: None if is_running[0] else persist())

    @around(broker, "start")
    async def start(begin: Any) -> None:
        is_running[0] = True
        await begin()

    @around(broker, "stop")
    async def stop(end: Any) -> None:
        is_running[0] = False
        await end()


# -- messages


@planted(BROKER_A, "broker-crash", caught_by="no_acknowledged_loss")
@may_find("order_kept duplicates messages_delivered commits_follow_work")
@from_its_making
def broker_forgets_its_last_record(broker: Broker) -> None:
    """a broker that is restarted has forgotten the last message that was stored"""
    store, held = broker.store, list[tuple[StoredMessage, int]]()

    @around(store, "_index_record")
    def one_behind(index: Any, message: StoredMessage, size: int) -> None:
        if held:
            index(*held.pop())
        held.append((message, size))

    @around(store, "_recover")
    def without_the_last(recover: Any) -> Any:
        found = recover()
        if held:
            store._commit_log.cut(store._commit_log.end - held.pop()[1])
        return found


@planted(BROKER_A, "broker-crash", caught_by="no_acknowledged_loss")
@may_find("prompt_answers duplicates messages_delivered order_kept timers_kept")
def broker_acknowledges_before_store(broker: Broker) -> None:
    """a broker acknowledges a message 5 s before it stores the message"""
    store, clock, pending = broker.store, broker._context.clock, Counter[tuple[str, int]]()

    @around(store, "append")
    def acknowledge(append: Any, messages: Sequence[PutMessage], *, now_ms: int) -> Append:
        queue = (messages[0].topic, messages[0].queue_id)
        offset = store.max_offset(*queue) + pending[queue]
        pending[queue] += len(messages)

        def land() -> None:
            pending[queue] -= len(messages)
            append(messages, now_ms=now_ms)

        clock.call_later(STORE_DELAY_S, land)
        return Append(offset, tuple(range(len(messages))))


@planted(BROKER_A, "smoke", caught_by="no_acknowledged_loss")
@may_find("messages_delivered order_kept")
def broker_loses_messages(broker: Broker) -> None:
    """a broker acknowledges every 20th message without storing the message"""
    store, is_lost = broker.store, every(20)

    @around(store, "append")
    def append_most(append: Any, messages: Sequence[PutMessage], *, now_ms: int) -> Any:
        if not is_lost():
            return append(messages, now_ms=now_ms)
        return Append(store.max_offset(messages[0].topic, messages[0].queue_id), tuple(range(len(messages))))


@planted(BROKER_A, "smoke", caught_by="no_acknowledged_loss")
def broker_answers_the_id_before(broker: Broker) -> None:
    """a broker answers each send with the offsetMsgId of the message before"""
    offsets: list[tuple[int, ...]] = [(0,)]

    @around(broker.store, "append")
    def append(store: Any, messages: Sequence[PutMessage], *, now_ms: int) -> Append:
        stored: Append = store(messages, now_ms=now_ms)
        offsets.append(stored.physical_offsets)
        return replace(stored, physical_offsets=offsets.pop(0))


@planted(BROKER_A, "smoke", caught_by="no_acknowledged_loss")
def broker_stores_its_vip_port(broker: Broker) -> None:
    """a broker's records and offsetMsgIds have the port of its VIP channel (listenPort - 2)"""

    @around(broker.store, "append")
    def append(store: Any, messages: Sequence[PutMessage], *, now_ms: int) -> Append:
        own = broker.services.address
        broker.store.store_host = Address(own.host, own.port - 2)
        return cast(Append, store(messages, now_ms=now_ms))


@planted(BROKER_A, "quiet", caught_by="messages_delivered")
@may_find("prompt_answers")
def broker_halves_delays(broker: Broker) -> None:
    """a broker delivers a delayed message after half of the delay"""

    @around(broker.store, "append")
    def append_sooner(append: Any, messages: Sequence[PutMessage], *, now_ms: int) -> Any:
        if messages[0].topic == SCHEDULE_TOPIC:  # there the tags code is the due time
            messages = [replace(one, tags_code=(one.tags_code + now_ms) // 2) for one in messages]
        return append(messages, now_ms=now_ms)


@planted(BROKER_A, "quiet", caught_by="messages_delivered")
def broker_forgets_delayed_messages(broker: Broker) -> None:
    """a broker stores delayed messages and never delivers the messages to their topic"""
    around(broker._schedule, "_put")(lambda put, physical_offset: True)


def _sends_back(broker: Broker) -> Any:
    return cast(Any, broker)._processor._methods[RequestCode.CONSUMER_SEND_MSG_BACK].__self__


@planted(BROKER_A, "quiet", caught_by="messages_delivered")
def broker_returns_failed_messages_at_once(broker: Broker) -> None:
    """a broker delivers a message that a consumer sent back again at once, without the delay of the first retry"""
    around(_sends_back(broker), "_put_back")(lambda put, stored, target, level: put(stored, target, 0))


@planted(BROKER_A, "quiet", caught_by="messages_delivered")
def broker_forgets_failed_messages(broker: Broker) -> None:
    """a broker answers that it has taken a message back that a consumer sent back, and does not store the message"""
    around(_sends_back(broker), "_put_back")(lambda put, stored, target, level: None)


@planted(BROKERS, "quiet", caught_by="no_acknowledged_loss")
def broker_keeps_no_dead_letters(broker: Broker) -> None:
    """a broker does not store a message that a consumer sent back after the last of its maxReconsumeTimes"""

    @around(_sends_back(broker), "_put_back")
    def put_living(put: Any, stored: StoredMessage, target: TopicConfig, level: int) -> None:
        if not target.topic_name.startswith(DLQ_GROUP_TOPIC_PREFIX):
            put(stored, target, level)


@planted(BROKER_A, "quiet", caught_by="availability")
def broker_refuses_failed_messages(broker: Broker) -> None:
    """a broker refuses messages that consumers send back, so consumers send the messages as new messages"""

    @around(_sends_back(broker), "_put_back")
    def refuse(put: Any, stored: StoredMessage, target: TopicConfig, level: int) -> None:
        raise Refused(ResponseCode.SYSTEM_ERROR, "putMessageResult is null")


@planted(BROKER_A, "quiet", caught_by="messages_delivered")
def broker_renews_births_of_failed_messages(broker: Broker) -> None:
    """a broker stores a message that a consumer sent back with a bornTimestamp 5 s after the message was stored"""
    around(_sends_back(broker), "_put_back")(
        lambda put, stored, target, level: put(
            replace(stored, born_timestamp=stored.store_timestamp + 5_000), target, level
        )
    )


@planted(BROKER_A, "quiet", caught_by="duplicates")
def broker_stores_failed_messages_twice(broker: Broker) -> None:
    """a broker stores a message that a consumer sent back twice in the retry topic"""

    @around(_sends_back(broker), "_put_back")
    def put_twice(put: Any, stored: StoredMessage, target: TopicConfig, level: int) -> None:
        put(stored, target, level)
        put(stored, target, level)


@planted(BROKER_A, "quiet", caught_by="duplicates")
def broker_counts_no_failures(broker: Broker) -> None:
    """a broker stores a message that a consumer sent back with the same reconsumeTimes as before"""
    around(_sends_back(broker), "_put_back")(
        lambda put, stored, target, level: put(replace(stored, reconsume_times=-1), target, level)
    )


@planted(BROKER_A, "broker-crash-late", caught_by="duplicates")
@may_find("commits_follow_work messages_delivered")
@from_its_making
@in_its_parts
def broker_reads_no_delay_offsets(broker: Broker) -> None:
    """a broker that starts again delivers all its delayed messages again, because it does not read delayOffset.json"""
    broker._schedule._delivered.clear()


@planted(BROKER_A, "quiet", caught_by="messages_delivered prompt_answers")
def broker_delivers_delayed_messages_late(broker: Broker) -> None:
    """a broker delivers a delayed message 2 s after the message is due"""
    around(broker._schedule, "_set")(lambda set_timer, level, delay_s: set_timer(level, delay_s + 2.0))


@planted(BROKER_A, "quiet", caught_by="messages_delivered")
@may_find("prompt_answers")
def broker_keeps_delayed_messages_too_long(broker: Broker) -> None:
    """a broker keeps a delayed message 0.2 s longer than the message's delay level says"""
    around(broker._schedule, "_set")(lambda set_timer, level, delay_s: set_timer(level, delay_s + 0.2))


@planted(BROKER_A, "smoke", caught_by="messages_delivered")
def broker_stores_another_born_timestamp(broker: Broker) -> None:
    """a broker stores a message's bornTimestamp 1 s earlier than the producer said"""

    @around(broker.store, "append")
    def _(append: Callable[..., object], messages: Sequence[PutMessage], **at: int) -> object:
        earlier = [replace(each, born_timestamp=each.born_timestamp - 1_000) for each in messages]
        return append(earlier, **at)


@planted(BROKER_A, "quiet", caught_by="duplicates")
def broker_delivers_delayed_messages_twice(broker: Broker) -> None:
    """a broker delivers each delayed message twice to the message's topic"""
    around(broker._schedule, "_put")(lambda put, physical_offset: put(physical_offset) and put(physical_offset))


@planted(BROKER_A, "quiet", caught_by="messages_delivered")
def broker_changes_delayed_messages(broker: Broker) -> None:
    """a broker changes the last byte of the body of a delayed message when the message is due"""

    @around(broker.store, "append")
    def append_changed(append: Any, messages: Sequence[PutMessage], *, now_ms: int) -> Any:
        is_due = b"REAL_TOPIC" in messages[0].properties and messages[0].topic != SCHEDULE_TOPIC
        return append([replace(one, body=one.body[:-1] + b"!") if is_due else one for one in messages], now_ms=now_ms)


@planted(BROKER_A, "disk-full", caught_by="messages_delivered")
def broker_drops_delayed_messages_of_a_full_disk(broker: Broker) -> None:
    """a broker drops a delayed message that becomes due while the broker's disk is full"""
    around(broker._schedule, "_put")(lambda put, physical_offset: put(physical_offset) or True)


@planted(BROKER_A, "disk-full", caught_by="messages_delivered")
def broker_stores_delayed_messages_on_a_full_disk(broker: Broker) -> None:
    """a broker whose disk is full stores delayed messages that become due, but no messages of producers"""

    @around(broker._schedule, "_put")
    def put_though_full(put: Any, physical_offset: int) -> Any:
        was_full, broker.store.disk_is_full = broker.store.disk_is_full, False
        put(physical_offset)
        broker.store.disk_is_full = was_full
        return True


@planted(BROKER_A, "smoke", caught_by="duplicates")
def broker_stores_twice(broker: Broker) -> None:
    """a broker stores each message twice"""

    @around(broker.store, "append")
    def append_twice(append: Any, messages: Sequence[PutMessage], *, now_ms: int) -> Any:
        append(messages, now_ms=now_ms)
        return append(messages, now_ms=now_ms)


@planted(BROKER_A, "smoke", caught_by="messages_delivered")
def broker_changes_bodies(broker: Broker) -> None:
    """a broker changes the last byte of every 20th message's body"""
    is_changed = every(20)

    @around(broker.store, "append")
    def append_changed(append: Any, messages: Sequence[PutMessage], *, now_ms: int) -> Any:
        if is_changed():
            messages = [replace(message, body=message.body[:-1] + b"?") for message in messages]
        return append(messages, now_ms=now_ms)


def _storing_with(broker: Broker, changed: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """Changes the properties of the messages that the broker stores."""

    def with_others(message: PutMessage) -> PutMessage:
        properties = changed(parse_properties(message.properties.decode()))
        return replace(message, properties=format_properties(properties).encode())

    @around(broker.store, "append")
    def append_changed(append: Any, messages: Sequence[PutMessage], *, now_ms: int) -> Any:
        return append([*map(with_others, messages)], now_ms=now_ms)


@planted(BROKER_A, "smoke", caught_by="messages_delivered")
def broker_loses_tags(broker: Broker) -> None:
    """a broker stores messages without their tags"""
    _storing_with(broker, lambda properties: {name: of for name, of in properties.items() if name != TAGS})


@planted(BROKER_A, "smoke", caught_by="messages_delivered")
def broker_replaces_unique_keys(broker: Broker) -> None:
    """a broker stores messages with a UNIQ_KEY of the broker's instead of the producer's"""
    made = count()
    _storing_with(broker, lambda properties: {**properties, UNIQ_KEY: f"{next(made):032X}"})


@planted(BROKER_A, "smoke", caught_by="order_kept")
@may_find("duplicates messages_delivered no_acknowledged_loss prompt_answers timers_kept")
def broker_stores_out_of_order(broker: Broker) -> None:
    """a broker stores every 4 messages of a queue in reverse order, but acknowledges messages in order of arrival"""
    store, clock = broker.store, broker._context.clock
    right, held = store.append, dict[tuple[str, int], list[Sequence[PutMessage]]]()

    def land(queue: tuple[str, int], now_ms: int) -> None:
        for messages in reversed(held.pop(queue, [])):
            right(messages, now_ms=now_ms)
            broker._arrived(*queue)

    def append_backwards(messages: Sequence[PutMessage], *, now_ms: int) -> Append:
        queue = (messages[0].topic, messages[0].queue_id)
        group = held.setdefault(queue, [])
        offset = store.max_offset(*queue) + REVERSED - 1 - len(group)
        group.append(messages)
        if len(group) == REVERSED:
            land(queue, now_ms)
        elif len(group) == 1:
            clock.call_later(REVERSED_WITHIN_S, land, queue, now_ms)
        return Append(offset, tuple(range(len(messages))))

    replace_part(store, "append", append_backwards)


@planted(BROKER_A, "smoke", caught_by="duplicates")
@may_find("no_acknowledged_loss order_kept messages_delivered commits_follow_work")
def broker_acknowledges_the_next_offset(broker: Broker) -> None:
    """a broker answers every 50th send with a queueOffset that is one too high"""
    send: Any = broker._processor._methods[RequestCode.SEND_MESSAGE_V2]
    is_next = every(50)

    @around(send.__self__, "acknowledge")
    def acknowledge_the_next(acknowledge: Any, stored: Append, *about: Any) -> RemotingCommand:
        offset = stored.queue_offset + is_next()
        return acknowledge(replace(stored, queue_offset=offset), *about)


# -- answers to pulls


def _finds(broker: Broker, change: Callable[[Found, int], Found]) -> None:
    """Changes what each pull of an offset finds."""

    @around(broker.store, "get")
    def get_changed(get: Any, topic: str, queue_id: int, offset: int, **limits: Any) -> Found:
        return change(get(topic, queue_id, offset, **limits), offset)


@planted(BROKER_A, "slave-backlog", caught_by="order_kept")
@may_find("commits_follow_work duplicates living_are_used messages_delivered no_acknowledged_loss timers_kept")
def broker_sends_consumers_beyond_the_end(broker: Broker) -> None:
    """a broker answers a pull that finds no message with a nextBeginOffset that is one too high"""

    _finds(broker, lambda found, offset: replace(found, next_offset=offset + 1) if not found.count else found)


@planted(BROKER_A, "smoke", caught_by="order_kept")
@may_find("commits_follow_work duplicates messages_delivered timers_kept")
def broker_sends_consumers_back(broker: Broker) -> None:
    """a broker answers every 20th pull that finds messages with the pull's own offset as nextBeginOffset"""
    is_sent_back = every(20)

    def back(found: Found, offset: int) -> Found:
        return replace(found, next_offset=offset) if found.count and is_sent_back() else found

    _finds(broker, back)


@planted(BROKER_A, "smoke", caught_by="messages_delivered order_kept")
@may_find("commits_follow_work no_acknowledged_loss")
def broker_skips_messages(broker: Broker) -> None:
    """a broker answers every 20th pull that finds messages as if none of them matched the consumer's filter"""
    is_skipped = every(20)

    def without_messages(found: Found, _: int) -> Found:
        if not found.count or not is_skipped():
            return found
        return Found(GetStatus.NO_MATCHED_MESSAGE, found.next_offset, found.min_offset, found.max_offset)

    _finds(broker, without_messages)


@planted(BROKERS, "slave-backlog", caught_by="order_kept")
@may_find("duplicates")
def broker_goes_back_one_after_a_batch(broker: Broker) -> None:
    """brokers answer a pull that finds a full batch with a nextBeginOffset that is one too low"""
    _finds(broker, lambda found, _: replace(found, next_offset=found.next_offset - (found.count >= BATCH)))


@planted(BROKERS, "slave-backlog", caught_by="order_kept")
def broker_gives_more_than_asked(broker: Broker) -> None:
    """brokers answer a pull with up to twice as many messages as the pull asks for"""

    @around(broker.store, "get")
    def get_twice_as_many(get: Any, *queue: Any, max_messages: int, **limits: Any) -> Any:
        return get(*queue, max_messages=2 * max_messages, **limits)


@planted(BROKERS, "slave-backlog", caught_by="order_kept")
def broker_gives_half_of_what_was_asked(broker: Broker) -> None:
    """brokers answer a pull with at most half as many messages as the pull asks for"""

    @around(broker.store, "get")
    def get_half_as_many(get: Any, *queue: Any, max_messages: int, **limits: Any) -> Any:
        return get(*queue, max_messages=max_messages // 2, **limits)


@planted(BROKER_A, "smoke", caught_by="order_kept")
def broker_answers_pulls_without_holding_them(broker: Broker) -> None:
    """a broker does not hold every 4th pull, but answers at once, even without a message"""
    methods, is_let_go = broker._processor._methods, every(4)
    pull = methods[RequestCode.PULL_MESSAGE]

    def pull_once(connection: Connection, request: RemotingCommand) -> Any:
        if is_let_go():
            fields = request.ext_fields or {}
            request = replace(request, ext_fields=fields | {"sysFlag": str(int(fields["sysFlag"]) & ~SUSPEND)})
        return pull(connection, request)

    methods[RequestCode.PULL_MESSAGE] = pull_once


@planted(BROKER_A, "broker-crash", caught_by="order_kept")
@may_find("commits_follow_work duplicates messages_delivered no_acknowledged_loss")
@from_its_making
def broker_indexes_its_last_record_twice(broker: Broker) -> None:
    """a broker that is restarted has the last message of each queue twice in its consume queue"""
    store = broker.store

    @around(store, "open")
    def open_twice(open_: Any) -> Any:
        found = open_()
        for queues in store._queues.values() if broker._context.incarnation else ():
            for queue in queues.values():
                if queue.end > queue.first:
                    queue.add(*queue.entry(queue.end - 1))
        return found


@planted(BROKER_A, "smoke", caught_by="order_kept")
def broker_says_a_lower_end(broker: Broker) -> None:
    """a broker answers pulls with a maxOffset that is two too low"""
    _finds(broker, lambda found, _: replace(found, max_offset=found.max_offset - 2))


@planted(BROKER_A, "smoke", caught_by="order_kept")
def broker_says_a_higher_end(broker: Broker) -> None:
    """a broker answers pulls with a maxOffset that is one too high"""
    _finds(broker, lambda found, _: replace(found, max_offset=found.max_offset + 1))


@planted(BROKER_A, "smoke", caught_by="order_kept")
def broker_says_a_later_beginning(broker: Broker) -> None:
    """a broker answers pulls with a minOffset that equals the queue's maxOffset"""
    _finds(broker, lambda found, _: replace(found, min_offset=found.max_offset))


# -- what groups have consumed, and who is in them


@planted(BROKERS, "broker-crash", caught_by="commits_follow_work duplicates")
def broker_forgets_offsets(broker: Broker) -> None:
    """brokers do not store the offsets that consumer groups commit"""
    replace_part(broker.services.offsets, "commit", lambda group, topic, queue_id, offset: -1)


@planted(BROKERS, "broker-stop", caught_by="timers_kept")
def broker_leaves_without_a_word(broker: Broker) -> None:
    """brokers do not unregister at NameServers when the brokers shut down"""
    replace_part(broker._registration, "_unregister", does_nothing_async)


@planted(BROKER_A, "smoke", caught_by="timers_kept")
@may_find("commits_follow_work duplicates messages_delivered prompt_answers queue_ownership")
def broker_lists_a_member_less(broker: Broker) -> None:
    """a broker lists one member less than a consumer group has, if the group has several members"""

    clients = broker._processor.clients

    @around(clients, "consumer_list")
    def all_but_the_last(consumer_list: Any, *asked: Any) -> RemotingCommand:
        answer: RemotingCommand = consumer_list(*asked)
        found = ConsumerIdList.decode(answer.body).consumer_id_list if answer.body else ()
        if len(found) > 1:
            answer.body = ConsumerIdList(consumer_id_list=found[:-1]).encode()
        return answer

    broker._processor._methods[RequestCode.GET_CONSUMER_LIST_BY_GROUP] = clients.consumer_list


def _refuses(broker: Broker, code: RequestCode, each: int) -> None:
    is_refused, methods = every(each), broker._processor._methods
    answer = methods[code]

    def refuse(*asked: Any) -> Any:
        if is_refused():
            raise Refused(ResponseCode.SYSTEM_ERROR, "refused")
        return answer(*asked)

    methods[code] = refuse


@planted(BROKER_A, "quiet", caught_by="timers_kept")
def broker_refuses_lists_of_members(broker: Broker) -> None:
    """a broker answers every 4th question for the members of a group as if the group had none"""
    _refuses(broker, RequestCode.GET_CONSUMER_LIST_BY_GROUP, 4)


@planted(BROKER_A, "quiet", caught_by="timers_kept")
@may_find("living_are_used messages_delivered prompt_answers queue_ownership")
def broker_refuses_questions_for_offsets(broker: Broker) -> None:
    """a broker answers every 2nd QUERY_CONSUMER_OFFSET with SYSTEM_ERROR"""
    _refuses(broker, RequestCode.QUERY_CONSUMER_OFFSET, 2)


@planted(BROKER_A, "quiet", caught_by="availability")
@may_find("living_are_used messages_delivered prompt_answers")
def broker_refuses_pulls_of_its_queues(broker: Broker) -> None:
    """a broker answers every 10th pull with SYSTEM_ERROR"""
    _refuses(broker, RequestCode.PULL_MESSAGE, 10)


@planted(BROKERS, "consumer-stop", caught_by="timers_kept")
def broker_keeps_who_unregisters(broker: Broker) -> None:
    """brokers keep a client that has unregistered in the client's groups until the client's channel closes"""
    replace_part(broker.services.clients, "unregister", lambda *_, **__: [])


@planted(BROKER_A, "consumer-stop", caught_by="timers_kept")
@may_find("messages_delivered queue_ownership")
def broker_tells_nobody_who_unregisters(broker: Broker) -> None:
    """a broker removes a client that unregisters from the client's groups, but does not notify the other members"""

    @around(broker.services.clients, "unregister")
    def unregister_silently(unregister: Any, *client: Any, **groups: Any) -> list[str]:
        unregister(*client, **groups)
        return []


@planted(BROKER_A, "consumer-stop", caught_by="timers_kept")
@may_find("messages_delivered queue_ownership")
def broker_forgets_the_group_of_who_unregisters(broker: Broker) -> None:
    """a broker forgets a whole group when one of the group's consumers unregisters"""
    clients = broker.services.clients

    @around(clients, "unregister")
    def unregister_all(unregister: Any, *client: Any, **groups: Any) -> list[str]:
        changed: list[str] = unregister(*client, **groups)
        clients.consumers.pop(groups["consumer_group"], None)
        return changed


@planted(BROKER_A, "group-joins", caught_by="timers_kept")
def broker_tells_every_group(broker: Broker) -> None:
    """a broker notifies the members of all groups when the members of one group have changed"""
    clients = broker._processor.clients

    @around(clients, "_notify")
    def notify_all(notify: Any, groups: Any) -> None:
        notify([*broker.services.clients.consumers] if [*groups] else [])


@planted(BROKERS, "broker-hang", caught_by="timers_kept")
def broker_keeps_producers_of_closed_channels(broker: Broker) -> None:
    """brokers remove only consumers from their groups when a channel closes; producers stay until they expire"""
    clients = broker.services.clients

    @around(clients, "channel_lost")
    def lose_consumers(_: Any, channel_id: int) -> list[str]:
        return [group for group in [*clients.consumers] if clients._remove_consumer(group, channel_id)]


@planted(BROKER_A, "consumer-crash", caught_by="timers_kept")
@may_find("commits_follow_work duplicates living_are_used messages_delivered queue_ownership")
def broker_keeps_who_was_killed(broker: Broker) -> None:
    """a broker does not notice that a client's channel has closed"""
    replace_part(broker._clients, "connection_lost", does_nothing)


@planted(BROKER_A, "clients-go-silent", caught_by="timers_kept")
def broker_keeps_expired_channels_open(broker: Broker) -> None:
    """a broker that forgets a silent client leaves the client's channel open"""

    def kept_open(client: Client) -> Client:
        of = {"id": client.channel.id, "remote_address": client.channel.remote_address}
        return replace(client, channel=cast(Any, SimpleNamespace(**of, close=lambda: None)))

    @around(broker.services.clients, "expire")
    def expire_open(expire: Any, *, now_ms: int) -> list[tuple[str, Client]]:
        return [(group, kept_open(client)) for group, client in expire(now_ms=now_ms)]


@planted(BROKER_A, "consumer-crash", caught_by="commits_follow_work")
@may_find("messages_delivered duplicates no_acknowledged_loss")
def broker_answers_the_next_offset(broker: Broker) -> None:
    """a broker answers a query for a group's committed offset with an offset that is one too high"""

    @around(broker.services.offsets, "query")
    def query_the_next(query: Any, *queue: Any) -> int:
        offset = int(query(*queue))
        return offset + 1 if offset > 0 else offset


@planted(BROKER_A, "smoke", caught_by="commits_follow_work")
def broker_ignores_what_pulls_commit(broker: Broker) -> None:
    """a master does not store the offset that a pull commits (sysFlag COMMIT_OFFSET)"""

    @around(broker._pull, "_look")
    def look(look_: Any, *pull: Any, may_commit: bool) -> Any:
        return look_(*pull, may_commit=False)


@planted(BROKERS, "consumer-stop", caught_by="commits_follow_work")
@may_find("messages_delivered duplicates queue_ownership timers_kept")
def broker_keeps_the_next_offset(broker: Broker) -> None:
    """brokers store each committed offset one too high"""

    @around(broker.services.offsets, "commit")
    def commit_the_next(commit: Any, group: str, topic: str, queue_id: int, offset: int) -> int:
        return int(commit(group, topic, queue_id, offset + 1))


@planted(BROKERS, "smoke", caught_by="answers_asked_for")
def broker_answers_oneway(broker: Broker) -> None:
    """brokers answer oneway requests, which must get no answer"""

    @around(broker._server, "handler")
    def handle_as_two_way(handler: Any, connection: Connection, request: RemotingCommand) -> Any:
        request.flag &= ~FLAG_ONEWAY
        return handler(connection, request)


@planted(BROKER_A, "consumer-crash", caught_by="timers_kept")
@may_find("messages_delivered")
def broker_takes_older_subscriptions(broker: Broker) -> None:
    """each heartbeat of a consumer replaces the group's subscription at a broker, even with a smaller subVersion"""
    clients = broker.services.clients

    @around(clients, "register_consumer")
    def register(register_: Any, data: ConsumerData, client: Client) -> Any:
        changed = register_(data, client)
        subscriptions = clients.consumers[data.group_name].subscriptions
        subscriptions.update({one.topic: one for one in data.subscription_data_set})
        return changed

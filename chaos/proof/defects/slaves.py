"""Defects about slaves: NameServers that forget or misname slaves, consumers that never pull from them, slaves that
serve the wrong messages."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ....actors.broker.config import BrokerConfig
from ....actors.broker.replication import HOUSEKEEPING_S
from ....actors.broker.server import Broker
from ....actors.broker.stored import Append, Found, GetStatus, StoreFull
from ....actors.namesrv.server import NameServer
from ....actors.namesrv.tables import BrokerGroup, Registered, Registration
from ....clients.client_instance import FindBrokerResult
from ....remoting.bodies.route import BrokerData, QueueData, Row
from ....remoting.codes import MASTER_ID, PERM_WRITE, RequestCode, ResponseCode
from ....remoting.command import RemotingCommand
from ....remoting.node.network import Address
from ...defects import around, does_nothing, does_nothing_async, registers_with, replace_part
from ...experiment.workloads.consumer import ConsumerNode
from ...oracle.roles import NO_ID
from .planting import (
    BROKER_A,
    BROKERS,
    CONSUMERS,
    NS_0,
    SLAVE_OF_A,
    Planted,
    from_its_making,
    may_find,
    registering,
)

_READS, _READS_LATE, _BACKLOG, _ACTING = "slave-reads", "slave-reads-late", "slave-backlog", "acting-master"
COPIES_S = 60.0
_OF_ROUTES = (
    "answers_are_true client_routes_are_true dead_brokers_avoided queue_ownership registrations_are_kept "
    "routes_are_true routes_as_registered routes_converge"
)

planted = Planted()


def beats_with(broker: Broker, **fields: Callable[[], object]) -> None:
    """Changes these fields of its heartbeats (code 904), where there is a value."""

    @around(broker._client, "oneway")
    async def changed(oneway: Any, target: Address, request: RemotingCommand, **more: Any) -> None:
        if request.code == RequestCode.BROKER_HEARTBEAT:
            values = {name: str(value()) for name, value in fields.items() if value() is not None}
            request.ext_fields = (request.ext_fields or {}) | values
        await oneway(target, request, **more)


# -- a slave that acts for its master


@planted(BROKERS._replace(nodes=("broker-b",)), _ACTING, caught_by="routes_are_true timers_kept")
@may_find(f"{_OF_ROUTES} commits_follow_work duplicates recovery_time timers_kept")
def broker_says_nothing_between_registrations(broker: Broker) -> None:
    """a broker whose slave can act as master sends NameServers no BROKER_HEARTBEAT (code 904)"""
    replace_part(broker._members, "_beat_all", does_nothing_async)


@planted(SLAVE_OF_A, _ACTING, caught_by="routes_as_registered timers_kept")
@may_find(f"{_OF_ROUTES} no_false_eviction")
def slave_beats_for_its_master(broker: Broker) -> None:
    """a slave names its master's address in its heartbeats (code 904), so NameServers keep a master that is frozen"""

    beats_with(broker, brokerAddr=lambda: broker._synchronize.master)


@planted(BROKER_A, _ACTING, caught_by="routes_as_registered")
@may_find(f"{_OF_ROUTES} no_false_eviction")
def broker_beats_under_another_cluster(broker: Broker) -> None:
    """a broker's heartbeats (code 904) have another clusterName than its registrations"""

    beats_with(broker, clusterName=lambda: "OtherCluster")


@planted(NS_0, _ACTING, caught_by="one_master")
def name_server_names_dropped_members(server: NameServer) -> None:
    """a NameServer's answer with the brokers of a name (code 901) still has brokers that the NameServer has dropped"""
    known: dict[int, str] = {}

    @around(server.processor._table, "broker_addrs")
    def with_dropped(broker_addrs: Any, name: str) -> dict[int, str]:
        if name == "broker-a":
            known.update(broker_addrs(name))
        return {**known, **broker_addrs(name)}


@planted(NS_0, _ACTING, caught_by="routes_are_true")
@may_find(_OF_ROUTES)
def name_server_ignores_how_long_to_bear_silence(server: NameServer) -> None:
    """a NameServer drops brokers only after 120 s of silence, although their registrations ask for a shorter time"""
    registering(server, lambda registration: replace(registration, heartbeat_timeout_ms=None))


@planted(NS_0, _ACTING, caught_by="routes_as_registered")
@may_find(_OF_ROUTES)
def name_server_shows_no_acting_master(server: NameServer) -> None:
    """a NameServer with supportActingMaster lists a slave that acts for its master under the slave's own brokerId"""
    server.table.set_options(replace(server.processor.config.route_options, support_acting_master=False))


@planted(NS_0, _ACTING, caught_by="routes_as_registered")
@may_find(_OF_ROUTES)
def name_server_lets_an_acting_master_be_written_to(server: NameServer) -> None:
    """a NameServer leaves queues writable after the queues' master is gone"""

    @around(server.table, "_put_row")
    def put_writable(put_row: Any, topic: str, row: QueueData) -> None:
        put_row(topic, replace(row, perm=row.perm | PERM_WRITE))


@planted(NS_0, _ACTING, caught_by="routes_as_registered")
@may_find(_OF_ROUTES)
def name_server_keeps_what_a_slave_acted_by(server: NameServer) -> None:
    """a NameServer leaves a broker's queues read-only after the master is back"""
    table, comes_back = server.table, False

    def see(registration: Registration) -> Registration:
        nonlocal comes_back
        group = table.broker_addr_table.get(registration.broker_name)
        is_master = registration.broker_id == MASTER_ID
        comes_back = is_master and group is not None and MASTER_ID not in group.addrs
        return registration

    registering(server, see)

    @around(table, "_register_rows")
    def register_what_is_new(register_rows: Any, broker_name: str, rows: Iterable[Row]) -> None:
        held = table.topic_queue_table
        register_rows(broker_name, (row for row in rows if not comes_back or broker_name not in held.get(row[0], {})))


# -- slaves in routes


@planted(NS_0, _READS, caught_by="routes_are_true routes_converge")
@may_find("answers_are_true client_routes_are_true registrations_are_kept")
def name_server_forgets_slaves(server: NameServer) -> None:
    """a NameServer forgets the addresses of slaves when their master registers"""
    table = server.table

    @around(table, "register")
    def register_alone(register: Any, registration: Registration, *, now_ms: int) -> Registered:
        registered: Registered = register(registration, now_ms=now_ms)
        group = table.broker_addr_table.get(registration.broker_name)
        if registration.broker_id == MASTER_ID and group is not None and len(group.addrs) > 1:
            group.addrs = {MASTER_ID: group.addrs[MASTER_ID]}
            table._touch_broker(registration.broker_name)
        return registered


@planted(NS_0, "registrations-of-no-rows", caught_by="routes_as_registered")
@may_find("answers_are_true client_routes_are_true routes_are_true routes_converge")
def name_server_takes_topics_of_slaves(server: NameServer) -> None:
    """a NameServer of 4.9 puts the topics that slaves register into its table, as if the slaves were masters"""

    @around(server.table, "_register_topics_4_9")
    def register_of_any(register: Any, registration: Registration, rewrite: bool) -> None:
        register(replace(registration, broker_id=MASTER_ID), rewrite)


@planted(NS_0, _READS_LATE, caught_by="routes_as_registered routes_are_true")
@may_find("answers_are_true client_routes_are_true registrations_are_kept routes_converge no_resurrection")
def name_server_lists_a_slave_as_master(server: NameServer) -> None:
    """a NameServer lists a slave as broker id 0 when the master is gone"""

    @around(server.table, "_broker_data")
    def with_a_master(broker_data: Any, topic: str, group: BrokerGroup) -> BrokerData:
        data: BrokerData = broker_data(topic, group)
        addrs = dict(data.broker_addrs)
        if addrs and MASTER_ID not in addrs:
            addrs[MASTER_ID] = addrs.pop(min(addrs))
        return replace(data, broker_addrs=addrs)


@planted(SLAVE_OF_A, _READS, caught_by="one_master routes_as_registered")
@may_find(
    "answers_are_true availability client_routes_are_true commits_follow_work duplicates messages_delivered order_kept "
    "queue_ownership registrations_are_kept routes_are_true routes_converge"
)
def slave_registers_as_master(broker: Broker) -> None:
    """a slave registers as broker id 0, the id of its living master"""
    registers_with(broker, brokerId=lambda _: str(MASTER_ID))


@planted(SLAVE_OF_A, _READS, caught_by="routes_as_registered")
@may_find("answers_are_true client_routes_are_true one_master routes_are_true routes_converge")
def slave_registers_without_an_id(broker: Broker) -> None:
    """a slave registers with broker id -1, like a broker that waits until the controller gives an id"""
    registers_with(broker, brokerId=lambda _: str(NO_ID))


# -- slaves that are read, and what they have


@planted(SLAVE_OF_A, "slave-copies-and-serves", caught_by="timers_kept")
@may_find("messages_delivered")
def slave_answers_no_long_poll_with_copies(broker: Broker) -> None:
    """a slave answers a long poll only after suspendTimeoutMillis, though the slave has copied a message before"""

    @around(broker.services.holds, "check")
    def check_times_only(check: Any, now_ms: int, _max_offset: Any) -> Any:
        return check(now_ms, lambda _topic, _queue_id: -1)


@planted(CONSUMERS, _READS_LATE, caught_by="living_are_used")
@may_find("commits_follow_work recovery_time timers_kept")
def consumer_never_asks_a_slave(node: ConsumerNode) -> None:
    """consumers pull only from masters, even if the master is gone"""

    @around(node.instance, "find_broker_address_in_subscribe")
    def find_master(find: Any, broker_name: str, _id: int) -> FindBrokerResult | None:
        found: FindBrokerResult | None = find(broker_name, MASTER_ID)
        return None if found is None or found.slave else found


@planted(SLAVE_OF_A, _BACKLOG, caught_by="commits_follow_work")
@may_find("messages_delivered no_acknowledged_loss duplicates order_kept")
def slave_serves_the_message_before(broker: Broker) -> None:
    """a slave answers pulls with the message before the requested message"""
    store = broker.store

    @around(store, "get")
    def get_older(get: Any, topic: str, queue_id: int, offset: int, *, max_messages: int, **limits: Any) -> Any:
        there = store.max_offset(topic, queue_id) - offset
        if offset == 0 or there <= 0:
            return get(topic, queue_id, offset, max_messages=max_messages, **limits)
        found: Found = get(topic, queue_id, offset - 1, max_messages=min(max_messages, there), **limits)
        return found if found.status is not GetStatus.FOUND else replace(found, next_offset=found.next_offset + 1)


@planted(SLAVE_OF_A, _READS, caught_by="timers_kept")
@may_find("commits_follow_work duplicates messages_delivered routes_as_registered")
def slave_asks_for_no_offsets(broker: Broker) -> None:
    """a slave copies its master's topics and groups, but never asks for the consumer offsets"""

    @around(broker._synchronize, "_table")
    async def but_offsets(table: Any, code: RequestCode, take: Any) -> None:
        if code != RequestCode.GET_ALL_CONSUMER_OFFSET:
            await table(code, take)


@planted(NS_0, _READS, caught_by="one_master")
def name_server_answers_another_ha_address(server: NameServer) -> None:
    """a NameServer answers a slave with the slave's own haServerAddr instead of the master's"""

    @around(server.table, "register")
    def register(register: Any, registration: Registration, *, now_ms: int) -> Registered:
        registered: Registered = register(registration, now_ms=now_ms)
        is_told = registered.ha_server_addr is not None
        return replace(registered, ha_server_addr=registration.ha_server_addr) if is_told else registered


@planted(SLAVE_OF_A, _BACKLOG, caught_by="messages_delivered")
@may_find("commits_follow_work no_acknowledged_loss duplicates order_kept prompt_answers")
def slave_stops_copying(broker: Broker) -> None:
    """a slave stops copying its master's log 60 s after its start"""
    clock = broker._context.clock
    began_s = clock.monotonic_s()

    @around(broker._copying, "_copy")
    async def copy_for_a_while(copy: Any, master: Address) -> bool:
        return clock.monotonic_s() - began_s < COPIES_S and await copy(master)


@planted(SLAVE_OF_A, "master-moves", caught_by="one_master")
@may_find("availability commits_follow_work duplicates no_acknowledged_loss living_are_used messages_delivered")
def slave_copies_its_first_master(broker: Broker) -> None:
    """a slave goes on copying from its master's first address after the master has moved to another address"""
    first: list[Address] = []

    @around(broker._copying, "follow")
    def follow_the_first(follow: Any, master: Address) -> None:
        first.append(master)
        follow(first[0])


@planted(SLAVE_OF_A, "slave-stop", caught_by="routes_as_registered")
@may_find(f"{_OF_ROUTES} availability one_master")
def slave_unregisters_its_master(broker: Broker) -> None:
    """a slave that stops unregisters broker id 0 (its master) instead of its own id"""

    @around(broker._registration, "_request")
    def request_of_id_0(request: Any, code: RequestCode, fields: dict[str, str], body: bytes) -> Any:
        is_last = code == RequestCode.UNREGISTER_BROKER
        return request(code, {**fields, "brokerId": str(MASTER_ID)} if is_last else fields, body)


@planted(SLAVE_OF_A, "slave-made-master", caught_by="availability")
@may_find("dead_brokers_avoided living_are_used recovery_time")
def slave_made_master_stores_nothing(broker: Broker) -> None:
    """a slave that was made master refuses messages as a slave does (code 14)"""

    @around(broker.store, "append")
    def refuse(append: Any, messages: Any, **at: Any) -> Any:
        raise StoreFull("message store is slave mode, so putMessage is forbidden")


@planted(SLAVE_OF_A, "slave-made-master", caught_by="order_kept")
@may_find("duplicates messages_delivered no_acknowledged_loss availability commits_follow_work timers_kept")
def slave_made_master_gives_offsets_again(broker: Broker) -> None:
    """a slave that is made master gives new messages the offsets from the start of its process on"""
    table = dict[tuple[str, int], int]()

    @around(broker.store, "append")
    def append(to_store: Any, messages: Any, *, now_ms: int) -> Any:
        queue = messages[0].topic, messages[0].queue_id
        offset = table.get(queue, 0)
        table[queue] = offset + len(messages)
        if offset >= broker.store.max_offset(*queue):
            return to_store(messages, now_ms=now_ms)
        return Append(offset, tuple(broker.store.max_physical_offset for _ in messages))


@planted(SLAVE_OF_A, "slave-made-master", caught_by="messages_delivered")
@may_find("prompt_answers")
def slave_made_master_delivers_nothing_delayed(broker: Broker) -> None:
    """a slave that is made master does not start to deliver delayed messages"""
    replace_part(broker._schedule, "start", does_nothing)


@planted(SLAVE_OF_A, "slave-made-master", caught_by="duplicates")
def slave_copies_no_delay_offsets(broker: Broker) -> None:
    """a slave does not copy how far its master is with delayed messages, and delivers them again as master"""
    replace_part(broker._schedule, "take", does_nothing)


@planted(SLAVE_OF_A, "slave-made-master", caught_by="commits_follow_work")
@may_find("duplicates")
def slave_made_master_has_no_offsets(broker: Broker) -> None:
    """a slave that is made master has none of the offsets that the slave had copied"""

    @around(broker, "_change_role")
    def change_role(change: Any, *of: Any) -> None:
        broker.services.offsets._table.clear()
        change(*of)


@planted(SLAVE_OF_A, "slave-made-master", caught_by="timers_kept")
@may_find("prompt_answers")
def slave_made_master_wakes_no_pull(broker: Broker) -> None:
    """a slave that is made master answers held pulls at the next check of held pulls, as a slave of 4.9 does"""
    replace_part(broker, "_wake", does_nothing)


@planted(SLAVE_OF_A, "slave-made-master", caught_by="duplicates")
def slave_made_master_delivers_twice(broker: Broker) -> None:
    """a slave that is made master has two timers for delayed messages, and delivers each message twice"""

    @around(broker._schedule, "_put")
    def put_twice(put: Any, *delayed: Any) -> Any:
        if not broker.services.config.is_slave:
            put(*delayed)
        return put(*delayed)


@planted(SLAVE_OF_A, _READS, caught_by="commits_follow_work")
@may_find("duplicates")
def slave_stores_no_commit(broker: Broker) -> None:
    """a slave does not store the offsets that consumers commit to the slave while its master is gone"""
    replace_part(broker.services.offsets, "commit", does_nothing)


@planted(NS_0, "slave-made-master", caught_by="routes_as_registered")
@may_find("routes_are_true routes_converge")
def name_server_keeps_the_id_of_a_slave(server: NameServer) -> None:
    """a NameServer keeps the old id of a slave that has become master"""

    @around(server.table, "_register_into")
    def register_and_keep(register: Any, group: BrokerGroup, registration: Registration, *more: Any) -> Any:
        before = dict(group.addrs)
        answer = register(group, registration, *more)
        group.addrs |= {id_: held for id_, held in before.items() if held == registration.broker_addr}
        return answer


@planted(SLAVE_OF_A, "slave-made-master", caught_by="routes_are_true")
@may_find("answers_are_true client_routes_are_true routes_as_registered")
@from_its_making
def slave_keeps_its_role(broker: Broker) -> None:
    """a slave that is made master stays a slave"""

    def go_on_as_before(old: BrokerConfig) -> None:
        broker.services.config = old

    replace_part(broker, "_reconfigured", go_on_as_before)


@planted(BROKER_A, "sync-master", caught_by="no_acknowledged_loss")
def sync_master_acknowledges_alone(broker: Broker) -> None:
    """a SYNC_MASTER answers SEND_OK at once, with or without a slave"""

    async def copied(end: int) -> ResponseCode:
        return ResponseCode.SUCCESS

    replace_part(broker._serving, "copied", copied)


@planted(BROKER_A, "sync-master", caught_by="availability")
def sync_master_answers_as_if_a_slave_were_late(broker: Broker) -> None:
    """a SYNC_MASTER whose slaves are gone answers sends with code 12 (FLUSH_SLAVE_TIMEOUT), not 11"""

    @around(broker._serving, "copied")
    async def copied(wait: Any, end: int) -> ResponseCode:
        code: ResponseCode = await wait(end)
        return ResponseCode.FLUSH_SLAVE_TIMEOUT if code is ResponseCode.SLAVE_NOT_AVAILABLE else code


@planted(BROKER_A, "sync-master-waits", caught_by="availability")
@may_find("no_acknowledged_loss")
def sync_master_does_not_wait(broker: Broker) -> None:
    """a SYNC_MASTER whose slave is there answers SEND_OK before the slave has the message"""

    @around(broker._serving, "copied")
    async def copied(wait: Any, end: int) -> ResponseCode:
        clock = broker._context.clock
        there = any(clock.monotonic_s() - one.seen_s <= HOUSEKEEPING_S for one in broker._serving._slaves.values())
        return ResponseCode.SUCCESS if there else ResponseCode.SLAVE_NOT_AVAILABLE


@planted(BROKER_A, "sync-master-waits", caught_by="availability")
def sync_master_gives_up_early(broker: Broker) -> None:
    """a SYNC_MASTER answers FLUSH_SLAVE_TIMEOUT (12) after 1 s instead of syncFlushTimeout (5 s)"""

    @around(broker._serving, "copied")
    async def copied(wait: Any, end: int) -> ResponseCode:
        try:
            async with broker._context.clock.timeout(1.0):
                return await wait(end)
        except TimeoutError:
            return ResponseCode.FLUSH_SLAVE_TIMEOUT


@planted(CONSUMERS, _READS, caught_by="living_are_used")
@may_find("commits_follow_work duplicates")
def consumer_stays_at_the_slave(node: ConsumerNode) -> None:
    """consumers that have pulled from a slave go on pulling from the slave when the master is back"""
    served = set[str]()

    @around(node.instance, "find_broker_address_in_subscribe")
    def find_again(find: Any, broker_name: str, broker_id: int) -> FindBrokerResult | None:
        found: FindBrokerResult | None = find(broker_name, 1 if broker_name in served else broker_id)
        if found is not None and found.slave:
            served.add(broker_name)
        return found


@planted(SLAVE_OF_A, _READS, caught_by="living_are_used")
@may_find("commits_follow_work recovery_time routes_as_registered")
def slave_takes_over_no_topics(broker: Broker) -> None:
    """a slave does not copy its master's topics, so it answers pulls with TOPIC_NOT_EXIST"""
    replace_part(broker._synchronize, "_topics", does_nothing)


@planted(SLAVE_OF_A, "slave-tells-offsets", caught_by="routes_as_registered")
@may_find("living_are_used")
def slave_copies_topics_once(broker: Broker) -> None:
    """a slave copies its master's topics once, and registers none that its master makes later"""
    copied = list[Any]()

    @around(broker._synchronize, "_topics")
    def once(topics: Any, body: bytes) -> None:
        copied.append(body)
        if len(copied) == 1:
            topics(body)


@planted(SLAVE_OF_A, "slave-takes-groups", caught_by="living_are_used")
@may_find("commits_follow_work messages_delivered")
def slave_copies_its_groups_once(broker: Broker) -> None:
    """a slave copies the consumer groups of its master only once, and refuses groups that are created later"""
    copied: list[bytes] = []

    @around(broker._synchronize, "_groups")
    def once(groups: Any, body: bytes) -> None:
        copied.append(body)
        if len(copied) == 1:
            groups(body)


@planted(NS_0, _READS, caught_by="one_master")
@may_find("commits_follow_work duplicates living_are_used messages_delivered recovery_time")
def name_server_tells_no_master(server: NameServer) -> None:
    """a NameServer tells each slave the master's address in one answer to a registration, and never again"""
    told = set[str]()

    @around(server.table, "_master_of")
    def once(master_of: Any, group: BrokerGroup, registration: Registration) -> tuple[str | None, str | None]:
        found: tuple[str | None, str | None] = master_of(group, registration)
        if registration.broker_addr in told:
            return None, None
        told.update({registration.broker_addr} if found[0] else ())
        return found


@planted(NS_0, _READS, caught_by="one_master")
def name_server_tells_a_dropped_master(server: NameServer) -> None:
    """a NameServer answers slaves' registrations with the master's address after it has dropped the master"""
    told: dict[str, tuple[str | None, str | None]] = {}

    @around(server.table, "_master_of")
    def the_last(master_of: Any, group: BrokerGroup, registration: Registration) -> tuple[str | None, str | None]:
        found: tuple[str | None, str | None] = master_of(group, registration)
        if registration.broker_id and found[0] is not None:
            told[group.broker_name] = found
        return told.get(group.broker_name, found) if registration.broker_id else found


@planted(BROKER_A, _READS, caught_by="living_are_used")
@may_find("commits_follow_work duplicates messages_delivered timers_kept")
def master_suggests_its_slave(broker: Broker) -> None:
    """a master sends every consumer to its slave, although all messages are in its own memory"""
    replace_part(broker._pull, "_suggested", lambda *_: 1)

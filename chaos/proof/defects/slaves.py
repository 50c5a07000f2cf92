"""Ways to be wrong about slaves: NameServers that forget or misname them, consumers that never ask them, slaves that
serve other messages than were asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ....actors.broker.config import BrokerConfig
from ....actors.broker.server import Broker
from ....actors.broker.stored import Found, GetStatus
from ....actors.namesrv.server import NameServer
from ....actors.namesrv.tables import BrokerGroup, Registered, Registration
from ....clients.client_instance import FindBrokerResult
from ....remoting.bodies.route import BrokerData, QueueData, Row
from ....remoting.codes import MASTER_ID, PERM_WRITE, RequestCode, ResponseCode
from ....remoting.command import RemotingCommand
from ....remoting.node.network import Address
from ...experiment.workloads.consumer import ConsumerNode
from ...oracle.roles import NO_ID
from ...scenarios.defect import Defect, checks, in_its_parts, replace_part
from ...topology import NodeKind

_READS, _READS_LATE, _BACKLOG, _ACTING = "slave-reads", "slave-reads-late", "slave-backlog", "acting-master"
COPIES_S = 60.0
_OF_ROUTES = checks(
    "answers_are_true",
    "client_routes_are_true",
    "dead_brokers_avoided",
    "queue_ownership",
    "registrations_are_kept",
    "routes_are_true",
    "routes_converge",
)


def _keeps_what_a_slave_acted_by(server: NameServer) -> None:
    """The rows of a master that was gone stay as they were until its registration after the first."""
    table = server.table
    register, register_rows = table.register, table._register_rows
    comes_back = False

    def register_and_see(registration: Registration, *, now_ms: int) -> Registered:
        nonlocal comes_back
        group = table.broker_addr_table.get(registration.broker_name)
        is_master = registration.broker_id == MASTER_ID
        comes_back = is_master and group is not None and MASTER_ID not in group.addrs
        return register(registration, now_ms=now_ms)

    def register_what_is_new(broker_name: str, rows: Iterable[Row]) -> None:
        held = table.topic_queue_table
        register_rows(broker_name, (row for row in rows if not comes_back or broker_name not in held.get(row[0], {})))

    replace_part(table, "register", register_and_see)
    replace_part(table, "_register_rows", register_what_is_new)


def _forgets_slaves(server: NameServer) -> None:
    table = server.table
    register = table.register

    def register_alone(registration: Registration, *, now_ms: int) -> Registered:
        registered = register(registration, now_ms=now_ms)
        group = table.broker_addr_table.get(registration.broker_name)
        if registration.broker_id == MASTER_ID and group is not None and len(group.addrs) > 1:
            group.addrs = {MASTER_ID: group.addrs[MASTER_ID]}
            table._touch_broker(registration.broker_name)
        return registered

    replace_part(table, "register", register_alone)


def _lists_a_slave_as_master(server: NameServer) -> None:
    table = server.table
    broker_data = table._broker_data

    def with_a_master(topic: str, group: BrokerGroup) -> BrokerData:
        data = broker_data(topic, group)
        addrs = dict(data.broker_addrs)
        if addrs and MASTER_ID not in addrs:
            addrs[MASTER_ID] = addrs.pop(min(addrs))
        return replace(data, broker_addrs=addrs)

    replace_part(table, "_broker_data", with_a_master)


def _never_asks_a_slave(node: ConsumerNode) -> None:
    instance = node.instance
    find = instance.find_broker_address_in_subscribe

    def find_master(broker_name: str, _id: int, _only: bool = False) -> FindBrokerResult | None:
        return find(broker_name, MASTER_ID, True)

    replace_part(instance, "find_broker_address_in_subscribe", find_master)


def _serves_the_message_before(broker: Broker) -> None:
    store = broker.store
    get = store.get

    def get_older(topic: str, queue_id: int, offset: int, *, max_messages: int, **limits: Any) -> Found:
        there = store.max_offset(topic, queue_id) - offset
        if offset == 0 or there <= 0:
            return get(topic, queue_id, offset, max_messages=max_messages, **limits)
        found = get(topic, queue_id, offset - 1, max_messages=min(max_messages, there), **limits)
        return found if found.status is not GetStatus.FOUND else replace(found, next_offset=found.next_offset + 1)

    replace_part(store, "get", get_older)


def _keeps_its_role(broker: Broker) -> None:
    def go_on_as_before(old: BrokerConfig) -> None:
        broker.services.config = old

    replace_part(broker, "_reconfigured", go_on_as_before)


def _registers_as(broker_id: int) -> Callable[[Broker], None]:
    def plant(broker: Broker) -> None:
        request = broker._registration._request

        def with_another_id(code: RequestCode, fields: dict[str, str], body: bytes) -> RemotingCommand:
            said = {"brokerId": str(broker_id)} if code == RequestCode.REGISTER_BROKER else {}
            return request(code, fields | said, body)

        replace_part(broker._registration, "_request", with_another_id)

    return in_its_parts(plant)


def _stops_copying(broker: Broker) -> None:
    """Its copy ends some time after it has found its master: it serves what it has."""
    copying, clock = broker._copying, broker._context.clock
    copy, began_s = copying._copy, clock.monotonic_s()

    async def copy_for_a_while(master: Address) -> bool:
        return clock.monotonic_s() - began_s < COPIES_S and await copy(master)

    replace_part(copying, "_copy", copy_for_a_while)


def _says_nothing_between(broker: Broker) -> None:
    async def silent() -> None:
        pass

    replace_part(broker._members, "_beat_all", silent)


def _bears_silence_for_long(server: NameServer) -> None:
    register = server.table.register

    def register_for_long(registration: Registration, *, now_ms: int) -> Registered:
        return register(replace(registration, heartbeat_timeout_ms=None), now_ms=now_ms)

    replace_part(server.table, "register", register_for_long)


def _lets_a_name_be_written(server: NameServer) -> None:
    table = server.table
    put_row = table._put_row

    def put_writable(topic: str, row: QueueData) -> None:
        put_row(topic, replace(row, perm=row.perm | PERM_WRITE))

    replace_part(table, "_put_row", put_writable)


def _stays_at_the_slave(node: ConsumerNode) -> None:
    instance, served = node.instance, set[str]()
    find = instance.find_broker_address_in_subscribe

    def find_again(broker_name: str, broker_id: int, only_this: bool = False) -> FindBrokerResult | None:
        found = find(broker_name, 1 if broker_name in served else broker_id, only_this)
        if found is not None and found.slave:
            served.add(broker_name)
        return found

    replace_part(instance, "find_broker_address_in_subscribe", find_again)


def _takes_over_no_topics(broker: Broker) -> None:
    def take(body: bytes) -> None:
        """What it began with is all that it has."""

    replace_part(broker._synchronize, "_topics", take)


def _acknowledges_alone(broker: Broker) -> None:
    async def copied(end: int) -> ResponseCode:
        return ResponseCode.SUCCESS

    replace_part(broker._serving, "copied", copied)


DEFECTS = (
    Defect(
        name="broker-says-nothing-between-registrations",
        what="a broker whose slave may act for it sends no heartbeats (904)",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-b",),
        scenario=_ACTING,
        caught_by=checks("no_false_eviction"),
        also=_OF_ROUTES | {"commits_follow_work", "duplicates", "recovery_time", "timers_kept"},
        plant=in_its_parts(_says_nothing_between),
    ),
    Defect(
        name="name-server-ignores-how-long-to-bear-silence",
        what="a NameServer bears the silence of brokers for 120 s, whatever they say",
        kinds=(NodeKind.NAME_SERVER,),
        nodes=("ns-0",),
        scenario=_ACTING,
        caught_by=checks("routes_are_true"),
        also=_OF_ROUTES - {"routes_are_true"},
        plant=_bears_silence_for_long,
    ),
    Defect(
        name="name-server-lets-an-acting-master-be-written-to",
        what="a NameServer leaves the write permission to a name whose master is gone",
        kinds=(NodeKind.NAME_SERVER,),
        nodes=("ns-0",),
        scenario=_ACTING,
        caught_by=checks("one_master"),
        also=_OF_ROUTES,
        plant=_lets_a_name_be_written,
    ),
    Defect(
        name="name-server-keeps-what-a-slave-acted-by",
        what="a NameServer leaves the queues of a name read-only when its master is back",
        kinds=(NodeKind.NAME_SERVER,),
        nodes=("ns-0",),
        scenario=_ACTING,
        caught_by=checks("routes_as_registered"),
        also=_OF_ROUTES,
        plant=_keeps_what_a_slave_acted_by,
    ),
    Defect(
        name="name-server-forgets-slaves",
        what="a NameServer forgets the addresses of slaves at their master's registration",
        kinds=(NodeKind.NAME_SERVER,),
        nodes=("ns-0",),
        scenario=_READS,
        caught_by=checks("routes_are_true", "routes_converge"),
        also=checks("answers_are_true", "client_routes_are_true", "registrations_are_kept"),
        plant=_forgets_slaves,
    ),
    Defect(
        name="name-server-lists-a-slave-as-master",
        what="a NameServer lists the slave as id 0 when its master is gone",
        kinds=(NodeKind.NAME_SERVER,),
        nodes=("ns-0",),
        scenario=_READS_LATE,
        caught_by=checks("one_master", "routes_as_registered", "routes_are_true"),
        also=checks("answers_are_true", "client_routes_are_true", "routes_converge", "no_resurrection"),
        plant=_lists_a_slave_as_master,
    ),
    Defect(
        name="slave-registers-as-master",
        what="a slave registers as id 0 beside its master",
        kinds=(NodeKind.SLAVE,),
        nodes=("broker-a/1",),
        scenario=_READS,
        caught_by=checks("one_master", "routes_as_registered"),
        also=checks(
            "answers_are_true",
            "client_routes_are_true",
            "commits_follow_work",
            "duplicates",
            "queue_ownership",
            "registrations_are_kept",
            "routes_are_true",
            "routes_converge",
        ),
        plant=_registers_as(MASTER_ID),
    ),
    Defect(
        name="slave-registers-without-an-id",
        what="a slave registers as id -1, as one does that waits to be told its own",
        kinds=(NodeKind.SLAVE,),
        nodes=("broker-a/1",),
        scenario=_READS,
        caught_by=checks("one_master", "routes_as_registered"),
        also=checks("answers_are_true", "client_routes_are_true", "routes_are_true", "routes_converge"),
        plant=_registers_as(NO_ID),
    ),
    Defect(
        name="consumer-never-asks-a-slave",
        what="a consumer pulls from masters only, also when there is none",
        kinds=(NodeKind.CONSUMER,),
        scenario=_READS_LATE,
        caught_by=checks("living_are_used"),
        also=checks("recovery_time"),
        plant=_never_asks_a_slave,
    ),
    Defect(
        name="slave-serves-the-message-before",
        what="a slave serves the message before each that it was asked for",
        kinds=(NodeKind.SLAVE,),
        nodes=("broker-a/1",),
        scenario=_BACKLOG,
        caught_by=checks("commits_follow_work"),
        also=checks("messages_delivered", "no_acknowledged_loss", "duplicates"),
        plant=_serves_the_message_before,
    ),
    Defect(
        name="slave-stops-copying",
        what=f"a slave copies no more of its master's log {COPIES_S:g} s after its start, and serves what it has",
        kinds=(NodeKind.SLAVE,),
        nodes=("broker-a/1",),
        scenario=_BACKLOG,
        caught_by=checks("messages_delivered"),
        also=checks("commits_follow_work", "no_acknowledged_loss", "duplicates", "prompt_answers"),
        plant=in_its_parts(_stops_copying),
    ),
    Defect(
        name="slave-keeps-its-role",
        what="a slave that is made master goes on as a slave",
        kinds=(NodeKind.SLAVE,),
        nodes=("broker-a/1",),
        scenario="slave-made-master",
        caught_by=checks("routes_are_true"),
        also=checks("answers_are_true", "client_routes_are_true"),
        plant=_keeps_its_role,
    ),
    Defect(
        name="sync-master-acknowledges-alone",
        what="a SYNC_MASTER answers SEND_OK at once, with or without a slave",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="sync-master",
        caught_by=checks("no_acknowledged_loss"),
        plant=in_its_parts(_acknowledges_alone),
    ),
    Defect(
        name="consumer-stays-at-the-slave",
        what="a consumer that a slave has served once goes on pulling there when the master is back",
        kinds=(NodeKind.CONSUMER,),
        scenario=_READS,
        caught_by=checks("living_are_used"),
        also=checks("commits_follow_work", "duplicates"),
        plant=_stays_at_the_slave,
    ),
    Defect(
        name="slave-takes-over-no-topics",
        what="a slave takes over no topics of its master's, and answers pulls with TOPIC_NOT_EXIST",
        kinds=(NodeKind.SLAVE,),
        nodes=("broker-a/1",),
        scenario=_READS,
        caught_by=checks("living_are_used"),
        also=checks("recovery_time"),
        plant=in_its_parts(_takes_over_no_topics),
    ),
)

"""Defects of answers: a NameServer or broker with right tables answers too late, not at all, wrongly or twice."""

import inspect
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from ....actors.broker.config import BrokerConfig
from ....actors.broker.server import Broker
from ....actors.broker.services import Refused
from ....actors.namesrv.processor import Caller
from ....actors.namesrv.server import NameServer
from ....actors.namesrv.tables import Dropped
from ....remoting.bodies.route import BrokerData, QueueData, TopicRouteData
from ....remoting.codes import PERM_READ, PERM_WRITE, RequestCode, ResponseCode
from ....remoting.command import RemotingCommand
from ....remoting.headers.namesrv import GetRouteInfoRequestHeader
from ....remoting.node.clock import Clock
from ....remoting.transport import Connection, RemotingServer
from ...defects import around, does_nothing, every, replace_part
from .planting import BROKER_A, NAME_SERVERS, NS_0, Planted, from_its_making, may_find

LATE_S = 2.0
"""Within every time-out, so that nothing fails."""
OLD_S = 60.0
CLOSED_AFTER_S = 20.0
_SENDS = (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
_OF_ROUTES = "routes_as_registered client_routes_are_true messages_delivered queue_ownership"

planted = Planted()


# -- with what nobody asked for


@planted(NS_0, "smoke", caught_by="answers_are_true")
@may_find("living_are_used")
def name_server_always_tells_of_order(server: NameServer) -> None:
    """a NameServer adds an orderTopicConf to the routes of topic orders, although orderMessageEnable is false"""

    @around(server.processor, "_route")
    def route_in_order(route: Any, topic: str) -> TopicRouteData | None:
        found: TopicRouteData | None = route(topic)
        return None if found is None or topic != "orders" else replace(found, order_topic_conf="broker-a:4")


@planted(NS_0, "smoke", caught_by="routes_as_registered")
def name_server_answers_registrations_with_an_error(server: NameServer) -> None:
    """a NameServer takes every 3rd registration, but answers the registration with SYSTEM_ERROR"""
    is_wrong, methods = every(3), server.processor._methods
    register = methods[RequestCode.REGISTER_BROKER]

    def answer(*asked: Any) -> RemotingCommand:
        answered = register(*asked)
        return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, "register failed") if is_wrong() else answered

    methods[RequestCode.REGISTER_BROKER] = answer


# -- late, or not at all


def _answers_late(server: RemotingServer, clock: Clock, *codes: RequestCode) -> None:
    """Requests with these codes take effect at once, but their answers come later."""

    async def later(handler: Any, connection: Connection, request: RemotingCommand) -> Any:
        answer = handler(connection, request)
        done = await answer if inspect.isawaitable(answer) else answer
        await clock.sleep(LATE_S)
        return done

    @around(server, "handler")
    def handle(handler: Any, connection: Connection, request: RemotingCommand) -> Any:
        late = request.code in codes
        return later(handler, connection, request) if late else handler(connection, request)

    replace_part(server, "fast_path", None)


@planted(NAME_SERVERS, "quiet", caught_by="prompt_answers")
@may_find("availability")
def name_servers_answer_late(server: NameServer) -> None:
    """every NameServer answers each look-up 2 s late"""
    _answers_late(server._server, server._context.clock, RequestCode.GET_ROUTEINFO_BY_TOPIC)


@planted(NS_0, "quiet", caught_by="availability")
def name_server_leaves_look_ups_unanswered(server: NameServer) -> None:
    """a NameServer does not answer every 10th look-up"""
    endpoint, is_tenth = server._server, every(10)

    @around(endpoint, "handler")
    def answer_most(handler: Any, connection: Connection, request: RemotingCommand) -> Any:
        unanswered = request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC and is_tenth()
        return None if unanswered else handler(connection, request)

    replace_part(endpoint, "fast_path", None)


@planted(NAME_SERVERS, "quiet", caught_by="timers_kept")
def name_servers_close_channels_in_use(server: NameServer) -> None:
    """every NameServer closes a client's channel 20 s after each look-up, although a channel can be idle for 120 s"""
    endpoint = server._server

    @around(endpoint, "handler")
    def answer_and_close(handler: Any, connection: Connection, request: RemotingCommand) -> Any:
        if request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            endpoint.clock.call_later(CLOSED_AFTER_S, connection.close)
        return handler(connection, request)

    replace_part(endpoint, "fast_path", None)


@planted(NS_0, "quiet", caught_by="prompt_answers")
def name_server_acknowledges_late(server: NameServer) -> None:
    """a NameServer acknowledges each registration 2 s late"""
    _answers_late(server._server, server._context.clock, RequestCode.REGISTER_BROKER)


@planted(BROKER_A, "quiet", caught_by="prompt_answers")
def broker_acknowledges_late(broker: Broker) -> None:
    """a broker acknowledges each send 2 s late"""
    _answers_late(broker._server, broker._context.clock, *_SENDS)


@planted(BROKER_A, "quiet", caught_by="prompt_answers timers_kept")
def broker_wakes_no_pull(broker: Broker) -> None:
    """a broker answers held pulls only at its check every 5 s, not as soon as a message comes"""
    replace_part(broker._pull, "arrived", does_nothing)


# -- where it must refuse


@planted(BROKER_A, "topic-loses-queues", caught_by="availability")
@may_find("routes_as_registered")
def broker_stores_in_queues_that_a_topic_lost(broker: Broker) -> None:
    """a broker stores messages that are sent to a queue that the topic has lost"""
    send: Any = broker._processor._methods[RequestCode.SEND_MESSAGE_V2]

    @around(send.__self__, "checked")
    def checked_as_queue_0(checked: Any, connection: Any, request: Any, header: Any) -> Any:
        return checked(connection, request, replace(header, queue_id=0))


@planted(BROKER_A, "topic-loses-queues", caught_by="availability")
def broker_refuses_with_the_code_of_5x(broker: Broker) -> None:
    """a broker of 4.9 refuses sends to a queue that the topic has lost with code 29, not with code 1"""
    send: Any = broker._processor._methods[RequestCode.SEND_MESSAGE_V2]

    @around(send.__self__, "checked")
    def checked_with_code_29(checked: Any, *about: Any) -> Any:
        try:
            return checked(*about)
        except Refused as exc:
            if exc.response.code == ResponseCode.SYSTEM_ERROR:
                exc.response.code = ResponseCode.INVALID_PARAMETER
            raise


@planted(BROKER_A, "topic-loses-queues", caught_by="availability")
def broker_answers_pulls_without_its_read_permission(broker: Broker) -> None:
    """a broker answers pulls though its brokerPermission lacks the read permission"""
    services = broker.services

    @around(broker._pull, "_checked")
    def checked_as_if_it_had(checked: Any, *about: Any) -> Any:
        config, services.config = services.config, replace(services.config, broker_permission=PERM_READ | PERM_WRITE)
        try:
            return checked(*about)
        finally:
            services.config = config


@planted(BROKER_A, "topic-loses-queues", caught_by="done_by_hand")
@may_find("availability routes_as_registered")
@from_its_making
def broker_keeps_the_permission_that_it_lacked(broker: Broker) -> None:
    """a broker writes its brokerPermission into its topics, and the topics keep it when brokerPermission changes"""

    @around(broker, "_reconfigured")
    def write_and_go_on(go_on: Any, old: BrokerConfig) -> None:
        permission, table = broker.services.config.broker_permission, broker.services.topics.topic_config_table
        if permission & (PERM_READ | PERM_WRITE) != PERM_READ | PERM_WRITE:
            table.update({name: replace(topic, perm=permission) for name, topic in table.items()})
        go_on(old)


# -- as before, or twice


@planted(NAME_SERVERS, "broker-crash", caught_by="dead_brokers_avoided")
@may_find("answers_are_true client_routes_are_true recovery_time")
def name_server_answers_as_before(server: NameServer) -> None:
    """every NameServer that has dropped a broker still answers with cached routes that contain the broker"""
    dropping = False

    @around(server, "_settle")
    def settle_and_note(settle: Any, dropped: Iterable[Dropped]) -> None:
        nonlocal dropping
        gone = tuple(dropped)
        dropping = bool(gone)
        settle(gone)
        dropping = False

    @around(server.cache, "forget")
    def forget_unless_dropping(forget: Any, topics: AbstractSet[str]) -> None:
        if not dropping:
            forget(topics)


@planted(NAME_SERVERS, "smoke", caught_by="answers_asked_for")
def name_server_answers_twice(server: NameServer) -> None:
    """every NameServer sends each answer with a cached route twice"""

    @around(server._server, "fast_path")
    def answer_twice(fast_path: Any, frame: bytes, connection: Connection) -> bytes | None:
        answer: bytes | None = fast_path(frame, connection)
        return None if answer is None else answer + answer


# -- wrongly


def _answering(server: NameServer, change: Callable[[str, RemotingCommand], RemotingCommand]) -> None:
    """Changes the answer to each look-up: `change` gets the topic and the right answer; the cache is not used."""
    processor = server.processor

    @around(processor, "route_info_by_topic")
    def route_info_by_topic(right: Any, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        return change(GetRouteInfoRequestHeader.from_ext_fields(request.ext_fields).topic, right(caller, request))

    processor._methods[RequestCode.GET_ROUTEINFO_BY_TOPIC] = processor.route_info_by_topic
    replace_part(server.cache, "learn", does_nothing)


def _with_code(server: NameServer, code: ResponseCode) -> None:
    _answering(server, lambda _topic, _answer: RemotingCommand.response(code, "name server not ready"))


def _with_route(server: NameServer, change: Callable[[TopicRouteData], TopicRouteData]) -> None:
    """Changes each route in an answer by `change`."""

    def changed(_topic: str, answer: RemotingCommand) -> RemotingCommand:
        if answer.code != ResponseCode.SUCCESS:
            return answer
        return RemotingCommand.response(body=change(TopicRouteData.decode(answer.body)).encode(standard_json=True))

    _answering(server, changed)


def _with_rows(server: NameServer, change: Callable[[QueueData], QueueData]) -> None:
    _with_route(server, lambda route: replace(route, queue_datas=tuple(map(change, route.queue_datas))))


@planted(NS_0, "smoke", caught_by="answers_are_true")
@may_find(f"{_OF_ROUTES} availability")
def name_server_answers_code_1(server: NameServer) -> None:
    """a NameServer answers every look-up with code 1"""
    _with_code(server, ResponseCode.SYSTEM_ERROR)


@planted(NS_0, "smoke", caught_by="answers_are_true")
@may_find(f"{_OF_ROUTES} availability")
def name_server_answers_not_found(server: NameServer) -> None:
    """a NameServer answers every look-up with code 17"""
    _with_code(server, ResponseCode.TOPIC_NOT_EXIST)


# whom a client asks between the crash and 60 s later is the seed's choice: every NameServer
@planted(NAME_SERVERS, "broker-crash", caught_by="answers_are_true")
@may_find(f"{_OF_ROUTES} dead_brokers_avoided")
def name_server_answers_an_old_route(server: NameServer) -> None:
    """every NameServer answers look-ups with the route that the topic had 60 s ago"""
    clock, given = server._context.clock, dict[str, list[tuple[float, RemotingCommand]]]()

    def old(topic: str, answer: RemotingCommand) -> RemotingCommand:
        now_s = clock.monotonic_s()
        kept = given.setdefault(topic, [])
        if not kept or kept[-1][1].body != answer.body:
            kept.append((now_s, answer))
        found = next((one for at_s, one in reversed(kept) if at_s <= now_s - OLD_S), kept[0][1])
        return RemotingCommand.response(found.code, found.remark, body=found.body)

    _answering(server, old)


@planted(NS_0, "smoke", caught_by="answers_are_true")
@may_find(f"{_OF_ROUTES} living_are_used")
def name_server_answers_another_topic(server: NameServer) -> None:
    """a NameServer answers look-ups of a topic with the route of another topic"""

    def other(topic: str, answer: RemotingCommand) -> RemotingCommand:
        topics = sorted(server.table.topic_queue_table)
        another = topics[(topics.index(topic) + 1) % len(topics)] if topic in topics else topic
        route = server.table.route(another)
        return answer if route is None else RemotingCommand.response(body=route.encode(standard_json=True))

    _answering(server, other)


@planted(NS_0, "waits-for-service", caught_by="answers_are_true")
def name_server_waits_milliseconds(server: NameServer) -> None:
    """a NameServer reads waitSecondsForService as milliseconds"""
    processor, clock = server.processor, server._context.clock

    def ready() -> bool:
        return clock.now_ms() - processor.started_ms >= processor.config.wait_seconds_for_service

    replace_part(processor, "_ready", ready)


@planted(NS_0, "smoke", caught_by="answers_are_true")
@may_find(_OF_ROUTES)
def name_server_answers_a_queue_more(server: NameServer) -> None:
    """a NameServer answers look-ups with one write queue more at each broker than its route table has"""
    _with_rows(server, lambda row: replace(row, write_queue_nums=row.write_queue_nums + 1))


@planted(NS_0, "smoke", caught_by="answers_are_true")
@may_find(f"{_OF_ROUTES} availability")
def name_server_answers_without_write_permission(server: NameServer) -> None:
    """a NameServer answers look-ups with routes without write permission"""
    _with_rows(server, lambda row: replace(row, perm=row.perm & ~PERM_WRITE))


@planted(NS_0, "smoke", caught_by="answers_are_true")
@may_find(f"{_OF_ROUTES} availability commits_follow_work duplicates one_master")
def name_server_answers_swapped_addresses(server: NameServer) -> None:
    """a NameServer answers look-ups with routes in which each broker has the addresses of the next broker"""

    def swapped(route: TopicRouteData) -> TopicRouteData:
        brokers = sorted(route.broker_datas, key=lambda broker: broker.broker_name)
        following = [*brokers[1:], *brokers[:1]]
        pairs = zip(brokers, following, strict=True)
        return replace(route, broker_datas=tuple(replace(a, broker_addrs=b.broker_addrs) for a, b in pairs))

    _with_route(server, swapped)


@planted(NS_0, "smoke", caught_by="answers_are_true")
@may_find(f"{_OF_ROUTES} availability one_master")
def name_server_answers_with_slaves(server: NameServer) -> None:
    """a NameServer answers look-ups with broker ids that are one too high, so that masters look like slaves"""

    def slave(broker: BrokerData) -> BrokerData:
        return replace(broker, broker_addrs={id_ + 1: address for id_, address in broker.broker_addrs.items()})

    _with_route(server, lambda route: replace(route, broker_datas=tuple(map(slave, route.broker_datas))))


@planted(NS_0, "smoke", caught_by="answers_are_true")
@may_find(_OF_ROUTES)
def name_server_answers_without_a_broker(server: NameServer) -> None:
    """a NameServer leaves the last broker, by name, out of every route that it answers"""

    def without_the_last(route: TopicRouteData) -> TopicRouteData:
        last = max(broker.broker_name for broker in route.broker_datas)
        brokers = tuple(broker for broker in route.broker_datas if broker.broker_name != last)
        return replace(
            route, broker_datas=brokers, queue_datas=tuple(row for row in route.queue_datas if row.broker_name != last)
        )

    _with_route(server, without_the_last)

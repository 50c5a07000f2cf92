"""Ways for a NameServer to answer wrongly, or twice, although its table is right."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from ....actors.namesrv.processor import Caller
from ....actors.namesrv.server import NameServer
from ....actors.namesrv.tables import Dropped
from ....remoting.bodies.route import BrokerData, QueueData, TopicRouteData
from ....remoting.codes import PERM_WRITE, RequestCode, ResponseCode
from ....remoting.command import RemotingCommand
from ....remoting.headers.namesrv import GetRouteInfoRequestHeader
from ....remoting.transport import Connection
from ...scenarios.defect import Defect, checks, replace_part
from ...topology import NodeKind

OLD_S = 60.0
_NAME_SERVER = (NodeKind.NAME_SERVER,)
_ONE = ("ns-0",)

Change = Callable[[str, RemotingCommand], RemotingCommand]
"""The topic asked for, and the right answer → the one to give."""


def _answering(server: NameServer, change: Change) -> None:
    """Each look-up is answered with what `change` makes of the answer; none from the cache."""
    processor = server.processor
    right = processor.route_info_by_topic

    def route_info_by_topic(caller: Caller, request: RemotingCommand) -> RemotingCommand:
        return change(GetRouteInfoRequestHeader.from_ext_fields(request.ext_fields).topic, right(caller, request))

    replace_part(processor, "route_info_by_topic", route_info_by_topic)
    processor._methods[RequestCode.GET_ROUTEINFO_BY_TOPIC] = route_info_by_topic
    replace_part(server.cache, "learn", lambda *about: None)


def _with_code(code: ResponseCode) -> Callable[[NameServer], None]:
    def plant(server: NameServer) -> None:
        _answering(server, lambda _topic, _answer: RemotingCommand.response(code, "name server not ready"))

    return plant


def _with_route(change: Callable[[TopicRouteData], TopicRouteData]) -> Callable[[NameServer], None]:
    """Each route that is given out is what `change` makes of it."""

    def changed(_topic: str, answer: RemotingCommand) -> RemotingCommand:
        if answer.code != ResponseCode.SUCCESS:
            return answer
        return RemotingCommand.response(body=change(TopicRouteData.decode(answer.body)).encode(standard_json=True))

    return lambda server: _answering(server, changed)


def _with_rows(change: Callable[[QueueData], QueueData]) -> Callable[[NameServer], None]:
    return _with_route(lambda route: replace(route, queue_datas=tuple(map(change, route.queue_datas))))


def _with_old_routes(server: NameServer) -> None:
    """A route is told only after it has held for some time."""
    clock, told = server._context.clock, dict[str, list[tuple[float, RemotingCommand]]]()

    def old(topic: str, answer: RemotingCommand) -> RemotingCommand:
        now_s = clock.monotonic_s()
        kept = told.setdefault(topic, [])
        if not kept or kept[-1][1].body != answer.body:
            kept.append((now_s, answer))
        found = next((one for at_s, one in reversed(kept) if at_s <= now_s - OLD_S), kept[0][1])
        return RemotingCommand.response(found.code, found.remark, body=found.body)

    _answering(server, old)


def _with_another_topic(server: NameServer) -> None:
    def other(topic: str, answer: RemotingCommand) -> RemotingCommand:
        topics = sorted(server.table.topic_queue_table)
        another = topics[(topics.index(topic) + 1) % len(topics)] if topic in topics else topic
        route = server.table.route(another)
        return answer if route is None else RemotingCommand.response(body=route.encode(standard_json=True))

    _answering(server, other)


def _swapped(route: TopicRouteData) -> TopicRouteData:
    brokers = sorted(route.broker_datas, key=lambda broker: broker.broker_name)
    addresses = [broker.broker_addrs for broker in brokers]
    turned = [*addresses[1:], *addresses[:1]]
    return replace(route, broker_datas=tuple(replace(b, broker_addrs=a) for b, a in zip(brokers, turned, strict=True)))


def _as_slaves(route: TopicRouteData) -> TopicRouteData:
    def slave(broker: BrokerData) -> BrokerData:
        return replace(broker, broker_addrs={id_ + 1: address for id_, address in broker.broker_addrs.items()})

    return replace(route, broker_datas=tuple(map(slave, route.broker_datas)))


def _without_the_last(route: TopicRouteData) -> TopicRouteData:
    last = max(broker.broker_name for broker in route.broker_datas)
    return replace(
        route,
        broker_datas=tuple(broker for broker in route.broker_datas if broker.broker_name != last),
        queue_datas=tuple(row for row in route.queue_datas if row.broker_name != last),
    )


def _defect(
    name: str,
    what: str,
    plant: Callable[[NameServer], None],
    also: tuple[str, ...] = (),
    *,
    nodes: tuple[str, ...] = _ONE,
    scenario: str = "smoke",
) -> Defect:
    return Defect(
        name=f"name-server-answers-{name}",
        what=f"{'a' if nodes else 'every'} NameServer {what}",
        kinds=_NAME_SERVER,
        nodes=nodes,
        scenario=scenario,
        caught_by=checks("answers_are_true"),
        also=checks("routes_as_registered", "client_routes_are_true", "messages_delivered", "queue_ownership", *also),
        plant=plant,
    )


def _answers_as_before_a_drop(server: NameServer) -> None:
    settle, forget = server._settle, server.cache.forget
    dropping = False

    def settle_and_note(dropped: Iterable[Dropped]) -> None:
        nonlocal dropping
        gone = tuple(dropped)
        dropping = bool(gone)
        settle(gone)
        dropping = False

    def forget_unless_dropping(topics: AbstractSet[str]) -> None:
        if not dropping:
            forget(topics)

    replace_part(server, "_settle", settle_and_note)
    replace_part(server.cache, "forget", forget_unless_dropping)


def _answers_twice(server: NameServer) -> None:
    endpoint = server._server._endpoint
    fast_path = endpoint.fast_path
    assert fast_path is not None

    def answer_twice(frame: bytes, connection: Connection) -> bytes | None:
        answer = fast_path(frame, connection)
        return None if answer is None else answer + answer

    replace_part(endpoint, "fast_path", answer_twice)


DEFECTS = (
    Defect(
        name="name-server-answers-as-before",
        what="every NameServer goes on giving the answers that it had ready before it dropped a broker",
        kinds=_NAME_SERVER,
        scenario="broker-crash",
        caught_by=checks("dead_brokers_avoided"),
        also=checks("answers_are_true", "client_routes_are_true", "recovery_time"),
        plant=_answers_as_before_a_drop,
    ),
    Defect(
        name="name-server-answers-twice",
        what="every NameServer answers each route request twice",
        kinds=_NAME_SERVER,
        scenario="smoke",
        caught_by=checks("answers_asked_for"),
        plant=_answers_twice,
    ),
    _defect("code-1", "answers every look-up with code 1", _with_code(ResponseCode.SYSTEM_ERROR), ("availability",)),
    _defect(
        "not-found", "answers every look-up with code 17", _with_code(ResponseCode.TOPIC_NOT_EXIST), ("availability",)
    ),
    _defect(
        "an-old-route",
        f"answers look-ups with the route of {OLD_S:g} s ago",
        _with_old_routes,
        ("dead_brokers_avoided",),
        nodes=(),  # whom a client asks between the crash and 60 s later is the seed's choice
        scenario="broker-crash",
    ),
    _defect(
        "another-topic",
        "answers look-ups with the route of the next topic",
        _with_another_topic,
        ("living_are_used",),
    ),
    _defect(
        "a-queue-more",
        "tells of one write queue more than it holds",
        _with_rows(lambda row: replace(row, write_queue_nums=row.write_queue_nums + 1)),
    ),
    _defect(
        "without-write-permission",
        "tells of queues that may not be written",
        _with_rows(lambda row: replace(row, perm=row.perm & ~PERM_WRITE)),
        ("availability",),
    ),
    _defect(
        "swapped-addresses",
        "tells of each broker at the address of the next",
        _with_route(_swapped),
        ("availability", "commits_follow_work", "duplicates", "messages_delivered", "one_master"),
    ),
    _defect("with-slaves", "tells of every master as a slave", _with_route(_as_slaves), ("availability", "one_master")),
    _defect("without-a-broker", "leaves one broker out of every route", _with_route(_without_the_last)),
)

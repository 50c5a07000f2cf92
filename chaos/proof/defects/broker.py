"""Ways for a broker to be wrong: what it registers, with whom and when; what it stores, delivers and remembers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from ....actors.broker.processor import Answer
from ....actors.broker.server import Broker
from ....actors.broker.stored import Append, PutMessage
from ....remoting.bodies.route import DataVersion, TopicConfig
from ....remoting.codes import FLAG_ONEWAY, RequestCode
from ....remoting.command import RemotingCommand
from ....remoting.message_properties import TAGS, format_properties, parse_properties
from ....remoting.node.network import Address
from ....remoting.transport import Connection
from ...scenarios.defect import Defect, checks, in_its_parts, replace_part
from ...topology import NodeKind

STORE_DELAY_S = 5.0
"""How long the broker that acknowledges too early keeps a message to itself."""
REVERSED = 4
"""So many messages of a queue are stored from the last to the first: two of them are of one producer."""
REVERSED_WITHIN_S = 12.0
RARE_PERIOD_S = 220.0
"""Longer than E + S, so that a NameServer gives such a broker up, though a 4.9 one registers once more, 60 s after its
start: with its topic of half messages."""
LOST_OF = 20
CHANGED_OF = 20

_BROKER = (NodeKind.BROKER,)
_ONE = ("broker-a",)


# -- registration


def _skips_one_name_server(broker: Broker) -> None:
    targets = broker._registration_targets

    def all_but_the_first() -> Sequence[Address]:
        return targets()[1:]

    replace_part(broker, "_registration_targets", all_but_the_first)


def _never_tries_again(broker: Broker) -> None:
    registration, lost = broker._registration, set[Address]()
    register = registration._register

    async def register_where_it_worked(
        target: Address, changed: Sequence[TopicConfig] | None, version: DataVersion | None
    ) -> RemotingCommand | None:
        if target in lost:
            return None
        answer = await register(target, changed, version)
        if answer is None:
            lost.add(target)
        return answer

    replace_part(registration, "_register", register_where_it_worked)


def _registers_half(broker: Broker) -> None:
    registration = broker._registration
    command = registration._command

    def command_of_half(changed: Sequence[TopicConfig], version: DataVersion) -> RemotingCommand:
        return command(changed if len(changed) == 1 else changed[: len(changed) // 2], version)

    replace_part(registration, "_command", command_of_half)


def _with_header(**fields: Callable[[str], str]) -> Callable[[Broker], None]:
    """Registrations whose header has other values in these fields."""

    def plant(broker: Broker) -> None:
        registration = broker._registration
        request = registration._request

        def wrong_request(code: RequestCode, ext_fields: dict[str, str], body: bytes) -> RemotingCommand:
            if code == RequestCode.REGISTER_BROKER:
                ext_fields |= {name: change(ext_fields[name]) for name, change in fields.items()}
            return request(code, ext_fields, body)

        replace_part(registration, "_request", wrong_request)

    return plant


def _next_port(address: str) -> str:
    parsed = Address.parse(address)
    return str(Address(parsed.host, parsed.port + 1))


def _never_steps_its_version(broker: Broker) -> None:
    registration = broker._registration
    command, first = registration._command, list[DataVersion]()

    def command_of_the_first_version(changed: Sequence[TopicConfig], version: DataVersion) -> RemotingCommand:
        first.append(version)
        return command(changed, first[0])

    replace_part(registration, "_command", command_of_the_first_version)


def _registers_rarely(broker: Broker) -> None:
    registration, clock = broker._registration, broker._context.clock

    async def register_all_rarely() -> None:
        due_s = clock.monotonic_s()
        while True:
            due_s += RARE_PERIOD_S
            await clock.sleep(due_s - clock.monotonic_s())
            await registration.register_all()

    replace_part(registration, "_periodically", register_all_rarely)


# -- messages


def _acknowledges_before_it_stores(broker: Broker) -> None:
    store, clock = broker.store, broker._context.clock
    append = store.append
    pending: Counter[tuple[str, int]] = Counter()

    def acknowledge(messages: Sequence[PutMessage], *, now_ms: int) -> Append:
        queue = (messages[0].topic, messages[0].queue_id)
        offset = store.max_offset(*queue) + pending[queue]
        pending[queue] += len(messages)

        def land() -> None:
            pending[queue] -= len(messages)
            append(messages, now_ms=now_ms)

        clock.call_later(STORE_DELAY_S, land)
        return Append(offset, tuple(range(len(messages))))

    replace_part(store, "append", acknowledge)


def _loses_messages(broker: Broker) -> None:
    store = broker.store
    append, stored = store.append, 0

    def append_most(messages: Sequence[PutMessage], *, now_ms: int) -> Append:
        nonlocal stored
        stored += 1
        if stored % LOST_OF:
            return append(messages, now_ms=now_ms)
        return Append(store.max_offset(messages[0].topic, messages[0].queue_id), tuple(range(len(messages))))

    replace_part(store, "append", append_most)


def _stores_twice(broker: Broker) -> None:
    append = broker.store.append

    def append_twice(messages: Sequence[PutMessage], *, now_ms: int) -> Append:
        append(messages, now_ms=now_ms)
        return append(messages, now_ms=now_ms)

    replace_part(broker.store, "append", append_twice)


def _changes_bodies(broker: Broker) -> None:
    store = broker.store
    append, stored = store.append, 0

    def append_changed(messages: Sequence[PutMessage], *, now_ms: int) -> Append:
        nonlocal stored
        stored += 1
        if stored % CHANGED_OF == 0:
            messages = [replace(message, body=message.body[:-1] + b"?") for message in messages]
        return append(messages, now_ms=now_ms)

    replace_part(store, "append", append_changed)


def _loses_tags(broker: Broker) -> None:
    append = broker.store.append

    def append_without(messages: Sequence[PutMessage], *, now_ms: int) -> Append:
        kept = [
            {name: value for name, value in parse_properties(message.properties.decode()).items() if name != TAGS}
            for message in messages
        ]
        bare = [
            replace(message, properties=format_properties(properties).encode())
            for message, properties in zip(messages, kept, strict=True)
        ]
        return append(bare, now_ms=now_ms)

    replace_part(broker.store, "append", append_without)


def _stores_out_of_order(broker: Broker) -> None:
    """Messages of a queue are stored in groups, each from its last to its first, and acknowledged as they come."""
    store, clock = broker.store, broker._context.clock
    append, held = store.append, dict[tuple[str, int], list[Sequence[PutMessage]]]()

    def land(queue: tuple[str, int], now_ms: int) -> None:
        for messages in reversed(held.pop(queue, [])):
            append(messages, now_ms=now_ms)
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


def _answers_oneway_requests(broker: Broker) -> None:
    endpoint = broker._server._endpoint
    handle = endpoint.handler
    assert handle is not None

    def handle_as_two_way(connection: Connection, request: RemotingCommand) -> Answer:
        request.flag &= ~FLAG_ONEWAY
        return handle(connection, request)

    replace_part(endpoint, "handler", handle_as_two_way)


def _forgets_offsets(broker: Broker) -> None:
    replace_part(broker.services.offsets, "commit", lambda group, topic, queue_id, offset: -1)


DEFECTS = (
    Defect(
        name="broker-skips-a-name-server",
        what="a broker never registers with the first NameServer of its list",
        kinds=_BROKER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("routes_converge", "routes_are_true"),
        also=checks("answers_are_true", "client_routes_are_true", "duplicates", "messages_delivered", "prompt_answers"),
        plant=_skips_one_name_server,
    ),
    Defect(
        name="broker-never-tries-again",
        what="brokers never register again with a NameServer that did not answer them once",
        kinds=_BROKER,
        scenario="name-server-crash",
        caught_by=checks("routes_converge", "routes_are_true"),
        also=checks("client_routes_are_true", "messages_delivered", "timers_kept"),
        plant=in_its_parts(_never_tries_again),
    ),
    Defect(
        name="broker-registers-half",
        what="a broker registers only the first half of its topics when it registers them all",
        kinds=_BROKER,
        nodes=_ONE,
        scenario="name-server-crash",
        caught_by=checks("routes_converge", "routes_are_true"),
        also=checks("answers_are_true", "client_routes_are_true", "messages_delivered", "registrations_are_kept"),
        plant=in_its_parts(_registers_half),
    ),
    Defect(
        name="broker-registers-a-wrong-address",
        what="a broker registers with a port that it does not listen on",
        kinds=_BROKER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("routes_are_true"),
        also=checks(
            "living_are_used",
            "answers_are_true",
            "availability",
            "client_routes_are_true",
            "duplicates",
            "one_master",
            "queue_ownership",
            "registrations_are_kept",
            "routes_as_registered",
        ),
        plant=in_its_parts(_with_header(brokerAddr=_next_port)),
    ),
    Defect(
        name="broker-registers-a-dead-id",
        what="a broker registers as slave 1 of a master that does not exist",
        kinds=_BROKER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("routes_are_true"),
        also=checks("answers_are_true", "registrations_are_kept"),
        plant=in_its_parts(_with_header(brokerId=lambda _: "1")),
    ),
    Defect(
        name="broker-never-steps-its-version",
        what="a broker registers new topics under the data version of its first registration",
        kinds=_BROKER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("routes_are_true"),
        also=checks("answers_are_true", "registrations_are_kept"),
        plant=in_its_parts(_never_steps_its_version),
    ),
    Defect(
        name="broker-registers-rarely",
        what=f"a broker registers every {RARE_PERIOD_S:g} s, so that NameServers give it up",
        kinds=_BROKER,
        nodes=_ONE,
        scenario="quiet",
        caught_by=checks("routes_are_true"),
        also=checks(
            "answers_are_true",
            "client_routes_are_true",
            "duplicates",
            "living_are_used",
            "messages_delivered",
            "no_false_eviction",
            "prompt_answers",
            "routes_converge",
            "timers_kept",
        ),
        plant=in_its_parts(_registers_rarely),
    ),
    Defect(
        name="broker-acknowledges-before-store",
        what=f"a broker acknowledges a message {STORE_DELAY_S:g} s before it stores it",
        kinds=_BROKER,
        nodes=_ONE,
        scenario="broker-crash",
        caught_by=checks("no_acknowledged_loss"),
        also=checks("prompt_answers", "duplicates", "messages_delivered", "order_kept", "timers_kept"),
        plant=_acknowledges_before_it_stores,
    ),
    Defect(
        name="broker-loses-messages",
        what=f"a broker acknowledges every {LOST_OF}th message without storing it",
        kinds=_BROKER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("no_acknowledged_loss"),
        also=checks("messages_delivered"),
        plant=_loses_messages,
    ),
    Defect(
        name="broker-stores-twice",
        what="a broker stores each message twice",
        kinds=_BROKER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("duplicates"),
        plant=_stores_twice,
    ),
    Defect(
        name="broker-changes-bodies",
        what=f"a broker changes the last byte of every {CHANGED_OF}th message's body",
        kinds=_BROKER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("messages_delivered"),
        plant=_changes_bodies,
    ),
    Defect(
        name="broker-loses-tags",
        what="a broker stores messages without their tags",
        kinds=_BROKER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("messages_delivered"),
        plant=_loses_tags,
    ),
    Defect(
        name="broker-stores-out-of-order",
        what=f"a broker stores each {REVERSED} messages of a queue from the last to the first",
        kinds=_BROKER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("order_kept"),
        also=checks("duplicates", "messages_delivered", "no_acknowledged_loss", "prompt_answers", "timers_kept"),
        plant=_stores_out_of_order,
    ),
    Defect(
        name="broker-forgets-offsets",
        what="brokers forget what consumer groups commit",
        kinds=_BROKER,
        scenario="broker-crash",
        caught_by=checks("commits_follow_work", "duplicates"),
        plant=in_its_parts(_forgets_offsets),
    ),
    Defect(
        name="broker-answers-oneway",
        what="brokers answer requests whose sender said that it wants no answer",
        kinds=_BROKER,
        scenario="smoke",
        caught_by=checks("answers_asked_for"),
        plant=_answers_oneway_requests,
    ),
)

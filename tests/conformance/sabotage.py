"""Our client made wrong in one way each: what exactly one rule must call INVALID. Who plants none is the clean twin.

A defect shows in the situations `only` (its rule's, where it names none), so that every other rule is judged by what
the clean twin did: planted everywhere, many defects are seen by several rules, for good reasons.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from nemesrv.clients.consumer.consumer import DefaultMQPushConsumer
from nemesrv.clients.name_server_client import NameServerClient
from nemesrv.clients.name_servers import Choice
from nemesrv.clients.producer.producer import DefaultMQProducer
from nemesrv.conformance.rules import RULES
from nemesrv.conformance.rules.choosing import LEAVES
from nemesrv.remoting.bodies.route import TopicRouteData
from nemesrv.remoting.errors import ConnectError, RequestTimeout, ResponseError, RocketMQError
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile
from tests.conformance.client import Client

Plant = Callable[[Client], None]


@dataclass(frozen=True, slots=True)
class Defect:
    name: str
    rule: str
    plant: Plant = lambda client: None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the producer's or consumer's config."""
    only: tuple[str, ...] = ()
    profile: Profile = Profile.V5_X
    heals: frozenset[str] = frozenset()
    """Rules that even the clean twin breaks, and this client does not."""
    besides: frozenset[str] = frozenset()
    """Rules that must tell it, too, because what it does is against them as well."""
    may: frozenset[str] = frozenset()
    """Rules that may call it INVALID besides, because what it does wrong is in their measure."""
    starts: int = 20
    repeats: int = 1
    """So often each situation is needed, where chance is involved; of `WRONG`, beside other clients."""

    @property
    def situations(self) -> tuple[str, ...]:
        return self.only or RULES[self.rule].situations


# --- what makes it wrong


def name_server(change: Callable[[NameServerClient, Client], None]) -> Callable[[Client], None]:
    return lambda client: change(client.instance.name_server, client)


# -- choosing


def does_not_shuffle(of: NameServerClient, client: Client) -> None:
    of.selector.shuffle = lambda addresses: None  # type: ignore[method-assign]


def starts_at_the_first(of: NameServerClient, client: Client) -> None:
    selector = of.selector
    selector._start_index = lambda: selector.addresses.index(client.configured[0]) - 1  # type: ignore[method-assign]


def leaves_once(client: Client) -> None:
    """At its third poll it goes to another NameServer, though the one that it has answers."""
    instance, polls = client.instance, 0

    def count() -> None:
        nonlocal polls
        polls += 1
        if polls == 3:
            instance.name_server.selector.chosen = None

    instance._before_poll = count  # type: ignore[method-assign]


def goes_back(of: NameServerClient, client: Client, *, at: Callable[[int], bool] = lambda made: made == 3) -> None:
    """Its third choice is the one before the last: 0 1 0 1 2 3. `at` names other choices by their number."""
    next_index, made = of.selector.next_index, 0

    def there_and_back() -> int:
        nonlocal made
        made += 1
        index = next_index()
        if at(made):
            assert of.selector._index is not None
            of.selector._index -= 2
            index = of.selector._index % len(of.selector.addresses)
        return index

    of.selector.next_index = there_and_back  # type: ignore[method-assign]


# -- leaving


def stays(of: NameServerClient, client: Client) -> None:
    advance = of.selector.advance

    def same_again(old: Address | None) -> Choice:
        chosen = of.selector.chosen
        return advance(old) if chosen is None else Choice(old, chosen, of.selector.addresses.index(chosen))

    of.selector.advance = same_again  # type: ignore[method-assign]


def _leaves_on(error: type[RocketMQError], of: NameServerClient) -> None:
    query_route = of.query_route

    async def query_and_leave(topic: str, timeout_s: float = 3.0) -> TopicRouteData:
        try:
            return await query_route(topic, timeout_s)
        except error:
            of.selector.chosen = None
            raise

    of.query_route = query_and_leave  # type: ignore[method-assign]


def leaves_on_code(of: NameServerClient, client: Client) -> None:
    _leaves_on(ResponseError, of)


# -- trying


def tries_again(when: type[RocketMQError]) -> Callable[[Client], None]:
    def plant(of: NameServerClient, client: Client) -> None:
        invoke = of._invoke

        async def twice(command: Any, timeout_s: float, tries: Any) -> Any:
            try:
                return await invoke(command, timeout_s, tries)
            except when:
                return await invoke(command, timeout_s, tries)

        of._invoke = twice  # type: ignore[method-assign]

    return name_server(plant)


def is_patient(of: NameServerClient, client: Client) -> None:
    query_route = of.query_route
    of.query_route = lambda topic, timeout_s=4.0: query_route(topic, 4.0)  # type: ignore[method-assign]


def time_outs_add(of: NameServerClient, client: Client) -> None:
    """The answer has its whole time, however long connecting took."""
    invoke = of._invoke

    async def with_time_of_its_own(command: Any, timeout_s: float, tries: Any) -> Any:
        await of._connected(tries)
        return await invoke(command, timeout_s, tries)

    of._invoke = with_time_of_its_own  # type: ignore[method-assign]


def keeps_silent_connections(of: NameServerClient, client: Client) -> None:
    """It goes on to the next one, and leaves the connection open."""
    client.instance.remoting._close_on_timeout = False
    _leaves_on(RequestTimeout, of)


def takes_turns(of: NameServerClient, client: Client) -> None:
    of.selector.sticky = lambda is_active: None  # type: ignore[method-assign]


# -- polling


def polls_by_itself(wait_s: Callable[[int], float]) -> Callable[[Client], None]:
    """In place of the fixed rate: so long after the end of each round."""

    def plant(client: Client) -> None:
        instance = client.instance
        poll = instance.poll_routes
        held: list[asyncio.Task[None]] = []

        async def poll_for_ever() -> None:
            number = 0
            while True:
                try:
                    await poll()
                except RocketMQError:
                    pass
                number += 1
                await client.context.clock.sleep(wait_s(number))

        async def begin() -> None:
            if not held:
                held.append(asyncio.create_task(poll_for_ever()))

        instance.poll_routes = begin  # type: ignore[method-assign]

    return plant


def takes_no_list(client: Client) -> None:
    of = client.instance.name_server
    update = of.update_addresses
    of.update_addresses = lambda addresses, task=None: None if of.selector.addresses else update(addresses, task)  # type: ignore[method-assign]


def storms(of: NameServerClient, client: Client) -> None:
    query_route = of.query_route

    async def five_times(topic: str, timeout_s: float = 3.0) -> TopicRouteData:
        for _ in range(4):
            try:
                return await query_route(topic, timeout_s)
            except ResponseError:
                pass
        return await query_route(topic, timeout_s)

    of.query_route = five_times  # type: ignore[method-assign]


def gives_up(of: NameServerClient, client: Client) -> None:
    """After two failures it asks no more."""
    query_route, failed = of.query_route, 0

    async def until_two_failed(topic: str, timeout_s: float = 3.0) -> TopicRouteData:
        nonlocal failed
        if failed >= 2:
            raise ConnectError("given up")
        try:
            return await query_route(topic, timeout_s)
        except ConnectError:
            failed += 1
            raise

    of.query_route = until_two_failed  # type: ignore[method-assign]


# -- brokers


def takes(change: Callable[[TopicRouteData, TopicRouteData], TopicRouteData]) -> Callable[[Client], None]:
    """In place of each new route, what `change` makes of the one that it has and it."""

    def plant(client: Client) -> None:
        cache = client.instance.route_cache
        take = cache.take

        def take_changed(topic: str, route: TopicRouteData, *, needed: bool = False) -> bool:
            old = cache.route(topic)
            return take(topic, route if old is None else change(old, route), needed=needed)

        cache.take = take_changed  # type: ignore[method-assign]

    return plant


def without_new_brokers(old: TopicRouteData, new: TopicRouteData) -> TopicRouteData:
    known = {broker.broker_name for broker in old.broker_datas}
    return replace(
        new,
        broker_datas=tuple(broker for broker in new.broker_datas if broker.broker_name in known),
        queue_datas=tuple(row for row in new.queue_datas if row.broker_name in known),
    )


def tells_of_losses(client: Client) -> None:
    client.said = lambda number, ok: ok and number % 3 > 0  # type: ignore[method-assign]


def rests_after_a_failure(client: Client) -> None:
    """After 20 sends it sends nothing for 25 s."""
    assert isinstance(client.node, DefaultMQProducer)
    send, sent = client.node.send, 0

    async def send_and_rest(*args: Any, **kwargs: Any) -> Any:
        nonlocal sent
        sent += 1
        if sent == 20:
            await client.context.clock.sleep(25.0)
        return await send(*args, **kwargs)

    client.node.send = send_and_rest  # type: ignore[method-assign]


ISOLATES = {"send_latency_fault_enable": True, "latency_max": (400,), "not_available_duration": (600_000,)}

# -- consumers


def never_rebalances_again(client: Client) -> None:
    """Nor is a change of the group's members told it."""
    assert isinstance(client.node, DefaultMQPushConsumer)
    rebalancer = client.node._rebalancer
    rebalance, clock = rebalancer.rebalance, client.context.clock
    began_s = clock.monotonic_s()

    async def while_it_is_new() -> bool:
        return await rebalance() if clock.monotonic_s() < began_s + 35 else True

    rebalancer.rebalance = while_it_is_new  # type: ignore[method-assign]


def receives_twice(client: Client) -> None:
    tell = client.tell

    def tell_twice(**said: Any) -> None:
        for _ in range(2 if said["f"] == "received" else 1):
            tell(**dict(said))

    client.tell = tell_twice


# --- by which rule that is found


def _leaving(rule: str) -> Defect:
    situation = RULES[rule].situations[0]
    promise = {"leaves_within_s"} if situation in RULES["leaves_within_s"].situations else ()
    name = f"stays-{situation.replace('_', '-')}"
    return Defect(name, rule, name_server(stays), only=(situation,), besides=frozenset(promise))


_ALL = (
    Defect("does-not-shuffle", "list_order", name_server(does_not_shuffle), only=(*LEAVES, "all_gone"), repeats=3),
    Defect("starts-at-the-first", "start", name_server(starts_at_the_first)),
    Defect("leaves-once", "sticky", leaves_once),
    Defect("goes-back", "next", name_server(goes_back), only=("all_gone",)),
    *(
        _leaving(rule)
        for rule in (
            "leaves_on_refused",
            "leaves_on_syn_dropped",
            "leaves_on_silence",
            "leaves_on_close",
            "leaves_on_reset",
            "leaves_on_closed_at_accept",
        )
    ),
    Defect("leaves-late", "leaves_within_s", settings={"poll_name_server_interval_ms": 65_000}, only=("refused",)),
    Defect("leaves-on-code-1", "leaves_on_error_code", name_server(leaves_on_code), only=("error_code",)),
    Defect("leaves-on-code-17", "leaves_on_code_17", name_server(leaves_on_code), only=("topic_not_exist",)),
    Defect("one-try-too-many", "tries_refused", tries_again(ConnectError)),
    Defect("goes-on-after-silence", "tries_silent", tries_again(RequestTimeout)),
    Defect("connects-too-long", "connect_timeout_s", settings={"connect_timeout_ms": 3_500}, only=("one_unreachable",)),
    Defect("waits-too-long", "answer_timeout_s", name_server(is_patient), only=("silent", "black_hole", "one_dead")),
    Defect(
        "time-outs-add",
        "timeouts_add",
        name_server(time_outs_add),
        heals=frozenset({"failover"}),  # so it is what 4.9.8 lacks
        profile=Profile.V4_9,
    ),
    Defect("keeps-silent-connections", "closes_on_silence", name_server(keeps_silent_connections)),
    Defect("takes-turns", "phase_lock", name_server(takes_turns), only=("one_dead",), besides=frozenset({"sticky"})),
    Defect("never-recovers", "failover", profile=Profile.V4_9),
    Defect("polls-late", "poll_period_s", settings={"poll_name_server_interval_ms": 33_000}, only=("quiet", "slow")),
    Defect("fixed-delay", "poll_kind", polls_by_itself(lambda number: 30.0)),
    Defect(
        "one-poll-late", "poll_jitter_s", polls_by_itself(lambda number: 32.0 if number == 3 else 30.0), only=("quiet",)
    ),
    Defect("takes-no-list", "list_change_s", takes_no_list),
    Defect("storms", "storm", name_server(storms)),
    Defect("gives-up", "back_after_all_gone_s", name_server(gives_up)),
    Defect("keeps-a-dead-broker", "killed_broker_s", takes(lambda old, new: old), only=("broker_killed",)),
    *(
        Defect(f"isolates-{rule.removesuffix('_broker_s')}", rule, settings=ISOLATES)
        for rule in ("silent_broker_s", "refusing_broker_s", "unreachable_broker_s")
    ),
    Defect("keeps-an-unrouted-broker", "unrouted_broker_s", takes(lambda old, new: old)),
    Defect("tells-of-losses", "sends_lost", tells_of_losses),
    Defect("rests", "send_stall_s", rests_after_a_failure),
    Defect("no-retries", "send_retries", settings={"retry_times_when_send_failed": 0}),
    Defect("takes-no-broker-back", "returned_broker_s", takes(without_new_brokers)),
    Defect("keeps-its-queues-killed", "queues_of_killed_s", never_rebalances_again),
    Defect("keeps-its-queues-stopped", "queues_of_stopped_s", never_rebalances_again),
    Defect("receives-twice", "received_twice", receives_twice),
)

DEFECTS: Mapping[str, Defect] = {defect.name: defect for defect in _ALL}


# --- clients as somebody might have written them, wrong wherever they are put; `only` are the situations that show it


def prefers_the_first(of: NameServerClient, client: Client) -> None:
    """12 points too often."""
    selector, rng = of.selector, client.context.rng
    start_index, favoured = selector._start_index, client.configured[0]

    def drawn() -> int:
        n = len(selector.addresses)
        if rng.random() < 0.12 * n / (n - 1):
            return selector.addresses.index(favoured) - 1
        return start_index()

    selector._start_index = drawn  # type: ignore[method-assign]


def goes_back_to_the_failed(of: NameServerClient, client: Client) -> None:
    """Each second of its later choices is the one that it has left."""
    goes_back(of, client, at=lambda made: made > 2 and made % 2 == 1)


def dials_all(of: NameServerClient, client: Client) -> None:
    """Before its first request it connects to every NameServer."""
    invoke, remoting, dialled = of._invoke, client.instance.remoting, False

    async def after_all(command: Any, timeout_s: float, tries: Any) -> Any:
        nonlocal dialled
        if not dialled:
            dialled = True
            await asyncio.gather(*(remoting.connect(each) for each in client.configured), return_exceptions=True)
        return await invoke(command, timeout_s, tries)

    of._invoke = after_all  # type: ignore[method-assign]


def draws_each_time(of: NameServerClient, client: Client) -> None:
    takes_turns(of, client)
    selector, rng = of.selector, client.context.rng

    def anywhere() -> int:
        selector._index = rng.randrange(len(selector.addresses))
        return selector._index

    selector.next_index = anywhere  # type: ignore[method-assign]


def keeps_a_lost_broker(client: Client) -> None:
    """For 90 s after a route without it."""
    clock = client.context.clock
    since_s: dict[str, float] = {}

    def change(old: TopicRouteData, new: TopicRouteData) -> TopicRouteData:
        for broker in old.broker_datas:
            if broker not in new.broker_datas:
                since_s.setdefault(broker.broker_name, clock.monotonic_s())
        lately = any(clock.monotonic_s() - at_s < 90.0 for at_s in since_s.values())
        return old if lately else new

    takes(change)(client)


def retries_where_it_failed(client: Client) -> None:
    if not isinstance(client.node, DefaultMQProducer):
        return  # it sends nothing
    producer = client.node
    select = producer._select

    def same_again(publish: Any, last_broker_name: str | None, *, retry: bool = False) -> Any:
        queues = [select(publish, None, retry=retry) for _ in range(1 if last_broker_name is None else 32)]
        return next((queue for queue in queues if queue.broker_name == last_broker_name), queues[0])

    producer._select = same_again  # type: ignore[method-assign]


def is_right_for_ten_minutes(client: Client) -> None:
    """Then it goes to another NameServer at each poll."""
    instance, clock = client.instance, client.context.clock
    began_s = clock.monotonic_s()

    def leave() -> None:
        if clock.monotonic_s() - began_s >= 600.0:
            instance.name_server.selector.chosen = None

    instance._before_poll = leave  # type: ignore[method-assign]


def leaves_after_ten(of: NameServerClient, client: Client) -> None:
    """It goes to another NameServer for each tenth request."""
    invoke, asked = of._invoke, 0

    async def counted(command: Any, timeout_s: float, tries: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked % 10 == 0:
            of.selector.chosen = None
        return await invoke(command, timeout_s, tries)

    of._invoke = counted  # type: ignore[method-assign]


def goes_backwards(of: NameServerClient, client: Client) -> None:
    """From each NameServer it goes to the one before, not to the next."""
    next_index, selector = of.selector.next_index, of.selector
    of.selector.next_index = lambda: -next_index() % len(selector.addresses)  # type: ignore[method-assign]


def forgets_one(of: NameServerClient, client: Client) -> None:
    """It never uses the last NameServer of its list as it was given."""
    update = of.update_addresses

    def without(addresses: Sequence[Address], task: str | None = None) -> None:
        update([address for address in addresses if address not in client.configured[-1:]], task)

    of.update_addresses = without  # type: ignore[method-assign]


def _another(of: NameServerClient, address: Address) -> Address:
    addresses = of.selector.addresses
    return addresses[(addresses.index(address) + 1) % len(addresses)]


def keeps_two_connections(of: NameServerClient, client: Client) -> None:
    """One more to the next NameServer of its list, which it does not ask."""
    remoting, connected = client.instance.remoting, of._connected

    async def with_another(tries: Any) -> Address:
        address = await connected(tries)
        other = _another(of, address)
        if not remoting.is_active(other):
            with suppress(RocketMQError):
                await remoting.connect(other)
        return address

    of._connected = with_another  # type: ignore[method-assign]


def asks_two(of: NameServerClient, client: Client) -> None:
    """Each request goes to the next NameServer of its list as well, and the first answer counts."""
    remoting = client.instance.remoting

    async def invoke(command: Any, timeout_s: float, tries: Any) -> Any:
        address = await of._connected(tries)
        calls = [remoting.invoke(each, command, timeout_s=timeout_s) for each in (address, _another(of, address))]
        found = await asyncio.gather(*calls, return_exceptions=True)
        answers = [each for each in found if not isinstance(each, BaseException)]
        if not answers:
            raise found[0] if isinstance(found[0], RocketMQError) else ConnectError("nobody answered")
        return answers[0]

    of._invoke = invoke  # type: ignore[method-assign]


def asks_once(client: Client) -> None:
    """It polls no routes after its first round."""
    instance, polled = client.instance, False
    poll = instance.poll_routes

    async def once() -> None:
        nonlocal polled
        if not polled:
            polled = True
            await poll()

    instance.poll_routes = once  # type: ignore[method-assign]


def comes_back(of: NameServerClient, client: Client) -> None:
    """Each 60 s it tries its first NameServer again after it has left it, and goes back as soon as it accepts."""
    selector, remoting, clock = of.selector, client.instance.remoting, client.context.clock
    advance, first = selector.advance, list[Address]()
    held: list[asyncio.Task[None]] = []

    async def probe() -> None:
        while first[0] in selector.addresses:
            await clock.sleep(60.0)
            if selector.chosen not in (None, first[0]):
                with suppress(RocketMQError):
                    await remoting.connect(first[0])
                    selector.chosen, selector._index = first[0], selector.addresses.index(first[0])

    def told(old: Address | None) -> Choice:
        choice = advance(old)
        if not first:
            first.append(choice.new)
            held.append(asyncio.create_task(probe()))
        return choice

    selector.advance = told  # type: ignore[method-assign]


_CALM = ("quiet", "slow", "broker_killed", "route_changes")
_POLLED = frozenset(
    {
        "poll_period_s",
        "leaves_within_s",
        "killed_broker_s",
        "unrouted_broker_s",
        "returned_broker_s",
        "back_after_all_gone_s",
    }
)

WRONG: tuple[Defect, ...] = (
    Defect(
        "never-random",
        "start",
        name_server(starts_at_the_first),
        only=("starts", "quiet"),
        may=frozenset({"list_order"}),  # as given is what a list looks like whose first is always the first
    ),
    Defect(
        "first-too-often",
        "start",
        name_server(prefers_the_first),
        only=("starts", "quiet"),
        starts=1_000,
    ),
    Defect(
        "back-to-the-failed",
        "next",
        name_server(goes_back_to_the_failed),
        only=("all_gone", "refused", "quiet"),
    ),
    Defect("dials-all", "start", name_server(dials_all), only=("starts", "quiet")),
    Defect("draws-each-time", "sticky", name_server(draws_each_time), only=("starts", *_CALM)),
    Defect(
        "polls-each-45-s",
        "poll_period_s",
        settings={"poll_name_server_interval_ms": 45_000},
        only=("quiet", "slow"),
        may=_POLLED,
    ),
    Defect(
        "keeps-a-killed-broker",
        "killed_broker_s",
        keeps_a_lost_broker,
        only=("broker_killed", "quiet"),
        may=frozenset({"unrouted_broker_s", "returned_broker_s", "send_stall_s", "sends_lost"}),
    ),
    Defect(
        "retries-where-it-failed",
        "send_retries",
        retries_where_it_failed,
        only=("broker_busy", "quiet"),
        may=frozenset({"sends_lost", "send_stall_s"}),
    ),
    Defect(
        "moves-now-and-then",
        "sticky",
        leaves_once,
        only=("starts", *_CALM),
        may=frozenset({"leaves_on_error_code", "leaves_on_code_17", "phase_lock"}),  # its third poll falls behind those
    ),
    Defect(
        "forgets-one",
        "next",
        name_server(forgets_one),
        only=("all_gone", "quiet"),
        may=frozenset({"start", "list_order", "back_after_all_gone_s"}),
    ),
    Defect(
        "keeps-two-connections",
        "next",  # it keeps asking at one, so sticky is kept; its connects beside that are out of turn
        name_server(keeps_two_connections),
        only=("all_gone", "quiet"),
        may=frozenset({"sticky", "failover"}),  # it waits for the other one's connect
    ),
    Defect(
        "leaves-after-ten",
        "sticky",
        name_server(leaves_after_ten),
        only=("read_only", "quiet"),
    ),
    Defect("asks-two", "sticky", name_server(asks_two), only=("starts", *_CALM)),
    Defect(
        "asks-once",
        "poll_period_s",
        asks_once,
        only=("quiet", "slow"),
        may=_POLLED | {"list_change_s"},
    ),
    Defect(
        "comes-back",
        "sticky",
        name_server(comes_back),
        only=("closed", "all_gone", "quiet"),
        may=frozenset({"phase_lock", "next", "tries_refused"}),
        repeats=3,
    ),
)
"""Three more need more than this: one that starts while a NameServer is dead (tests/chaos/fronts/test_rows.py), one
that is right for ten minutes, and one that goes backwards (test_wrong_clients.py)."""

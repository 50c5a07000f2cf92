"""Our client made wrong in one way each: what exactly one rule must call INVALID. Who plants none is the clean twin.

A defect shows in the situations `only` (its rule's, where it names none), so that every other rule is judged by what
the clean twin did: planted everywhere, many defects are seen by several rules, for good reasons.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from nemesrv.chaos.defects import around, every, replace_part
from nemesrv.chaos.proof.defects.client import (
    client_chooses_for_each_request,
    client_goes_on_at_random,
    client_keeps_a_silent_channel,
    client_never_moves_on,
    client_never_shuffles,
    client_takes_no_broker_back,
    taking,
)
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


# --- what makes it wrong: where it can be, as the self-test's clients are


# -- choosing


def starts_at_the_first(client: Client) -> None:
    selector = client.name_server.selector
    replace_part(selector, "_start_index", lambda: selector.addresses.index(client.configured[0]) - 1)


def _leaves_at_polls(client: Client, when: Callable[[], bool]) -> None:
    """It goes to another NameServer at these polls, though the one that it has answers."""
    selector = client.name_server.selector

    def leave() -> None:
        if when():
            selector.chosen = None

    replace_part(client.instance, "_before_poll", leave)


def leaves_once(client: Client) -> None:
    polls = count(1)
    _leaves_at_polls(client, lambda: next(polls) == 3)


def goes_back(client: Client, *, at: Callable[[int], bool] = lambda made: made == 3) -> None:
    """Its third choice is the one before the last: 0 1 0 1 2 3. `at` names other choices by their number."""
    selector, made = client.name_server.selector, count(1)

    @around(selector, "next_index")
    def there_and_back(next_index: Callable[[], int]) -> int:
        index = next_index()
        if at(next(made)):
            assert selector._index is not None
            selector._index -= 2
            index = selector._index % len(selector.addresses)
        return index


# -- leaving


def leaves_on(error: type[RocketMQError]) -> Plant:
    def plant(client: Client) -> None:
        @around(client.name_server, "query_route")
        async def query_and_leave(query_route: Any, *asked: Any) -> TopicRouteData:
            try:
                return await query_route(*asked)
            except error:
                client.name_server.selector.chosen = None
                raise

    return plant


# -- trying


def tries_again(when: type[RocketMQError]) -> Plant:
    def plant(client: Client) -> None:
        @around(client.name_server, "_invoke")
        async def twice(invoke: Any, *call: Any) -> Any:
            try:
                return await invoke(*call)
            except when:
                return await invoke(*call)

    return plant


def is_patient(client: Client) -> None:
    around(client.name_server, "query_route")(lambda query_route, topic, *_: query_route(topic, 4.0))


def time_outs_add(client: Client) -> None:
    """The answer has its whole time, however long connecting took."""

    @around(client.name_server, "_invoke")
    async def with_time_of_its_own(invoke: Any, command: Any, timeout_s: float, tries: Any) -> Any:
        await client.name_server._connected(tries)
        return await invoke(command, timeout_s, tries)


def keeps_silent_connections(client: Client) -> None:
    """It goes on to the next one, and leaves the connection open."""
    client_keeps_a_silent_channel(client)
    leaves_on(RequestTimeout)(client)


# -- polling


def polls_by_itself(wait_s: Callable[[int], float]) -> Plant:
    """In place of the fixed rate: so long after the end of each round."""

    def plant(client: Client) -> None:
        held: list[asyncio.Task[None]] = []

        async def poll_for_ever(poll: Any) -> None:
            for number in count(1):
                with suppress(RocketMQError):
                    await poll()
                await client.context.clock.sleep(wait_s(number))

        @around(client.instance, "poll_routes")
        async def begin(poll: Any) -> None:
            if not held:
                held.append(asyncio.create_task(poll_for_ever(poll)))

    return plant


def takes_no_list(client: Client) -> None:
    @around(client.name_server, "update_addresses")
    def update_once(update: Any, *told: Any) -> None:
        if not client.name_server.selector.addresses:
            update(*told)


def storms(client: Client) -> None:
    @around(client.name_server, "query_route")
    async def five_times(query_route: Any, *asked: Any) -> TopicRouteData:
        for _ in range(4):
            with suppress(ResponseError):
                return await query_route(*asked)
        return await query_route(*asked)


def gives_up(client: Client) -> None:
    """After two failures it asks no more."""
    failed = 0

    @around(client.name_server, "query_route")
    async def until_two_failed(query_route: Any, *asked: Any) -> TopicRouteData:
        nonlocal failed
        if failed >= 2:
            raise ConnectError("given up")
        try:
            return await query_route(*asked)
        except ConnectError:
            failed += 1
            raise


# -- brokers


def keeps_its_first_route(client: Client) -> None:
    taking(client, lambda old, new: old or new)


def tells_of_losses(client: Client) -> None:
    replace_part(client, "said", lambda number, ok: ok and number % 3 > 0)


def rests_after_a_failure(client: Client) -> None:
    """After 20 sends it sends nothing for 25 s."""
    sent = count(1)

    @around(client.node, "send")
    async def send_and_rest(send: Any, *args: Any) -> Any:
        if next(sent) == 20:
            await client.context.clock.sleep(25.0)
        return await send(*args)


ISOLATES = {"send_latency_fault_enable": True, "latency_max": (400,), "not_available_duration": (600_000,)}

# -- consumers


def never_rebalances_again(client: Client) -> None:
    """Nor is a change of the group's members told it."""
    assert isinstance(client.node, DefaultMQPushConsumer)
    clock = client.context.clock
    until_s = clock.monotonic_s() + 35

    @around(client.node._rebalancer, "rebalance")
    async def while_it_is_new(rebalance: Any) -> bool:
        return await rebalance() if clock.monotonic_s() < until_s else True


def receives_twice(client: Client) -> None:
    @around(client, "tell")
    def tell_twice(tell: Any, **said: Any) -> None:
        for _ in range(2 if said["f"] == "received" else 1):
            tell(**said)


# --- by which rule that is found


def _leaving(rule: str) -> Defect:
    situation = RULES[rule].situations[0]
    promise = {"leaves_within_s"} if situation in RULES["leaves_within_s"].situations else ()
    name = f"stays-{situation.replace('_', '-')}"
    return Defect(name, rule, client_never_moves_on, only=(situation,), besides=frozenset(promise))


_ALL = (
    Defect("does-not-shuffle", "list_order", client_never_shuffles, only=(*LEAVES, "all_gone"), repeats=3),
    Defect("starts-at-the-first", "start", starts_at_the_first),
    Defect("leaves-once", "sticky", leaves_once),
    Defect("goes-back", "next", goes_back, only=("all_gone",)),
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
    Defect("leaves-on-code-1", "leaves_on_error_code", leaves_on(ResponseError), only=("error_code",)),
    Defect("leaves-on-code-17", "leaves_on_code_17", leaves_on(ResponseError), only=("topic_not_exist",)),
    Defect("one-try-too-many", "tries_refused", tries_again(ConnectError)),
    Defect("goes-on-after-silence", "tries_silent", tries_again(RequestTimeout)),
    Defect("connects-too-long", "connect_timeout_s", settings={"connect_timeout_ms": 3_500}, only=("one_unreachable",)),
    Defect("waits-too-long", "answer_timeout_s", is_patient, only=("silent", "black_hole", "one_dead")),
    Defect(
        "time-outs-add",
        "timeouts_add",
        time_outs_add,
        heals=frozenset({"failover"}),  # so it is what 4.9.8 lacks
        profile=Profile.V4_9,
    ),
    Defect("keeps-silent-connections", "closes_on_silence", keeps_silent_connections),
    Defect(
        "takes-turns", "phase_lock", client_chooses_for_each_request, only=("one_dead",), besides=frozenset({"sticky"})
    ),
    Defect("never-recovers", "failover", profile=Profile.V4_9),
    Defect("polls-late", "poll_period_s", settings={"poll_name_server_interval_ms": 33_000}, only=("quiet", "slow")),
    Defect("fixed-delay", "poll_kind", polls_by_itself(lambda number: 30.0)),
    Defect(
        "one-poll-late", "poll_jitter_s", polls_by_itself(lambda number: 32.0 if number == 3 else 30.0), only=("quiet",)
    ),
    Defect("takes-no-list", "list_change_s", takes_no_list),
    Defect("storms", "storm", storms),
    Defect("gives-up", "back_after_all_gone_s", gives_up),
    Defect("keeps-a-dead-broker", "killed_broker_s", keeps_its_first_route, only=("broker_killed",)),
    *(
        Defect(f"isolates-{rule.removesuffix('_broker_s')}", rule, settings=ISOLATES)
        for rule in ("silent_broker_s", "refusing_broker_s", "unreachable_broker_s")
    ),
    Defect("keeps-an-unrouted-broker", "unrouted_broker_s", keeps_its_first_route),
    Defect("tells-of-losses", "sends_lost", tells_of_losses),
    Defect("rests", "send_stall_s", rests_after_a_failure),
    Defect("no-retries", "send_retries", settings={"retry_times_when_send_failed": 0}),
    Defect("takes-no-broker-back", "returned_broker_s", client_takes_no_broker_back),
    Defect("keeps-its-queues-killed", "queues_of_killed_s", never_rebalances_again),
    Defect("keeps-its-queues-stopped", "queues_of_stopped_s", never_rebalances_again),
    Defect("receives-twice", "received_twice", receives_twice),
)

DEFECTS: Mapping[str, Defect] = {defect.name: defect for defect in _ALL}


# --- clients as somebody might have written them, wrong wherever they are put; `only` are the situations that show it


def prefers_the_first(client: Client) -> None:
    """12 points too often."""
    selector, rng = client.name_server.selector, client.context.rng

    @around(selector, "_start_index")
    def drawn(start_index: Callable[[], int]) -> int:
        n = len(selector.addresses)
        if rng.random() < 0.12 * n / (n - 1):
            return selector.addresses.index(client.configured[0]) - 1
        return start_index()


def goes_back_to_the_failed(client: Client) -> None:
    """Each second of its later choices is the one that it has left."""
    goes_back(client, at=lambda made: made > 2 and made % 2 == 1)


def dials_all(client: Client) -> None:
    """Before its first request it connects to every NameServer."""
    remoting, requests = client.instance.remoting, count()

    @around(client.name_server, "_invoke")
    async def after_all(invoke: Any, *call: Any) -> Any:
        if not next(requests):
            await asyncio.gather(*(remoting.connect(each) for each in client.configured), return_exceptions=True)
        return await invoke(*call)


def draws_each_time(client: Client) -> None:
    client_chooses_for_each_request(client)
    client_goes_on_at_random(client)


def keeps_a_lost_broker(client: Client) -> None:
    """For 90 s after a route without it."""
    clock = client.context.clock
    since_s: dict[str, float] = {}

    def change(old: TopicRouteData | None, new: TopicRouteData) -> TopicRouteData:
        for broker in old.broker_datas if old is not None else ():
            if broker not in new.broker_datas:
                since_s.setdefault(broker.broker_name, clock.monotonic_s())
        lately = any(clock.monotonic_s() - at_s < 90.0 for at_s in since_s.values())
        return old if lately and old is not None else new

    taking(client, change)


def retries_where_it_failed(client: Client) -> None:
    if not isinstance(client.node, DefaultMQProducer):
        return  # it sends nothing

    @around(client.node, "_select")
    def same_again(select: Any, publish: Any, last_broker_name: str | None, *, retry: bool = False) -> Any:
        queues = [select(publish, None, retry=retry) for _ in range(1 if last_broker_name is None else 32)]
        return next((queue for queue in queues if queue.broker_name == last_broker_name), queues[0])


def is_right_for_ten_minutes(client: Client) -> None:
    """Then it goes to another NameServer at each poll."""
    clock = client.context.clock
    until_s = clock.monotonic_s() + 600.0
    _leaves_at_polls(client, lambda: clock.monotonic_s() >= until_s)


def leaves_after_ten(client: Client) -> None:
    """It goes to another NameServer for each tenth request."""
    is_tenth = every(10)

    @around(client.name_server, "_invoke")
    async def counted(invoke: Any, *call: Any) -> Any:
        if is_tenth():
            client.name_server.selector.chosen = None
        return await invoke(*call)


def goes_backwards(client: Client) -> None:
    """From each NameServer it goes to the one before, not to the next."""
    selector = client.name_server.selector
    around(selector, "next_index")(lambda next_index: -next_index() % len(selector.addresses))


def forgets_one(client: Client) -> None:
    """It never uses the last NameServer of its list as it was given."""

    @around(client.name_server, "update_addresses")
    def without(update: Any, addresses: Sequence[Address], *task: Any) -> None:
        update([address for address in addresses if address not in client.configured[-1:]], *task)


def _another(of: NameServerClient, address: Address) -> Address:
    addresses = of.selector.addresses
    return addresses[(addresses.index(address) + 1) % len(addresses)]


def keeps_two_connections(client: Client) -> None:
    """One more to the next NameServer of its list, which it does not ask."""
    of, remoting = client.name_server, client.instance.remoting

    @around(of, "_connected")
    async def with_another(connected: Any, tries: Any) -> Address:
        address: Address = await connected(tries)
        other = _another(of, address)
        if not remoting.is_active(other):
            with suppress(RocketMQError):
                await remoting.connect(other)
        return address


def asks_two(client: Client) -> None:
    """Each request goes to the next NameServer of its list as well, and the first answer counts."""
    of, remoting = client.name_server, client.instance.remoting

    async def invoke(command: Any, timeout_s: float, tries: Any) -> Any:
        address = await of._connected(tries)
        calls = [remoting.invoke(each, command, timeout_s=timeout_s) for each in (address, _another(of, address))]
        found = await asyncio.gather(*calls, return_exceptions=True)
        answers = [each for each in found if not isinstance(each, BaseException)]
        if not answers:
            raise found[0] if isinstance(found[0], RocketMQError) else ConnectError("nobody answered")
        return answers[0]

    replace_part(of, "_invoke", invoke)


def asks_once(client: Client) -> None:
    """It polls no routes after its first round."""
    polls = count()

    @around(client.instance, "poll_routes")
    async def once(poll: Any) -> None:
        if not next(polls):
            await poll()


def comes_back(client: Client) -> None:
    """Each 60 s it tries its first NameServer again after it has left it, and goes back as soon as it accepts."""
    selector, remoting, clock = client.name_server.selector, client.instance.remoting, client.context.clock
    first, held = list[Address](), list[asyncio.Task[None]]()

    async def probe() -> None:
        while first[0] in selector.addresses:
            await clock.sleep(60.0)
            if selector.chosen not in (None, first[0]):
                with suppress(RocketMQError):
                    await remoting.connect(first[0])
                    selector.chosen, selector._index = first[0], selector.addresses.index(first[0])

    @around(selector, "advance")
    def told(advance: Callable[[Address | None], Choice], old: Address | None) -> Choice:
        choice = advance(old)
        if not first:
            first.append(choice.new)
            held.append(asyncio.create_task(probe()))
        return choice


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
        starts_at_the_first,
        only=("starts", "quiet"),
        may=frozenset({"list_order"}),  # as given is what a list looks like whose first is always the first
    ),
    Defect("first-too-often", "start", prefers_the_first, only=("starts", "quiet"), starts=1_000),
    Defect("back-to-the-failed", "next", goes_back_to_the_failed, only=("all_gone", "refused", "quiet")),
    Defect("dials-all", "start", dials_all, only=("starts", "quiet")),
    Defect("draws-each-time", "sticky", draws_each_time, only=("starts", *_CALM)),
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
        forgets_one,
        only=("all_gone", "quiet"),
        may=frozenset({"start", "list_order", "back_after_all_gone_s"}),
    ),
    Defect(
        "keeps-two-connections",
        "start",  # it asks one only, so sticky and next are kept
        keeps_two_connections,
        only=("starts", "quiet"),
    ),
    Defect("leaves-after-ten", "sticky", leaves_after_ten, only=("read_only", "quiet")),
    Defect("asks-two", "sticky", asks_two, only=("starts", *_CALM)),
    Defect("asks-once", "poll_period_s", asks_once, only=("quiet", "slow"), may=_POLLED | {"list_change_s"}),
    Defect(
        "comes-back",
        "sticky",
        comes_back,
        only=("closed", "quiet"),
        repeats=8,  # beside two other clients `closed` meets its NameServer in 5 of 9 runs
    ),
)
"""Three more need more than this: one that starts while a NameServer is dead (tests/chaos/fronts/test_rows.py), one
that is right for ten minutes, and one that goes backwards (test_wrong_clients.py)."""

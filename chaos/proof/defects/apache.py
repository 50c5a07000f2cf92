"""Defects of Apache's servers, planted from outside: in the proxies before them, in their configuration, or by a
restart. The Java programs are unchanged, and no fault is recorded. The self-test does not use these defects, because it
needs no Java: run them with `nemesrv run SCENARIO --implementation apache-5.3.3 --defect NAME`.
"""

from typing import Any

from ....remoting.codes import RequestCode, ResponseCode
from ...defects import around, replace_part
from ...fronts.behaviour import PASSES, Behaviour
from ...fronts.observed import Asked, Observation
from ...topology import NodeKind
from .planting import BROKER_A, NS_0, Planted, Where, may_find

UNHEARD_S = 45.0
"""From its restart on: its registrations at once, after 10 s and 40 s, later than R + C; the next is after 70 s."""
EMPTIED_AFTER_S = 45.0
"""After the first registration that it sees: the brokers' next are at 10, 40 and 70 s, less the seconds by which the
last of them came up later than the first."""


_OF_ROUTES = (
    "answers_are_true availability client_routes_are_true living_are_used messages_delivered name_server_selection "
    "no_false_eviction queue_ownership recovery_time registrations_are_kept routes_converge"
)

planted = Planted(of_apache=True)
"""`scenario` is where the nightly tests show each, beside its clean twin (tests/chaos/proof/defects/)."""


@planted(BROKER_A, "broker-crash", caught_by="routes_are_true")
@may_find(_OF_ROUTES)
def apache_broker_is_not_heard(node: Any) -> None:
    """for 45 s after a broker's restart, a proxy acknowledges the broker's registrations in place of ns-0"""
    if not node._context.incarnation:
        return
    front = node._dialler.front("ns-0")

    @around(node, "_boot")
    async def boot_unheard(boot: Any) -> None:  # its first registration is on its way before it is started
        await front.behave(Behaviour(codes={RequestCode.REGISTER_BROKER: ResponseCode.SUCCESS}))
        await boot()

    @around(node, "start")
    async def start_unheard(start: Any) -> None:
        node._context.clock.call_later(UNHEARD_S, lambda: node._begin(front.behave(PASSES)))
        await start()


@planted(BROKER_A, "smoke", caught_by="routes_are_true routes_converge")
@may_find(_OF_ROUTES)
def apache_broker_registers_with_one(node: Any) -> None:
    """a broker registers with the first NameServer of its list only"""

    @around(node, "_said")
    def said_of_one(said: Any) -> dict[str, object]:
        settings: dict[str, object] = said()
        return {**settings, "namesrvAddr": str(settings["namesrvAddr"]).split(";")[0]}


@planted(Where((NodeKind.SLAVE,), ("broker-a/2",)), "leader-election", caught_by="one_master")
@may_find(
    f"{_OF_ROUTES} commits_follow_work dead_brokers_avoided duplicates no_acknowledged_loss no_resurrection order_kept "
    "routes_are_true routes_as_registered"
)
def apache_member_elects_itself(node: Any) -> None:
    """a member of a DLedger group knows no other member, so it elects itself although the others have a leader"""

    @around(node, "_said")
    def said_of_itself(said: Any) -> dict[str, object]:
        settings: dict[str, object] = said()
        own = f"{settings['dLegerSelfId']}-"
        peers = [one for one in str(settings["dLegerPeers"]).split(";") if one.startswith(own)]
        return {**settings, "dLegerPeers": ";".join(peers)}


@planted(NS_0, "smoke", caught_by="routes_are_true registrations_are_kept no_false_eviction")
@may_find(_OF_ROUTES)
def apache_name_server_is_emptied(node: Any) -> None:
    """a NameServer's JVM is replaced by a JVM with an empty table, without a recorded fault

    The second JVM is started before the first is killed, because brokers that waited while a JVM starts would fill its
    table at once.
    """
    boot, saw, seen = node._boot, node._saw, list[Asked]()
    spare: list[tuple[Any, int, Any]] = []

    async def boot_both() -> None:
        await boot()
        spare.append((node._java, node._port, node._held))
        await node._stands_by()
        await boot()

    @around(node, "stop")
    async def stop_both(stop: Any) -> None:
        while spare:
            await spare.pop()[0].kill()
        await stop()

    async def empty() -> None:
        if not spare:  # it has been stopped
            return
        await node._java.kill()
        await node._stands_by()
        node._forget()
        node._java, node._port, node._held = spare.pop()
        node._serves()

    def see(one: Observation) -> None:
        if not seen and isinstance(one, Asked) and one.code == RequestCode.REGISTER_BROKER:
            seen.append(one)
            node._context.clock.call_later(EMPTIED_AFTER_S, lambda: node._begin(empty()))
        saw(one)

    replace_part(node, "_boot", boot_both)
    node._front.see = see

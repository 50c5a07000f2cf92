"""`nemesrv doctor` on clusters in one process, each with one thing wrong in it: that cause is named, and no other."""

import pytest

from nemesrv.clients.admin import AdminClient
from nemesrv.operations.cluster import doctor
from nemesrv.operations.cluster.answer_causes import causes_of, is_routed_everywhere
from nemesrv.operations.cluster.causes import CAUSES, NoRouteCause
from nemesrv.operations.cluster.server_answers import BrokerAnswer, ClientAnswer, NameServerAnswer, ServerAnswers
from nemesrv.remoting.node.profile import Profile
from tests.in_one_process import CLOCK

from .world import PROFILES, World


def named(causes: list[NoRouteCause], *, certain: bool = True) -> list[str]:
    assert {cause.name for cause in causes} <= set(CAUSES)
    return [cause.name for cause in causes if cause.certain is certain]


async def only(world: World, name: str, *about: str, certain: bool = True) -> NoRouteCause:
    """The one cause that is named."""
    (cause,) = await world.causes()
    assert (cause.name, cause.certain, cause.about) == (name, certain, about or cause.about)
    return cause


@PROFILES
async def test_nothing_is_wrong_with_a_topic_that_every_name_server_routes(world: World) -> None:
    await world.topic(await world.broker("broker-a", "10.0.2.1"))
    seen = await world.see()
    assert is_routed_everywhere(seen)
    (cause,) = causes_of(seen)
    assert (cause.name, cause.certain) == ("dialect-that-a-client-may-not-read", False)
    assert doctor.status_of(seen, [cause]) == doctor.HEALTHY


async def test_a_topic_that_nobody_has_is_nowhere_and_the_name_that_is_like_it_is_told(world: World) -> None:
    await world.topic(await world.broker("broker-a", "10.0.2.1", auto_create_topic_enable=False), "orders")
    causes = await world.causes("order")
    assert named(causes) == ["topic-is-nowhere", "topics-are-not-created"]
    assert "There is orders." in causes[0].sentence
    assert "autoCreateTopicEnable=false" in causes[1].sentence


async def test_a_topic_under_another_namespace_is_told(world: World) -> None:
    await world.topic(await world.broker("broker-a", "10.0.2.1"), "MQ_INST_1%orders")
    assert "MQ_INST_1%orders" in (await world.causes("orders"))[0].sentence


async def test_where_a_first_send_would_create_the_topic_that_is_likely_and_not_certain(world: World) -> None:
    await world.broker("broker-a", "10.0.2.1")
    await CLOCK.sleep(1)
    causes = await world.causes()
    assert named(causes) == ["topic-is-nowhere"]
    assert named(causes, certain=False) == ["nobody-has-sent-yet"]


@PROFILES
async def test_a_name_server_that_the_broker_does_not_list_lacks_it_for_ever(world: World) -> None:
    await world.broker("broker-b", "10.0.2.2")
    await world.topic(await world.broker("broker-a", "10.0.2.1", lists=(0, 1)))
    await CLOCK.sleep(60)
    cause = await only(world, "broker-does-not-list-this-name-server", "10.0.1.3:9876", "broker-a")
    assert "its namesrvAddr is 10.0.1.1:9876;10.0.1.2:9876" in cause.sentence


@PROFILES
async def test_a_broker_that_somebody_unregistered_at_one_name_server_is_missing_there(world: World) -> None:
    await world.broker("broker-b", "10.0.2.2")
    await world.topic(await world.broker("broker-a", "10.0.2.1"))
    await world.unregister("broker-a", "10.0.2.1:10911", at=2)
    await only(world, "broker-is-not-registered", "10.0.1.3:9876", "broker-a")
    await CLOCK.sleep(30)
    assert await world.causes() == [], "it came back at its own tick"


async def test_a_name_server_that_was_restarted_empty_is_told_with_what_mends_it(world: World) -> None:
    await world.topic(await world.broker("broker-a", "10.0.2.1"))
    await world.servers.pop("ns-2").stop()
    await world.name_server(2)
    cause = await only(world, "name-server-is-empty", certain=False)
    assert "restarted" in cause.sentence
    assert "30 s" in cause.then
    await CLOCK.sleep(31)
    assert await world.causes() == []


async def test_a_removed_name_server_that_no_broker_lists_is_told_from_one_that_was_restarted(world: World) -> None:
    await world.topic(await world.broker("broker-a", "10.0.2.1", lists=(0, 1)))
    await only(world, "no-broker-lists-this-name-server", "10.0.1.3:9876")


async def test_a_name_server_of_another_cluster_is_named_with_both_clusters(world: World) -> None:
    await world.topic(await world.broker("broker-a", "10.0.2.1", lists=(0, 1)))
    await world.broker("broker-x", "10.0.3.1", lists=(2,), cluster_name="Elsewhere")
    await CLOCK.sleep(1)
    causes = await world.causes()
    assert named(causes) == ["broker-does-not-list-this-name-server", "name-server-of-another-cluster"]
    assert "it holds Elsewhere" in causes[1].sentence


@pytest.mark.parametrize(("perm", "word"), [(4, "write"), (2, "read")])
async def test_a_barring_permission_is_told_by_who_took_it(world: World, perm: int, word: str) -> None:
    await world.topic(await world.broker("broker-a", "10.0.2.1"), perm=perm)
    cause = await only(world, f"no-permission-to-{word}")
    assert f"the topic has perm {perm} at broker-a" in cause.sentence


async def test_a_permission_wiped_at_one_name_server_is_told_from_one_that_the_topic_lacks(world: World) -> None:
    await world.topic(await world.broker("broker-a", "10.0.2.1"))
    async with AdminClient(world.cluster.context("admin"), world.cluster.addresses) as admin:
        await admin.wipe_write_perm("broker-a", name_server=world.cluster.addresses[1])
    (cause,) = await world.causes()
    assert cause.about == ("10.0.1.2:9876",)
    assert "broker-a was wiped at the NameServer (perm 4; the broker has 6)" in cause.sentence


async def test_a_broker_whose_permission_bars_every_topic_is_told(world: World) -> None:
    await world.topic(await world.broker("broker-a", "10.0.2.1", broker_permission=4))
    (cause,) = await world.causes()
    assert "broker-a has brokerPermission=4" in cause.sentence


async def test_a_group_whose_master_is_gone_has_no_master(world: World) -> None:
    await world.topic(await world.broker("broker-a", "10.0.2.1"))
    await world.broker("broker-a", "10.0.2.9", broker_id=1, broker_role="SLAVE")
    await CLOCK.sleep(31)
    await world.servers.pop("broker-a@10.0.2.1").stop()
    cause = await only(world, "no-master")
    assert "only slaves of broker-a" in cause.sentence


@PROFILES
async def test_a_topic_deleted_at_one_name_server_alone_is_told_from_a_missing_broker(world: World) -> None:
    await world.topic(await world.broker("broker-a", "10.0.2.1"))
    async with AdminClient(world.cluster.context("admin"), world.cluster.addresses) as admin:
        await admin.delete_topic_in_name_server("orders", name_server=world.cluster.addresses[0])
    await only(world, "topic-is-not-at-this-name-server", "10.0.1.1:9876", "broker-a")


def test_rows_that_outlived_their_broker_are_told() -> None:
    """As 4.9 leaves them: 206 names the topic, 105 answers 17."""
    seen = ServerAnswers(
        topic="orders",
        name_servers=(
            NameServerAnswer(address="10.0.1.1:9876", code=17, topics=frozenset({"orders"}), brokers={}, clusters={}),
        ),
    )
    assert "only-rows-are-left" in named(causes_of(seen))


def test_code_1_is_of_a_name_server_that_is_not_ready_only_where_its_remark_says_so() -> None:
    for remark, is_told in (("name server not ready", True), ("java.lang.NullPointerException", False), (None, False)):
        answer = NameServerAnswer(address="10.0.1.1:9876", code=1, remark=remark)
        causes = causes_of(ServerAnswers(topic="orders", name_servers=(answer,)))
        assert ("name-server-not-ready" in named(causes)) is is_told


@pytest.mark.parametrize("profile", [Profile.V5_X])
async def test_a_name_server_that_waits_for_service_is_not_ready(world: World) -> None:
    await world.servers.pop("ns-2").stop()
    await world.topic(await world.broker("broker-a", "10.0.2.1"))
    await world.name_server(2, need_wait_for_service=True)
    await CLOCK.sleep(31)
    assert "name-server-not-ready" in named(await world.causes())
    await CLOCK.sleep(60)
    assert "name-server-not-ready" not in named(await world.causes())


async def test_a_name_server_that_is_down_is_told_and_the_rest_is_still_looked_at(world: World) -> None:
    await world.servers.pop("ns-2").stop()
    await world.topic(await world.broker("broker-a", "10.0.2.1"))
    await only(world, "name-server-gives-no-answer", "10.0.1.3:9876")


async def test_a_routed_broker_that_is_gone_is_told(world: World) -> None:
    address = await world.broker("broker-a", "10.0.2.1")
    await world.topic(address)
    world.cluster.network.hold(address)
    assert "broker-gives-no-answer" in named(await world.causes())
    world.cluster.network.release(address)


def test_a_consumer_with_a_list_of_its_own_is_at_other_name_servers() -> None:
    server = NameServerAnswer(address="10.0.1.1:9876", code=17)
    there = ClientAnswer(client_id="10.0.9.1@1", lists=frozenset({"10.0.7.7:9876"}))
    here = ClientAnswer(client_id="10.0.9.2@1", lists=frozenset({"10.0.1.1:9876"}))
    causes = causes_of(ServerAnswers(topic="orders", name_servers=(server,), clients=(there, here)))
    (cause,) = [cause for cause in causes if cause.name == "client-is-at-other-name-servers"]
    assert cause.about == ("10.0.9.1@1",)


def test_a_broker_whose_list_has_other_names_of_the_same_name_servers_is_not_held_against_it() -> None:
    """Behind proxies no address of its list is one of those that were given."""
    data = BrokerAnswer(
        name="broker-a", broker_id=0, address="10.0.2.1:10911", settings={"namesrvAddr": "ns.internal:9876"}
    )
    route = NameServerAnswer(address="10.0.1.1:9876", code=0)
    seen = ServerAnswers(topic="orders", name_servers=(route,), brokers=(data,))
    assert not seen.speaks_our_names(data)

"""A registration that leaves out what stands has the effect of one that says it all, whatever happens in between."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesrv.actors.namesrv.route_table import RouteTable
from nemesrv.actors.namesrv.tables import DropReason, Registration, RouteOptions, Unregistration
from nemesrv.remoting.bodies import register_rows
from nemesrv.remoting.bodies.register import RegisterBrokerBody, TopicConfigSerializeWrapper
from nemesrv.remoting.bodies.register_rows import NO_PIECES, read_rows
from nemesrv.remoting.bodies.route import DataVersion, QueueData, TopicConfig
from nemesrv.remoting.node.profile import Profile
from tests.actors.namesrv.helpers import BOTH


def taken(
    table: RouteTable,
    topics: dict[str, TopicConfig],
    version: DataVersion,
    *,
    leave_out: bool,
    broker: str = "broker-a",
    id_: int = 0,
    addr: str = "10.0.0.1:10911",
    channel: int = 1,
    acting: bool | None = None,
) -> int:
    """Register as the processor does; how many rows were read."""
    wrapper = TopicConfigSerializeWrapper(data_version=version, topic_config_table=topics)
    body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=()).encode()
    last = table.standing("c", broker, addr, id_) if leave_out else NO_PIECES
    read = read_rows(body, broker, version=477, last=last)
    table.register(
        Registration(
            cluster_name="c",
            broker_name=broker,
            broker_addr=addr,
            broker_id=id_,
            ha_server_addr="",
            channel_id=channel,
            data_version=read.body.data_version,
            rows=read.rows,
            pieces=read.pieces if leave_out else NO_PIECES,
            enable_acting_master=acting,
        ),
        now_ms=0,
    )
    return len(read.rows)


def topics_named(*names: str, perm: int = 6) -> dict[str, TopicConfig]:
    return {name: TopicConfig(topic_name=name, perm=perm) for name in names}


def test_only_what_is_new_is_read_until_a_row_changes(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register_rows, "PIECE", 300)
    table, topics = RouteTable(profile), topics_named(*(f"t{number:03}" for number in range(100)))
    counts = [taken(table, topics, DataVersion(counter=counter), leave_out=True) for counter in (1, 1, 2)]
    assert counts[0] == 100
    assert max(counts[1:]) < 10
    for change in (
        lambda: table.wipe_write_perm("broker-a"),
        lambda: table.delete_topic("t050"),
        lambda: table.delete_topic("t050", "c"),
        lambda: table.register_topic("t050", [QueueData(broker_name="broker-a", perm=1)]),
        lambda: taken(table, topics_named("t050", perm=2), DataVersion(counter=9), leave_out=True, addr="other"),
    ):
        change()
        assert taken(table, topics, DataVersion(counter=3), leave_out=True) == 100
        taken(table, topics, DataVersion(counter=4), leave_out=True)
        assert {rows["broker-a"].perm for rows in table.topic_queue_table.values()} == {6}
        assert taken(table, topics, DataVersion(counter=4), leave_out=True) < 10
    taken(table, topics_named("another"), DataVersion(), leave_out=True, broker="broker-b", addr="b")
    assert taken(table, topics, DataVersion(counter=4), leave_out=True) < 10


@settings(deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(BOTH), st.booleans())
def test_both_ways_lead_to_the_same_tables(seed: int, profile: Profile, deleting: bool) -> None:
    rng = random.Random(seed)
    options = RouteOptions(support_acting_master=True, delete_topic_with_broker_registration=deleting)
    pair = [RouteTable(profile, options=options), RouteTable(profile, options=options)]
    held = {broker: topics_named(*(f"t{rng.randrange(60):02}" for _ in range(30))) for broker in ("a", "b")}
    version = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(register_rows, "PIECE", rng.choice([1, 100, 400]))
        for _ in range(30):
            broker, topic = rng.choice("ab"), f"t{rng.randrange(60):02}"
            what = rng.randrange(10)
            id_, addr, channel = rng.choice([0, 0, 0, 1]), rng.choice(["x", "x", "y"]), rng.randrange(3)
            acting = rng.choice([None, True, False])
            if what < 5:
                if rng.random() < 0.5:
                    held[broker] |= topics_named(topic, perm=rng.choice([2, 4, 6]))
                    version += rng.random() < 0.8
                elif rng.random() < 0.2:
                    held[broker].pop(topic, None)
            for table, leave_out in zip(pair, (True, False), strict=True):
                if what < 5:
                    taken(
                        table,
                        held[broker],
                        DataVersion(counter=version),
                        leave_out=leave_out,
                        broker=broker,
                        id_=id_,
                        addr=addr,
                        channel=channel,
                        acting=acting,
                    )
                elif what == 5:
                    table.wipe_write_perm(broker)
                elif what == 6:
                    table.delete_topic(topic, "c" if acting else None)
                elif what == 7:
                    table.register_topic(topic, [QueueData(broker_name=broker, perm=4)])
                elif what == 8:
                    table.on_channel_destroy(channel, addr, DropReason.CLOSED)
                else:
                    request = Unregistration(cluster_name="c", broker_name=broker, broker_addr=addr, broker_id=id_)
                    if profile is Profile.V4_9:
                        table.unregister(request)
                    else:
                        table.submit_unregister(request)
                table.run_unregistrations()
            assert pair[0].topic_queue_table == pair[1].topic_queue_table
            assert pair[0].take_changed_topics() == pair[1].take_changed_topics()
            assert pair[0].broker_live_table.keys() == pair[1].broker_live_table.keys()

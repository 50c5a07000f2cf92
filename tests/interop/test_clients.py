"""Apache's producers and consumers against our NameServers and brokers: Java's 4.9.8 and 5.3.3, and at night Java's of
every age, Go's and Node's. Clients.java, clients.go and clients.js do the work; what a client does not have is skipped.
NEMESRV_INTEROP_SERVERS=apache: at Apache's.

Two brokers: what a group receives has come from both.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

import pytest

from .conftest import PREFIX, NotJava, World, admins_of
from .jars import AGES
from .waiting import eventually

pytestmark = [pytest.mark.java, pytest.mark.nightly_but("4.9.8", "5.3.3")]
CLIENTS_OF = (
    *AGES,
    NotJava("go-2.0.0", (4, 5), "GO"),
    NotJava("go-2.1.2", (4, 9), "GO"),
    NotJava("node-2.0.1", (4, 0), "JAVA", makes_topics=False),
    NotJava("node-3.12.0", (4, 0), "JAVA", makes_topics=False),
)

TAGS = {
    **{f"sync-{number}": "TagB" if number % 2 else "TagA" for number in range(8)},
    **{f"async-{number}": "TagA" for number in range(4)},
    **{f"oneway-{number}": "TagB" for number in range(4)},
    **{f"batch-{number}": "TagC" for number in range(3)},
    **{"big-0": "TagA", "unicode-0": "TagA", "delayed-0": "TagB", "failing-0": "TagB", "last-0": "TagA"},
}
"""Every message of the topic by its key."""

TOPIC = f"{PREFIX}-topic"
MARKS = {"4.9": "CLUSTER", "5.x": "CLUSTER,MSG_REGION,TRACE_ON"}
"""What Apache's brokers 4.9.7 and 5.3.3 were seen to add to the properties of a message."""


class Sent(NamedTuple):
    kind: str
    key: str
    status: str
    msg_id: str
    offset_msg_id: str
    broker_name: str
    queue_id: str
    queue_offset: str


class Received(NamedTuple):
    group: str
    key: str
    tag: str
    reconsume_times: str
    size: str
    crc: str
    topic: str
    queue_id: str
    queue_offset: str
    msg_id: str
    greeting: str
    properties: str


def _fields(world: World, what: str) -> Iterator[list[str]]:
    return (line.split("\t")[1:] for line in list(world.clients.lines) if line.startswith(f"{what}\t"))


def _sent(world: World) -> dict[str, Sent]:
    return {sent.key: sent for sent in (Sent(*fields) for fields in _fields(world, "SEND"))}


def _received(world: World, group: str) -> list[Received]:
    every = (Received(*fields) for fields in _fields(world, "RECEIVE"))
    return [message for message in every if message.group == group]


def _all_received(world: World, group: str, keys: set[str]) -> dict[str, Received]:
    """The first delivery of each of `keys` to the group, once all have come, each once."""

    def check() -> dict[str, Received]:
        first = [message for message in _received(world, group) if message.reconsume_times == "0"]
        counts = Counter(message.key for message in first if message.key in TAGS)
        assert counts == Counter(keys)
        return {message.key: message for message in first if message.key in TAGS}

    return eventually(check, within_s=45)


def _of_java(world: World) -> None:
    if isinstance(world.age, NotJava):
        pytest.skip("Java's clients alone have it")


def _has(world: World, command: str) -> None:
    if f"DONE\t{command}\tlacks" in world.clients.lines:
        pytest.skip("these clients do not have it")


def _command(world: World, command: str) -> None:
    start = len(world.clients.lines)
    world.clients.say(command)
    world.clients.wait_for(f"DONE\t{command}", after=start)
    _has(world, command)


def test_every_send_is_acknowledged(world: World) -> None:
    assert list(_fields(world, "FAILED")) == []
    sent = _sent(world)
    assert {each.status for each in sent.values()} == {"SEND_OK"}
    asked = {key for key in TAGS if not key.startswith(("oneway", "batch"))}
    assert asked <= sent.keys()
    assert len({each.offset_msg_id for each in sent.values()}) == len(sent)


def test_sends_go_round_the_queues_of_brokers(world: World) -> None:
    """Of both, unless the producer's poll 10 ms after its start finds the topic at the first send's broker only."""
    used = {(each.broker_name, each.queue_id) for key, each in _sent(world).items() if key.startswith("sync")}
    gone_round = [broker for broker in world.brokers if used >= {(broker, str(queue)) for queue in range(4)}]
    assert gone_round


def test_a_batch_gets_one_id_for_each_of_its_messages(world: World) -> None:
    batch = _sent(world).get("batch")
    if batch is None:
        pytest.skip("these clients do not have it")
    assert len(batch.offset_msg_id.split(",")) == 3
    if batch.msg_id or not isinstance(world.age, NotJava):  # Go 2.1.2 gives those of a batch none
        assert len(batch.msg_id.split(",")) == 3


def test_a_group_receives_every_message_once_as_it_was_sent(world: World) -> None:
    received, sent = _all_received(world, "all", set(TAGS)), _sent(world)
    assert {key: message.tag for key, message in received.items() if key in TAGS} == TAGS
    for key in TAGS.keys() & sent.keys() - {"delayed-0"}:
        message, acknowledged = received[key], sent[key]
        assert message.msg_id == acknowledged.msg_id
        assert (message.queue_id, message.queue_offset) == (acknowledged.queue_id, acknowledged.queue_offset)


def test_a_body_that_the_producer_compressed_arrives_whole(world: World) -> None:
    big = _all_received(world, "all", set(TAGS))["big-0"]
    assert (int(big.size), int(big.crc)) == (10_000, crc32(b"x" * 10_000))


def test_text_beyond_ascii_arrives_in_body_and_properties(world: World) -> None:
    message = _all_received(world, "all", set(TAGS))["unicode-0"]
    assert int(message.crc) == crc32("grüße 消息".encode())
    assert message.greeting == "grüße"


def test_messages_carry_the_properties_that_apaches_broker_gives_them(world: World) -> None:
    _of_java(world)
    received = _all_received(world, "all", set(TAGS))
    wait = [] if world.profile == "4.9" else ["WAIT"]
    own = ["CONSUME_START_TIME", "UNIQ_KEY"] if world.age.number >= (3, 5, 8) else []
    client = ["KEYS", "MAX_OFFSET", "MIN_OFFSET", "TAGS", *own]
    marks = MARKS[world.profile].split(",")
    assert received["sync-0"].properties == ",".join(sorted(client + marks + wait))
    if world.age.number >= (4, 1):
        assert received["batch-0"].properties == ",".join(sorted([*client, *marks, "WAIT"]))
    delayed = [*client, *marks, "WAIT", "DELAY", "REAL_QID", "REAL_TOPIC"]
    assert received["delayed-0"].properties == ",".join(sorted(delayed))


def test_a_group_that_wants_tags_receives_those_only(world: World) -> None:
    _all_received(world, "tagged", {key for key, tag in TAGS.items() if tag in ("TagA", "TagC")})


def test_a_pull_consumer_gets_everything_too_and_is_told_the_end(world: World) -> None:
    _all_received(world, "all", set(TAGS))
    _command(world, "pull")
    _all_received(world, "pull", set(TAGS))
    queues = list(_fields(world, "PULLED"))
    assert len(queues) == 4 * len(world.brokers)
    assert {status for status, _, _ in queues} == {"NO_NEW_MSG"}
    assert [next_offset for _, next_offset, _ in queues] == [largest for _, _, largest in queues]


def test_a_lite_pull_consumer_receives_everything_too(world: World) -> None:
    _has(world, "lite")
    _all_received(world, "lite", set(TAGS))


def test_an_orderly_consumer_receives_in_order_and_again_after_a_failure(world: World) -> None:
    _has(world, "orderly")

    def check() -> list[Received]:
        messages = _received(world, "orderly")
        assert len(messages) >= 10
        return messages

    messages = eventually(check, within_s=45)
    assert [message.key for message in messages] == [f"ordered-{number}" for number in range(10)]
    again = "1" if world.age.number >= (3, 5, 8) else "0"  # 3.2.6 does not count them
    if isinstance(world.age, NotJava):  # Go 2.0.0's listener gets and repeats several messages at once
        assert messages[3].reconsume_times == "1"
    else:
        assert [message.reconsume_times for message in messages] == ["0"] * 3 + [again] + ["0"] * 6


def test_a_message_is_found_by_its_id_and_its_queue_by_time(world: World) -> None:
    _of_java(world)
    last = _sent(world)["last-0"]
    ((key, body, msg_id, _),) = _fields(world, "VIEWED")
    assert (key, body, msg_id) == ("last-0", "looked up", last.msg_id)
    ((smallest, largest, offset, searched, stored),) = _fields(world, "OFFSETS")
    assert (smallest, int(largest), searched, stored) == ("0", int(offset) + 1, "0", "true")


def test_transactions_end_as_their_producer_says_at_once_or_when_it_is_asked(world: World) -> None:
    _make(world, f"{PREFIX}-transacted")
    _command(world, "transact")
    assert [status for _, status in _fields(world, "TRANSACTION")] == ["SEND_OK"] * 5

    def check() -> None:
        received = [message.key for message in _received(world, "transacted")]
        assert sorted(received) == ["commit", "unknow-commit", "unknow-unknow-commit"]
        assert sorted((key, times) for key, _, times in _fields(world, "CHECKED")) == [
            ("unknow-commit", "1"),
            ("unknow-rollback", "1"),
            ("unknow-unknow-commit", "1"),
            ("unknow-unknow-commit", "2"),
        ]

    eventually(check, within_s=45)  # as of every group: a rebalance that comes too early is repeated 20 s later
    assert {topic for _, topic, _ in _fields(world, "CHECKED")} == {f"{PREFIX}-transacted"}
    carried = _received(world, "transacted")[0].properties.split(",")
    own = {"UNIQ_KEY"} if world.age.number >= (3, 5, 8) else set()
    assert {"PGROUP", "REAL_QID", "REAL_TOPIC", "TRAN_MSG"} | own <= set(carried)


def _make(world: World, topic: str) -> None:
    """The topic at both brokers, and both in its route at each NameServer, before a consumer asks for it: it would
    learn of what is missing at its next poll only, after 30 s."""
    world.mqadmin.ok("updateTopic", "-n", world.name_server, "-c", "DefaultCluster", "-t", topic, "-r", "2", "-w", "2")

    def routed() -> None:
        for name_server in world.name_servers:
            route = world.mqadmin("topicRoute", "-n", name_server, "-t", topic)
            assert all(f'"{broker}"' in route for broker in world.brokers), route

    eventually(routed)


def test_a_request_gets_its_reply(world: World) -> None:
    _make(world, f"{PREFIX}-asked")
    _command(world, "request")
    assert list(_fields(world, "REPLIED")) == [["answer to question"]]
    assert list(_fields(world, "FAILED")) == []


def test_traces_of_producer_and_consumer_can_be_read(world: World) -> None:
    _make(world, f"{PREFIX}-traced")
    _command(world, "trace")
    ((id_,),) = _fields(world, "TRACED")
    # before 4.6 the tracers of one program share an inner producer, and the second's traces are lost, at Apache's too
    kinds = ["Pub", "SubAfter", "SubBefore"] if world.age.number >= (4, 6) else ["Pub"]

    def check() -> None:
        traces = [kind for kind, told, keys in _fields(world, "TRACE") if id_ in keys.split()]
        assert sorted(traces) == kinds

    eventually(check, within_s=75)  # who reads traces learns of their topic at its next poll, after 30 s
    if world.age.number >= (4, 9):  # as long as mqadmin shows them
        printed = world.mqadmin.ok("queryMsgTraceById", "-n", world.name_server, "-i", id_)
        assert "Pub" in printed or f"{PREFIX}-tracing" in printed


def test_mqadmin_of_its_age_shows_cluster_topic_and_groups(world: World) -> None:
    server = ("-n", world.name_server)
    for broker in world.brokers:
        for command in (("clusterList",), ("topicRoute", "-t", TOPIC), ("topicStatus", "-t", TOPIC)):
            assert broker in world.mqadmin.ok(command[0], *server, *command[1:])
    assert TOPIC in world.mqadmin.ok("topicList", *server)
    status = world.mqadmin.ok("brokerStatus", *server, "-b", world.brokers["broker-a"])
    assert "msgPutTotalTodayNow" in status
    assert "TagA || TagC" in world.mqadmin.ok("consumerConnection", *server, "-g", f"{PREFIX}-tagged")
    language = world.age.language if isinstance(world.age, NotJava) else "JAVA"
    assert language in world.mqadmin.ok("producerConnection", *server, "-g", f"{PREFIX}-producers", "-t", TOPIC)
    _all_received(world, "all", set(TAGS))

    def committed() -> None:
        progress = world.mqadmin.ok("consumerProgress", *server, "-g", f"{PREFIX}-all")
        assert all(broker in progress for broker in world.brokers), progress

    eventually(committed)
    last = _sent(world)["last-0"]
    where = ("-t", TOPIC, "-b", last.broker_name, "-i", last.queue_id, "-o", last.queue_offset)
    assert "last-0" in world.mqadmin.ok("queryMsgByOffset", *server, *where)
    shown = last.msg_id if admins_of(world.age).number >= (3, 5, 8) else last.offset_msg_id
    assert shown in world.mqadmin.ok("queryMsgByKey", *server, "-t", TOPIC, "-k", "last-0")


def test_a_consumer_that_filters_by_sql_starts_where_brokers_allow_it(world: World) -> None:
    if not isinstance(world.age, NotJava):  # which does not ask at its start
        _command(world, "filter")
        ((refused, code, why),) = _fields(world, "FILTER")
        assert (refused, code) == ("refused", "1")
        assert "The broker does not support consumer to filter message by SQL92" in why
    for address in world.brokers.values():
        target = ("-n", world.name_server, "-b", address)
        world.mqadmin.ok("updateBrokerConfig", *target, "-k", "enablePropertyFilter", "-v", "true")
    _command(world, "filter")
    assert ["started"] in _fields(world, "FILTER")
    _all_received(world, "sql", {"batch-0", "batch-1", "batch-2", "unicode-0"})


def test_a_consumer_that_comes_back_goes_on_where_it_was(world: World) -> None:
    _all_received(world, "all", set(TAGS))
    _command(world, "restart")
    eventually(lambda: _once_more(world), within_s=45)
    _all_received(world, "all", set(TAGS))


def _once_more(world: World) -> None:
    assert [message.key for message in _received(world, "all") if message.key == "again-0"] == ["again-0"]


def test_a_message_whose_listener_failed_comes_again_through_the_retry_topic(world: World) -> None:
    """After the restart above: 5.3.3 may learn the retry topic's route at its start or its next poll only."""
    _has(world, "retry")

    def check() -> Received:
        again = [message for message in _received(world, "all") if message.reconsume_times != "0"]
        if isinstance(world.age, NotJava):  # Go 2.0.0 has sent others back, too
            again = [message for message in again if message.key == "failing-0"]
        assert len(again) == 1
        return again[0]

    again = eventually(check, within_s=60)
    assert (again.key, again.reconsume_times) == ("failing-0", "1")
    as_it_came = {f"%RETRY%{PREFIX}-all"} if isinstance(world.age, NotJava) else set()  # Go 2.0.0 tells that
    assert again.topic in {f"{PREFIX}-topic"} | as_it_came
    assert {"RETRY_TOPIC", "ORIGIN_MESSAGE_ID"} <= set(again.properties.split(","))

"""What the random operations have found, shrunk; and exceptions of compatibility.md that the machine keeps away from.

Each example leaves both servers empty.
"""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.frame import decode_frame

from . import operations
from .comparing import EXCEPTIONS
from .machine import LIVES
from .operations import Register, Topic, command
from .pair import Pair

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]

TWO = (Topic(name="T0"), Topic(name="T1", flag=1))
COMPATIBILITY = Path(__file__).parents[2] / "docs" / "compatibility.md"


def _registration(topics: bytes) -> bytes:
    version = b'{"counter":1,"timestamp":1,"stateVersion":0}'
    return b'{"topicConfigSerializeWrapper":{"dataVersion":%s,"topicConfigTable":{%s}}}' % (version, topics)


@pytest.fixture
def empty(pair: Pair) -> Iterator[Pair]:
    yield pair
    pair.compare_state(("T0", "T1"), LIVES, ("c0",))
    pair.clear(LIVES)


def other(number: int, **changes: object) -> Register:
    """A broker of its own."""
    addr = f"10.0.{number}.0:10911"
    return Register(broker=f"b{number}", addr=addr, topics=TWO).but(**changes)


@pytest.mark.nightly_but("5.x-False", "5.x-True", "4.9-True")
@pytest.mark.parametrize("reset", [False, True])
def test_a_lost_channel_takes_one_broker_and_a_reset_one_two(empty: Pair, reset: bool) -> None:
    link = empty.link()
    for number in range(3):
        empty.ask(other(number).command(), link)
    lives = [("c0" if empty.five else "", f"10.0.{number}.0:10911") for number in range(3)]
    empty.lose(link, lives, reset=reset)


def test_a_topic_that_two_brokers_have_is_listed_once(empty: Pair) -> None:
    for number in range(2):
        empty.ask(other(number).command())
    empty.ask(command(RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": "c0"}))


def test_a_broker_named_as_its_cluster_is_listed_once(empty: Pair) -> None:
    empty.ask(Register(broker="c0", topics=TWO).command())
    empty.ask(command(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS))
    empty.unregister("c0", "c0", 0, Register().addr)


def test_every_character_is_escaped_alike_in_both_dialects(empty: Pair) -> None:
    for first in range(0, 0x10000, 0x400):
        text = "".join(chr(code) for code in range(first, first + 0x400) if not 0xD800 <= code < 0xE000)
        if text:
            empty.ask(operations.kv(RequestCode.PUT_KV_CONFIG, "ns", "k", text))
            empty.ask(operations.kv(RequestCode.GET_KVLIST_BY_NAMESPACE, "ns"))
            r = Register(cluster="c0", broker=f"b{text}"[:1000], topics=TWO)
            empty.ask(r.command())
            empty.ask(operations.route("T0"))
            empty.ask(operations.route("T0", version=operations.V4_9_3))
            empty.unregister("c0", r.broker, 0, r.addr)
    empty.ask(operations.kv(RequestCode.DELETE_KV_CONFIG, "ns", "k"))


def test_null_filter_servers_leave_the_list_alone_and_absent_ones_clear_it(empty: Pair) -> None:
    for r in (other(0, filters=("f:1",)), other(0, filters_null=True), other(0)):
        empty.ask(r.command())
        empty.ask(operations.route("T0"))


def test_a_state_version_of_a_5_x_broker_is_told_by_5_x_only(empty: Pair) -> None:
    for state in (0, 3):
        empty.ask(other(0, state=state).command())
        empty.ask(operations.query_version("c0", other(0).addr))


def test_the_numbers_of_a_mapping_are_unquoted_in_the_default_dialect(empty: Pair) -> None:
    for form in ("json", "compressed"):
        name = f"found-static-{form}"
        empty.ask(other(0, topics=(*TWO, Topic(name=name)), mapping=(name,), form=form, five=empty.five).command())
        for version in (operations.V4_9_3, operations.V4_9_4):
            empty.ask(operations.route(name, version=version))


def test_the_rows_before_an_unknown_broker_stay_if_the_topic_was_known(empty: Pair) -> None:
    if not empty.five:
        empty.silence(RequestCode.REGISTER_TOPIC_IN_NAMESRV)
        return
    empty.ask(other(0).command())
    empty.ask(other(1).command())
    rows = [("b0", Topic(name="", perm=2)), ("nobody", Topic(name="")), ("b1", Topic(name="", perm=2))]
    for topic in ("T0", "new"):
        empty.ask(operations.register_topic(topic, rows))
        empty.ask(operations.route(topic))


def test_a_namespace_comes_with_its_first_key_and_stays(empty: Pair) -> None:
    steps = [
        (RequestCode.GET_KVLIST_BY_NAMESPACE, None),
        (RequestCode.DELETE_KV_CONFIG, "k"),
        (RequestCode.GET_KVLIST_BY_NAMESPACE, None),
        (RequestCode.PUT_KV_CONFIG, "k"),
        (RequestCode.GET_KVLIST_BY_NAMESPACE, None),
        (RequestCode.DELETE_KV_CONFIG, "k"),
        (RequestCode.GET_KVLIST_BY_NAMESPACE, None),
        (RequestCode.GET_KV_CONFIG, "k"),
    ]
    for code, key in steps:
        empty.ask(operations.kv(code, "found", key, "v" if code == RequestCode.PUT_KV_CONFIG else None))


def test_a_value_that_is_null_is_kept_as_one(empty: Pair) -> None:
    empty.ask(operations.kv(RequestCode.PUT_KV_CONFIG, "ns", "k", None))
    empty.ask(operations.kv(RequestCode.GET_KVLIST_BY_NAMESPACE, "ns"))
    empty.ask(operations.kv(RequestCode.GET_KV_CONFIG, "ns", "k"))
    empty.ask(operations.kv(RequestCode.DELETE_KV_CONFIG, "ns", "k"))
    for namespace, key in ((None, "k"), ("ns", None)):
        empty.ask(operations.kv(RequestCode.PUT_KV_CONFIG, namespace, key, "v"))


@pytest.mark.parametrize(
    "body",
    [
        b"x",
        b"[1]",
        b'{"a"',
        b"\x00",
        b'"text"',
        b"7",
        _registration(b'"T0":{"topicName":"T0"}')[:-3],
        _registration(b'"T0":{"topicName":"T0"}') + b"x",
        _registration(b'"T0":{"topicName":"T0","perm":"x"},"T1":{"topicName":"T1"}'),
        _registration(b'"T0":{"topicName":"T0","readQueueNums":99999999999},"T1":{"topicName":"T1"}'),
        _registration(b'"T0":null,"T1":{"topicName":"T1"}'),
        _registration(b'"T0":7,"T1":{"topicName":"T1"}'),
    ],
)
def test_a_body_that_cannot_be_read_changes_nothing(empty: Pair, body: bytes) -> None:
    request = other(0, crc="none").command()
    request.body = body
    theirs, _ = empty.ask(request, allowed=("undecodable-body",))
    assert theirs.code == ResponseCode.SYSTEM_ERROR


@pytest.mark.parametrize(
    "body",
    [
        b"  " + _registration(b'"T0":{"topicName":"T0"},"T1":{"topicName":"T1"}') + b" ",
        b"{'topicConfigSerializeWrapper':{dataVersion:{counter:1,timestamp:1,stateVersion:0},"
        b"topicConfigTable:{T0:{topicName:'T0'},T1:{topicName:'T1',},},},}",
        _registration(b'"a":{"topicName":"T0"},"b":{"topicName":"T1"}'),
        _registration(b'"T0":{"topicName":"T0","perm":"4"},"T1":{"topicName":"T1","perm":null}'),
        _registration(b'"T0":{"topicName":"T0","order":"true","topicFilterType":1},"T1":{"topicName":"T1"}'),
        _registration(b'"T0":{"topicName":"T0","perm":6.7},"T1":{"topicName":"T1","perm":true}'),
    ],
)
def test_a_body_in_a_tolerated_dialect_is_read_alike(empty: Pair, body: bytes) -> None:
    request = other(0, crc="none").command()
    request.body = body
    empty.ask(request)
    empty.compare_state(("T0", "T1", "a", "b"), LIVES, ("c0",))


@pytest.mark.parametrize("deleting", [False, True])
def test_a_long_registration_repeated_with_little_changed_is_taken_alike(empty: Pair, deleting: bool) -> None:
    """Ours reads it piece by piece, and not again what stands."""
    many = tuple(Topic(name=f"many-{number:03}") for number in range(400))
    asked = [operations.route(topic.name) for topic in many[::40]]
    switch = "deleteTopicWithBrokerRegistration"
    if deleting and empty.five:
        empty.ask(command(RequestCode.UPDATE_NAMESRV_CONFIG, {}, f"{switch}=true".encode()))
    wipe = command(RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "b0"})
    delete = command(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": many[40].name})
    fewer = (*many[:80], *many[90:])
    changed = (*many[:40], Topic(name=many[40].name, perm=4), *many[41:])
    for between, topics, counter in (
        (None, many, 1),
        (None, many, 1),
        (delete, many, 1),
        (wipe, many, 1),
        (None, many, 2),
        (delete, changed, 2),
        (None, changed, 3),
        (None, fewer, 3),
        (None, fewer, 4),
        (None, many, 4),
    ):
        if between is not None:
            empty.ask(between)
        empty.ask(other(0, topics=topics, counter=counter).command())
        empty.ask_all([*asked, command(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)])
    empty.ask(command(RequestCode.UPDATE_NAMESRV_CONFIG, {}, f"{switch}=false".encode()))


def test_a_compressed_body_under_an_uncompressed_header_is_read_by_ours_only(empty: Pair) -> None:
    r = other(0, form="compressed", five=False)
    request = r.command()
    request.ext_fields = {**(request.ext_fields or {}), "compressed": "false"}
    theirs, ours = empty.each(request)
    assert (theirs.code, ours.code) == (ResponseCode.SYSTEM_ERROR, ResponseCode.SUCCESS)
    empty.out_of_both([("c0", r.addr)])


def test_attributes_in_a_compressed_body_are_read_by_ours_in_4_9(empty: Pair) -> None:
    r = other(0, form="compressed", five=True, version=409)
    theirs, ours = empty.each(r.command())
    assert (theirs.code, ours.code) == (ResponseCode.SUCCESS if empty.five else ResponseCode.SYSTEM_ERROR, 0)
    empty.out_of_both([("c0", r.addr)])


def test_a_bad_value_of_a_setting_is_refused_by_ours_only(empty: Pair) -> None:
    request = command(RequestCode.UPDATE_NAMESRV_CONFIG, {}, b"serverWorkerThreads=many")
    empty.ask(request, allowed=("bad-value",))
    empty.ask(command(RequestCode.GET_NAMESRV_CONFIG), allowed=("own-keys",))


def test_a_text_loses_its_outer_blanks_in_5_x_only_and_a_key_of_the_file_can_be_updated(empty: Pair) -> None:
    for body in (b"productEnvName=\x13 a \x02\nfileOnly=2", b"productEnvName=center\nfileOnly=1\nnoSuchKey=3"):
        empty.ask(command(RequestCode.UPDATE_NAMESRV_CONFIG, {}, body))
        empty.ask(command(RequestCode.GET_NAMESRV_CONFIG), allowed=("own-keys",))


def test_a_new_smallest_id_and_the_loss_of_one_are_told_to_the_brokers_alike(empty: Pair) -> None:
    if not empty.five:
        return
    empty.ask(command(RequestCode.UPDATE_NAMESRV_CONFIG, {}, b"notifyMinBrokerIdChanged=true"))
    with socket.create_server(("127.0.0.1", 0)) as broker:
        broker.settimeout(5)
        addr = f"127.0.0.1:{broker.getsockname()[1]}"
        slave = other(0, id=2, addr=addr, acting=True)
        empty.ask(slave.command())
        empty.ask(other(0, id=1, acting=True).command())
        with contextlib.ExitStack() as stack:
            dialled = [stack.enter_context(broker.accept()[0]) for _ in range(2)]
            told = [_told(connection) for connection in dialled]
            assert told[0] == told[1]
            assert (told[0].code, told[0].is_oneway) == (RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, True)
            assert (told[0].ext_fields or {})["minBrokerId"] == "1"
            empty.unregister("c0", "b0", 1, other(0).addr)
            told = [_told(connection) for connection in dialled]
            assert told[0] == told[1]
            assert (told[0].ext_fields or {})["offlineBrokerAddr"] == other(0).addr
            empty.unregister("c0", "b0", 2, addr)
    empty.ask(command(RequestCode.UPDATE_NAMESRV_CONFIG, {}, b"notifyMinBrokerIdChanged=false"))


def _told(connection: socket.socket) -> RemotingCommand:
    """The next command on it, but for the opaque, which each server counts by itself."""
    connection.settimeout(5)
    size = connection.recv(4, socket.MSG_WAITALL)
    told = decode_frame(size + connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
    told.opaque = 0
    return told


def test_settings_are_read_as_utf_8_by_ours_and_as_latin_1_by_theirs(empty: Pair) -> None:
    empty.ask(command(RequestCode.UPDATE_NAMESRV_CONFIG, {}, "productEnvName=é".encode()))
    theirs, ours = (answer.body.decode() for answer in empty.each(command(RequestCode.GET_NAMESRV_CONFIG)))
    assert "productEnvName=Ã©\n" in theirs
    assert "productEnvName=é\n" in ours
    empty.ask(command(RequestCode.UPDATE_NAMESRV_CONFIG, {}, b"productEnvName=center"))


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_every_exception_stands_in_the_list_of_incompatibilities_by_name(name: str) -> None:
    assert f"`{name}`" in COMPATIBILITY.read_text()

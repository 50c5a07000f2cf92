"""What travels for a message, and what is refused before it does."""

import itertools
import zlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from nemesrv.clients.config import ClientConfig, ProducerConfig
from nemesrv.clients.producer import send_request
from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.errors import ClientError
from nemesrv.remoting.message import Message, MessageQueue
from nemesrv.remoting.message_properties import parse_properties
from nemesrv.remoting.node.profile import Profile

CONFIG = ProducerConfig(producer_group="writers")
QUEUE = MessageQueue("orders", "broker-a", 3)


def ids() -> Callable[[], str]:
    numbers = itertools.count()
    return lambda: f"ID{next(numbers)}"


def test_a_message_travels_as_310_with_all_the_letters() -> None:
    message = replace(Message.create("orders", b"hello", tags="TagA", keys="k0"), flag=5)
    command = send_request.single(message, CONFIG, ids()).command(QUEUE, CONFIG, now_ms=1234)
    fields = command.ext_fields
    assert fields is not None
    assert command.code == RequestCode.SEND_MESSAGE_V2
    assert command.body == b"hello"
    properties = parse_properties(fields.pop("i"))
    assert properties == {"WAIT": "true", "KEYS": "k0", "TAGS": "TagA", "UNIQ_KEY": "ID0"}
    assert fields == {
        "a": "writers",
        "b": "orders",
        "c": "TBW102",
        "d": "4",
        "e": "3",
        "f": "0",
        "g": "1234",
        "h": "5",
        "j": "0",
        "k": "false",
        "m": "false",
        "n": "broker-a",
    }


def test_the_last_property_separator_came_with_5_3() -> None:
    message = Message.create("orders", b"hello")
    assert not send_request.single(message, CONFIG, ids()).properties.endswith("\x02")
    assert send_request.single(message, ProducerConfig(profile=Profile.V5_X), ids()).properties.endswith("\x02")


@pytest.mark.parametrize(("size", "compressed"), [(4095, False), (4096, True), (100_000, True)])
def test_a_body_of_4096_bytes_or_more_is_a_zlib_stream(size: int, compressed: bool) -> None:
    request = send_request.single(Message.create("orders", b"x" * size), CONFIG, ids())
    assert request.sys_flag == (0x301 if compressed else 0)
    assert (zlib.decompress(request.body) if compressed else request.body) == b"x" * size


def test_a_message_keeps_the_uniq_key_it_has() -> None:
    message = Message.create("orders", b"hello").with_property("UNIQ_KEY", "MINE")
    assert send_request.single(message, CONFIG, ids()).msg_id == "MINE"


def test_a_retry_message_carries_its_counts_in_the_header() -> None:
    properties = {"RECONSUME_TIME": "3", "MAX_RECONSUME_TIMES": "16", "WAIT": "true"}
    request = send_request.single(Message("%RETRY%readers", b"hello", properties=properties), CONFIG, ids())
    fields = request.command(QUEUE, CONFIG, now_ms=1).ext_fields
    assert fields is not None
    assert (fields["j"], fields["l"]) == ("3", "16")
    assert set(parse_properties(fields["i"])) == {"WAIT", "UNIQ_KEY"}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (Message("", b"x"), "blank"),
        (Message(" ", b"x"), "blank"),
        (Message("t" * 128, b"x"), "longer than topic max length 127"),
        (Message("a b", b"x"), "illegal characters"),
        (Message("SCHEDULE_TOPIC_XXXX", b"x"), "forbidden"),
        (Message("orders", b""), "body length is zero"),
        (Message("orders", b"x" * (4 * 1024 * 1024 + 1)), "over max value"),
    ],
)
def test_what_no_broker_would_take_is_refused_first(message: Message, text: str) -> None:
    with pytest.raises(ClientError, match=text) as caught:
        send_request.single(message, CONFIG, ids())
    assert caught.value.definite


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (lambda: ClientConfig(poll_name_server_interval_ms=0), "poll_name_server_interval_ms is 0"),
        (lambda: ProducerConfig(producer_group=""), "producer_group is empty"),
        (lambda: ProducerConfig(retry_times_when_send_failed=-1), "retry_times_when_send_failed is -1"),
        (lambda: ProducerConfig(heartbeat_broker_interval_ms=-5), "heartbeat_broker_interval_ms is -5"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(config: Callable[[], ClientConfig], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        config()

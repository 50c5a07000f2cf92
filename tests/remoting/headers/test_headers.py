"""Headers: every class both ways, required fields, and the two spellings of a send."""

import dataclasses
import typing

import pytest

from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.errors import RemoteProtocolError
from nemesrv.remoting.headers import broker as broker_headers
from nemesrv.remoting.headers import namesrv as namesrv_headers
from nemesrv.remoting.headers.broker import (
    GetMaxOffsetResponseHeader,
    SendMessageRequestHeader,
    UnregisterClientRequestHeader,
)
from nemesrv.remoting.headers.fields import HeaderError, HeaderFields, plan
from nemesrv.remoting.headers.namesrv import (
    BrokerHeartbeatRequestHeader,
    GetRouteInfoRequestHeader,
    QueryDataVersionResponseHeader,
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
)

CLASSES = [
    each
    for module in (namesrv_headers, broker_headers)
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, HeaderFields) and each.__module__ == module.__name__
]
every_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)

REGISTRATION = RegisterBrokerRequestHeader(
    broker_name="broker-a",
    broker_addr="127.0.0.1:10911",
    cluster_name="DefaultCluster",
    ha_server_addr="127.0.0.1:10912",
    broker_id=0,
    enable_acting_master=True,
    compressed=True,
    body_crc32=123,
    zone_name="z",
)
SEND = SendMessageRequestHeader(
    producer_group="g",
    topic="T",
    default_topic="TBW102",
    default_topic_queue_nums=4,
    queue_id=-1,
    sys_flag=0,
    born_timestamp=1_700_000_000_000,
    flag=0,
    properties="TAGS\x01a\x02",
    reconsume_times=0,
    broker_name="broker-a",
)


@every_class
@pytest.mark.parametrize("filled", [True, False], ids=["every field", "required fields"])
def test_a_header_is_read_back_equal(cls: type[HeaderFields], filled: bool) -> None:
    values = {str: "text", int: -7, bool: True}
    header = cls(**{field.name: values[field.kind] for field in plan(cls) if filled or field.required})
    fields = header.to_ext_fields()
    assert all(isinstance(value, str) for value in fields.values())
    assert cls.from_ext_fields(fields) == header


@every_class
def test_a_missing_required_field_is_named(cls: type[HeaderFields]) -> None:
    required = [field.wire for field in plan(cls) if field.required]
    fields = cls(**{field.name: field.kind(1) for field in plan(cls) if field.required}).to_ext_fields()
    for wire in required:
        with pytest.raises(HeaderError, match="missing") as caught:
            cls.from_ext_fields({name: value for name, value in fields.items() if name != wire})
        assert caught.value.field == wire
        assert caught.value.text is None


@every_class
def test_a_header_is_frozen_and_has_plain_types(cls: typing.Any) -> None:
    assert cls.__dataclass_params__.frozen
    assert {field.kind for field in plan(cls)} <= {str, int, bool}
    assert [field.name for field in dataclasses.fields(cls)] == [field.name for field in plan(cls)]


def test_the_wire_names_are_java_s() -> None:
    assert REGISTRATION.to_ext_fields() == {
        "brokerName": "broker-a",
        "brokerAddr": "127.0.0.1:10911",
        "clusterName": "DefaultCluster",
        "haServerAddr": "127.0.0.1:10912",
        "brokerId": "0",
        "enableActingMaster": "true",
        "compressed": "true",
        "bodyCrc32": "123",
        "__ZONE_NAME": "z",
    }
    assert UnregisterClientRequestHeader(client_id="c").to_ext_fields() == {"clientID": "c"}
    names = {field.wire for cls in CLASSES for field in plan(cls)}
    assert {"clientID", "heartbeatTimeoutMills", "heartbeatTimeoutMillis", "proxyFrowardClientId", "bname"} <= names
    assert {"_UNIQUE_KEY_QUERY", "indexLastUpdatePhyoffset", "MSG_REGION", "TRACE_ON", "__ZONE_MODE"} <= names
    assert not any("_" in name.strip("_") and name.islower() for name in names)


def test_unknown_fields_are_ignored() -> None:
    fields = {"topic": "T", "nsd": "x", "lo": "y"}
    assert GetRouteInfoRequestHeader.from_ext_fields(fields) == GetRouteInfoRequestHeader(topic="T")


def test_no_ext_fields_at_all_means_that_everything_is_missing() -> None:
    assert RegisterBrokerResponseHeader.from_ext_fields(None) == RegisterBrokerResponseHeader()
    with pytest.raises(HeaderError, match="topic"):
        GetRouteInfoRequestHeader.from_ext_fields(None)


@pytest.mark.parametrize("text", ["", "x", "1.5", "0x1", " 1", "1_0", "²", "9223372036854775808", "9" * 5000])
def test_a_number_that_is_none_names_its_field(text: str) -> None:
    with pytest.raises(HeaderError) as caught:
        GetMaxOffsetResponseHeader.from_ext_fields({"offset": text})
    assert caught.value.field == "offset"
    assert isinstance(caught.value, RemoteProtocolError)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "number"),
    [("-9223372036854775808", -(1 << 63)), ("9223372036854775807", (1 << 63) - 1), ("+5", 5), ("007", 7)],
)
def test_a_number_is_decimal_and_64_bit(text: str, number: int) -> None:
    assert GetMaxOffsetResponseHeader.from_ext_fields({"offset": text}).offset == number


@pytest.mark.parametrize(("text", "value"), [("true", True), ("TRUE", True), ("1", False), ("yes", False)])
def test_a_boolean_is_true_for_the_word_true_only(text: str, value: bool) -> None:
    assert QueryDataVersionResponseHeader.from_ext_fields({"changed": text}).changed is value


def test_an_empty_optional_number_is_absent_and_an_empty_text_is_empty() -> None:
    fields = {"clusterName": "", "brokerAddr": "a:1", "brokerName": "b", "brokerId": "", "epoch": "3"}
    assert BrokerHeartbeatRequestHeader.from_ext_fields(fields) == BrokerHeartbeatRequestHeader(
        cluster_name="", broker_addr="a:1", broker_name="b", epoch=3
    )


def test_a_send_is_letters_in_v2() -> None:
    assert SEND.to_v2() == {
        "a": "g",
        "b": "T",
        "c": "TBW102",
        "d": "4",
        "e": "-1",
        "f": "0",
        "g": "1700000000000",
        "h": "0",
        "i": "TAGS\x01a\x02",
        "j": "0",
        "k": "false",
        "m": "false",
        "n": "broker-a",
    }


@pytest.mark.parametrize(
    "code", [RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE]
)
def test_a_send_is_read_back_from_the_spelling_of_its_code(code: RequestCode) -> None:
    header = dataclasses.replace(SEND, batch=True, max_reconsume_times=16)
    fields = header.to_ext_fields() if code == RequestCode.SEND_MESSAGE else header.to_v2()
    assert SendMessageRequestHeader.for_code(code, fields) == header


@pytest.mark.parametrize("letter", "abcdefgh")
def test_a_v2_send_names_the_letter_that_is_missing_or_unreadable(letter: str) -> None:
    fields = SEND.to_v2()
    del fields[letter]
    with pytest.raises(HeaderError, match=f"field {letter} is missing"):
        SendMessageRequestHeader.from_v2(fields)
    if letter in "defgh":
        with pytest.raises(HeaderError, match=f"field {letter} cannot be read"):
            SendMessageRequestHeader.from_v2({**fields, letter: "x"})

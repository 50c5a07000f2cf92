"""What Apache's client tells of itself, line by line, and the rows that come of it."""

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from nemesrv.chaos.apache.workload_rows import WorkloadRows
from nemesrv.chaos.fronts.rows import TimedRow
from nemesrv.chaos.history.recorder import check_fields
from nemesrv.remoting.message_properties import message_digest

OWN, EVERYBODYS = "127.0.0.1:40001", "127.0.0.1:10911"
SEND = {
    "f": "send",
    "id": "U1",
    "topic": "orders",
    "key": "producer-0-0",
    "body": base64.b64encode(b"producer-0-0..").decode(),
    "properties": {"KEYS": "producer-0-0", "TAGS": "producer-0", "number": "1", "UNIQ_KEY": "U1", "WAIT": "true"},
}
TRY = {"f": "try", "id": "U1", "broker": "broker-a", "queue": 3, "address": OWN}
OK = {"status": "SEND_OK"}
SENT = {"f": "sent", "id": "U1", "type": "ok", **OK, "broker": "broker-a", "queue": 3, "offset": 7}
QUEUE = {"topic": "orders", "broker": "broker-a", "queue": 1}


def rows(*lines: Mapping[str, Any]) -> list[TimedRow]:
    """One line each 10 ms, the first at 0; every row is one that the catalogue knows."""
    found: list[TimedRow] = []
    told = WorkloadRows(found.append, "readers", {OWN: EVERYBODYS})
    for number, line in enumerate(lines):
        told.heard(10.0 * number, line)
    for row in found:
        check_fields(row.event, row.fields)
    return found


def of(event: str, found: list[TimedRow]) -> list[dict[str, Any]]:
    return [row.fields for row in found if row.event == event]


def test_a_send_has_its_key_its_tries_its_place_and_its_digest() -> None:
    found = rows(SEND, TRY, {**TRY, "f": "tried", **OK}, SENT)
    assert [(row.at_ms, row.event, row.fields["type"]) for row in found] == [
        (0.0, "send", "invoke"),
        (10.0, "send_attempt", "invoke"),
        (20.0, "send_attempt", "ok"),
        (30.0, "send", "ok"),
    ]
    [_, tried] = of("send_attempt", found)
    where = {"op_id": "U1", "attempt": 0, "broker_name": "broker-a", "address": EVERYBODYS, "queue_id": 3}
    assert tried == {"type": "ok", "code": 0, "duration_ms": 10.0, **where}
    [_, sent] = of("send", found)
    digest = message_digest("orders", b"producer-0-0..", SEND["properties"])  # type: ignore[arg-type]
    assert (sent["msg_key"], sent["offset"], sent["digest"], sent["attempt"]) == ("producer-0-0", 7, digest, 1)
    assert sent["duration_ms"] == 30.0


@pytest.mark.parametrize(
    ("ended", "type_", "code"),
    [
        ({"error": "RemotingConnectException"}, "fail", None),
        ({"error": "RemotingTooMuchRequestException"}, "fail", None),
        ({"error": "RemotingTimeoutException"}, "info", None),
        ({"error": "RemotingSendRequestException"}, "info", None),
        ({"error": "MQBrokerException", "code": 14}, "fail", 14),
        ({"error": "MQBrokerException", "code": 1}, "info", 1),
        ({"status": "FLUSH_DISK_TIMEOUT"}, "info", 10),
    ],
)
def test_a_try_that_may_have_stored_has_not_failed(ended: dict[str, object], type_: str, code: int | None) -> None:
    found = rows(SEND, TRY, {**TRY, "f": "tried", **ended}, {"f": "sent", "id": "U1", "type": "fail", "code": code})
    [_, tried] = of("send_attempt", found)
    [_, sent] = of("send", found)
    assert (tried["type"], tried["code"]) == (type_, code)
    assert (sent["type"], sent["attempt"]) == (type_, 0 if type_ == "fail" else 1)
    assert "digest" not in sent


def test_a_send_that_was_tried_again_may_have_been_stored_twice() -> None:
    lost = {**TRY, "f": "tried", "error": "RemotingTimeoutException"}
    again = {**TRY, "broker": "broker-b", "address": "127.0.0.1:40002"}
    found = rows(SEND, TRY, lost, again, {**again, "f": "tried", **OK}, {**SENT, "broker": "broker-b"})
    assert [row["attempt"] for row in of("send_attempt", found)] == [0, 0, 1, 1]
    assert of("send", found)[-1]["attempt"] == 2
    assert of("send_attempt", found)[-1]["address"] == "127.0.0.1:40002"


def test_a_try_of_which_the_hook_never_told_the_end_ends_with_its_send() -> None:
    found = rows(SEND, TRY, {"f": "sent", "id": "U1", "type": "fail"})
    assert [row["type"] for row in of("send_attempt", found)] == ["invoke", "info"]
    assert of("send", found)[-1]["type"] == "info"


def test_a_holding_begins_where_it_is_read_from_and_ends_with_what_was_committed() -> None:
    taken = {"f": "taken", **QUEUE, "holding": 0, "offset": 12}
    other = {"f": "taken", **QUEUE, "queue": 2, "holding": 1, "offset": 0}
    found = rows(taken, other, {"f": "dropped", **QUEUE, "holding": 0, "offset": 20})
    holding = {"op_id": "take-0", "topic": "orders", "broker_name": "broker-a", "queue_id": 1}
    assert of("queue_taken", found)[0] == {**holding, "offset": 12}
    assert of("queue_dropped", found) == [{**holding, "offset": 20}]
    assert [row["value"] for row in of("assigned", found)] == [
        [["broker-a", 1]],
        [["broker-a", 1], ["broker-a", 2]],
        [["broker-a", 2]],
    ]


def test_a_message_received_has_the_digest_of_what_came_and_its_holding() -> None:
    properties = {**SEND["properties"], "MIN_OFFSET": "0", "MAX_OFFSET": "9", "CLUSTER": "c"}  # type: ignore[dict-item]
    received = {**SEND, "f": "received", **QUEUE, "holding": 4, "offset": 7, "properties": properties}
    changed = {**received, "body": base64.b64encode(b"another").decode(), "holding": None}
    one, two = of("receive", rows(received, changed))
    assert (one["msg_key"], one["op_id"], one["queue_id"], one["offset"]) == ("producer-0-0", "take-4", 1, 7)
    assert one["digest"] == message_digest("orders", b"producer-0-0..", SEND["properties"])  # type: ignore[arg-type]
    assert two["digest"] != one["digest"]
    assert two["op_id"] is None


def test_a_route_is_recorded_in_everybodys_words_where_it_is_another() -> None:
    json = '{"brokerDatas":[{"brokerAddrs":{0:"%s"},"brokerName":"broker-a"}],"queueDatas":[{"brokerName":"broker-a",'
    json = json % OWN + '"perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
    line = {"f": "route", "topic": "orders", "route": json}
    value = {"brokers": {"broker-a": {"0": EVERYBODYS}}, "queues": {"broker-a": [4, 4, 6, 0]}}
    assert of("route_changed", rows(line, line)) == [{"topic": "orders", "value": value}]


def test_what_a_broadcasting_consumer_keeps_is_a_commit_of_its_own() -> None:
    [kept] = of("commit", rows({"f": "kept", **QUEUE, "offset": 9, "before": 4}))
    assert (kept["f"], kept["offset"], kept["value"]) == ("persist", 9, {"group": "readers", "before": 4})


def test_how_late_its_threads_are_is_lateness_of_the_node() -> None:
    assert of("timer_lag", rows({"f": "lag", "late_ns": 12_000_000, "lasted_ns": 1_000_000_000})) == [
        {"lag_ms": 12.0, "duration_ms": 1000.0}
    ]


def test_lines_of_calls_that_were_never_begun_and_of_no_kind_are_left() -> None:
    assert rows(TRY, {**TRY, "f": "tried"}, SENT, {"f": "ready"}, {"hello": 1}) == []

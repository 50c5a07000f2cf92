"""What an import says is held against the truth as far as logs can tell it, and no further."""

from typing import Any

import pytest

from .truth import Transition, done, is_true, names_of, transitions

NODES = ("ns-0", "ns-1", "broker-a", "broker-b", "producer-0")


def _is_true(said: dict[str, Any], true: dict[str, Any]) -> bool:
    return is_true(done([said], NODES, {"b": "broker-a"}), done([true], NODES, {}))


PARTITION = {"do": "black_hole", "links": ["broker-a <-> ns-0"], "stream": "both"}
DOWNSTREAM = {**PARTITION, "stream": "downstream"}
LOST = {"do": "black_hole", "links": ["* <-> broker-a"], "stream": "both"}
CLAIMED = {"do": "register", "nodes": ["ns-0"], "broker": "broker-a", "address": "10.9.9.9:10911"}


@pytest.mark.parametrize(
    ("said", "true"),
    [
        ({"do": "kill", "nodes": ["b"]}, {"do": "kill", "nodes": ["broker-a"]}),
        ({"do": "stop", "nodes": ["ns-0"]}, {"do": "kill", "nodes": ["ns-0"]}),
        (PARTITION, PARTITION),
        ({**PARTITION, "stream": "upstream"}, PARTITION),
        (PARTITION, {**PARTITION, "stream": "upstream"}),
        ({"do": "syn_drop", "links": ["ns-0 <-> broker-a"]}, PARTITION),
        (DOWNSTREAM, DOWNSTREAM),
        ({"do": "black_hole", "links": ["isolate broker-a"]}, LOST),
        ({"do": "black_hole", "links": ["broker-a <-> name_servers"]}, LOST),
        ({"do": "switch", "nodes": ["broker-a"]}, CLAIMED),
    ],
)
def test_the_fault_itself_is_true_in_whatever_words(said: dict[str, Any], true: dict[str, Any]) -> None:
    assert _is_true(said, true)


@pytest.mark.parametrize(
    ("said", "true"),
    [
        ({"do": "kill", "nodes": ["broker-b"]}, {"do": "kill", "nodes": ["broker-a"]}),
        ({"do": "stop", "nodes": ["broker-a"]}, {"do": "kill", "nodes": ["broker-a"]}),
        ({"do": "pause", "nodes": ["broker-a"]}, PARTITION),
        ({"do": "black_hole", "links": ["broker-a <-> ns-1"]}, PARTITION),
        (LOST, PARTITION),
        (PARTITION, LOST),
        (PARTITION, DOWNSTREAM),
        (DOWNSTREAM, PARTITION),
        ({"do": "heal"}, PARTITION),
    ],
)
def test_another_fault_is_not_true(said: dict[str, Any], true: dict[str, Any]) -> None:
    assert not _is_true(said, true)


def _row(at_ms: float, event: str, **more: Any) -> dict[str, Any]:
    return {"time_ms": at_ms, "role": "name_server", "node": "ns-0", "event": event, **more}


def test_a_broker_comes_once_and_anew_after_each_loss_and_each_start_of_the_name_server() -> None:
    broker = {"broker_name": "broker-a", "address": "10.0.2.1:10911", "code": 0}
    rows = [
        _row(1, "registration", **broker),
        _row(2, "registration", **broker),
        _row(3, "broker_dropped", **broker),
        _row(4, "broker_dropped", **broker),
        _row(5, "registration", **broker),
        _row(6, "started"),
        _row(7, "registration", **{**broker, "code": 1}),
        _row(8, "registration", **broker),
    ]
    one = ("ns-0", "broker-a", "10.0.2.1:10911")
    assert transitions(rows) == [
        Transition(1, *one, "came"),
        Transition(3, *one, "lost"),
        Transition(5, *one, "came"),
        Transition(8, *one, "came"),
    ]


def test_the_imports_names_are_ours_by_address_and_by_client_id() -> None:
    topology = {
        "name_servers": {"ns-5": ["10.0.1.1:9876"]},
        "brokers": {"broker-x": {"0": ["10.0.2.1:10911"], "1": ["10.0.2.2:10911"]}},
        "clients": {"client-0": {"id": "10.0.3.2@producer-0#17"}, "client-1": {"id": None}},
    }
    addresses = {"ns-0": "10.0.1.1:9876", "broker-a": "10.0.2.1:10911", "broker-a/1": "10.0.2.2:10911"}
    assert names_of(topology, addresses) == {
        "ns-5": "ns-0",
        "broker-x": "broker-a",
        "broker-x/1": "broker-a/1",
        "client-0": "producer-0",
    }

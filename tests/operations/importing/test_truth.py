"""What an import says is held against the truth as far as logs can tell it, and no further."""

from typing import Any

import pytest

from .truth import done, is_true

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

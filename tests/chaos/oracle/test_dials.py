"""What a dial may meet under each combination of faults, over small worlds."""

from __future__ import annotations

from typing import Any

import pytest

from nemesrv.chaos.checks.service.exercised import dials_met, late_ms
from nemesrv.chaos.faults.fault import Dial
from nemesrv.chaos.oracle.world import World
from tests.chaos.builder import HistoryBuilder, cluster

CUT = ("cut", "toxiproxy.disabled", "producer-0", "ns-0")
HOLE = ("black_hole", "toxiproxy.bandwidth.rate=0", "producer-0", "ns-0")
LOSS = ("packet_loss", "packet_drop", "producer-0", "ns-0")
RESET = ("reset", "toxiproxy.reset_peer", "producer-0", "ns-0")
SLOW = ("latency", "toxiproxy.latency", "producer-0", "ns-0")
NARROW = ("bandwidth", "toxiproxy.bandwidth", "producer-0", "ns-0")
STRANGE = ("solar_flare", "the sun", "producer-0", "ns-0")
KILL = ("kill", "sigkill", "ns-0", None)
PAUSE = ("pause", "sigstop", "ns-0", None)
VALUES: dict[str, dict[str, Any]] = {"latency": {"latency_ms": 200}, "bandwidth": {"rate_kb_s": 10}}


def world(*faults: tuple[Any, ...], gone_s: float | None = 101) -> World:
    """These faults from 100 s to 200 s."""
    builder = cluster(clients=("producer-0", "consumer-0")).at(100)
    for number, fault in enumerate(faults):
        builder.at(100).fault(f"f{number}", *fault, value=VALUES.get(fault[0]))
        if fault is KILL and gone_s is not None:
            builder.at(gone_s).event("harness", "gone", fault_id=f"f{number}", source="ns-0")
    for number, fault in enumerate(faults):
        builder.at(200).fault(f"f{number}", *fault, end=True)
    return World.of_rows(builder.end(300).rows)


def met(of: World, from_s: float = 120, to_s: float = 123, source: str = "producer-0") -> set[Dial]:
    return set(dials_met(of, source, "ns-0", from_s * 1000, to_s * 1000))


@pytest.mark.parametrize(
    ("faults", "dials"),
    [
        ((), {Dial.ANSWERED}),
        ((CUT,), {Dial.REFUSED}),
        ((HOLE,), {Dial.SILENT}),
        ((LOSS,), {Dial.DROPPED}),
        ((RESET,), {Dial.RESET}),
        ((SLOW,), {Dial.LATE, Dial.SILENT}),
        ((NARROW,), {Dial.ANSWERED, Dial.SILENT}),
        ((KILL,), {Dial.REFUSED}),
        ((PAUSE,), {Dial.SILENT}),
        ((LOSS, CUT), {Dial.DROPPED}),
        ((HOLE, CUT), {Dial.REFUSED}),
        ((HOLE, KILL), {Dial.SILENT}),
        ((SLOW, KILL), {Dial.REFUSED}),
        ((SLOW, PAUSE), {Dial.SILENT}),
        ((RESET, HOLE), {Dial.RESET, Dial.SILENT}),
        ((STRANGE,), set()),
    ],
    ids=lambda value: "+".join(fault[0] for fault in value) if isinstance(value, tuple) else None,
)
def test_what_a_dial_may_meet(faults: tuple[Any, ...], dials: set[Dial]) -> None:
    assert met(world(*faults)) == dials


def test_while_something_changes_nothing_is_asked() -> None:
    assert met(world(HOLE), 99, 102) == met(world(HOLE), 198, 201) == set()
    assert met(world(KILL), 100.5, 102) == met(world(KILL, gone_s=None)) == set()
    assert met(world(HOLE), 90, 99) == met(world(HOLE), 201, 204) == {Dial.ANSWERED}


def test_a_fault_of_one_link_says_nothing_of_another() -> None:
    assert met(world(CUT), source="consumer-0") == {Dial.ANSWERED}


def test_an_answer_is_late_by_what_all_latencies_add() -> None:
    assert (late_ms(world(SLOW, SLOW), "producer-0", "ns-0", 120_000), late_ms(world(), "producer-0", "ns-0", 0)) == (
        800,
        0,
    )


def test_a_history_without_rows_lets_a_dial_be_answered() -> None:
    assert met(World.of_rows(HistoryBuilder().rows)) == {Dial.ANSWERED}

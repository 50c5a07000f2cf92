"""Each fault says what a scenario may say of it, what it does to a link, how it is recorded, and what its peers see."""

import ast
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from nemesrv.chaos.faults import acts_by_hand, clock_changes, fault, kinds, link_faults, process_faults
from nemesrv.chaos.faults.fault import Fault, Loss
from nemesrv.chaos.faults.kinds import ACTIONS, FAULTS, LINK_FAULTS, AnyAction, UnknownFault, recorded
from nemesrv.chaos.faults.link_faults import (
    Bandwidth,
    BlackHole,
    Cut,
    DirectionState,
    Effect,
    HalfOpen,
    Latency,
    LinkFault,
    LinkState,
    PacketLoss,
    Reset,
    SynDrop,
    Timeout,
    combine,
)
from nemesrv.chaos.faults.process_faults import DISK_ACTIONS, HOST_ACTIONS, Kill, Pause, PortTaken, Remove, Stop
from nemesrv.chaos.oracle.timers import Timers

V4 = Timers.for_profile("4.9")
ONE_OF_EACH: tuple[Fault, ...] = (
    Cut(),
    BlackHole(stream="downstream"),
    Latency(latency_ms=200, jitter_ms=5),
    Bandwidth(rate_kb_s=10, stream="upstream"),
    Reset(),
    PacketLoss(),
    HalfOpen(),
    SynDrop(),
    Kill(),
    PortTaken(),
    Stop(),
    Pause(),
    Remove(),
)


def test_the_list_above_has_one_of_each_fault() -> None:
    assert [type(one) for one in ONE_OF_EACH] == list(FAULTS.values())


@pytest.mark.parametrize("one", ONE_OF_EACH, ids=lambda one: one.do)
def test_a_fault_is_what_a_timeline_says_of_it(one: Fault) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(AnyAction)
    assert adapter.validate_python(one.model_dump()) == one
    with pytest.raises(ValidationError, match="extra_forbidden"):
        adapter.validate_python({**one.model_dump(), "toxicity": 1})


@pytest.mark.parametrize("one", [*ONE_OF_EACH, Timeout()], ids=lambda one: one.do)
def test_a_recorded_fault_is_known_again(one: Fault) -> None:
    value = {"asked_ms": 1.5, **one.numbers}
    assert recorded(one.do, one.recorded_injection, getattr(one, "stream", None), value) == one


@pytest.mark.parametrize("one", ONE_OF_EACH, ids=lambda one: one.do)
def test_a_fault_has_words_of_its_own(one: Fault) -> None:
    assert all((one.words, one.injected, one.equals))
    injections = [kind.injection for kind in FAULTS.values()]
    assert injections.count(one.injection) == 1


@pytest.mark.parametrize("kind", LINK_FAULTS.values(), ids=LINK_FAULTS)
def test_a_fault_of_a_link_does_something_to_every_stream_it_names(kind: type[LinkFault]) -> None:
    one = next(one for one in ONE_OF_EACH if type(one) is kind)
    assert isinstance(one, LinkFault)
    assert one.effect() != Effect()
    for stream in ("both", "upstream", "downstream"):
        state = combine([one.model_copy(update={"stream": stream})], scale=1.0)
        if kind in (HalfOpen, SynDrop):  # of old connections, or of new ones, whatever the direction
            assert (state.stale, state.undialled) == (int(kind is HalfOpen), kind is SynDrop)
            continue
        moved = {way for way, now in (("upstream", state[1]), ("downstream", state[2])) if now != DirectionState()}
        assert moved >= ({"upstream", "downstream"} if stream == "both" else {stream}) or not state.enabled
    assert combine([], scale=1.0) == LinkState()


def test_faults_that_overlap_add_up() -> None:
    both = combine([Latency(latency_ms=200, jitter_ms=10), Latency(latency_ms=50, stream="upstream")], scale=10.0)
    assert (both.upstream.delay_ms, both.downstream.delay_ms) == ((25, 1), (20, 1))
    narrow = combine([Bandwidth(rate_kb_s=10), Bandwidth(rate_kb_s=3), BlackHole(stream="downstream")], scale=10.0)
    assert (narrow.upstream.rate_kb_s, narrow.downstream.rate_kb_s) == (30, 0)
    lossy = combine([PacketLoss(stream="upstream"), Cut(), Reset()], scale=1.0)
    assert lossy == LinkState(
        enabled=False,
        upstream=DirectionState(reset=True, lost=True),
        downstream=DirectionState(reset=True, unacknowledged=True),
    )


@pytest.mark.parametrize(
    ("fault", "injection", "stream", "value", "loss"),
    [
        ("kill", "sigkill", None, {}, Loss.CRASH),
        ("stop", "sigterm", None, {}, Loss.GRACEFUL),
        ("pause", "sigstop", None, {}, Loss.SILENT),
        ("cut", "toxiproxy.disabled", "both", {}, Loss.CLOSED),
        ("black_hole", "toxiproxy.bandwidth.rate=0", "both", {}, Loss.SILENT),
        ("black_hole", "toxiproxy.bandwidth.rate=0", "upstream", {}, Loss.SILENT),
        ("black_hole", "toxiproxy.bandwidth.rate=0", "downstream", {}, Loss.BACKWARD_PROXY),
        ("black_hole", "toxiproxy.timeout=0", "both", {}, Loss.DROPPED),
        ("black_hole", "packet_drop", "downstream", {}, Loss.BACKWARD_PACKETS),
        ("packet_loss", "packet_drop", "both", {}, Loss.SILENT),
        ("half_open", "toxiproxy.second_proxy", "both", {}, Loss.STALE),
        ("syn_drop", "full_accept_queue", "both", {}, Loss.UNDIALLED),
        ("reset", "toxiproxy.reset_peer", "both", {}, Loss.RESET),
        ("latency", "toxiproxy.latency", "both", {"latency_ms": 100, "jitter_ms": 50}, Loss.HARMLESS),
        ("latency", "toxiproxy.latency", "both", {"latency_ms": 2000}, Loss.SLOW),
        ("latency", "toxiproxy.latency", "both", {}, Loss.OTHER),
        ("bandwidth", "toxiproxy.bandwidth", "both", {"rate_kb_s": 10}, Loss.SLOW),
        ("kill", "", None, {}, Loss.CRASH),
        ("slicer", "toxiproxy.slicer", "both", {}, Loss.OTHER),
        ("solar_flare", "the sun", None, {}, Loss.OTHER),
    ],
)
def test_the_injection_of_a_recorded_fault_decides_its_loss(
    fault: str, injection: str, stream: str | None, value: dict[str, float], loss: Loss
) -> None:
    assert recorded(fault, injection, stream, value).loss(V4) is loss


def test_a_delay_adds_up_over_the_directions_it_acts_on() -> None:
    value = {"latency_ms": 1000, "jitter_ms": 100}
    delays = [recorded("latency", "toxiproxy.latency", way, value).delay for way in (None, "upstream", "downstream")]
    assert [(delay and delay.round_trip_min_ms, delay and delay.round_trip_max_ms) for delay in delays] == [
        (1800, 2200),
        (900, 1100),
        (900, 1100),
    ]
    assert recorded("bandwidth", "toxiproxy.bandwidth", "both", {"rate_kb_s": 1, **value}).delay is None
    assert recorded("latency", "toxiproxy.latency", "both", {}).delay is None


def test_a_call_must_be_late_to_show_a_latency_and_a_narrow_link_shows_in_no_row() -> None:
    assert [one.call_takes_ms for one in (Latency(latency_ms=200, jitter_ms=50), Latency(latency_ms=1), Cut())] == [
        150,
        1,
        0,
    ]
    assert [one.do for one in ONE_OF_EACH if not one.shows_in_rows] == ["bandwidth"]


def test_a_fault_of_nobody_keeps_the_words_it_was_recorded_under() -> None:
    flare = recorded("solar_flare", "the sun", "upstream", {"speed": 3})
    assert (flare.words, flare.recorded_injection, flare.numbers) == ("solar flare", "the sun", {})
    assert flare == UnknownFault(do="solar_flare", how="the sun", stream="upstream")


def test_what_ends_a_fault_or_is_several_is_no_fault() -> None:
    assert set(ACTIONS) - set(FAULTS) - {
        *acts_by_hand.BY_HAND,
        *clock_changes.CLOCK_ACTIONS,
        *DISK_ACTIONS,
        *HOST_ACTIONS,
    } == {*("heal", "resume", "restart", "rolling_restart", "restart_storm", "name_server_list")}


def test_the_classes_of_faults_import_nothing_that_injects() -> None:
    pure = {
        *("remoting.topics", "acts_by_hand", "clock_changes", "fault", "kinds", "link_faults"),
        *("process_faults", "shapes"),
    }
    for module in (acts_by_hand, clock_changes, fault, kinds, link_faults, process_faults):
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        ours = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level}
        assert ours <= pure, module


def test_the_page_of_faults_has_each_of_them() -> None:
    page = (Path(__file__).parents[3] / "docs" / "faults.md").read_text(encoding="utf-8")
    assert {line[4:].partition(":")[0] for line in page.splitlines() if line.startswith("### ")} == set(FAULTS)

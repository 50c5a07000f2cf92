"""The benchmark of recordings on the virtual clock measures what it says."""

import io

import pytest
from rich.console import Console

from nemesrv.chaos.scenarios.loading import parse
from tests.bench import virtual

TINY = parse(
    {
        "cluster": {"name_servers": 1, "brokers": 1},
        "workload": {"producers": 1, "consumers": 1, "client_starts": 0},
        "steady_s": 20,
        "settle_s": 1,
        "checks": ["no_acknowledged_loss"],
    },
    file="tiny.yaml",
)


def test_a_recording_is_measured_beside_an_empty_loop_and_its_parts_are_the_whole() -> None:
    text = io.StringIO()
    (tiny,) = virtual.run([TINY], rounds=1, console=Console(file=text, width=160))
    assert 20 < tiny.simulated_s < 120  # with the phases that the seed drew
    assert tiny.events > 400
    assert 300 < tiny.chunks < tiny.turns < tiny.calls
    assert 0 < tiny.empty_cpu_s < tiny.cpu_s
    assert sum(tiny.parts.values()) == pytest.approx(1)
    assert all(tiny.parts[part] > 0 for part, _ in virtual.PARTS)
    for what in ("times real time", "calls of functions", "empty loop", "share of frames, commands", "tiny"):
        assert what in text.getvalue()


def test_an_empty_loop_costs_more_the_more_chunks_there_are() -> None:
    few_s, many_s = (min(virtual.empty_loop(chunks, 0) for _ in range(3)) for chunks in (1_000, 20_000))
    assert many_s > 4 * few_s

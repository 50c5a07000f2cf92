"""A client that was started again shuffles its list anew; its replay has the order of each of its processes."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.history.transitions import later_lists_of, lists_of
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.operations.replay.running import ReplayOptions, read_original, replay

SCENARIO: dict[str, Any] = {
    "name": "started-again",
    "cluster": {"name_servers": 3, "brokers": 1},
    "workload": {"sends_per_s": 1, "client_starts": 0},
    "timeline": [
        {"at_s": 10, "do": "kill", "nodes": ["producer-0", "consumer-0"]},
        {"at_s": 15, "do": "restart", "nodes": ["producer-0", "consumer-0"]},
        {"at_s": 25, "do": "stop", "nodes": ["consumer-0"]},
        {"at_s": 30, "do": "restart", "nodes": ["consumer-0"]},
    ],
    "settle_s": 10,
    "checks": ["routes_are_true"],
}


def orders(folder: Path) -> dict[str, list[list[str]]]:
    """Client to the order of each of its processes."""
    rows = read_rows(folder)
    first, later = lists_of(rows), later_lists_of(rows)
    return {client: [first[client], *later.get(client, [])] for client in ("producer-0", "consumer-0", "consumer-1")}


def test_a_client_that_is_started_again_has_the_order_that_it_had_then(tmp_path: Path) -> None:
    original = record_virtual(parse(SCENARIO, file="x.yaml"), 5, tmp_path / "run").path
    had = orders(original)
    assert len(had["consumer-0"]) == 3, "with this seed it shuffles another order, and starts elsewhere"
    assert len(had["consumer-1"]) == 1, "it was never started again"
    found = replay(read_original(original, ReplayOptions()), ReplayOptions(out=tmp_path / "again", seed=77))
    assert orders(found.folder.path) == had
    assert found.similarity.similarity is not None
    assert found.similarity.similarity > 0.99, found.similarity.sentence


@pytest.mark.parametrize(
    "own",
    [
        {"later_orders": [["ns-1", "ns-0", "ns-2"]]},
        {"name_servers": ["ns-0", "ns-1"], "in_order": True, "later_orders": [["ns-1", "ns-2"]]},
    ],
)
def test_later_orders_are_those_of_the_list(own: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match=r"later_orders\.0.*the entries of `name_servers` in another order"):
        parse({**SCENARIO, "nodes": {"consumer-0": own}}, file="x.yaml")

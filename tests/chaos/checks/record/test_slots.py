"""Slots are what is counted one operation at a time."""

import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from nemesrv.chaos.checks.plain.slots import SLOTS
from nemesrv.chaos.checks.plain.verdicts import in_memory
from nemesrv.chaos.checks.record.slots import OPERATIONS, TRY, Slot, Tally, bucket_ms, counted_nodes, edges
from nemesrv.chaos.history.rows import to_table
from nemesrv.chaos.oracle.slaves import CODES as STORED_ALONE
from nemesrv.chaos.oracle.slaves import unreplicated
from nemesrv.chaos.oracle.world import World
from tests import generate
from tests.chaos.builder import HistoryBuilder, cluster


def at_random(seed: int) -> HistoryBuilder:
    """Operations of all kinds and ends, with and without a duration, some of nobody's, around a fault."""
    settings = {name: {"brokerRole": "SYNC_MASTER"} for name in ("broker-a", "broker-b")}
    brokers = ("broker-a", "broker-a/1", "broker-b")
    clients = ("producer-0", "consumer-0")
    rng, builder = random.Random(seed), cluster(brokers=brokers, clients=clients, settings=settings)
    kill = ("f1", "kill", "sigkill", "broker-a")
    builder.at(100).fault(*kill, until_s=200).restarted("broker-a")
    for _ in range(300):
        node = rng.choice(("producer-0", "consumer-0", "prober"))
        fields = {"type": rng.choice(("invoke", "ok", "ok", "fail", "info")), "code": rng.choice((None, 0, 11, 17))}
        fields["broker_name"] = rng.choice((None, "broker-a", "broker-b"))
        fields["duration_ms"] = rng.choice((None, 0.0, 10.0, 3_000.0, 120_000.0))
        builder.at(rng.choice((100.0, 200.0, rng.uniform(1, 420)))).event(
            node, rng.choice(("send", "pull", "name_server_call", "send_attempt")), **fields
        )
    return builder.end(400)


@pytest.mark.parametrize("seed", range(3))
def test_slots_are_what_one_operation_at_a_time_comes_to(seed: int) -> None:
    builder = at_random(seed)
    history, world = in_memory(to_table(builder.rows))
    assert history.counted(SLOTS, world).of == one_at_a_time(builder.rows, world)


def test_slots_of_a_generated_run_are_what_one_operation_at_a_time_comes_to() -> None:
    rows = generate.rows_of(6_000, 5)
    history, world = in_memory(to_table(rows))
    found = history.counted(SLOTS, world).of
    assert found == one_at_a_time(rows, world)
    assert len(found) > 100


def one_at_a_time(rows: Sequence[Mapping[str, Any]], world: World) -> dict[Slot, Tally]:
    found: dict[Slot, Tally] = {}
    between = edges(world)
    for row in rows:
        operation, at_ms = row["event"], row["time_ms"]
        if operation not in (*OPERATIONS, TRY) or row.get("type") not in ("ok", "fail", "info"):
            continue
        if row["node"] not in counted_nodes(world) or at_ms > world.end_ms:
            continue
        began_ms = at_ms - (row.get("duration_ms") or 0.0)
        who = (row.get("broker_name") or "") if operation == TRY else row["node"]
        alone = [span for span in unreplicated(world).get(row.get("broker_name") or "", ()) if began_ms < span.end_ms]
        good = row["type"] == "ok"
        if operation in ("send", TRY):
            good |= row.get("code") in STORED_ALONE and any(at_ms > span.start_ms for span in alone)
        else:
            good |= row.get("code") is not None
        key = (
            who,
            operation,
            int(at_ms // bucket_ms(world)),
            bisect_right(between, began_ms),
            bisect_right(between, at_ms),
        )
        good_ms, bad_ms = (at_ms, None) if good else (None, at_ms)
        tally = Tally(int(good), int(not good), good_ms, at_ms, bad_ms, bad_ms, began_ms)
        found[Slot(*key)] = found[Slot(*key)].plus(tally) if key in found else tally
    return found

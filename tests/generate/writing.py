"""A made-up run as files, or as rows: `write` for histories of any size, `random_rows` for small ones."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from nemesrv.chaos.history.clustered import write_clustered
from nemesrv.chaos.history.schema import Row, parquet_path
from nemesrv.chaos.scenarios.model import ClusterModel, Scenario, TimersModel, WorkloadModel
from nemesrv.remoting.node.profile import Profile

from .columns import plain
from .held_pulls import rows_expected
from .plan import ROWS_A_MESSAGE, Plan, plan_of, random_plan
from .planted import Planted, defect_of
from .run import SLICE_ROWS, GeneratedRun

ORDERED_ROWS = 1_000_000
"""A history up to this size is one file in order of time, as a recorded run's; beyond, row groups are of one event."""


COUNTED_ROWS = 100_000
"""A history up to this size is first made to count its rows; in a larger one held pulls hardly count."""
COUNTS = 3


class Written(NamedTuple):
    """What was made: the folder, how many rows, and the plan behind them."""

    path: Path
    rows: int
    plan: Plan


def random_rows(seed: int, defect: str | None = None) -> list[Row]:
    """A small run's rows in order, some hundreds, `value` decoded and nulls left out: random nodes and faults.

    No check finds it INVALID; too small a run may be UNKNOWN to some. ValueError for a defect that does not exist.
    """
    planted, plan = defect_of(defect), random_plan(seed)
    return _rows(
        GeneratedRun(planted.plan(plan) if planted is not None and planted.plan is not None else plan, planted)
    )


def rows_of(events: int, seed: int, defect: str | None = None) -> list[Row]:
    """The rows that `write` would write, for tests of a few thousand."""
    planted = defect_of(defect)
    return _rows(GeneratedRun(_sized(events, seed, planted), planted))


def write(
    out: Path | str,
    *,
    events: int,
    seed: int,
    defect: str | None = None,
    profile: Profile = Profile.V4_9,
    slice_rows: int = SLICE_ROWS,
) -> Written:
    """A run folder with a history of about `events` rows and its scenario.yaml.

    The same arguments write the same rows. Replaces what a run folder there had; OSError when the disk refuses.
    """
    planted = defect_of(defect)
    plan = _sized(events, seed, planted, profile)
    folder = Path(out)
    history = parquet_path(folder).parent
    history.mkdir(parents=True, exist_ok=True)
    for old in history.glob("*.parquet"):
        old.unlink()
    run = GeneratedRun(plan, planted)
    if events <= ORDERED_ROWS:
        tables = [plain(table) for slice_ in run.slices(slice_rows) for table in slice_.tables()]
        table = pa.concat_tables(tables).sort_by([(name, "ascending") for name in ("time_ms", "node", "seq")])
        pq.write_table(table, parquet_path(folder), compression="zstd")
        count = len(table)
    else:
        slices = run.slices(slice_rows)
        count = write_clustered(((plain(table) for table in slice_.tables()) for slice_ in slices), history)
    _write_scenario(folder, plan)
    return Written(folder, count, plan)


def _sized(events: int, seed: int, planted: Planted | None, profile: Profile = Profile.V4_9) -> Plan:
    plan = plan_of(events, seed, profile)
    if planted is not None and planted.plan is not None:
        plan = planted.plan(plan)
    left, in_vain = events - GeneratedRun(plan).fixed_rows, rows_expected(plan)
    messages = left / ROWS_A_MESSAGE
    if 2 * messages < in_vain:  # so few that pulls are held; each message takes the place of one
        messages = (left - in_vain) / (ROWS_A_MESSAGE - 2)
    plan = plan.with_messages(int(messages))
    for _ in range(COUNTS if events <= COUNTED_ROWS else 0):  # a queue is also quiet when its broker is just back
        more = sum(slice_.count for slice_ in GeneratedRun(plan).slices()) - events
        plan = plan.with_messages(plan.messages - more // ROWS_A_MESSAGE)
    return plan


def _rows(run: GeneratedRun) -> list[Row]:
    found: list[Row] = []
    for slice_ in run.slices():
        found += [{name: value for name, value in row.items() if value is not None} for row in slice_.control]
        for table in slice_.traffic.values():
            for row in plain(table).to_pylist():
                if row["value"] is not None:
                    row["value"] = orjson.loads(row["value"])
                found.append({name: value for name, value in row.items() if value is not None})
    found = orjson.loads(orjson.dumps(found))
    return sorted(found, key=lambda row: (row["time_ms"], row["node"], row["incarnation"], row["seq"]))


def _write_scenario(folder: Path, plan: Plan) -> None:
    from nemesrv.chaos.checks import CHECKS

    scenario = Scenario(
        name="generated",
        description="A made-up history: python -m tests.generate.",
        cluster=ClusterModel(name_servers=plan.name_servers, brokers=plan.brokers, profile=plan.profile.value),
        timers=TimersModel(time_scale=1),
        workload=WorkloadModel(
            queues=plan.queues, producers=plan.producers, consumers=plan.consumers, client_starts=plan.starts
        ),
        timeline=plan.timeline,
        checks=tuple(CHECKS),
        seed=plan.seed,
    )
    (folder / "scenario.yaml").write_text(scenario.to_yaml(), encoding="utf-8")

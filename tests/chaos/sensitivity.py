"""How small a deviation of each timer `timers_kept` finds: `python -m tests.chaos.sensitivity`.

For each timer, longer and shorter: deviations of growing size are planted in one node of a small quiet run on the
virtual clock, until the check says INVALID and names that node and timer. The table goes into docs/oracle.md, between
the marks; `--check` says with its exit status whether the one there is this one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nemesrv.chaos.checkers import timers_kept
from nemesrv.chaos.checkers.control import Control
from nemesrv.chaos.defects import Defect
from nemesrv.chaos.defects import timers as planted
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.schedules import HEARTBEAT, PERSIST, POLL, REBALANCE, REGISTER, SCAN
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.model import parse
from nemesrv.chaos.topology import NodeKind
from nemesrv.chaos.verdict import Finding

DOCUMENT = Path(__file__).parents[2] / "docs" / "oracle.md"
BEGIN, END = "<!-- sensitivity -->", "<!-- /sensitivity -->"
DEVIATIONS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
RUN_S = 120
_LOST = [{"at_s": 40, "do": "black_hole", "links": ["clients <-> chosen"]}, {"at_s": RUN_S, "do": "heal"}]


class Timer(NamedTuple):
    """One timer: its setting, whose it is, and how a node gets another."""

    name: str
    node: str
    kind: NodeKind
    task: str
    period_ms: int
    plant: Callable[[float], Callable[[Any], None]]
    both: bool = True
    """Whether one that is too short is planted, too."""


def _setting(name: str) -> Callable[[float], Callable[[Any], None]]:
    return lambda factor: planted.client_setting(name, factor)


TIMERS = (
    Timer("S: scan", "ns-0", NodeKind.NAME_SERVER, SCAN, 10_000, planted.scans_every),
    Timer("R: registration", "broker-a", NodeKind.BROKER, REGISTER, 30_000, planted.registers_every),
    Timer("P: route poll", "consumer-0", NodeKind.CONSUMER, POLL, 30_000, _setting("poll_name_server_interval_ms")),
    Timer("H: heartbeat", "consumer-0", NodeKind.CONSUMER, HEARTBEAT, 30_000, _setting("heartbeat_broker_interval_ms")),
    Timer(
        "persistConsumerOffsetInterval: commit",
        "consumer-0",
        NodeKind.CONSUMER,
        PERSIST,
        5_000,
        _setting("persist_consumer_offset_interval_ms"),
    ),
    Timer("Qr: rebalance", "consumer-0", NodeKind.CONSUMER, REBALANCE, 20_000, planted.rebalances_every),
    Timer("A: look-up", "consumer-0", NodeKind.CONSUMER, "look-up", 3_000, planted.waits_for_answers, both=False),
)


def found(timer: Timer, factor: float) -> Finding | None:
    """What the check finds of this timer in that node, which is so many times as long; None: nothing."""
    document = {
        "name": "sensitivity",
        "cluster": {"name_servers": 2, "brokers": 1},
        "workload": {"producers": 1, "consumers": 1, "sends_per_s": 0.2, "client_starts": 0, "queues": 1},
        "timeline": _LOST if timer.task == "look-up" else [],
        "steady_s": RUN_S,
        "settle_s": 0,
        "checks": ["timers_kept"],
    }
    # `source`: a defect of somebody's own is planted by what it is, one of the self-test's by its name.
    defect = Defect(
        name="sensitivity",
        what="",
        kinds=(timer.kind,),
        nodes=(timer.node,),
        plant=timer.plant(factor),
        source=Path(__file__),
    )
    with tempfile.TemporaryDirectory() as folder:
        rows = read_rows(record_virtual(parse(document, file="sensitivity"), 1, Path(folder) / "run", defect).path)
    verdict = timers_kept.judge(Control.of_rows(rows), World.of_rows(rows))
    wrong = (f for f in verdict.findings if f.wrong and (f.subject, f.object) == (timer.node, timer.task))
    return next(wrong, None)


def smallest(timer: Timer, sign: int) -> str:
    """The smallest deviation that is found and the largest that is not, as a cell of the table."""
    missed = 0.0
    for deviation in DEVIATIONS:
        if deviation >= 1 and sign < 0:
            break
        finding = found(timer, 1 + sign * deviation)
        if finding is not None:
            smaller = f"not {missed:.1%}" if missed else "the smallest tried"
            return f"{deviation:.1%} ({deviation * timer.period_ms:,.0f} ms), {smaller}"
        missed = deviation
    return f"none up to {missed:.0%}"


def table() -> str:
    """The table in Markdown."""
    lines = ["| timer | set to | found from, longer | found from, shorter |", "|---|---|---|---|"]
    for timer in TIMERS:
        shorter = smallest(timer, -1) if timer.both else "– (a close ends a look-up, too)"
        lines.append(f"| {timer.name} | {timer.period_ms:,} ms | {smallest(timer, 1)} | {shorter} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """0, or 1 when `--check` finds another table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    asked = parser.parse_args(arguments)
    text = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    made = f"{before}{BEGIN}\n{table()}\n{END}{after}"
    if asked.check:
        return int(made != text)
    DOCUMENT.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

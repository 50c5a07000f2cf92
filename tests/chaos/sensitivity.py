"""How small a deviation of each timer is found: `python -m tests.chaos.sensitivity`.

For each timer (deviations.yaml), longer and shorter: deviations of growing size are planted in one node of a small
run on the virtual clock, until a check says INVALID: `timers_kept` of that very timer and node, any check of what has
no timer of its own. The table goes into docs/oracle.md, between the marks; `--only` prints single rows and writes
nothing.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.checks.record.control import Control
from nemesrv.chaos.checks.service import timers_kept
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.verdict import Finding, Validity
from tests.chaos.deviations import TIMERS, Timer

DOCUMENT = Path(__file__).parents[2] / "docs" / "oracle.md"
BEGIN, END = "<!-- sensitivity -->", "<!-- /sensitivity -->"
DEVIATIONS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def found(timer: Timer, factor: float) -> list[tuple[str, Finding]]:
    """What the checks find, by name, in a run whose one node has this timer so many times as long."""
    phases = timer.longer if factor > 1 else timer.shorter
    with tempfile.TemporaryDirectory() as folder:
        run = record_virtual(timer.parsed(phases), 1, Path(folder) / "run", timer.defect(factor))
        return list(_found(timer, run.path))


def _found(timer: Timer, folder: Path) -> Iterator[tuple[str, Finding]]:
    if timer.task:
        rows = read_rows(folder)
        judged = [timers_kept.judge(Control.of_rows(rows), World.of_rows(rows))]
    else:
        judged = verdicts(folder)
    for verdict in judged:
        for finding in verdict.findings if verdict.verdict is Validity.INVALID else ():
            is_it = (finding.subject, finding.object) == (timer.node, timer.task)
            if finding.wrong and (is_it if timer.task else True):
                yield verdict.name, finding


def smallest(timer: Timer, sign: int) -> str:
    """The smallest deviation that is found, as a cell of the table."""
    tried = [deviation for deviation in DEVIATIONS if sign > 0 or deviation < 1]
    least, most, by = 0, len(tried), list[str]()
    while least < most:  # what finds one finds a larger one
        middle = (least + most) // 2
        checks = sorted({name for name, _ in found(timer, 1 + sign * tried[middle])})
        least, most, by = (least, middle, checks) if checks else (middle + 1, most, by)
    if least == len(tried):
        return f"none up to {tried[-1]:.0%}"
    named = "" if by == ["timers_kept"] else " by " + ", ".join(f"`{name}`" for name in by)
    return f"{tried[least]:.1%} ({tried[least] * timer.period_ms:,.0f} ms){named}"


def row(timer: Timer) -> str:
    """The timer's row in Markdown."""
    shorter = f"– ({timer.only_longer})" if timer.only_longer else smallest(timer, -1)
    return f"| {timer.name} | {timer.period_ms:,} ms | {smallest(timer, 1)} | {shorter} |"


def table(timers: Sequence[Timer] = TIMERS) -> str:
    """The table in Markdown."""
    head = ["| timer | set to | found from, longer | found from, shorter |", "|---|---|---|---|"]
    return "\n".join([*head, *map(row, timers)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="TEXT", help="print the rows whose name has this, and write nothing")
    asked = parser.parse_args()
    if asked.only:
        for timer in TIMERS:
            if asked.only in timer.name:
                print(row(timer), flush=True)
        return
    text = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{table()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()

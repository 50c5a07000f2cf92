"""`python -m tests.mutation`: mutate the route table and the selection code, and count what the unit tests kill.

Exit status 0 when at least 95 % of the mutants that change anything were killed and no entry of equivalent.yaml is
stale, 1 when not, 4 when mutmut itself failed.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from . import tree
from .report import KILLED_MIN, Mutant, Sums, function_of, read_equivalents, stale, sums, unexplained

_ALIVE = ("survived", "no tests", "suspicious")
_DEAD = ("killed", "timeout", "segfault", "caught by type check")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--keep", type=Path, help="work in this new folder, and leave it there")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="nemesrv-mutation-") as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        tree.make(folder)
        began_s = time.monotonic()
        log = folder / "mutmut.log"
        with log.open("w") as out:
            done = subprocess.run(
                [*_mutmut(), "run", "--max-children", str(arguments.processes)],
                cwd=folder,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        if done.returncode:
            sys.stderr.write(log.read_text(errors="replace")[-4000:])
            return 4
        killed, survivors = _read(folder)
        return _report(killed, survivors, time.monotonic() - began_s)


def _mutmut() -> list[str]:
    return [str(Path(sys.executable).with_name("mutmut"))]


def _read(folder: Path) -> tuple[Counter[str], list[Mutant]]:
    """How many mutants of each module were killed, and those that were not."""
    listed = subprocess.run(
        [*_mutmut(), "results", "--all", "true"], cwd=folder, capture_output=True, text=True, check=True
    )
    killed: Counter[str] = Counter()
    survivors: list[Mutant] = []
    for line in listed.stdout.splitlines():
        name, separator, fate = line.strip().rpartition(": ")
        if not separator:
            continue
        if fate in _DEAD:
            killed[function_of(name).partition(":")[0]] += 1
        elif fate in _ALIVE:
            shown = subprocess.run([*_mutmut(), "show", name], cwd=folder, capture_output=True, text=True, check=True)
            survivors.append(Mutant.of_diff(name, shown.stdout))
        else:
            raise ValueError(f"mutmut says {fate!r} of {name}; known are {', '.join((*_DEAD, *_ALIVE))}")
    return killed, survivors


def _report(killed: Counter[str], survivors: list[Mutant], took_s: float) -> int:
    equivalents = read_equivalents()
    table = sums(killed, survivors, equivalents)
    for mutant in unexplained(survivors, equivalents):
        print(f"survived: {mutant.function}")
        print("".join(f"    - {line}\n" for line in mutant.taken) + "".join(f"    + {line}\n" for line in mutant.put))
    outdated = stale(survivors, equivalents)
    for entry in outdated:
        print(f"stale in equivalent.yaml: {entry.mutant.function}: {' '.join(entry.mutant.put) or '(nothing put)'}")
    Console(width=110).print(_shown(table, took_s))
    return 0 if table["all"].score >= KILLED_MIN and not outdated else 1


def _shown(table: dict[str, Sums], took_s: float) -> Table:
    shown = Table(title=f"mutants, {took_s / 60:.1f} min", title_justify="left")
    for column in ("file", "mutants", "killed", "equivalent", "survived", "killed of the rest"):
        shown.add_column(column, justify="left" if column == "file" else "right")
    for module, row in table.items():
        counts = (row.mutants, row.killed, row.equivalent, row.survived)
        shown.add_row(module, *map(str, counts), f"{row.score:.1%}", end_section=module == list(table)[-2])
    return shown


if __name__ == "__main__":
    sys.exit(main())

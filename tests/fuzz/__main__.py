"""`python -m tests.fuzz`: many inputs over every target, in several processes, with a table of what they cost."""

import argparse
import multiprocessing
import platform
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed

from .engine import BATCH, INPUT_S, RSS_BYTES, Figures, task
from .targets import TARGETS

TASK = 20 * BATCH


def main() -> int:
    """0: nothing found. 1: at least one finding, printed with its input."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--inputs", type=int, default=10_000_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--target", action="append", help="only this one; may be repeated")
    arguments = options.parse_args()
    chosen = [target for target in TARGETS if not arguments.target or target.name in arguments.target]
    weights = sum(target.weight for target in chosen)
    tasks: list[tuple[str, int, int, int]] = []
    for target in chosen:
        inputs = -(-arguments.inputs * target.weight // weights)
        for start in range(0, inputs, TASK):
            tasks.append((target.name, min(TASK, inputs - start), arguments.seed, start // BATCH))
    began = time.perf_counter()
    sums: dict[str, Figures] = defaultdict(Figures)
    findings: dict[str, str] = {}
    with ProcessPoolExecutor(arguments.processes, multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(task, *each): each for each in tasks}
        for future in as_completed(running):
            name, result = running[future][0], future.result()
            if isinstance(result, str):
                findings.setdefault(name, result)
            else:
                _add(sums[name], result)
    seconds = time.perf_counter() - began
    print(f"{'target':28}{'inputs':>12}{'us each':>9}{'peak RSS MiB':>14}{'batch KiB':>11}")
    for name, figures in sums.items():
        each = figures.seconds / figures.inputs * 1e6
        print(f"{name:28}{figures.inputs:12,}{each:9.0f}{figures.peak_rss >> 20:14}{figures.peak_input >> 10:11}")
    total, peak = sum(f.inputs for f in sums.values()), max((f.peak_rss for f in sums.values()), default=0)
    print(
        f"{total:,} inputs, seed {arguments.seed}, {seconds:.0f} s in {arguments.processes} processes, peak RSS"
        f" {peak >> 20} MiB of {RSS_BYTES >> 20} allowed, each within {INPUT_S:g} s, Python {platform.python_version()}"
    )
    for finding in findings.values():
        print(f"FINDING {finding}", file=sys.stderr)
    print(f"{len(findings)} findings")
    return 1 if findings else 0


def _add(total: Figures, more: Figures) -> None:
    total.inputs += more.inputs
    total.seconds += more.seconds
    total.peak_rss = max(total.peak_rss, more.peak_rss)
    total.peak_input = max(total.peak_input, more.peak_input)


if __name__ == "__main__":
    sys.exit(main())

"""python -m tests.hosts [SCENARIO...]: scenarios on three hosts of this machine, and a table.

    scenario          seed    up s  seconds  beside one host  verdict
    broker-partition     1     6.1     52.1           × 1.04  VALID

`up s`: from the command to the moment when all nodes work. Every shipped scenario where none is named, with every one
of `--seeds 1..3`; `--mix`: each seed with one of them in turn. `--compare` runs each on one host, too, in the same
minute. `--selftest`: the self-test in place of scenarios. Exit status 0 where every verdict is VALID and every defect
is killed. Needs root and iproute2.
"""

import json
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import click

from nemesrv.chaos.commands.options import SEEDS
from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.proof.selftest import plan_of
from nemesrv.chaos.scenarios.loading import shipped
from tests.hosts.bench import Bench, missing

LIMIT_S = 1200
SELFTEST_LIMIT_S = 4 * 3600
WORKS = "steady"
"""What a run says when all its nodes work."""


class Ran(NamedTuple):
    verdict: str
    up_s: float
    """From the command to the moment when all nodes worked."""
    took_s: float


def run(bench: Bench, scenario: str, seed: int, out: Path, *, near: bool = False) -> Ran:
    """One run, on the hosts or, `near`, on one alone."""
    began_s = time.monotonic()
    where = [] if near else ["--ray", bench.head]
    up_s, said = float("nan"), []
    with (
        bench.started("run", scenario, *where, "--seed", str(seed), "--out", str(out), "--json") as running,
        ThreadPoolExecutor(1) as reader,
    ):
        assert running.stderr is not None
        assert running.stdout is not None
        shown = reader.submit(running.stdout.read)
        for line in running.stderr:
            said.append(line.strip())
            if WORKS in line and up_s != up_s:
                up_s = time.monotonic() - began_s
        status = running.wait(LIMIT_S)
    took_s = time.monotonic() - began_s
    if status not in (0, 1, 3):
        return Ran(f"status {status}: {said[-1:]}", up_s, took_s)
    judged = json.loads(shown.result().splitlines()[-1])
    wrong = [f"{c['name']} {c['verdict']}" for c in judged["checks"] if c["verdict"] != "VALID"]
    return Ran(judged["verdict"] + (f" ({', '.join(wrong)})" if wrong else ""), up_s, took_s)


def plan(scenarios: Sequence[str], seeds: Sequence[int], *, mix: bool) -> Iterator[tuple[str, int]]:
    if mix:
        return zip(cycle(scenarios), seeds, strict=False)
    return ((scenario, seed) for scenario in scenarios for seed in seeds)


def run_all(bench: Bench, runs: Sequence[tuple[str, int]], out: Path, *, compare: bool) -> bool:
    """Whether all were VALID; prints a line each."""
    print(f"{'scenario':<24} {'seed':>5}  {'up s':>6}  {'seconds':>8}  {'beside one host':>15}  verdict", flush=True)

    def one(asked: tuple[str, int]) -> bool:
        name, seed = asked
        folder = out / f"{time.strftime('%m%d-%H%M%S')}-{Path(name).stem}-{seed}"
        ran, beside = run(bench, name, seed, folder), ""
        if compare:
            beside = f"× {ran.took_s / run(bench, name, seed, Path(f'{folder}-near'), near=True).took_s:.2f}"
        line = f"{Path(name).stem:<24} {seed:>5}  {ran.up_s:6.1f}  {ran.took_s:8.1f}  {beside:>15}  {ran.verdict}"
        print(line, flush=True)
        return ran.verdict == "VALID"

    return all([one(asked) for asked in runs])


def selftest(bench: Bench, out: Path) -> bool:
    """Whether every defect was killed and every twin clean; prints a line each."""
    scenarios: dict[str, list[str]] = {}
    for defect, scenario in plan_of(tuple(DEFECTS)):
        scenarios.setdefault(scenario, []).extend([] if defect is None else [defect.name])

    def one(defects: list[str]) -> bool:
        only = [word for name in defects for word in ("--only", name)]
        done = bench.nemesrv(
            "selftest", "--ray", bench.head, "-q", "--json", *only, limit_s=SELFTEST_LIMIT_S, folder=out
        )
        if done.returncode not in (0, 1):
            print(f"status {done.returncode}: {done.stderr.strip().splitlines()[-1:]}", flush=True)
            return False
        for outcome in json.loads(done.stdout.splitlines()[-1]):
            found = f"INVALID: {', '.join(outcome['found']) or '-'}; UNKNOWN: {', '.join(outcome['unknown']) or '-'}"
            planted = outcome["defect"] or "none (clean twin)"
            where = "" if outcome["passed"] else f"  {outcome['run_dir']}"
            print(f"{outcome['scenario']:<24} {planted:<44} {outcome['result']:<8} {found}{where}", flush=True)
        return done.returncode == 0

    return all([one(defects) for defects in scenarios.values()])


@click.command()
@click.argument("scenarios", nargs=-1)
@click.option("--seeds", type=SEEDS, default="1")
@click.option("--mix", is_flag=True)
@click.option("--compare", is_flag=True)
@click.option("--selftest", "defects", is_flag=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/hosts"))
def main(
    scenarios: tuple[str, ...], seeds: tuple[int, ...], mix: bool, compare: bool, defects: bool, out: Path
) -> None:
    if reason := missing():
        sys.exit(f"no hosts can be had here: {reason}")
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with Bench() as bench:

        def ended(*_of: object) -> None:
            """Nothing is left then, either; and whoever waits for a run has its end."""
            bench.__exit__()
            sys.exit(143)

        signal.signal(signal.SIGTERM, ended)
        if defects:
            passed = selftest(bench, out)
        else:
            runs = [*plan(scenarios or tuple(shipped()), seeds, mix=mix)]
            passed = run_all(bench, runs, out, compare=compare)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()

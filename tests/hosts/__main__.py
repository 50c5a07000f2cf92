"""python -m tests.hosts [SCENARIO...]: scenarios on three hosts of this machine, and a table.

    scenario          seed   seconds  beside one host  verdict
    broker-partition     1      52.1           × 1.04  VALID

Every shipped scenario where none is named, with every one of `--seeds 1..3`. `--compare` runs each on one host, too, in
the same minute; `--selftest` the self-test's real-clock part afterwards. Exit status 0 where every verdict is VALID.
Needs root and iproute2.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import click

from nemesrv.chaos.commands.values import Seeds
from nemesrv.chaos.scenarios.model import shipped
from tests.hosts.bench import Bench, missing


def run(bench: Bench, scenario: str, seed: int, out: Path, *, near: bool = False) -> tuple[str, float]:
    """The verdict of one run, and how long it took."""
    began_s = time.monotonic()
    where = [] if near else ["--ray", bench.head]
    asked = ["run", scenario, *where, "--seed", str(seed), "--out", str(out), "--json", "-q"]
    done = bench.nemesrv(*asked, limit_s=1200)
    took_s = time.monotonic() - began_s
    if done.returncode in (0, 1, 3):
        judged = json.loads(done.stdout.splitlines()[-1])
        wrong = [name for name, check in _checks(judged).items() if check["verdict"] != "VALID"]
        return judged["verdict"] + (f" ({', '.join(wrong)})" if wrong else ""), took_s
    return f"status {done.returncode}: {done.stderr.strip().splitlines()[-1:]}", took_s


def _checks(judged: dict[str, object]) -> dict[str, dict[str, str]]:
    checks = judged.get("checks") or judged.get("verdicts") or {}
    return {each["name"]: each for each in checks} if isinstance(checks, list) else {}


@click.command()
@click.argument("scenarios", nargs=-1)
@click.option("--seeds", type=Seeds(), default="1")
@click.option("--compare", is_flag=True)
@click.option("--selftest", is_flag=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/hosts"))
def main(scenarios: tuple[str, ...], seeds: tuple[int, ...], compare: bool, selftest: bool, out: Path) -> None:
    if reason := missing():
        sys.exit(f"no hosts can be had here: {reason}")
    valid = True
    with Bench() as bench:
        print(f"{'scenario':<20} {'seed':>5}  {'seconds':>8}  {'beside one host':>15}  verdict", flush=True)
        for name in scenarios or tuple(shipped()):
            for seed in seeds:
                folder = out.resolve() / f"{time.strftime('%m%d-%H%M%S')}-{Path(name).stem}-{seed}"
                verdict, took_s = run(bench, name, seed, folder)
                beside = ""
                if compare:
                    beside = f"× {took_s / run(bench, name, seed, Path(f'{folder}-near'), near=True)[1]:.2f}"
                valid &= verdict == "VALID"
                print(f"{Path(name).stem:<20} {seed:>5}  {took_s:8.1f}  {beside:>15}  {verdict}", flush=True)
        if selftest:
            done = bench.nemesrv("selftest", "--ray", bench.head, limit_s=3 * 3600)
            print(done.stdout)
            valid &= done.returncode == 0
    sys.exit(0 if valid else 1)


if __name__ == "__main__":
    main()

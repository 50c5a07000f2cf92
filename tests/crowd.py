"""python -m tests.crowd [--clients 500] OUT: hundreds of clients at RocketMQ's timers; a broker dies and links fail.

    20 s   SIGKILL of broker-c; started again 50 s later
    100 s  broker-a cut from ns-1, and producer-8 from everybody; a producer and a consumer killed; healed, and started
           again, 40 s later

3 NameServers, 8 brokers, clients in processes of 125 (`tests.bench clients`), judged by every check but done_by_hand;
prints what the run and its judging took, apart. Exit status as `nemesrv run`.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import click
import yaml

from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import CHECK_NAMES, Scenario
from tests.bench.clients import crowd

TIMELINE = [
    {"at_s": 20, "do": "kill", "nodes": ["broker-c"]},
    {"at_s": 70, "do": "restart", "nodes": ["broker-c"]},
    {"at_s": 100, "do": "cut", "links": ["broker-a <-> ns-1", "producer-8 <-> *"]},
    {"at_s": 105, "do": "kill", "nodes": ["producer-7", "consumer-9"]},
    {"at_s": 140, "do": "restart", "nodes": ["producer-7", "consumer-9"]},
    {"at_s": 142, "do": "heal"},
]
SETTLE_S = 120  # queue_ownership judges nothing for 117 s after a broker is back


def scenario(clients: int) -> Scenario:
    calm = crowd(clients).model_dump(mode="json")
    checks = [name for name in CHECK_NAMES if name != "done_by_hand"]  # nobody acts by hand
    faults = {"timeline": TIMELINE, "settle_s": SETTLE_S, "checks": checks}
    about = f"{clients} clients at RocketMQ's own timers; a broker crashes, links are cut."
    return parse({**calm, **faults, "name": "crowd", "description": about}, file="crowd.yaml")


def timed(*arguments: str) -> tuple[int, str, float, float]:
    """Exit status, stdout, and the seconds and CPU seconds that the command and all it started took."""
    before, began_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([sys.executable, "-m", "nemesrv.chaos", *arguments], stdout=subprocess.PIPE, text=True)
    after, took_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began_s
    return done.returncode, done.stdout, took_s, sum(after[:2]) - sum(before[:2])


def show(judged: str) -> None:
    for check in json.loads(judged.splitlines()[-1])["checks"]:
        print(f"{check['name']:<24} {check['verdict']:<8} {check['examined']:>8}  {check['why']}")


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--clients", type=click.IntRange(20, 2000), default=500)
def main(out: Path, clients: int) -> None:
    out.mkdir(parents=True)
    asked = out / "crowd.yaml"
    asked.write_text(yaml.safe_dump(scenario(clients).model_dump(mode="json"), sort_keys=False), encoding="utf-8")
    status, judged, took_s, cpu_s = timed("run", str(asked), "--seed", "1", "--out", str(out / "run"), "--json")
    if status not in (0, 1, 3):
        sys.exit(status)
    show(judged)
    print(f"run and verdict: {took_s:.0f} s, {cpu_s:.0f} s of CPU of what has ended as our child; status {status}")
    again, _, took_s, cpu_s = timed("check", str(out / "run"), "--json")
    print(f"judged again: {took_s:.1f} s, {cpu_s:.1f} s of CPU; status {again}")
    sys.exit(status)


if __name__ == "__main__":
    main()

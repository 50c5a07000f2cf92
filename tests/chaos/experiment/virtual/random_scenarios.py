"""Random scenarios with nothing planted: `python -m tests.chaos.experiment.virtual.random_scenarios --scenarios 400`.

Each seed makes another cluster, workload and up to three faults, of any kind, on any links or nodes, one behind the
other or so close that the first is not over for the routes; the run is on the virtual clock, where no machine is late.
All checks judge it. The nodes are right, so INVALID is a false alarm, or a mistake in our nodes: either is ours.
UNKNOWN is not looked at, for random faults exercise little. What is INVALID keeps its run folder below `--out`.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.model import CHECK_NAMES, Scenario, parse
from nemesrv.chaos.spark.judge import check_run
from nemesrv.chaos.verdict import Validity, Verdict

LINK_FAULTS = ("black_hole", "black_hole", "cut", "latency", "reset", "packet_loss", "bandwidth")


def random_scenario(seed: int) -> Scenario:
    """The scenario of this seed: some minutes of RocketMQ time."""
    rng = random.Random(f"{seed} scenario")
    cluster = {
        "name_servers": rng.randint(1, 4),
        "brokers": rng.randint(1, 4),
        "profile": rng.choice(("4.9", "5.x")),
    }
    workload = {
        "producers": rng.randint(1, 3),
        "consumers": rng.randint(1, 4),
        "queues": rng.choice((1, 2, 4, 8)),
        "sends_per_s": rng.choice((1, 4, 10)),
        "latency_fault": rng.random() < 0.3,
        "broadcasting": rng.random() < 0.15,
        "ordered": rng.random() < 0.2,
    }
    name_servers = [f"ns-{number}" for number in range(cluster["name_servers"])]
    brokers = [f"broker-{chr(ord('a') + number)}" for number in range(cluster["brokers"])]
    clients = [f"{kind}-{number}" for kind in ("producer", "consumer") for number in range(workload[f"{kind}s"])]

    def link() -> str:
        ends = (
            (rng.choice(brokers), rng.choice(name_servers)),
            (rng.choice(brokers), "name_servers"),
            (rng.choice(clients), rng.choice(name_servers)),
            (rng.choice(clients), "name_servers"),
            (rng.choice(clients), rng.choice(brokers)),
            (rng.choice(("brokers", "producers", "consumers", "clients")), rng.choice(name_servers)),
            ("clients", "chosen"),
        )
        return " <-> ".join(rng.choice(ends))

    def on_links() -> dict[str, Any]:
        action: dict[str, Any] = {"do": rng.choice(LINK_FAULTS)}
        action["links"] = [link() for _ in range(rng.choice((1, 1, 2)))]
        if action["do"] in ("black_hole", "latency"):
            action["stream"] = rng.choice(("both", "both", "upstream", "downstream"))
        if action["do"] == "latency":
            action |= {"latency_ms": rng.choice((50, 500, 2000, 4000)), "jitter_ms": rng.choice((0, 50))}
        if action["do"] == "bandwidth":
            action["rate_kb_s"] = rng.choice((1, 10, 100))
        return action

    timeline: list[dict[str, Any]] = []
    at_s = rng.uniform(10, 60)
    for _ in range(rng.randint(1, 3)):
        lasts_s = rng.choice((rng.uniform(1, 20), rng.uniform(20, 120), rng.uniform(120, 260)))
        if rng.random() < 0.6:
            begin, end = on_links(), {"do": "heal"}
        else:
            do, nodes = rng.choice(("kill", "stop", "pause")), [rng.choice(name_servers + brokers)]
            begin = {"do": do, "nodes": nodes}
            end = {"do": "resume" if do == "pause" else "restart", "nodes": nodes}
        timeline += [{"at_s": round(at_s, 2), **begin}, {"at_s": round(at_s + lasts_s, 2), **end}]
        at_s += lasts_s + rng.choice((0.5, rng.uniform(1, 40), rng.uniform(40, 150)))
    document = {
        "name": f"random-{seed}",
        "cluster": cluster,
        "workload": workload,
        "timeline": timeline,
        "settle_s": rng.choice((70, 100, 170)),
        "checks": list(CHECK_NAMES),
    }
    return parse(document, file=f"random-{seed}.yaml")


def wrong(seed: int, out: Path, spark: Any) -> list[Verdict]:
    """The verdicts that are INVALID, or failed; the run folder is below `out` only where there are any."""
    folder = out / str(seed)
    shutil.rmtree(folder, ignore_errors=True)
    record_virtual(random_scenario(seed), seed, folder)
    verdicts = check_run(folder, CHECK_NAMES, spark)
    found = [v for v in verdicts if v.verdict is Validity.INVALID or v.check_failed]
    if not found:
        shutil.rmtree(folder)
    return found


def told(scenario: Scenario) -> str:
    """Its faults in a line."""
    streams = [getattr(step.what, "stream", "both") for step in scenario.timeline]
    return "; ".join(
        f"{step.at_s:g} {step.do} {' '.join((*step.links, *step.nodes))}{'' if stream == 'both' else stream}"
        for step, stream in zip(scenario.timeline, streams, strict=True)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when no check of any scenario said INVALID."""
    from nemesrv.chaos.spark.session import session, stop

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=400)
    parser.add_argument("--first", type=int, default=0, help="seed of the first scenario")
    parser.add_argument("--out", type=Path, default=Path("runs/random-scenarios"))
    asked = parser.parse_args(arguments)
    spark, began_s, alarms = session(), time.monotonic(), 0
    try:
        for seed in range(asked.first, asked.first + asked.scenarios):
            found = wrong(seed, asked.out, spark)
            alarms += bool(found)
            print(f"seed {seed}: {'INVALID' if found else 'nothing'}; {told(random_scenario(seed))}", flush=True)
            for verdict in found:
                print(f"    {verdict.name}: {verdict.why}; {verdict.examples[:1]}", flush=True)
    finally:
        stop(spark)
    print(f"{asked.scenarios} scenarios, {alarms} with a false alarm, in {time.monotonic() - began_s:.0f} s")
    return int(alarms > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Random scenarios with nothing planted: `python -m tests.chaos.experiment.virtual.random_scenarios --scenarios 400`.

Each seed makes another cluster, workload, timers and up to four faults, of any kind, on any links or nodes: one behind
the other, so close that the first is not over for the routes, or over one another; from the first moment on, at the
very end, of no length at all; restarts of what still runs, and clean stops of what has just started. The run is on the
virtual clock, where no machine is late and each node's timers have a phase of their own; or, with `--real`, in real
processes behind Toxiproxy, ten times as fast as RocketMQ's timers, where a fault takes its time and its row comes late.
What only the virtual clock can do is not run there.
All checks judge it, in plain Python. The nodes are right: INVALID is a false alarm, or a mistake in our nodes: either
is ours; but for what a NameServer of 4.9 itself does wrong (`takes_one_topic_for_all`).
UNKNOWN is not looked at, for random faults exercise little. What is INVALID keeps its run folder below `--out`.
"""

import argparse
import random
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.experiment.harness import Harness
from nemesrv.chaos.experiment.hosts_stage import real_stage
from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.runner import Options, as_run_with, record, record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import CHECK_NAMES, Scenario
from nemesrv.chaos.verdict import Validity, Verdict

LINK_FAULTS = ("black_hole", "black_hole", "cut", "latency", "reset", "packet_loss", "bandwidth")


def random_scenario(seed: int) -> Scenario:
    """The scenario of this seed: some minutes of RocketMQ time."""
    rng = random.Random(f"{seed} scenario")
    cluster = {"name_servers": rng.randint(1, 4), "brokers": rng.randint(1, 4), "profile": rng.choice(("4.9", "5.x"))}
    workload = {
        "producers": rng.randint(1, 3),
        "consumers": rng.randint(1, 4),
        "queues": rng.choice((1, 2, 4, 8)),
        "sends_per_s": rng.choice((1, 4, 10)),
        "latency_fault": rng.random() < 0.3,
        "broadcasting": rng.random() < 0.15,
        "ordered": rng.random() < 0.2,
        "ordered_keys": rng.choice((1, 2, 3, 7, 24)),
    }
    timers = {
        "register_name_server_period_s": rng.choice((None, None, 10, 45, 60)),
        "poll_name_server_interval_s": rng.choice((None, None, 5, 20, 60)),
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

    def on_nodes() -> tuple[dict[str, Any], dict[str, Any]]:
        do, nodes = rng.choice(("kill", "stop", "pause", "restart")), [rng.choice(name_servers + brokers)]
        end = {"do": "resume" if do == "pause" else "restart", "nodes": nodes}
        if do == "kill" and random.Random(f"{seed} port {nodes}").random() < 0.3:  # draws nothing of `rng`
            do = "port_taken"
        return {"do": do, "nodes": nodes}, end

    entries: list[tuple[float, dict[str, Any]]] = []
    over_one_another = rng.random() < 0.6
    at_s = rng.choice((0.0, rng.uniform(0, 9), rng.uniform(10, 60), rng.uniform(10, 60)))
    for _ in range(rng.randint(1, 4)):
        shortest_s = rng.choice((0.0, 0.05, 3.0))
        lasts_s = rng.choice((shortest_s, rng.uniform(1, 20), rng.uniform(20, 120), rng.uniform(120, 260)))
        begin, end = (on_links(), {"do": "heal"}) if rng.random() < 0.55 else on_nodes()
        entries.append((at_s, begin))
        if begin["do"] != "restart" and rng.random() < 0.9:  # else it lasts until the end
            entries.append((at_s + lasts_s, end))
        if over_one_another:
            near_s = rng.choice([when_s for when_s, _ in entries])
            at_s = max(0.0, rng.choice((near_s, near_s + rng.uniform(-0.1, 0.1), rng.uniform(0, 250))))
        else:
            at_s += lasts_s + rng.choice((0.0, 0.05, 0.5, rng.uniform(1, 40), rng.uniform(40, 150)))
    document = {
        "name": f"random-{seed}",
        "cluster": cluster,
        "workload": workload,
        "timers": timers,
        "timeline": possible(entries),
        "settle_s": rng.choice((70, 100, 170)),
        "checks": list(CHECK_NAMES),
    }
    return parse(document, file=f"random-{seed}.yaml")


def possible(entries: Sequence[tuple[float, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The timeline of these, in order of time, without what no node is in the state for."""
    under: dict[str, str] = {}
    timeline = []
    for at_s, entry in sorted(entries, key=lambda one: one[0]):
        for node in entry.get("nodes", ()):
            do, state = entry["do"], under.get(node)
            if do in ("kill", "port_taken", "stop", "pause") and state is not None:
                break
            if (do == "resume" and state != "pause") or (do == "restart" and state == "pause"):
                break
            under.pop(node, None)
            if do not in ("resume", "restart"):
                under[node] = do
        else:
            timeline.append({"at_s": round(at_s, 3), **entry})
    return timeline


def record_real(scenario: Scenario, seed: int, out: Path, harness: Harness) -> None:
    """Its phases are left out: real processes have theirs. HarnessError for what only the virtual clock can do, and
    where the machine is too busy to start the nodes."""
    of = scenario.model_copy(update={"phases": {}})
    as_run = as_run_with(of, Options(seed=seed, virtual=False, time_scale=10.0))
    record(as_run, RunFolder.create(as_run.name, out, latest=False), real_stage(harness), None, lambda _text: None)


def wrong(seed: int, out: Path, harness: Harness | None = None) -> list[Verdict]:
    """The verdicts that are INVALID, or failed; the run folder is below `out` only where there are any.

    With a harness the run is in real processes.
    """
    folder = out / str(seed)
    shutil.rmtree(folder, ignore_errors=True)
    if harness is None:
        record_virtual(random_scenario(seed), seed, folder)
    else:
        record_real(random_scenario(seed), seed, folder, harness)
    found = [v for v in verdicts(folder) if v.verdict is Validity.INVALID or v.check_failed]
    if not found:
        shutil.rmtree(folder)
    return found


def takes_one_topic_for_all(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a NameServer of 4.9 took a broker in with the one topic of an incremental registration.

    It then takes the full ones, whose dataVersion is the same, for no change, and answers 17 for every other topic:
    apache/rocketmq#4522, mended in 5.0. What is INVALID of it is no false alarm.
    """
    rows, owners, held = list(rows), dict[str, str](), set[tuple[str, str]]()
    for row in rows:
        if row["event"] == "link" and (row.get("target") or "").startswith("ns-"):
            owners[row["address"]] = row["target"]
    alone = [
        (row["time_ms"] - row["duration_ms"], row["time_ms"], row["node"], owners.get(row["name_server"]))
        for row in rows
        if row["event"] == "register" and row["type"] == "ok" and row["value"]["topics"] == 1
    ]
    for row in rows:
        pair = row["node"], row.get("broker_name") or ""
        if row["event"] == "broker_dropped":
            held.discard(pair)
        elif row["event"] == "started":
            held -= {one for one in held if one[0] == row["node"]}
        elif row["event"] == "registration" and pair not in held:
            held.add(pair)
            if any(begun <= row["time_ms"] <= over and (at, of) == pair for begun, over, of, at in alone):
                return True
    return False


def told(scenario: Scenario) -> str:
    """Its faults in a line."""
    streams = [getattr(step.what, "stream", "both") for step in scenario.timeline]
    on = [" ".join((*step.links, *step.nodes, step.what.about)) for step in scenario.timeline]
    return "; ".join(
        f"{step.at_s:g} {step.do} {targets}{'' if stream == 'both' else stream}"
        for step, stream, targets in zip(scenario.timeline, streams, on, strict=True)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when no check of any scenario said INVALID."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=400)
    parser.add_argument("--first", type=int, default=0, help="seed of the first scenario")
    parser.add_argument("--real", action="store_true", help="in real processes: a minute a scenario")
    parser.add_argument("--out", type=Path, default=Path("runs/random-scenarios"))
    asked = parser.parse_args(arguments)
    began_s, alarms, known, skipped = time.monotonic(), 0, 0, 0
    with ExitStack() as stack:
        harness = stack.enter_context(Harness()) if asked.real else None
        for seed in range(asked.first, asked.first + asked.scenarios):
            try:
                found = wrong(seed, asked.out, harness)
            except HarnessError as exc:
                skipped += 1
                print(f"seed {seed}: not run, {exc}", flush=True)
                continue
            rightly = bool(found) and takes_one_topic_for_all(read_rows(asked.out / str(seed)))
            known, alarms = known + rightly, alarms + bool(found and not rightly)
            said = "nothing" if not found else "rightly INVALID (apache/rocketmq#4522)" if rightly else "INVALID"
            print(f"seed {seed}: {said}; {told(random_scenario(seed))}", flush=True)
            for verdict in found:
                print(f"    {verdict.name}: {verdict.why}; {verdict.examples[:1]}", flush=True)
    print(
        f"{asked.scenarios - skipped} scenarios, {alarms} with a false alarm, {known} rightly INVALID,"
        f" in {time.monotonic() - began_s:.0f} s"
    )
    return int(alarms > 0)


if __name__ == "__main__":
    sys.exit(main())

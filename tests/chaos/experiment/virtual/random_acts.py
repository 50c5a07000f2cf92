"""The random scenarios with acts by hand among their faults, nothing planted; judged without Spark.

`python -m tests.chaos.experiment.virtual.random_acts --scenarios 40 --first 0 --out FOLDER`, of random_scenarios' seeds
or, with `--language`, of random_language's. INVALID is a false alarm, or a mistake in our nodes: either is ours.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nemesrv.chaos.checks.plain.verdicts import found_wrong
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.topology import NodeKind

from .random_scenarios import random_scenario as plain_scenario
from .random_scenarios import told

Entry = dict[str, Any]


def random_scenario(seed: int, plain: Callable[[int], Scenario] = plain_scenario) -> Scenario:
    """The scenario of this seed, with up to six acts by hand somewhere in its timeline."""
    rng, of = random.Random(f"{seed} by hand"), plain(seed)
    document = of.model_dump(mode="json")
    last_s = max((step.at_s for step in of.timeline), default=60.0)
    of_plain = document["timeline"]
    acts = [entry for _ in range(rng.randint(1, 4)) for entry in by_hand(of, rng, rng.uniform(0, last_s + 60))]
    while acts:  # a clock of who does not run then is refused, and left out
        document["timeline"] = sorted([*of_plain, *acts], key=lambda entry: float(entry["at_s"]))
        try:
            return parse(document, file=f"random-{seed}.yaml")
        except ScenarioError:
            left = [act for act in acts if not act["do"].startswith("clock")]
            acts = left if len(left) < len(acts) else []  # another act is refused: the scenario as it was
    return of


def by_hand(of: Scenario, rng: random.Random, at_s: float) -> list[Entry]:
    """One act, and sometimes the one that undoes it."""
    topology = of.topology()
    servers, brokers = topology.of(NodeKind.NAME_SERVER), topology.of(NodeKind.BROKER)
    some = rng.sample(servers, rng.randint(1, len(servers)))
    broker, later_s = rng.choice(brokers), at_s + rng.choice((0.05, rng.uniform(1, 60), rng.uniform(60, 200)))
    topic = rng.choice((of.workload.topic, "by-hand"))
    cluster = random.Random(f"{at_s} cluster").choice((None, None, "DefaultCluster", "eu"))  # draws nothing of `rng`

    def act(do: str, nodes: Sequence[str], when_s: float = at_s, **more: Any) -> Entry:
        return {"at_s": round(when_s, 3), "do": do, "nodes": list(nodes), **more}

    def register(name: str, address: str, **more: Any) -> list[Entry]:
        more = {"broker": name, "address": address, "broker_id": rng.choice((0, 0, 0, 1)), **more}
        every_s = rng.choice((None, None, 10, 30))
        done = act("register", some, every_s=every_s, **more)
        undone = act("unregister", rng.choice((some, servers)), later_s, **more)
        return [done, undone] if rng.random() < 0.6 else [done]

    def wipe() -> list[Entry]:
        found = [act("wipe_write_perm", some, broker=broker)]
        if rng.random() < 0.5:
            found.append(act("update_topic", [broker], at_s + rng.uniform(0, 40), topic="by-hand"))
        if rng.random() < 0.7:
            found.append(act("add_write_perm", some, later_s, broker=broker))
        return found

    def change() -> list[Entry]:
        queues = rng.choice((1, 4, 16))
        found = [act("update_topic", brokers, topic=topic, read_queues=queues, write_queues=rng.choice((queues, 1)))]
        if rng.random() < 0.5:
            at = rng.choice((brokers, servers, [*servers, *brokers]))
            found.append(act("delete_topic", at, later_s, topic="by-hand"))
        return found

    def clock() -> list[Entry]:
        kind = rng.choice(("clock_step", "clock_step", "clock_drift", "clock_freeze"))
        more: dict[str, Any] = {"clock_step": {"by_s": rng.choice((-300, 30, 60, 90, 130, 1000))}}.get(kind, {})
        more |= {"rate": rng.choice((0.5, 1.5, 3, 10))} if kind == "clock_drift" else {}
        return [act(kind, some[:1], **more), act("clock_sync", some[:1], later_s)]

    kinds: tuple[Callable[[], list[Entry]], ...] = (
        lambda: register("broker-x", "10.9.9.9:10911"),
        lambda: register("broker-x", broker),
        lambda: register(broker, rng.choice(("10.9.9.9:10911", *brokers))),
        lambda: [act("unregister", some, broker=broker)],
        wipe,
        change,
        lambda: [act("delete_topic", some, topic=topic, cluster_name=cluster)],
        lambda: [act("update_config", [broker], settings={"brokerPermission": rng.choice((2, 4, 6))})],
        lambda: [act("update_config", some, settings={"orderMessageEnable": True})],
        clock,
        clock,
    )
    return rng.choice(kinds)()


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when no check of any scenario said INVALID."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="seed of the first scenario")
    parser.add_argument("--language", action="store_true", help="of random_language's scenarios")
    parser.add_argument("--out", type=Path, default=Path("runs/random-acts"))
    asked = parser.parse_args(arguments)
    plain = plain_scenario
    if asked.language:
        from .random_language import random_scenario as plain
    alarms = 0
    for seed in range(asked.first, asked.first + asked.scenarios):
        folder = asked.out / str(seed)
        shutil.rmtree(folder, ignore_errors=True)
        scenario = random_scenario(seed, plain)
        found = found_wrong(record_virtual(scenario, seed, folder).path)
        alarms += bool(found)
        print(f"seed {seed}: {'INVALID' if found else 'nothing'}; {told(scenario)}", flush=True)
        for verdict in found.values():
            print(f"    {verdict.name}: {verdict.why}; {verdict.examples[:1]}", flush=True)
        if not found:
            shutil.rmtree(folder)
    print(f"{asked.scenarios} scenarios, {alarms} with a false alarm")
    return int(alarms > 0)


if __name__ == "__main__":
    sys.exit(main())

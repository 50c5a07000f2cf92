"""Random scenarios whose links and processes have more happen to them than the plain ones, nothing planted.

`python -m tests.chaos.experiment.virtual.random_actions --scenarios 40 --first 0 --out FOLDER`. Each seed takes the
cluster of the widened language's (random_language) and draws a timeline of its own: faults of links and of shapes, with
names, and heals of links and of faults, one over the other. Judged plainly, without Spark; INVALID is a false alarm, or
a mistake in our nodes: either is ours.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nemesrv.chaos.checks.plain.verdicts import found_wrong
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario

from . import random_language

TRIES = 200
"""A timeline that cannot be is drawn again, so often at the most."""


def random_scenario(seed: int) -> Scenario:
    """The scenario of this seed: some minutes of RocketMQ time."""
    rng = random.Random(f"{seed} actions")
    document = random_language.random_scenario(seed).model_dump(mode="json")
    document["nodes"] = {name: own for name, own in document["nodes"].items() if own["joins_at_s"] is None}
    document["settle_s"] = rng.choice((100, 170))
    for _ in range(TRIES):
        document["timeline"] = timeline(document, rng)
        try:
            return parse(document, file=f"actions-{seed}.yaml")
        except ScenarioError:
            continue
    raise AssertionError(f"seed {seed} draws no timeline that can be")


def timeline(document: dict[str, Any], rng: random.Random) -> list[dict[str, Any]]:
    nodes = _Nodes(document)
    entries: list[tuple[float, dict[str, Any]]] = []
    for number in range(rng.randint(1, 4)):
        at_s = rng.choice((rng.uniform(0, 9), rng.uniform(10, 60), rng.uniform(10, 250)))
        lasts_s = rng.choice((rng.uniform(0.05, 3), rng.uniform(3, 40), rng.uniform(40, 260)))
        begin, ends = nodes.action(rng, f"fault-{number}")
        entries.append((at_s, begin))
        for end in ends:
            entries.append((at_s + lasts_s, end))
            lasts_s += rng.choice((0.0, rng.uniform(1, 60)))
    entries.sort(key=lambda one: one[0])
    return [{"at_s": round(at_s, 3), **entry} for at_s, entry in entries]


class _Nodes:
    """Who there is, and what can be done to them."""

    def __init__(self, document: dict[str, Any]) -> None:
        cluster, workload = document["cluster"], document["workload"]
        self.name_servers = [f"ns-{number}" for number in range(cluster["name_servers"])]
        self.brokers = [f"broker-{chr(ord('a') + number)}" for number in range(cluster["brokers"])]
        self.clients = [f"{kind}-{n}" for kind in ("producer", "consumer") for n in range(workload[f"{kind}s"])]
        settings = document["config"].values()
        self.keeps_channels = any(own.get("clientCloseSocketIfTimeout") is False for own in settings)

    def action(self, rng: random.Random, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """What begins, and what ends it."""
        if rng.random() < 0.15:
            return self._series(rng), []
        return self._of_client(rng) if rng.random() < 0.4 else self._of_links(rng, name)

    def _series(self, rng: random.Random) -> dict[str, Any]:
        nodes = [rng.choice(("name_servers", "brokers", "consumers", *self.name_servers, *self.brokers))]
        turn = {"nodes": nodes, "by": rng.choice(("stop", "kill")), "down_s": rng.choice((0, 0, rng.uniform(0.1, 40)))}
        if rng.random() < 0.5:
            return {"do": "rolling_restart", **turn, "pause_s": rng.choice((0, 5, 45))}
        return {"do": "restart_storm", **turn, "restarts": rng.randint(1, 6), "for_s": rng.choice((5, 90))}

    def _of_client(self, rng: random.Random) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        do, nodes = rng.choice(("kill", "kill", "stop", "pause", "restart")), [rng.choice(self.clients)]
        ended_by = {"pause": ["resume"], "restart": []}.get(do, ["restart"])
        ends = [{"do": by, "nodes": nodes} for by in ended_by]
        return {"do": do, "nodes": nodes}, ends if rng.random() < 0.8 else []

    def _of_links(self, rng: random.Random, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        kinds = ["black_hole", "black_hole", "cut", "latency", "reset"] + ["packet_loss"] * (not self.keeps_channels)
        do, links = rng.choice(kinds), [self._link(rng) for _ in range(rng.choice((1, 2, 2)))]
        if rng.random() < 0.3:
            do = rng.choice(("half_open", "syn_drop"))
        begin: dict[str, Any] = {"do": do, "name": name, "links": links}
        if do == "latency":
            begin |= {"latency_ms": rng.choice((50, 500, 2000)), "jitter_ms": rng.choice((0, 50))}
        if rng.random() < 0.25:
            begin |= {"period_s": rng.choice((3, 10, 50)), "duty": rng.choice((0.1, 0.5, 0.9))}
            return begin, rng.choice(([{"do": "heal", "faults": [name]}], []))
        heals: tuple[list[dict[str, Any]], ...] = (
            [{"do": "heal", "faults": [name]}],
            [{"do": "heal", "links": [link]} for link in dict.fromkeys(links)],
            [{"do": "heal", "links": links[:1]}, {"do": "heal", "faults": [name]}],
            [],
        )
        return begin, rng.choice(heals)

    def _link(self, rng: random.Random) -> str:
        ends = (
            (rng.choice(self.brokers), rng.choice(self.name_servers)),
            ("brokers", rng.choice(self.name_servers)),
            (rng.choice(self.clients), rng.choice(self.name_servers)),
            (rng.choice(self.clients), "name_servers"),
            (rng.choice(self.clients), rng.choice(self.brokers)),
            ("clients", rng.choice(self.name_servers)),
        )
        return self._shape(rng) if rng.random() < 0.4 else " <-> ".join(rng.choice(ends))

    def _shape(self, rng: random.Random) -> str:
        """Some of them cannot be in this cluster, and the timeline is drawn again."""
        node = rng.choice(self.name_servers + self.brokers + self.clients)
        mixed = rng.sample(everyone := self.name_servers + self.brokers + self.clients, len(everyone))
        at = rng.randint(1, len(mixed) - 1)
        shapes = (
            f"isolate {node}", f"into {node}", f"out_of {node}", "halves", "majority", "ring", "split_list",
            f"bridge {rng.choice(self.name_servers)}", f"groups {' '.join(mixed[:at])} | {' '.join(mixed[at:])}",
        )  # fmt: skip
        return rng.choice(shapes)


def wrong(seed: int, out: Path) -> dict[str, str]:
    """Check to why, of those that say INVALID; the run folder stays below `out` only where there are any."""
    folder = out / str(seed)
    shutil.rmtree(folder, ignore_errors=True)
    record_virtual(random_scenario(seed), seed, folder)
    found = {name: f"{verdict.why}; {verdict.examples[:1]}" for name, verdict in found_wrong(folder).items()}
    if not found:
        shutil.rmtree(folder)
    return found


def told(scenario: Scenario) -> str:
    """Its timeline in a line."""
    entries = [step.model_dump(mode="json") for step in scenario.timeline]
    return "; ".join(" ".join(str(value) for value in entry.values()) for entry in entries)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when no check of any scenario said INVALID."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="seed of the first scenario")
    parser.add_argument("--out", type=Path, default=Path("runs/random-actions"))
    asked = parser.parse_args(arguments)
    alarms = 0
    for seed in range(asked.first, asked.first + asked.scenarios):
        found = wrong(seed, asked.out)
        alarms += bool(found)
        print(f"seed {seed}: {'INVALID' if found else 'nothing'}; {told(random_scenario(seed))}", flush=True)
        for name, why in found.items():
            print(f"    {name}: {why}", flush=True)
    print(f"{asked.scenarios} scenarios, {alarms} with a false alarm")
    return int(alarms > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Timelines in which more happens to links and processes than in those of random_scenarios: faults of links and of
shapes, with names, flapping or not, and heals of links and of faults, one over the other; faults of clients; restarts
in a row. random_everything draws them.
"""

import random
from typing import Any


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

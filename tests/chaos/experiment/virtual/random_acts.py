"""Acts by hand, and changes of wall clocks, for a random timeline: random_everything draws them."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.topology import NodeKind

Entry = dict[str, Any]


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

    if random.Random(f"{at_s} disk").random() < 0.15:
        return [act("fill_disk", [broker]), act("free_disk", [broker], later_s)]
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

"""The random scenarios with slaves, which some of their faults meet, nothing planted: each seed's cluster and faults
are those of random_scenarios.
"""

import random
import re
from collections.abc import Sequence
from typing import Any

from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.topology import NodeKind

from . import random_scenarios

_plain = random_scenarios.random_scenario


def random_scenario(seed: int) -> Scenario:
    """The scenario of this seed, with slaves: of one broker, or one or two of each."""
    plain = _plain(seed)
    document: dict[str, Any] = plain.model_dump(mode="json")
    give_slaves(document, plain.topology().of(NodeKind.BROKER), random.Random(f"{seed} slaves"))
    return parse(document, file=f"random-{seed}.yaml")


def give_slaves(document: dict[str, Any], masters: Sequence[str], rng: random.Random) -> None:
    """Slaves, in the scenario's document, and in the place of some brokers in its faults."""
    if rng.random() < 0.3:
        of = {"broker-a": ["broker-a/1"]}
        document.setdefault("nodes", {})["broker-a/1"] = {}
    else:
        document["cluster"]["slaves"] = each = rng.choice((1, 1, 2))
        of = {master: [f"{master}/{number}" for number in range(1, each + 1)] for master in masters}
    meets = {master: rng.choice(slaves) for master, slaves in of.items() if rng.random() < 0.4}
    for entry in document["timeline"]:
        if entry.get("nodes"):
            entry["nodes"] = [meets.get(node, node) for node in entry["nodes"]]
        if entry.get("links"):
            entry["links"] = [_of_slaves(link, of, rng) for link in entry["links"]]


def _of_slaves(link: str, of: dict[str, list[str]], rng: random.Random) -> str:
    """The link as it is, or a slave's in place of its broker's, or that between a slave and its master."""
    named = re.search(r"broker-[a-z]", link)
    master = named[0] if named else rng.choice(sorted(of))
    if master not in of or "zone:" in link or "address-server" in link or rng.random() < 0.5:
        return link
    slave = rng.choice(of[master])
    if rng.random() < 0.25:
        return f"{slave} <-> {master}"
    return link.replace(master, slave)

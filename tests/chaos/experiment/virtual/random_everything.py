"""Random scenarios of all that the scenario language can say, nothing planted: what `make random-scenarios` runs.

`python -m tests.chaos.experiment.virtual.random_everything --scenarios 60 --first 0 --out FOLDER`, as
random_scenarios; with `--real` in real processes. Each seed takes the cluster of random_language (slaves, late comers,
own lists, an address server, zones, topics, groups, phases, settings), and its timeline, or random_actions' (shapes,
names, flaps, storms, faults of clients, half_open, syn_drop), or both; acts by hand and wrong clocks (random_acts)
among them; slaves that act for masters, or are made masters by hand; brokers that come back at another address;
clients of other languages; and settings from the whole catalogue. What the language refuses is drawn again. INVALID is
a false alarm, or a mistake in our nodes: either is ours.
"""

import random
import re
import sys
from collections.abc import Callable
from typing import Any

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.oracle.client_profiles import PROFILES
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.settings.catalogue import settings_for
from nemesrv.chaos.topology import NodeKind, broker_name

from . import random_actions, random_acts, random_language, random_scenarios

Document = dict[str, Any]
Change = Callable[[Document, random.Random], None]

TRIES = 60
_PROFILES = tuple(sorted(PROFILES))
GROUPS = {
    "name_servers": NodeKind.NAME_SERVER,
    "ns-0": NodeKind.NAME_SERVER,
    "brokers": NodeKind.BROKER,
    "broker-a": NodeKind.BROKER,
    "producers": NodeKind.PRODUCER,
    "consumers": NodeKind.CONSUMER,
    "consumer-0": NodeKind.CONSUMER,
}
NOT_OURS = ("enableControllerMode", "enableDLegerCommitLog", "enableControllerInNamesrv")
"""Of Apache's servers alone."""
NO_TRAFFIC = ("maxMessageSize", "frameMaxLength", "rejectTransactionMessage", "brokerPermission", "maxTransfer")
"""With these nothing may be sent or read, and nothing is asked."""


def random_scenario(seed: int) -> Scenario:
    """The scenario of this seed: some minutes of RocketMQ time."""
    rng = random.Random(f"{seed} everything")
    document = random_language.random_scenario(seed).model_dump(mode="json")
    changes: tuple[tuple[float, Change], ...] = (
        (0.6, _actions),
        (0.4, _acts),
        (0.25, _other_addresses),
        (0.15, _acting_masters),
        (0.15, _clients_of_other_languages),
        (0.15, _one_order),
        (0.8, _settings),
        (0.3, _made_masters),
    )
    for chance, change in changes:
        if rng.random() < chance:
            document = _changed(document, change, rng)
    return parse(document, file=f"random-{seed}.yaml")


def _changed(document: Document, change: Change, rng: random.Random) -> Document:
    """With that change, drawn until the language takes it; as it was, where it takes none."""
    for _ in range(TRIES):
        tried = parse(document, file="random.yaml").model_dump(mode="json")
        change(tried, rng)
        try:
            return parse(tried, file="random.yaml").model_dump(mode="json")
        except ScenarioError:
            continue
    return document


def _in_order(timeline: list[Document]) -> list[Document]:
    return sorted(timeline, key=lambda entry: float(entry["at_s"]))


def _actions(document: Document, rng: random.Random) -> None:
    """Of who has not joined yet much is refused: half of these have no late comers."""
    if rng.random() < 0.5:
        for own in document["nodes"].values():
            own["joins_at_s"] = None
    drawn = random_actions.timeline(document, rng)
    document["timeline"] = _in_order([*document["timeline"], *drawn]) if rng.random() < 0.3 else drawn


def _acts(document: Document, rng: random.Random) -> None:
    of = parse(document, file="random.yaml")
    last_s = max((step.at_s for step in of.timeline), default=60.0)
    drawn = [act for _ in range(rng.randint(1, 3)) for act in random_acts.by_hand(of, rng, rng.uniform(0, last_s + 60))]
    document["timeline"] = _in_order([*document["timeline"], *drawn])


def _other_addresses(document: Document, rng: random.Random) -> None:
    """Some brokers that are started again listen elsewhere."""
    for entry in document["timeline"]:
        if entry["do"] == "restart" and rng.random() < 0.7:
            entry["new_address"] = True


def _acting_masters(document: Document, rng: random.Random) -> None:
    document["cluster"]["profile"] = "5.x"
    config = document["config"]
    config.setdefault("name_servers", {}).update(supportActingMaster=True, notifyMinBrokerIdChanged=rng.random() < 0.5)
    config.setdefault("brokers", {})["enableSlaveActingMaster"] = True


def _clients(document: Document) -> list[str]:
    return [f"{kind}-{n}" for kind in ("producer", "consumer") for n in range(document["workload"][f"{kind}s"])]


def _clients_of_other_languages(document: Document, rng: random.Random) -> None:
    for client in _clients(document):
        if rng.random() < 0.5:
            document["nodes"].setdefault(client, {})["client_profile"] = rng.choice(_PROFILES)


def _one_order(document: Document, rng: random.Random) -> None:
    """A client that takes its list as it stands, another at each start."""
    servers = [f"ns-{number}" for number in range(document["cluster"]["name_servers"])]

    def some() -> list[str]:
        return rng.sample(servers, len(servers))

    own = document["nodes"].setdefault(rng.choice(_clients(document)), {})
    own |= {"name_servers": some(), "in_order": True, "later_orders": [some() for _ in range(rng.randint(0, 2))]}


def _settings(document: Document, rng: random.Random) -> None:
    """Up to six of the whole catalogue: the other truth, or a third to three times of RocketMQ's own number."""
    profile = parse(document, file="random.yaml").profile
    for _ in range(rng.randint(1, 6)):
        group, kind = rng.choice([*GROUPS.items()])
        name, setting = rng.choice([*settings_for(kind).items()])
        if profile not in setting.profiles or name in NOT_OURS or name.startswith(NO_TRAFFIC):
            continue
        default, allowed = setting.default(profile), setting.allowed
        if isinstance(default, bool):
            document["config"].setdefault(group, {})[name] = not default
        elif isinstance(default, int) and default > 0:
            least, most, *_ = map(int, re.findall(r"-?\d+", allowed.words))
            times = round(default * rng.choice((0.34, 0.5, 1.5, 3)))
            document["config"].setdefault(group, {})[name] = min(max(times, least), most)


def _made_masters(document: Document, rng: random.Random) -> None:
    """A master that is lost for good, and its slave, which is made master by hand."""
    slaves = parse(document, file="random.yaml").topology().of(NodeKind.SLAVE)
    if slaves:
        slave, at_s = rng.choice(slaves), round(rng.uniform(5, 200), 3)
        lost = {"at_s": at_s, "do": rng.choice(("kill", "stop")), "nodes": [broker_name(slave)]}
        made = {"at_s": round(at_s + rng.uniform(0.5, 90), 3), "do": "switch", "nodes": [slave]}
        document["timeline"] = _in_order([*document["timeline"], lost, made])


if __name__ == "__main__":
    random_scenarios.random_scenario = random_scenario
    sys.exit(random_scenarios.main())

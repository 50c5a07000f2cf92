"""The random scenarios with slaves of 5.x that act for their masters (enableSlaveActingMaster), nothing planted.

`python -m tests.chaos.experiment.virtual.random_acting_masters --scenarios 60 --first 0 --out DIR`, as random_slaves.
"""

from __future__ import annotations

import sys
from typing import Any

from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario

from . import random_scenarios, random_slaves


def random_scenario(seed: int) -> Scenario:
    """The scenario of this seed, with slaves that act for their masters."""
    document: dict[str, Any] = random_slaves.random_scenario(seed).model_dump(mode="json")
    document["cluster"]["profile"] = "5.x"
    for group, said in (
        ("name_servers", {"supportActingMaster": True, "notifyMinBrokerIdChanged": seed % 2 == 0}),
        ("brokers", {"enableSlaveActingMaster": True}),
    ):
        document.setdefault("config", {}).setdefault(group, {}).update(said)
    return parse(document, file=f"random-{seed}.yaml")


if __name__ == "__main__":
    random_scenarios.random_scenario = random_scenario
    sys.exit(random_scenarios.main())

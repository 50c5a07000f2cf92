"""The run that is multiplied: recorded once a process on the virtual clock, in a second (SMALL) or four (LARGE).

Both have a broker's death, and the queues that its clients then share anew. LARGE has what every check needs to say
VALID: a consumer's death, a NameServer that hangs for longer than a client's window, and an act by hand. Both are
`ordered`: a message's key chooses its queue, so its copies go there as well, and no producer takes queues in turn.
"""

import tempfile
from functools import cache
from pathlib import Path

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.history.schema import Row
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.remoting.node.profile import Profile

LARGE_EVENTS = 40_000
"""About as many rows as a recording of LARGE has; a history of fewer is made of SMALL, whose recording has 5,500."""

SMALL = {
    "cluster": {"name_servers": 2, "brokers": 2},
    "workload": {"producers": 2, "consumers": 2, "sends_per_s": 1, "client_starts": 20, "ordered": True},
    "timeline": [
        {"at_s": 20, "do": "kill", "nodes": ["broker-a"]},
        {"at_s": 80, "do": "restart", "nodes": ["broker-a"]},
    ],
}
LARGE = {
    "cluster": {"name_servers": 3, "brokers": 4},
    "workload": {"producers": 4, "consumers": 4, "sends_per_s": 1, "client_starts": 90, "ordered": True},
    "timeline": [
        {"at_s": 30, "do": "kill", "nodes": ["broker-a"]},
        {"at_s": 150, "do": "restart", "nodes": ["broker-a"]},
        {"at_s": 270, "do": "kill", "nodes": ["consumer-0"]},
        {"at_s": 330, "do": "restart", "nodes": ["consumer-0"]},
        {"at_s": 400, "do": "pause", "nodes": ["ns-0", "ns-1"]},
        {"at_s": 500, "do": "resume", "nodes": ["ns-0", "ns-1"]},
        {
            **{"at_s": 620, "do": "update_topic", "nodes": ["broker-a", "broker-b"], "topic": "fresh"},
            **{"read_queues": 2, "write_queues": 2},
        },
    ],
}


def scenario_for(events: int, seed: int, profile: Profile) -> Scenario:
    """The scenario whose recording is multiplied to `events` rows; every check is to judge it."""
    stage = SMALL if events < LARGE_EVENTS else LARGE
    document = {
        **stage,
        "description": "A recorded virtual run, multiplied: python -m tests.generate.",
        "cluster": {**stage["cluster"], "profile": profile.value},  # type: ignore[dict-item]
        "settle_s": 60,
        "checks": [*CHECKS],
    }
    return parse(document, file="generated.yaml").model_copy(update={"seed": seed})


@cache
def recorded(large: bool, seed: int, profile: Profile) -> tuple[Row, ...]:
    """The rows of one recording, in order. Callers copy what they change."""
    scenario = scenario_for(LARGE_EVENTS if large else 0, seed, profile)
    with tempfile.TemporaryDirectory(prefix="nemesrv-generate-") as folder:
        return tuple(read_rows(record_virtual(scenario, seed, Path(folder) / "run", latest=False).path))

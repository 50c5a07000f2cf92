"""`python -m tests.hosts.record_loss FOLDER RAY`, where the driver is: a run on hosts whose kernels lose packets."""

from __future__ import annotations

import sys
from pathlib import Path

from nemesrv.chaos.experiment.experiment import Experiment
from nemesrv.chaos.experiment.harness import Harness
from nemesrv.chaos.experiment.hosts_stage import real_stage
from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.runner import Options, as_run_with
from nemesrv.chaos.scenarios.loading import parse

TWO_WAY, DOWN, UP = ("broker-a", "ns-0"), ("broker-b", "ns-1"), ("producer-0", "broker-a")
LOSES = {"do": "packet_loss", "injection": "packet"}
SCENARIO = {
    "cluster": {"name_servers": 2, "brokers": 2},
    "timers": {"time_scale": 1},
    "workload": {"producers": 1, "consumers": 1, "sends_per_s": 1, "client_starts": 0},
    "prove_faults": True,
    "timeline": [
        {"at_s": 4, **LOSES, "links": [" <-> ".join(TWO_WAY)]},
        {"at_s": 5, **LOSES, "links": [" <-> ".join(DOWN)], "stream": "downstream"},
        {"at_s": 6, **LOSES, "links": [" -> ".join(UP)], "stream": "upstream"},
        {"at_s": 25, "do": "heal"},
    ],
    "settle_s": 40,
    "checks": ["routes_converge"],
}


def main() -> None:
    folder, ray = Path(sys.argv[1]), sys.argv[2]
    scenario = as_run_with(parse(SCENARIO, file="loss.yaml"), Options(seed=1, ray=ray))
    with Harness(workers=12, ray=ray) as harness:
        run = RunFolder.create(scenario.name, folder)
        Experiment(scenario=scenario, seed=1, folder=run, stage=real_stage(harness)).run()


if __name__ == "__main__":
    main()

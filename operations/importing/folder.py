"""The run folder of an incident that nobody ran, of logs or of a watch: its rows, incident.json, and a scenario that
can only count its nodes; `nemesrv replay` writes the whole."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...chaos.checks import CHECKS
from ...chaos.experiment.run_folder import RunFolder
from ...chaos.history.rows import write_parquet
from ...chaos.history.schema import Row
from ...chaos.reports.summary import INCIDENT
from ...chaos.scenarios.model import ClusterModel, Scenario, TimersModel, WorkloadModel
from ...remoting.node.profile import Profile


def write_folder(folder: RunFolder, rows: Sequence[Row], scenario: Scenario, document: Mapping[str, Any]) -> None:
    """What `nemesrv check`, `report` and `replay` read; `document` is incident.json's."""
    write_parquet(rows, folder.path)
    folder.scenario_file.write_text(scenario.to_yaml(), encoding="utf-8")
    (folder.path / INCIDENT).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def counted_scenario(
    name: str, learnt: str, roles: Collection[str], profile: Profile, *, checks: Collection[str], prober: bool
) -> Scenario:
    """How many there were of each role, as far as a scenario may have them; `learnt` begins its description."""
    kinds = [*roles]
    masters = max(kinds.count("broker"), 1)
    return Scenario(
        name=name,
        description=f"{learnt}. No run: see {INCIDENT}.",
        cluster=ClusterModel(
            name_servers=min(max(kinds.count("name_server"), 1), 9),
            brokers=min(masters, 26),
            slaves=min(-(-kinds.count("slave") // masters), 3),
            profile=profile.value,
        ),
        timers=TimersModel(time_scale=1),
        workload=WorkloadModel(
            producers=kinds.count("producer"), consumers=kinds.count("consumer"), client_starts=0, prober=prober
        ),
        checks=tuple(name for name in CHECKS if name in checks),
        seed=0,
    )

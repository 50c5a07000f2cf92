"""A dozen processes of a run start at the same time on its machine, so a node's imports its program and no harness."""

import pickle
import subprocess
import sys
from pathlib import Path

from nemesrv.chaos.experiment.nodes import NodePlan
from nemesrv.chaos.history.recorder import LagProbe, RecorderSpec
from nemesrv.chaos.scenarios.loading import find
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address

BECOMES_EVERY_NODE = """
import pickle, sys
import nemesrv.actors.actor
import nemesrv.actors.broker.server, nemesrv.actors.namesrv.server
print(len(pickle.load(sys.stdin.buffer)))
print(*sorted(name for name in sys.modules if name.startswith("nemesrv.chaos.")))
print(*sorted({"numpy", "pyarrow", "pydantic", "pyspark", "ray", "scipy", "yaml"} & set(sys.modules)))
"""


def test_a_nodes_process_imports_its_program_and_what_records(tmp_path: Path) -> None:
    scenario = find("broker-partition")
    topology = scenario.topology()
    listen = {name: Address("127.0.0.1", 20_000 + number) for number, name in enumerate(topology.servers)}
    plan = NodePlan(scenario=scenario, listen=listen, advertised=listen)
    clock = RealClock.starting_now(10.0)
    travels = [
        (plan.factory(name, kind), RecorderSpec.for_run(tmp_path, name, str(kind), 0, clock), LagProbe)
        for name, kind in topology.kinds.items()
        if name in topology.nodes
    ]
    program = [sys.executable, "-c", BECOMES_EVERY_NODE]
    done = subprocess.run(program, input=pickle.dumps(travels), capture_output=True, check=True)
    count, ours, theirs = done.stdout.decode().splitlines()
    assert int(count) == len(topology.nodes) > 5
    assert theirs == ""
    rooms = {name.split(".")[2] for name in ours.split()}
    assert rooms == {"arrow", "experiment", "history"}, ours
    assert "nemesrv.chaos.experiment.nodes" not in ours.split()

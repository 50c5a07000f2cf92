"""The agent of a host, driven without Ray: its processes, files, parts, and what its guardian does once it is gone."""

import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from nemesrv.actors.host_agent import HostAgent
from nemesrv.actors.hosts import LOCAL
from nemesrv.actors.joined_ray import JoinedRay, RayAddressError, host_names
from nemesrv.actors.processes import Process
from nemesrv.actors.watch import ClusterError
from nemesrv.remoting.node.clock import RealClock

SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def agent() -> Iterator[HostAgent]:
    made = HostAgent(own_process=False)
    made.begin_run(RealClock.starting_now())
    yield made
    made.end_run()
    made._guardian.close()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(SLEEPS) as process:
        yield process
        process.kill()


class Part:
    """Says what is done to it."""

    def __init__(self, parts: Mapping[str, Any], said: list[str]) -> None:
        self.opened = f"beside {len(parts)}"
        self._said = said

    def double(self, number: int) -> int:
        return 2 * number

    def close(self) -> None:
        self._said.append("closed")


async def sum_of(one: int, other: int) -> int:
    return one + other


def test_a_process_is_signalled_by_its_pid_and_its_end_is_an_event(agent: HostAgent, sleeper: subprocess.Popen[bytes]):
    assert agent.adopt(sleeper.pid)
    agent.watch("ns-0", sleeper.pid)
    assert agent.send(sleeper.pid, signal.SIGSTOP)
    assert agent.stopped(sleeper.pid, 5.0)
    assert agent.send(sleeper.pid, signal.SIGKILL)
    assert agent.gone(sleeper.pid, 5.0)
    events = agent.events()
    while len(events) < 2:
        events += agent.events()
    assert events[0] == ("gone", ("ns-0", sleeper.pid))
    assert (events[1][0], events[1][1].name) == ("died", "ns-0")


def test_an_end_that_is_planned_is_no_event(agent: HostAgent, sleeper: subprocess.Popen[bytes]):
    agent.adopt(sleeper.pid)
    agent.watch("ns-0", sleeper.pid)
    agent.unwatch("ns-0")
    agent.send(sleeper.pid, signal.SIGKILL)
    assert agent.gone(sleeper.pid, 5.0)
    assert agent.events() == []


def test_who_is_not_there_cannot_be_adopted(agent: HostAgent):
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    assert not agent.adopt(process.pid)
    with pytest.raises(ProcessLookupError):
        LOCAL.process(process.pid)


def test_what_a_run_recorded_is_removed_with_the_run(agent: HostAgent):
    folder = Path(agent.begin_run(RealClock.starting_now()))
    (folder / "history/_raw/ns-0.0.jsonl").write_bytes(b"0123456789")
    (folder / "logs/ns-0.log").write_bytes(b"said")
    (folder / "data/store").write_bytes(b"a broker's own")
    agent.end_run()
    assert not folder.exists()


def test_a_part_lives_here_until_it_is_closed_or_the_run_ends(agent: HostAgent):
    said: list[str] = []
    assert agent.open("part", Part, said) == "beside 0"
    assert agent.open("other", Part, said) == "beside 1"
    assert agent.call("part", "double", 21) == 42
    agent.close("part")
    assert said == ["closed"]
    agent.end_run()
    assert said == ["closed", "closed"]


def test_a_function_is_run_here_and_of_a_coroutine_its_result_is_given(agent: HostAgent):
    assert agent.run(max, 3, 4) == 4
    assert agent.run(sum_of, 3, 4) == 7


AGENT = textwrap.dedent(
    """
    import subprocess, sys
    from nemesrv.actors.host_agent import HostAgent
    from nemesrv.remoting.node.clock import RealClock
    agent = HostAgent(own_process=False)
    folder = agent.begin_run(RealClock.starting_now())
    paused = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    agent.adopt(paused.pid)
    agent.send(paused.pid, 19)
    print(folder, paused.pid, flush=True)
    sys.stdin.read()
    """
)


def test_when_the_agent_is_killed_the_guardian_ends_its_processes_and_removes_its_folder(tmp_path: Path):
    with subprocess.Popen(
        [sys.executable, "-c", AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdout is not None
        folder, pid = agent.stdout.readline().split()
        paused = Process(int(pid))
        agent.kill()
        assert paused.gone(10.0)
        paused.close()
    poll = Path(folder)
    for _ in range(1000):
        if not poll.exists():
            break
        with subprocess.Popen([sys.executable, "-c", ""]):  # a moment
            pass
    assert not poll.exists()


def node(number: int, machine: str, address: str, label: str | None = None) -> dict[str, Any]:
    labels = {} if label is None else {"nemesrv-host": label}
    return {"NodeID": f"id{number}", "NodeManagerHostname": machine, "NodeManagerAddress": address, "Labels": labels}


def test_a_host_is_called_by_its_label_else_its_host_name_else_its_address():
    nodes = [
        node(0, "left", "10.0.0.1", "east"),
        node(1, "left", "10.0.0.2"),
        node(2, "right", "10.0.0.3"),
        node(3, "left", "10.0.0.1"),
    ]
    assert host_names(nodes) == {"id0": "east", "id1": "10.0.0.2", "id2": "right", "id3": "id3"}


def test_two_hosts_of_one_label_are_refused():
    with pytest.raises(ClusterError, match="more than one is called east"):
        host_names([node(0, "a", "10.0.0.1", "east"), node(1, "b", "10.0.0.2", "east")])


@pytest.mark.parametrize("address", ["ray://127.0.0.1:10001", "here", "127.0.0.1:", "127.0.0.1:99999"])
def test_what_is_no_address_is_refused_before_ray_is_asked(address: str):
    with pytest.raises(RayAddressError, match="expected auto or HOST:PORT"):
        JoinedRay(address).start()


def test_a_head_that_does_not_answer_is_told_at_once():
    with pytest.raises(ClusterError, match=r"no Ray head answers at 127.0.0.1:1 .*is it up"):
        JoinedRay("127.0.0.1:1").start()

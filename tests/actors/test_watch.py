"""Who died, when, by which signal, and whether anybody planned it; with plain processes in place of nodes."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from subprocess import PIPE
from time import monotonic

import pytest

from nemesrv.actors.errors import HarnessError
from nemesrv.actors.watch import Alarm, Death, ProcessDied, ProcessWatch
from nemesrv.remoting.node.clock import RealClock


@dataclass
class World:
    """Processes that do nothing, a watch over them, and what it told."""

    goes_on: bool = False
    alarm: Alarm = field(default_factory=Alarm)
    deaths: list[Death] = field(default_factory=list)
    children: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._told = threading.Semaphore(0)
        self.at_once: list[tuple[str, int, int]] = []
        self.fails = False
        self.watch = ProcessWatch(
            RealClock.starting_now(10), alarm=self.alarm, told=self._note, at_once=self._note_at_once
        )

    def _note_at_once(self, name: str, pid: int) -> None:
        self.at_once.append((name, pid, len(self.deaths)))
        if self.fails:
            raise OSError("no proxy answers")

    def _note(self, death: Death) -> bool:
        self.deaths.append(death)
        self._told.release()
        return self.goes_on

    def process(self, program: str = "exec sleep 600") -> subprocess.Popen[str]:
        self.children.append(subprocess.Popen(["bash", "-c", program], text=True, stdin=PIPE, stdout=PIPE))
        return self.children[-1]

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            assert self._told.acquire(timeout=10)

    def rings(self) -> str:
        with pytest.raises(ProcessDied) as caught:
            self.alarm.sleep(10)
        return str(caught.value)


@pytest.fixture
def make() -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def world(**given: bool) -> World:
        made.append(World(**given))
        made[-1].watch.__enter__()
        return made[-1]

    yield world
    for each in made:
        each.watch.__exit__(None, None, None)
        for child in each.children:
            with child:
                child.kill()


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_killed_process_is_named_with_signal_and_time(make: Callable[..., World], signum: signal.Signals) -> None:
    world = make()
    child = world.process()
    world.watch.add("ns-1", child.pid)
    child.send_signal(signum)
    said = world.rings()
    assert f"ns-1 (pid {child.pid}) was killed by {signum.name} from outside the scenario at " in said
    assert said.endswith("s into the run; nothing is judged")
    assert [death.exit_code for death in world.deaths] == [-signum]


def test_one_that_is_not_our_child_too(make: Callable[..., World]) -> None:
    world = make()
    parent = world.process("sleep 600 & echo $!; wait $!; exec sleep 600")
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    world.watch.add("broker-a", pid)
    os.kill(pid, signal.SIGKILL)
    assert "broker-a" in world.rings()
    assert [death.exit_code for death in world.deaths] in ([-signal.SIGKILL], [None])


def test_one_that_ended_by_itself_has_its_exit_status(make: Callable[..., World]) -> None:
    world = make()
    child = world.process("read -r; exit 3")
    world.watch.add("producer-0", child.pid)
    assert child.stdin is not None
    child.stdin.close()
    assert f"producer-0 (pid {child.pid}) ended by itself with exit status 3 at " in world.rings()


def test_a_planned_end_is_no_death(make: Callable[..., World]) -> None:
    world = make()
    planned, other = world.process(), world.process()
    world.watch.add("a", planned.pid)
    world.watch.add("b", other.pid)
    world.watch.remove("a", "not there")
    planned.kill()
    planned.wait()
    other.kill()
    assert world.rings().startswith("b ")
    assert [death.name for death in world.deaths] == ["b"]


def test_who_carries_others_is_named_before_those_that_died_with_it(make: Callable[..., World]) -> None:
    world = make()
    node, raylet = world.process(), world.process()
    world.watch.add("node", node.pid)
    world.watch.add("Ray's raylet", raylet.pid, carries_others=True)
    node.kill()
    raylet.kill()
    assert world.rings().startswith("Ray's raylet ")
    assert [death.name for death in world.deaths] == ["Ray's raylet", "node"]


def test_a_cluster_that_may_be_hurt_goes_on(make: Callable[..., World]) -> None:
    world = make(goes_on=True)
    for name in ("a", "b"):
        child = world.process()
        world.watch.add(name, child.pid)
        child.kill()
        world.wait_for(1)
    world.alarm.check()
    assert [death.name for death in world.deaths] == ["a", "b"]


def test_one_that_is_gone_when_it_is_to_be_watched_has_died(make: Callable[..., World]) -> None:
    world = make()
    child = world.process("exit 0")
    child.wait()
    world.watch.add("a", child.pid)
    assert "a (pid" in world.rings()


def test_who_waits_is_woken_at_once_or_gets_what_it_waits_for() -> None:
    alarm, answer = Alarm(), Future[int]()
    assert not alarm.wait(answer, 0.01)
    answer.set_result(1)
    assert alarm.wait(answer, 10)
    threading.Timer(0.05, alarm.ring, [ProcessDied("x died")]).start()
    begin_s = monotonic()
    with pytest.raises(ProcessDied, match="x died"):
        alarm.sleep(60)
    assert monotonic() - begin_s < 10
    alarm.ring(ProcessDied("y died"))
    with pytest.raises(ProcessDied, match="x died"):
        alarm.wait(Future[int](), None)
    assert alarm.wait(answer, 10)


def test_the_kernels_own_kill_is_said_to_be_one() -> None:
    death = Death(name="ns-1", pid=7, at_ms=12_340, wall_s=0, exit_code=-9, out_of_memory=True)
    assert "ns-1 (pid 7) was killed by the kernel (SIGKILL: memory ran out) at " in str(death)
    assert str(death).endswith(", 12.3 s into the run")


def test_what_must_follow_at_once_comes_before_anybody_is_told(make: Callable[..., World]):
    world = make(goes_on=True)
    process = world.process()
    world.watch.add("ns-0", process.pid)
    process.kill()
    world.wait_for(1)
    assert world.at_once == [("ns-0", process.pid, 0)]
    world.alarm.check()


def test_what_must_follow_at_once_and_cannot_wakes_whoever_waits(make: Callable[..., World]):
    world = make(goes_on=True)
    world.fails = True
    process = world.process()
    world.watch.add("ns-0", process.pid)
    process.kill()
    with pytest.raises(HarnessError, match=r"ns-0 .* could not be done: no proxy answers"):
        world.alarm.sleep(10)

"""Defects put into Apache's servers from outside: by name, where their nodes are Apache's, and what each does."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nemesrv.chaos.apache import libfaketime
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.fronts.behaviour import PASSES, Behaviour
from nemesrv.chaos.fronts.observed import Asked, Observation
from nemesrv.chaos.proof.defects import DEFECTS, EVERY, OF_APACHE, OF_INCIDENTS
from nemesrv.chaos.proof.defects.apache import UNHEARD_S
from nemesrv.chaos.scenarios.defect import Defect
from nemesrv.chaos.scenarios.loading import find, found_defect, refuse_nowhere
from nemesrv.chaos.scenarios.model import CHECK_NAMES, Scenario
from nemesrv.remoting.codes import RequestCode, ResponseCode

APACHE = "apache-5.3.3"


def test_they_are_named_beside_the_self_tests_and_are_none_of_these() -> None:
    assert not OF_APACHE.keys() & DEFECTS.keys()
    assert OF_APACHE.keys() | OF_INCIDENTS.keys() | DEFECTS.keys() == EVERY.keys()
    for defect in OF_APACHE.values():
        assert defect.caught_by
        assert defect.caught_by | defect.also <= set(CHECK_NAMES)
        assert set(defect.nodes) <= set(scenario(defect.scenario).topology().nodes)


def scenario(name: str, implementation: str | None = APACHE) -> Scenario:
    return find(name, (), implementation)


@pytest.mark.parametrize("name", OF_APACHE)
def test_one_is_refused_where_its_node_is_ours(name: str) -> None:
    defect = found_defect(name, file="--defect")
    refuse_nowhere(defect, scenario(defect.scenario), "--defect")
    with pytest.raises(ScenarioError, match="of Apache's"):
        refuse_nowhere(defect, scenario(defect.scenario, "ours"), "--defect")


class _Front:
    def __init__(self) -> None:
        self.behaved: list[Behaviour] = []

    async def behave(self, behaviour: Behaviour) -> None:
        self.behaved.append(behaviour)


class _Node:
    """What a plant touches of a server, without its JVM."""

    def __init__(self, incarnation: int = 0) -> None:
        self.front = _Front()
        self.later: list[tuple[float, Callable[[], object]]] = []
        clock = SimpleNamespace(call_later=lambda after_s, what: self.later.append((after_s, what)))
        self._context = SimpleNamespace(incarnation=incarnation, clock=clock)
        self._dialler = SimpleNamespace(front={"ns-0": self.front, "ns-1": _Front()}.__getitem__)
        self._up, self._tasks = asyncio.Event(), list[asyncio.Task[None]]()
        self.saw: list[Observation] = []
        self._saw = self.saw.append
        self._front = SimpleNamespace(see=self._saw)
        self._java: Any = None
        self._port, self._held = 0, list[object]()
        self.did: list[str] = []

    def _done(self, what: str) -> Callable[[], Awaitable[None]]:
        async def do() -> None:
            self.did.append(what)

        return do

    async def start(self) -> None:
        self.did.append("start")

    async def stop(self) -> None:
        self.did.append("stop")

    async def _boot(self) -> None:
        self._port += 1
        self._java, self._held = SimpleNamespace(kill=self._done(f"kill {self._port}")), [self._port]
        self.did.append(f"boot {self._port}")
        self._serves()

    def _serves(self) -> None:
        self._up.set()
        self.did.append(f"serve {self._port}")

    async def _stands_by(self) -> None:
        self._up.clear()
        self.did.append("stand by")

    def _forget(self) -> None:
        self._held.clear()

    def _said(self) -> Mapping[str, object]:
        group = {"dLegerSelfId": "n2", "dLegerPeers": "n0-127.0.0.1:1;n1-127.0.0.1:2;n2-127.0.0.1:3"}
        return {"brokerName": "broker-a", "namesrvAddr": "127.0.0.1:1;127.0.0.1:2", **group}

    def _begin(self, work: Any) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))


def planted(name: str, node: _Node) -> _Node:
    OF_APACHE[name].plant(node)
    return node


def test_the_one_list_entry_is_the_first() -> None:
    node = planted("apache-broker-registers-with-one", _Node())
    assert node._said()["namesrvAddr"] == "127.0.0.1:1"


def test_who_elects_itself_knows_nobody_else() -> None:
    node = planted("apache-member-elects-itself", _Node())
    assert node._said()["dLegerPeers"] == "n2-127.0.0.1:3"
    assert node._said()["brokerName"] == "broker-a"


def test_a_registration_is_answered_and_never_passed_on_for_its_time_after_a_restart_only() -> None:
    async def body() -> None:
        first = planted("apache-broker-is-not-heard", _Node())
        await first.start()
        assert first.front.behaved == []
        again = planted("apache-broker-is-not-heard", _Node(incarnation=1))
        await again._boot()
        (answering,) = again.front.behaved
        assert answering.codes == {RequestCode.REGISTER_BROKER: ResponseCode.SUCCESS}
        await again.start()
        ((after_s, passes),) = again.later
        assert after_s == UNHEARD_S
        passes()
        await asyncio.gather(*again._tasks)
        assert again.front.behaved[-1] == PASSES

    asyncio.run(body())


def test_an_emptied_name_server_has_a_jvm_that_was_up_before_and_the_same_process() -> None:
    async def body() -> None:
        node = planted("apache-name-server-is-emptied", _Node())
        await node._boot()
        assert node.did == ["boot 1", "serve 1", "stand by", "boot 2", "serve 2"]
        asked = Asked(at_ms=1.0, front="ns-0", connection=1, code=RequestCode.REGISTER_BROKER, opaque=1)
        node._front.see(asked)
        node._front.see(asked)
        ((_, empties),) = node.later
        empties()
        await asyncio.gather(*node._tasks)
        assert node.did[5:] == ["kill 2", "stand by", "serve 1"]
        assert (node._port, node._held) == (1, [1])
        assert node.saw == [asked, asked]

    asyncio.run(body())


def test_of_an_emptied_name_server_nothing_is_left_that_is_stopped_before_its_time() -> None:
    async def body() -> None:
        node = planted("apache-name-server-is-emptied", _Node())
        await node._boot()
        node._front.see(Asked(at_ms=1.0, front="ns-0", connection=1, code=RequestCode.REGISTER_BROKER, opaque=1))
        await node.stop()
        ((_, empties),) = node.later
        empties()
        await asyncio.gather(*node._tasks)
        assert node.did[5:] == ["kill 1", "stop"]

    asyncio.run(body())


@pytest.mark.nightly("test_a_registration_is_answered_and_never_passed_on_for_its_time_after_a_restart_only")
@pytest.mark.java
@pytest.mark.ray
@pytest.mark.spark
@pytest.mark.skipif(libfaketime.found() is None, reason="libfaketime is not installed (apt-get install faketime)")
@pytest.mark.parametrize("name", OF_APACHE)
def test_it_is_found_on_the_real_thing_and_its_clean_twin_is_not(name: str, tmp_path: Path) -> None:
    defect = OF_APACHE[name]
    wrong = _wrong(defect, tmp_path / "wrong", "--defect", name)
    assert defect.caught_by <= wrong <= defect.caught_by | defect.also
    assert _wrong(defect, tmp_path / "clean") == set()


def _wrong(defect: Defect, folder: Path, *more: str) -> set[str]:
    """The checks that say INVALID of the first of three runs on Apache's servers of which the machine was in time to
    judge what must find it."""
    for turn in range(3):
        found = _judged(defect.scenario, folder / str(turn), *more)
        if not any(found.get(check) == "UNKNOWN" for check in defect.caught_by):
            break
    return {check for check, verdict in found.items() if verdict == "INVALID"}


def _judged(of: str, folder: Path, *more: str) -> dict[str, str]:
    """Check to verdict."""
    made_by = [] if scenario(of, None).implementations() else ["--implementation", APACHE]
    words = ["run", of, *made_by, "--time-scale", "3", "--seed", "1", "--out", str(folder), "-q"]
    environment = {**os.environ, "RAY_memory_monitor_refresh_ms": "0"}
    command = [sys.executable, "-m", "nemesrv.chaos", *words, *more]
    subprocess.run(command, env=environment, timeout=1_500, check=False)
    verdicts = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    return {one["name"]: one["verdict"] for one in verdicts["checks"]}

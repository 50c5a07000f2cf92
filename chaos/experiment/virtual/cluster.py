"""Runs nodes on virtual time and controls each node by name, as actors/cluster.py does with processes.

Each node has its own ProcessLoop, which runs the same NodeActor as a Ray worker does. Each method lets virtual time
pass until its action has happened, then returns.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Callable, Coroutine
from typing import Any

from ....actors.actor import Listening, NodeActor, NodeSpec, Surroundings
from ....actors.broker.server import Broker
from ....actors.cluster import (
    LISTEN_LIMIT_S,
    START_LIMIT_S,
    STOP_LIMIT_S,
    ClusterError,
    Member,
    NodeFailed,
    NodesByName,
    NodeState,
)
from ....remoting.node.network import Address
from .loop import ProcessLoop, Scheduler, VirtualClock
from .network import MemoryNetwork, NodeNetwork
from .recording import node_logger

PATIENCE = 10
"""A real cluster's limit in machine seconds is this many times as many virtual seconds here."""


@dataclasses.dataclass(slots=True, kw_only=True)
class _Member(Member):
    process: ProcessLoop
    actor: NodeActor
    log_closed: Callable[[], None]
    pid: int


class AnswerUnderWay:
    """A call of a node's method whose answer comes as virtual time passes."""

    def __init__(self, cluster: VirtualCluster, name: str, method: str, task: asyncio.Task[Any]) -> None:
        self._cluster, self._name, self._method, self._task = cluster, name, method, task

    def result(self, timeout: float | None = None) -> Any:
        """Return the result of the node's method, or raise its exception; NodeFailed if the call takes too long."""
        limit_s = 30.0 if timeout is None else timeout
        return self._cluster.finish(self._name, self._method, self._task, limit_s, own_errors=True)


class VirtualCluster(NodesByName[_Member]):
    """Nodes on virtual time. `run` lets virtual time pass until a future is done, or raises TimeoutError."""

    def __init__(
        self, scheduler: Scheduler, clock: VirtualClock, seed: int, run: Callable[[asyncio.Future[Any], float], None]
    ) -> None:
        super().__init__(clock)
        self._scheduler, self._run = scheduler, run
        self.network = MemoryNetwork(scheduler, random.Random(f"{seed}/network"))
        self._graves: list[tuple[ProcessLoop, NodeActor]] = []
        self._pids = 0

    # -- coming up

    def _launch(self, spec: NodeSpec) -> _Member:
        self._pids += 1
        log, log_closed = node_logger(spec, self._clock)
        process = self._scheduler.process(spec.name, log)
        around = Surroundings(network=NodeNetwork(self.network, process, spec.name), log=log, pid=self._pids)
        actor = NodeActor(spec, surroundings=around)
        return _Member(spec=spec, process=process, actor=actor, log_closed=log_closed, pid=self._pids)

    def _bind(self, names: list[str]) -> dict[str, Address | None]:
        asked = {name: self._begin(name, self._members[name].actor.listen()) for name in names}
        for name, task in asked.items():
            listening = self.finish(name, "listen", task, LISTEN_LIMIT_S)
            assert isinstance(listening, Listening)
            self._members[name].address = listening.address
        return {name: self._members[name].address for name in names}

    def start(self, *names: str) -> None:
        chosen = names or tuple(n for n, m in self._members.items() if m.state is NodeState.STARTING)
        asked = {name: self._begin(name, self._member(name).actor.start()) for name in chosen}
        for name, task in asked.items():
            self.finish(name, "start", task, START_LIMIT_S)
            self._members[name].state = NodeState.RUNNING

    # -- asking

    def call(self, name: str, method: str, *args: Any, timeout_s: float = 30.0, **kwargs: Any) -> Any:
        return self.submit(name, method, *args, **kwargs).result(timeout_s)

    def submit(self, name: str, method: str, *args: Any, **kwargs: Any) -> AnswerUnderWay:
        task = self._begin(name, self._running(name).actor.call(method, args, kwargs))
        return AnswerUnderWay(self, name, method, task)

    def _begin(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self._members[name].process.create_task(work)

    def finish(self, name: str, what: str, task: asyncio.Task[Any], limit_s: float, *, own_errors: bool = False) -> Any:
        try:
            self._run(task, limit_s * PATIENCE)
        except TimeoutError as exc:
            raise NodeFailed(f"{name} did not answer `{what}` within {limit_s * PATIENCE:g} virtual s") from exc
        try:
            return task.result()
        except asyncio.CancelledError as exc:
            raise NodeFailed(f"{name} gave up `{what}`") from exc
        except Exception as exc:
            if own_errors:
                raise
            raise NodeFailed(f"{name} failed to {what}: {type(exc).__name__}: {exc}") from exc

    def pid(self, name: str) -> int | None:
        member = self._member(name)
        return None if member.state is NodeState.GONE else member.pid

    # -- faults

    def kill(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        """Kill the node as SIGKILL does: the node's callbacks never run again, and its connections are closed as a
        kernel closes them. Returns the time of the kill."""
        member = self._alive(name)
        member.process.kill()
        time_ms = self._effect(on_effect)
        self._bury(member)
        return time_ms

    def stop(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        """Stop the node cleanly, then end its process. Returns the time at which the node had stopped."""
        member = self._running(name)
        self.finish(name, "stop", self._begin(name, member.actor.stop()), STOP_LIMIT_S)
        time_ms = self._effect(on_effect)
        member.process.kill()
        self._bury(member)
        return time_ms

    def pause(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        """Pause the node as SIGSTOP does: its program does not run, but the kernel still accepts connections and bytes.
        Returns the time of the pause."""
        member = self._running(name)
        member.process.pause()
        member.state = NodeState.PAUSED
        return self._effect(on_effect)

    def resume(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        member = self._member(name)
        if member.state is not NodeState.PAUSED:
            raise ClusterError(f"{name} is {member.state} and cannot be resumed")
        member.state = NodeState.RUNNING
        member.process.resume()
        return self._effect(on_effect)

    # -- going down

    def shutdown(self) -> None:
        for member in self._members.values():
            if member.state is not NodeState.GONE:
                member.process.kill()
                self._bury(member)
        for process, _ in self._graves:
            process.bury()
        self._graves.clear()

    # -- helpers

    def _bury(self, member: _Member) -> None:
        """Close a dead process's connections and files, as its kernel does; its coroutines rest until the end."""
        member.state = NodeState.GONE
        self.network.vanish(member.process)
        member.actor.die()
        node = member.actor.node
        if isinstance(node, Broker):
            node.store.abandon()
        member.log_closed()
        self._graves.append((member.process, member.actor))

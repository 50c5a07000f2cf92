"""Nodes as Ray actors, each in its own process; the harness controls each by its name.

`Cluster` starts, stops, kills, pauses, resumes and restarts nodes on a running Ray (ray_host.py, joined_ray.py). A
node's process gets signals by pid on its host (hosts.py), not through Ray: a paused process answers no Ray call, and
only SIGKILL is a real crash. The methods of `Cluster` block, and raise HarnessError on failure. Linux only.
"""

import concurrent.futures
import dataclasses
import math
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any, Generic, Protocol, Self, TypeVar

from ..remoting.node.clock import Clock, RealClock
from ..remoting.node.network import Address
from .actor import Listening, NodeActor, NodeSpec
from .errors import HarnessError
from .hosts import LOCAL, AnyProcess, Family, Host
from .watch import Alarm, DialGate
from .watch import ClusterError as ClusterError
from .watch import NodeFailed as NodeFailed

LISTEN_LIMIT_S = 60.0
START_LIMIT_S = 60.0
STOP_LIMIT_S = 30.0
SIGNAL_LIMIT_S = 5.0
DEATH_NOTICE_S = 0.5


class NodeState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    GONE = "gone"


@dataclasses.dataclass(slots=True, kw_only=True)
class Member:
    spec: NodeSpec
    state: NodeState = NodeState.STARTING
    address: Address | None = None


_Known = TypeVar("_Known", bound=Member)


class NodesByName(ABC, Generic[_Known]):
    """An experiment's nodes by name, in real or virtual time. Context manager."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._members: dict[str, _Known] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def address(self, name: str) -> Address | None:
        """Return the node's listening address; None for a node that only connects to others."""
        return self._member(name).address

    def incarnation(self, name: str) -> int:
        return self._member(name).spec.incarnation

    def state(self, name: str) -> NodeState:
        return self._member(name).state

    def _member(self, name: str) -> _Known:
        member = self._members.get(name)
        if member is None:
            raise ClusterError(f"there is no node called {name}; there are {', '.join(self._members) or 'none'}")
        return member

    def _alive(self, name: str) -> _Known:
        if self.state(name) is NodeState.GONE:
            raise ClusterError(f"{name} is not running: restart it first")
        return self._members[name]

    def _running(self, name: str) -> _Known:
        member = self._alive(name)
        if member.state is NodeState.PAUSED:
            raise ClusterError(f"{name} is paused: resume it first")
        return member

    def listen(self, specs: Iterable[NodeSpec]) -> dict[str, Address | None]:
        """Start the processes of these new nodes at the same time and bind their ports. Returns each node's listening
        address. The nodes do nothing else before `start`."""
        specs = tuple(specs)
        for spec in specs:
            if spec.name in self._members:
                raise ClusterError(f"there is a node called {spec.name} already")
            self._members[spec.name] = self._launch(spec)
        return self._bind([spec.name for spec in specs])

    def restart(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        """Start the node's next process with the same files and port. A running node is stopped cleanly first; a paused
        node is killed first. Returns, once the node has started, the time at which the node's port was open."""
        member = self._member(name)
        if self.state(name) is NodeState.PAUSED:
            self.kill(name)
        elif member.state is not NodeState.GONE:
            self.stop(name)
        self._make_way(name)
        self._members[name] = self._launch(member.spec.next_incarnation())
        before, now = member.address, self._bind([name])[name]
        if now != before and not member.spec.moves:
            raise ClusterError(f"{name} listened at {before} and came back at {now}: give it a fixed port")
        time_ms = self._effect(on_effect)
        self.start(name)
        return time_ms

    @abstractmethod
    def _launch(self, spec: NodeSpec) -> _Known:
        """Start the node's process, which does not listen yet."""

    @abstractmethod
    def _bind(self, names: list[str]) -> dict[str, Address | None]:
        """Bind the ports of these nodes. Returns each node's listening address."""

    def _make_way(self, name: str) -> None:
        """Free the node's port for its next process."""

    @abstractmethod
    def start(self, *names: str) -> None: ...
    @abstractmethod
    def kill(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float: ...
    @abstractmethod
    def stop(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float: ...

    def _effect(self, on_effect: Callable[[], None] | None) -> float:
        time_ms = self._clock.monotonic_s() * 1000
        if on_effect is not None:
            on_effect()
        return time_ms

    @abstractmethod
    def shutdown(self) -> None:
        """Kill the processes of all nodes, paused processes too."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()


@dataclasses.dataclass(slots=True, kw_only=True)
class _Member(Member):
    handle: Any
    process: AnyProcess | None = None


class Watch(Protocol):
    """Watches the nodes' processes for unplanned ends (watch.ProcessWatch, hosts.HostsWatch)."""

    def add(self, name: str, pid: int) -> None: ...
    def remove(self, *names: str) -> None: ...


class Submitted(Protocol):
    """A running call of a node's method; `result` waits for the end of the call."""

    def result(self, timeout: float | None = None) -> Any: ...


@dataclasses.dataclass(frozen=True, slots=True)
class _Alarmed:
    """The future's result; if the alarm rings first, its reason is raised."""

    future: concurrent.futures.Future[Any]
    alarm: Alarm

    def result(self, timeout: float | None = None) -> Any:
        self.alarm.wait(self.future, timeout)
        return self.future.result(0)


class Cluster(NodesByName[_Member]):
    """Nodes as Ray actors. `shutdown` can be called at any moment, from any thread, also twice.

    Returned times are milliseconds on `clock`, as in the history. A method calls `on_effect` as soon as the signal or
    call has taken effect, before slower work. Cluster tells `watch` about each new process of a node and each planned
    end. When `alarm` rings, every waiting method raises the alarm's reason. Through `dials`, connections to a node
    whose process has ended are refused until the node's next process listens. `home` says on which host each node is.
    """

    def __init__(
        self,
        clock: RealClock,
        *,
        watch: Watch | None = None,
        alarm: Alarm | None = None,
        dials: DialGate | None = None,
        home: Callable[[str], Host] = lambda _name: LOCAL,
    ) -> None:
        super().__init__(clock)
        self._watch, self._alarm, self._dials = watch, alarm, dials
        self._home = home
        self._closed = False

    # -- coming up ---------------------------------------------------------------------------------------------------

    def _launch(self, spec: NodeSpec) -> _Member:
        import ray

        if self._closed:
            raise ClusterError(f"{spec.name} cannot be started: the cluster is shut down")
        how = {"num_cpus": 0, "max_restarts": 0, "max_task_retries": 0, **self._home(spec.name).options}
        return _Member(spec=spec, handle=ray.remote(NodeActor).options(**how).remote(spec, own_process=True))

    def _bind(self, names: list[str]) -> dict[str, Address | None]:
        asked = {name: self._members[name].handle.listen.remote() for name in names}
        for name, listening in self._answers(asked, "listen", self._patience_s(names, LISTEN_LIMIT_S)).items():
            member = self._members[name]
            assert isinstance(listening, Listening)
            try:
                member.process = self._home(name).process(listening.pid)
            except ProcessLookupError as exc:
                raise ClusterError(f"the process of {name} ended as soon as it listened") from exc
            self._adopt(member, listening.children)
            member.address = listening.address
            if self._dials is not None:
                self._dials.admit(name, listening.pid)
            if self._watch is not None:
                self._watch.add(name, listening.pid)
        return {name: self._members[name].address for name in names}

    def _adopt(self, member: _Member, children: Iterable[int] | None) -> None:
        """Send the node's signals to these child processes, too, from now on."""
        if not children and not isinstance(member.process, Family):
            return
        assert member.process is not None
        family = member.process if isinstance(member.process, Family) else Family(member.process)
        family.take(children or (), self._home(member.spec.name).process)
        member.process = family

    def _patience_s(self, names: Iterable[str], limit_s: float) -> float:
        return max([limit_s, *(self._members[name].spec.patience_s for name in names if name in self._members)])

    def redial(self, name: str, dials: Mapping[Address, Address]) -> None:
        """Make the node connect to its peers only through these links (proxy addresses) from now on, after a restart,
        too. A paused node uses the new links once the node resumes."""
        member = self._members.get(name)
        if member is None:
            return
        member.spec = dataclasses.replace(member.spec, links=dict(dials))
        if self.state(name) is NodeState.GONE:
            return
        asked = member.handle.set_links.remote(dict(dials))
        if self.state(name) is not NodeState.PAUSED:
            self._answers({name: asked}, "set_links", START_LIMIT_S)

    def start(self, *names: str) -> None:
        """Start these nodes at the same time, after `listen`; by default all nodes not yet started."""
        chosen = names or tuple(n for n, m in self._members.items() if m.state is NodeState.STARTING)
        asked = {name: self._member(name).handle.start.remote() for name in chosen}
        for name, children in self._answers(asked, "start", self._patience_s(chosen, START_LIMIT_S)).items():
            self._adopt(self._members[name], children)
            self._members[name].state = NodeState.RUNNING

    # -- asking ------------------------------------------------------------------------------------------------------

    def call(self, name: str, method: str, *args: Any, timeout_s: float = 30.0, **kwargs: Any) -> Any:
        """Call the node's method; return its result or raise its exception. `timeout_s` is real time."""
        ref = self._running(name).handle.call.remote(method, args, kwargs)
        return self._answer(name, ref, method, timeout_s, own_errors=True)

    def submit(self, name: str, method: str, *args: Any, **kwargs: Any) -> Submitted:
        """Call the node's method without waiting. If the call fails, the future's `result` raises Ray's exception (such
        as RayTaskError); if the alarm rings first, `result` raises the alarm's reason."""
        future: concurrent.futures.Future[Any] = self._running(name).handle.call.remote(method, args, kwargs).future()
        return future if self._alarm is None else _Alarmed(future, self._alarm)

    def pid(self, name: str) -> int | None:
        """Return the pid of the node's process; None if the process is gone."""
        process = self._member(name).process
        return None if process is None else process.pid

    def state(self, name: str) -> NodeState:
        """Return the node's state: GONE if the node's process has ended, also by itself."""
        member = self._member(name)
        if member.process is not None and member.process.gone():
            member.state = NodeState.GONE
        return member.state

    # -- faults ------------------------------------------------------------------------------------------------------

    def kill(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        """Send SIGKILL to the node, even if paused, and wait for the end of its process. Returns the time of the
        signal."""
        member = self._alive(name)
        assert member.process is not None
        self._plan_end(name)
        member.process.send(signal.SIGKILL)
        time_ms = self._effect(on_effect)
        self._bury(name, member)
        return time_ms

    def stop(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        """Stop the node cleanly (a broker unregisters), then end its process. Returns the time at which the clean stop
        was done."""
        member = self._running(name)
        self._plan_end(name)
        self._answer(name, member.handle.stop.remote(), "stop", self._patience_s([name], STOP_LIMIT_S))
        time_ms = self._effect(on_effect)
        assert member.process is not None
        member.process.send(signal.SIGKILL)
        self._bury(name, member)
        return time_ms

    def pause(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        """Send SIGSTOP to the node. On return no thread of the process runs. Returns the time of the signal."""
        member = self._running(name)
        assert member.process is not None
        member.process.send(signal.SIGSTOP)
        time_ms = self._effect(on_effect)
        member.state = NodeState.PAUSED
        if not member.process.stopped(SIGNAL_LIMIT_S):
            raise ClusterError(f"{name} (pid {member.process.pid}) did not stop on SIGSTOP")
        return time_ms

    def resume(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        """Send SIGCONT to the node. Returns the time of the signal."""
        member = self._alive(name)
        if member.state is not NodeState.PAUSED or member.process is None:
            raise ClusterError(f"{name} is {member.state} and cannot be resumed")
        member.process.send(signal.SIGCONT)
        member.state = NodeState.RUNNING
        return self._effect(on_effect)

    def _make_way(self, name: str) -> None:
        if self._dials is not None:
            self._dials.make_way(name)

    # -- going down --------------------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        self._closed = True
        members = {name: m for name, m in self._members.items() if m.state is not NodeState.GONE}
        self._plan_end(*members)
        for member in members.values():
            if member.process is not None:
                member.process.send(signal.SIGKILL)
        for name, member in members.items():
            with suppress(ClusterError):
                self._bury(name, member)

    # -- helpers -----------------------------------------------------------------------------------------------------

    def _plan_end(self, *names: str) -> None:
        if self._watch is not None:
            self._watch.remove(*names)

    def _bury(self, name: str, member: _Member) -> None:
        """Wait for the end of a process after SIGKILL; connections to it are refused, and Ray forgets the actor."""
        process, member.process, member.state = member.process, None, NodeState.GONE
        handle, member.handle = member.handle, None
        ended = process is None or process.gone(SIGNAL_LIMIT_S)
        try:
            if self._dials is not None and process is not None and ended and not self._closed:
                self._dials.refuse(name, process.pid)
        finally:
            _forget(handle)
            if process is not None:
                process.close()
        if process is not None and not ended:
            raise ClusterError(f"{name} (pid {process.pid}) outlived SIGKILL for {SIGNAL_LIMIT_S} s")

    def _answers(self, asked: Mapping[str, Any], what: str, limit_s: float) -> dict[str, Any]:
        until_s = time.monotonic() + limit_s
        return {name: self._answer(name, ref, what, limit_s, until_s=until_s) for name, ref in asked.items()}

    def _answer(
        self, name: str, ref: Any, what: str, limit_s: float, *, until_s: float = math.inf, own_errors: bool = False
    ) -> Any:
        import ray
        import ray.exceptions

        try:
            left_s = max(0.0, min(limit_s, until_s - time.monotonic()))
            waited = self._alarm is not None and not self._alarm.wait(ref.future(), left_s)
            return ray.get(ref, timeout=0.0 if waited else left_s)
        except ray.exceptions.GetTimeoutError as exc:
            raise NodeFailed(f"{name} did not answer `{what}` within {limit_s:.0f} s") from exc
        except ray.exceptions.RayTaskError as exc:
            cause = getattr(exc, "cause", None) or exc
            if own_errors and isinstance(cause, Exception):
                raise cause from None
            why = str(cause) if isinstance(cause, HarnessError) else f"{type(cause).__name__}: {cause}"
            raise NodeFailed(f"{name} failed to {what}: {why}") from cause
        except ray.exceptions.RayError as exc:
            if self._alarm is not None:  # the watch knows more of it than Ray, in a moment
                self._alarm.sleep(DEATH_NOTICE_S)
            said = str(exc).strip().rpartition("\n")[2].strip()
            raise ClusterError(f"{name} died during `{what}`: {said}; its log may say more") from exc


def _forget(handle: Any) -> None:
    import ray

    if handle is not None and ray.is_initialized():
        with suppress(Exception):  # it is gone already, or Ray is: both are what is wanted
            ray.kill(handle, no_restart=True)

"""A host of an experiment, this machine or another: starts, signals and watches the processes of its nodes.

    Cluster ──► Host ├── LocalHost   this machine: pidfds of our own, Ray places the actors
                     └── RemoteHost  a node of a Ray cluster: asked through its HostAgent, actors pinned to it

`HostsWatch` watches node processes on all hosts, as ProcessWatch does on this machine. A long poll asks each host's
agent which processes have ended. A host that does not answer counts as lost, and its nodes as dead.
"""

from __future__ import annotations

import dataclasses
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from ..remoting.node.clock import Clock, RealClock
from .processes import Process
from .watch import Alarm, ClusterError, Death, ProcessDied

log = logging.getLogger("nemesrv.hosts")

ASK_LIMIT_S = 20.0
POLL_LIMIT_S = 30.0


class HostLost(ClusterError):
    """A host does not answer any more: its Ray node or its agent has ended, or it cannot be reached."""


class AnyProcess(Protocol):
    """A process of a node, on this machine or on another host."""

    @property
    def pid(self) -> int: ...

    def send(self, signum: signal.Signals) -> bool: ...
    def gone(self, within_s: float = 0.0) -> bool: ...
    def stopped(self, within_s: float = 0.0) -> bool: ...
    def close(self) -> None: ...


class Family:
    """A node's process and its child processes. `send` sends a signal to all of these processes, and the family is gone
    when all of them have ended."""

    def __init__(self, parent: AnyProcess) -> None:
        self._parent = parent
        self._children: dict[int, AnyProcess] = {}

    @property
    def pid(self) -> int:
        return self._parent.pid

    @property
    def children(self) -> tuple[int, ...]:
        return tuple(self._children)

    def take(self, pids: Iterable[int], process: Callable[[int], AnyProcess]) -> None:
        """Set the family's child processes; children that have already ended are left out."""
        wanted = set(pids)
        for pid in [pid for pid in self._children if pid not in wanted]:
            self._children.pop(pid).close()
        for pid in wanted - self._children.keys():
            with suppress(ProcessLookupError):
                self._children[pid] = process(pid)

    def send(self, signum: signal.Signals) -> bool:
        """Send the signal to parent and children. SIGSTOP and SIGKILL go to the parent first, SIGCONT goes to the
        parent last, because the children's traffic goes through the parent."""
        all_of_them = [self._parent, *self._children.values()]
        if signum is signal.SIGCONT:
            all_of_them.reverse()
        return [each.send(signum) for each in all_of_them][-1 if signum is signal.SIGCONT else 0]

    def gone(self, within_s: float = 0.0) -> bool:
        return self._all(lambda each, left_s: each.gone(left_s), within_s)

    def stopped(self, within_s: float = 0.0) -> bool:
        return self._all(lambda each, left_s: each.stopped(left_s), within_s)

    def _all(self, is_so: Callable[[AnyProcess, float], bool], within_s: float) -> bool:
        until_s = time.monotonic() + within_s
        every = [self._parent, *self._children.values()]
        return all(is_so(each, max(0.0, until_s - time.monotonic())) for each in every)

    def close(self) -> None:
        for each in (self._parent, *self._children.values()):
            each.close()


class Host(Protocol):
    @property
    def options(self) -> Mapping[str, Any]:
        """Return the Ray options that place an actor on this host."""

    def process(self, pid: int) -> AnyProcess:
        """Return the process with this pid on the host. Raises ProcessLookupError if there is no such process."""


class LocalHost:
    options: Mapping[str, Any] = {}

    def process(self, pid: int) -> AnyProcess:
        return Process(pid)


LOCAL = LocalHost()


class RemoteHost:
    """One Ray node of a Ray cluster, reached through nemesrv's agent on that Ray node."""

    def __init__(
        self,
        *,
        name: str,
        address: str,
        node_id: str,
        agent: Any,
        labels: Mapping[str, str],
        resources: Mapping[str, float],
    ) -> None:
        self.name, self.address, self.node_id = name, address, node_id
        self.labels, self.resources = dict(labels), dict(resources)
        self.lost = False
        self.offset_ns = 0
        """Of this host's CLOCK_MONOTONIC from the driver's, as far as it was measured."""
        self._agent = agent

    def __str__(self) -> str:
        return self.name if self.name == self.address else f"{self.name} ({self.address})"

    def ask(self, method: str, *args: Any, timeout_s: float = ASK_LIMIT_S, **kwargs: Any) -> Any:
        """Call the agent's method; return its result or raise its exception. Raises HostLost if no answer comes."""
        return self.answer(self.asking(method, *args, **kwargs), timeout_s)

    def asking(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call the agent's method without waiting. `answer` waits for the returned reference."""
        if self.lost:
            raise HostLost(f"the host {self} is lost")
        return getattr(self._agent, method).remote(*args, **kwargs)

    def answer(self, ref: Any, timeout_s: float = ASK_LIMIT_S) -> Any:
        import ray
        import ray.exceptions

        try:
            return ray.get(ref, timeout=timeout_s)
        except ray.exceptions.RayTaskError as exc:
            cause = getattr(exc, "cause", None)
            raise (cause if isinstance(cause, Exception) else exc) from None
        except ray.exceptions.GetTimeoutError as exc:
            raise HostLost(f"the host {self} did not answer within {timeout_s:.0f} s") from exc
        except ray.exceptions.RayError as exc:
            self.lost = True
            raise HostLost(f"the host {self} is lost: its Ray node, or nemesrv's agent there, has ended") from exc

    def clock(self, clock: RealClock) -> RealClock:
        """Return the clock with which this host reads the driver's time, as exactly as the clocks' offset was
        measured."""
        return dataclasses.replace(clock, origin_monotonic_ns=clock.origin_monotonic_ns + self.offset_ns)

    @property
    def options(self) -> Mapping[str, Any]:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return {"scheduling_strategy": NodeAffinitySchedulingStrategy(self.node_id, soft=False)}

    def process(self, pid: int) -> AnyProcess:
        if not self.ask("adopt", pid):
            raise ProcessLookupError(pid)
        return RemoteProcess(self, pid)


class RemoteProcess:
    """A process on another host. If the host is lost, the process counts as gone."""

    def __init__(self, host: RemoteHost, pid: int) -> None:
        self._host, self.pid = host, pid

    def send(self, signum: signal.Signals) -> bool:
        return self._ask("send", int(signum), lost=False)

    def gone(self, within_s: float = 0.0) -> bool:
        return self._ask("gone", within_s, timeout_s=within_s + ASK_LIMIT_S, lost=True)

    def stopped(self, within_s: float = 0.0) -> bool:
        return self._ask("stopped", within_s, timeout_s=within_s + ASK_LIMIT_S, lost=False)

    def _ask(self, method: str, *args: Any, lost: bool, timeout_s: float = ASK_LIMIT_S) -> bool:
        """Return the agent's answer, or `lost` if the host is lost. Raises HostLost if the host is only late."""
        try:
            return bool(self._host.ask(method, self.pid, *args, timeout_s=timeout_s))
        except HostLost:
            if not self._host.lost:
                raise
            return lost

    def close(self) -> None:
        with suppress(HostLost):
            self._host.ask("forget", self.pid)


class HostsWatch:
    """Watches node processes on all hosts: a thread per host asks the host's agent. Context manager with ProcessWatch's
    methods. `host_of` returns a node's host. A lost host's nodes count as dead."""

    def __init__(
        self,
        clock: Clock,
        *,
        hosts: Iterable[RemoteHost],
        host_of: Callable[[str], RemoteHost],
        alarm: Alarm,
        told: Callable[[Death], bool],
        at_once: Callable[[str, int], None],
        also: Callable[[], str] = lambda: "",
    ) -> None:
        """`also` returns text to put before the sentence about a lost host; "" for nothing."""
        self._also = also
        self._clock, self._alarm, self._told, self._at_once = clock, alarm, told, at_once
        self._hosts, self._host_of = tuple(hosts), host_of
        self._watched: dict[str, int] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(host,), name=f"watch-{host.name}", daemon=True)
            for host in self._hosts
        ]

    def add(self, name: str, pid: int) -> None:
        with self._lock:
            self._watched[name] = pid
        self._host_of(name).ask("watch", name, pid)

    def remove(self, *names: str) -> None:
        """Raise no alarm when these processes end, because their end is planned. Names that are not watched are
        ignored."""
        with self._lock:
            known = [name for name in names if self._watched.pop(name, None) is not None]
        by_host: dict[RemoteHost, list[str]] = {}
        for name in known:
            by_host.setdefault(self._host_of(name), []).append(name)
        for host, there in by_host.items():
            with suppress(HostLost):
                host.ask("unwatch", *there)

    def remove_all(self) -> None:
        self.remove(*self._watched)

    def _run(self, host: RemoteHost) -> None:
        while not self._ended.is_set():
            try:
                events = host.ask("events", timeout_s=POLL_LIMIT_S)
            except HostLost as exc:
                if not self._ended.is_set():
                    host.lost = True
                    self._lost(host, exc)
                return
            except Exception as exc:
                self._alarm.ring(ClusterError(f"the agent of the host {host} failed: {exc}"))
                return
            for kind, what in events:
                if kind != "woken" and not self._ended.is_set():
                    self._happened(kind, what)

    def _happened(self, kind: str, what: Any) -> None:
        name = what[0] if kind == "gone" else what.name
        with self._lock:
            if name not in self._watched:
                return  # its end was planned a moment ago
        try:
            if kind == "gone":
                self._at_once(*what)
                return
            with self._lock:
                self._watched.pop(name, None)
            log.info("%s", what)
            goes_on = self._told(what)
        except Exception as exc:
            log.exception("what follows from the death of %s could not be done", name)
            self._alarm.ring(ClusterError(f"{name} died, and what follows from that could not be done: {exc}"))
            return
        if not goes_on:
            self._alarm.ring(ProcessDied(f"{what}; nothing is judged"))

    def _lost(self, host: RemoteHost, why: HostLost) -> None:
        with self._lock:
            there = {name: pid for name, pid in self._watched.items() if self._host_of(name) is host}
            for name in there:
                del self._watched[name]
        for name, pid in there.items():
            with suppress(Exception):  # others are told all the same, and the alarm rings anyway
                self._at_once(name, pid)
        log.warning("%s is lost: %s", host, why)
        at_s = self._clock.monotonic_s()
        nodes = f" with {', '.join(there)}" if there else ""
        lost = f"{self._also()}the host {host} is lost{nodes} at {at_s:.1f} s of the run"
        self._alarm.ring(ProcessDied(f"{lost}: its Ray node or nemesrv's agent there has ended; nothing is judged"))

    def __enter__(self) -> HostsWatch:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads, because Ray ends a process that calls Ray after leaving it."""
        self._ended.set()
        with suppress(Exception):
            self.remove_all()
        for host in self._hosts:
            with suppress(Exception):
                host.ask("wake")
        for thread in self._threads:
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join(POLL_LIMIT_S)

"""Joins an existing Ray cluster and leaves it as it was: nemesrv starts only its own actors, and removes them all at
the end.

Ray's token and TLS settings come from the user's environment. Ray requires that the driver runs on one of the cluster's
nodes; an address `ray://` (Ray Client), whose driver runs outside the cluster, is refused.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import logging
import os
import re
import secrets
import socket
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any, NamedTuple

from .host_agent import AgentFacts, HostAgent
from .hosts import RemoteHost
from .processes import signals_deferred
from .ray_host import environment, quieten
from .watch import Alarm, ClusterError, Repeating

log = logging.getLogger("nemesrv.cluster")

HOST_LABEL = "nemesrv-host"
"""The label of a Ray node (`ray start --labels nemesrv-host=east`) by which a scenario's placement may name it."""
DIAL_LIMIT_S = 5.0
AGENT_LIMIT_S = 90.0
SHUTDOWN_LIMIT_S = 10.0
HEAD_EVERY_S = 1.0
HEAD_LIMIT_S = 1.0
_LET_IN_LIMIT = ("RAY_py_gcs_connect_timeout_s", "5")
"""Ray stops asking a head that refuses its token after 5 s (by default 30). Ray reads this variable at its import."""
STAY_EVERY_S = 5.0
_CALLS_AT_ONCE = 100


class RayAddressError(ClusterError):
    """The text cannot be the address of a Ray cluster."""


class _Head(NamedTuple):
    """The address at which the cluster's control server accepts connections."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def dial(self, limit_s: float = DIAL_LIMIT_S) -> None:
        socket.create_connection((self.host, self.port), limit_s).close()

    def answers(self) -> bool:
        try:
            self.dial(HEAD_LIMIT_S)
        except OSError:
            return False
        return True

    @property
    def gone(self) -> str:
        return f"Ray's head at {self} is gone"


class JoinedRay:
    """The joined Ray cluster, as a context manager. `stop` can be called at any moment, also twice. `hosts` is set once
    Ray has been joined."""

    def __init__(self, address: str) -> None:
        self._asked = address
        self._head: _Head | None = None
        self._joined = False
        self._staying: Repeating | None = None
        self.hosts: tuple[RemoteHost, ...] = ()

    def start(self) -> JoinedRay:
        """Join the cluster and start an agent on each of its hosts. Raises ClusterError with one sentence if joining is
        not possible."""
        if self._joined:
            return self
        os.environ.setdefault(*_LET_IN_LIMIT)
        self._head = _reachable(self._asked)
        self._joined = True
        try:
            with signals_deferred():
                self._init(str(self._head))
            self.hosts = self._agents()
        except BaseException as exc:
            self.stop()
            if isinstance(exc, ClusterError) or not isinstance(exc, Exception):
                raise
            raise ClusterError(_sentence(self._asked, exc)) from exc
        return self

    def _init(self, address: str) -> None:
        import ray

        if ray.is_initialized():
            raise ClusterError("this process already runs a Ray; call ray.shutdown() first")
        quieten()
        with environment({"RAY_DISABLE_IMPORT_WARNING": "1", "RAY_ADDRESS": None}):
            _require_let_in(address)
            ray.init(
                address=address,
                namespace=f"nemesrv-{secrets.token_hex(8)}",
                log_to_driver=False,
                logging_level=logging.ERROR,
                configure_logging=False,
            )

    def _agents(self) -> tuple[RemoteHost, ...]:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        nodes = [node for node in ray.nodes() if node["Alive"]]
        names = host_names(nodes)
        found = []
        for node in nodes:
            where = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            agent = ray.remote(HostAgent).options(
                num_cpus=0, max_restarts=0, max_concurrency=_CALLS_AT_ONCE, scheduling_strategy=where
            )
            found.append(
                RemoteHost(
                    name=names[node["NodeID"]],
                    address=node["NodeManagerAddress"],
                    node_id=node["NodeID"],
                    agent=agent.remote(os.getpriority(os.PRIO_PROCESS, 0)),
                    labels=node.get("Labels") or {},
                    resources=node["Resources"],
                )
            )
        found.sort(key=lambda host: host.name)
        self.hosts = tuple(found)  # whoever stops us now ends them all
        asked = [(host, host.asking("hello")) for host in found]
        for host, ref in asked:
            _require_same(host, _hello(host, ref))
        self._staying = Repeating(self._stay, STAY_EVERY_S, "ray-stay").__enter__()
        return self.hosts

    def _stay(self) -> None:
        """Tell the agents regularly that the driver is alive, between runs, too."""
        for host in self.hosts:
            with suppress(Exception):  # who watches the host will say it
                host.asking("stay")

    @property
    def driver_host(self) -> RemoteHost:
        import ray

        here = ray.get_runtime_context().get_node_id()
        return next(host for host in self.hosts if host.node_id == here)

    def servers(self) -> Mapping[str, int]:
        """Return an empty mapping: Ray's processes on other hosts are not watched, because agents show when a host is
        lost."""
        return {}

    def said_of_the_head(self) -> str:
        """Return the beginning of an error message if Ray's head does not answer, else ""."""
        return "" if self._head is None or self._head.answers() else f"{self._head.gone}, and "

    def head_watch(self, alarm: Alarm) -> Repeating:
        """Ring the alarm if Ray's control server on the head refuses two connections in a row. Ray itself notices a
        lost head only after a minute, and its calls hang meanwhile."""
        head, failed = self._head, list[str]()
        assert head is not None

        def look() -> bool:
            try:
                head.dial()
            except OSError as exc:
                failed.append(exc.strerror or str(exc))
            else:
                failed.clear()
            if len(failed) == 2:
                alarm.ring(ClusterError(f"{head.gone}: {failed[-1]}; nothing is judged"))
            return len(failed) < 2

        return Repeating(look, HEAD_EVERY_S, "head-watch")

    def stop(self) -> None:
        """Remove nemesrv's actors, processes and files from all hosts; Ray's own processes stay."""
        joined, self._joined = self._joined, False
        hosts, self.hosts = self.hosts, ()
        if not joined or self._head is None:
            return
        if self._staying is not None:
            self._staying.__exit__()
        leaving = []
        for host in hosts:
            with suppress(Exception):
                leaving.append((host, host.asking("leave")))
        for host, ref in leaving:
            with suppress(Exception):  # it is lost, or its agent never came to be: the guardian there does the rest
                host.answer(ref)
        ray = sys.modules.get("ray")
        if ray is None or not ray.is_initialized():
            return
        done: concurrent.futures.Future[None] = concurrent.futures.Future()

        def shut_down() -> None:
            try:
                ray.shutdown()
            except Exception as exc:
                log.warning("Ray could not be left in order: %s", exc)
            finally:
                done.set_result(None)

        if threading.current_thread() is threading.main_thread() and self._head.answers():
            shut_down()
            return
        if not self._head.answers():
            atexit.unregister(ray.shutdown)  # it would wait for the head once more
        threading.Thread(target=shut_down, name="ray-leave", daemon=True).start()  # without its head it may not end
        concurrent.futures.wait([done], SHUTDOWN_LIMIT_S)

    def __enter__(self) -> JoinedRay:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def host_names(nodes: list[dict[str, Any]]) -> dict[str, str]:
    """Return each Ray node's name by node id: its label `nemesrv-host`, else its host name if unique, else its address
    if unique, else the start of its node id. Raises ClusterError if two Ray nodes would have one name."""
    labels = {node["NodeID"]: (node.get("Labels") or {}).get(HOST_LABEL) for node in nodes}
    machines = Counter(node["NodeManagerHostname"] for node in nodes)
    addresses = Counter(node["NodeManagerAddress"] for node in nodes)
    found = {}
    for node in nodes:
        label, machine, address = labels[node["NodeID"]], node["NodeManagerHostname"], node["NodeManagerAddress"]
        alone = machine if machines[machine] == 1 else address if addresses[address] == 1 else node["NodeID"][:12]
        found[node["NodeID"]] = label or alone
    if twice := [name for name, times in Counter(found.values()).items() if times > 1]:
        raise ClusterError(f"{len(nodes)} Ray nodes, and more than one is called {twice[0]} by its label {HOST_LABEL}")
    return found


def _reachable(asked: str) -> _Head:
    address = asked
    if "://" in asked:
        raise RayAddressError(
            f"--ray {asked} is not allowed; expected auto or HOST:PORT of the head, from one of the cluster's hosts"
        )
    if asked == "auto":
        from ray._private.services import get_ray_address_from_environment

        try:
            address = get_ray_address_from_environment("auto", None) or ""
        except (ConnectionError, RuntimeError, ValueError):
            address = ""
        if not address:
            raise ClusterError(
                "no Ray cluster runs on this host: `ray start` one, or join it to yours (--address), or name its head "
                "with --ray HOST:PORT"
            )
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise RayAddressError(f"--ray {asked} is not allowed; expected auto or HOST:PORT of the head")
    head = _Head(host, int(port))
    try:
        head.dial()
    except OSError as exc:
        why = exc.strerror or str(exc)
        raise ClusterError(f"no Ray head answers at {head} ({why}): is it up, and is this its port?") from exc
    return head


def _require_let_in(address: str) -> None:
    """Raise ConnectionError, with the message of Ray's client, if the head refuses our token or TLS."""
    from ray._raylet import GcsClient  # type: ignore[attr-defined]

    with tempfile.TemporaryFile() as said:
        stderr = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            GcsClient(address=address)
        except Exception as exc:
            said.seek(0)
            raise ConnectionError(f"Failed to connect to Ray cluster at {address}: {_last_line(said.read())}") from exc
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def _last_line(said: bytes) -> str:
    """The last line of Ray's output, without the time and source location that Ray's C++ puts first."""
    lines = said.decode(errors="replace").splitlines()
    return re.sub(r"^\[.*?\] \S+: ", "", lines[-1]) if lines else ""


def _hello(host: RemoteHost, ref: Any) -> AgentFacts:
    import ray.exceptions

    try:
        facts = host.answer(ref, AGENT_LIMIT_S)
    except ClusterError as exc:
        text = str(exc.__cause__)
    except (ray.exceptions.RayError, ImportError, RuntimeError) as exc:
        text = str(exc)
    else:
        assert isinstance(facts, AgentFacts)
        return facts
    if "No module named" in text or "failed to be imported" in text or "ModuleNotFoundError" in text:
        missing = re.search(r"No module named '([^']+)'", text)
        package = missing[1].partition(".")[0] if missing else "nemesrv"
        raise ClusterError(
            f"the Python of Ray on the host {host} has no {package}: install nemesrv there, in the version of this "
            'host, from its wheel (make dist): python -m pip install "nemesrv-VERSION-py3-none-any.whl[ray]"'
        )
    log.warning("%s: %s", host, text)
    raise ClusterError(f"nemesrv's agent does not start on the host {host}: see the worker's log of Ray there")


def _require_same(host: RemoteHost, facts: AgentFacts) -> None:
    try:
        ours = version("nemesrv")
    except PackageNotFoundError:
        return
    if facts.nemesrv is not None and facts.nemesrv != ours:
        raise ClusterError(f"the host {host} has nemesrv {facts.nemesrv}, and this one {ours}: install the same on all")


def _sentence(asked: str, exc: Exception) -> str:
    text = " ".join(" ".join(map(str, _with_causes(exc))).split())
    if "ersion mismatch" in text:
        theirs = re.search(r"cluster was started with: Ray: (\S+) Python: (\S+)", text)
        import ray

        there = f"runs Ray {theirs[1]} on Python {theirs[2]}" if theirs else "runs other versions"
        return (
            f"the Ray cluster at {asked} {there}, and this host has Ray {ray.__version__} on Python "
            f"{python_version()}: both must be the same"
        )
    if "token" in text.lower() or "nauthenticated" in text:
        return (
            f"the Ray cluster at {asked} refused our token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as its own are"
        )
    if "Failed to connect to Ray cluster" in text:  # its port took a connection, so what was said on it was not liked
        return (
            f"the Ray cluster at {asked} takes connections but did not let us in ({text[:300]}): its RAY_AUTH_MODE, "
            "RAY_AUTH_TOKEN and RAY_USE_TLS must be ours"
        )
    return f"the Ray cluster at {asked} could not be joined: {text[:300]}"


def _with_causes(exc: BaseException | None) -> Iterator[BaseException]:
    """The error and its causes, because Ray's first error says only that it could not connect."""
    while exc is not None:
        yield exc
        exc = exc.__cause__ or exc.__context__

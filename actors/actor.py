"""The Ray actor that runs one Node (server or client) in its own process, with its own log and history file.

`NodeActor` has no Ray decorator, so that a test can drive it without Ray; cluster.py makes it an actor. The actor
records the history rows `started` and `stopped`, because a node does not know when its process begins or ends.
"""

from __future__ import annotations

import asyncio
import dataclasses
import faulthandler
import gc
import inspect
import logging
import os
import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..remoting.node.clock import AdjustableClock, Clock
from ..remoting.node.network import Address, Network, TcpNetwork
from ..remoting.node.node import Node, NodeContext
from ..remoting.node.recording import Recorder, ignore
from .processes import die_with_parent, renice

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
ADJUST_CLOCK = "adjust_clock"


class ClosableRecorder(Protocol):
    def __call__(self, event: str, /, **fields: object) -> None: ...
    def close(self) -> None: ...


class OpensRecorder(Protocol):
    """Opens the history file in the actor's process. The driver pickles this object and sends it to the actor
    (chaos.history.recorder.RecorderSpec)."""

    def open(self) -> ClosableRecorder: ...

    def for_incarnation(self, incarnation: int) -> OpensRecorder: ...


@runtime_checkable
class Probe(Protocol):
    """Measures a node's process, for example how late its timers fire (chaos.history.recorder.LagProbe)."""

    def start(self, record: Recorder, clock: Clock) -> None: ...

    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """All that a process needs to become a node. Pickling uses cloudpickle, so `factory` can be a closure."""

    name: str
    role: str
    factory: Callable[[NodeContext], Node]
    clock: Clock
    seed: int = 0
    incarnation: int = 0
    recorder_spec: OpensRecorder | None = None
    probe: Callable[[], Probe] | None = None
    data_dir: Path | None = None
    log_file: Path | None = None
    links: Mapping[Address, Address] | None = field(default_factory=dict)
    """The address at which each peer is reached. Empty: no peer can be reached until links are set. None: peers' own
    addresses."""
    niceness: int | None = None
    """What its process is to have, where it may choose; None: as Ray started it."""
    patience_s: float = 0.0
    """How long it may take to listen, to start or to stop where that is more than a node's usual limit."""
    moves: bool = False
    """Whether a later process may listen at another address."""

    def next_incarnation(self) -> NodeSpec:
        """Return the spec of the node's next process, which has the same name, files and port."""
        number = self.incarnation + 1
        recorder = self.recorder_spec and self.recorder_spec.for_incarnation(number)
        return dataclasses.replace(self, incarnation=number, recorder_spec=recorder)


class Listening(NamedTuple):
    pid: int
    address: Address | None
    children: tuple[int, ...] = ()
    """Processes that share the node's signals: sent SIGSTOP, SIGCONT and SIGKILL with it, and gone with it."""


def children_of(node: Node) -> tuple[int, ...]:
    """Return the pids in the node's attribute `children`; an empty tuple if the node has no such attribute."""
    return tuple(getattr(node, "children", ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The clock, network and log of a node that has no process of its own (chaos/experiment/virtual/)."""

    network: Network
    log: logging.Logger
    pid: int


class NodeActor:
    """Runs one Node: binds its port, sets the proxies to its peers, starts it, stops it and calls its methods."""

    def __init__(self, spec: NodeSpec, *, own_process: bool = False, surroundings: Surroundings | None = None) -> None:
        self._spec = spec
        if own_process:
            take_over_process(spec.log_file, spec.niceness)
        self._network: Network = TcpNetwork(spec.links) if surroundings is None else surroundings.network
        self._log = logging.getLogger(f"nemesrv.{spec.name}") if surroundings is None else surroundings.log
        self._clock = AdjustableClock(spec.clock)
        self._pid = os.getpid() if surroundings is None else surroundings.pid
        self._recorder: ClosableRecorder | None = None
        self._record: Recorder = ignore
        self._probe: Probe | None = None
        self.node: Node | None = None
        """None before it listens and after it has stopped."""
        self._address: Address | None = None

    async def listen(self) -> Listening:
        """Create the node and bind its port; return its process's pid, its address and its child processes."""
        spec = self._spec
        asyncio.get_running_loop().set_exception_handler(self._log_unhandled)
        if spec.data_dir is not None:
            spec.data_dir.mkdir(parents=True, exist_ok=True)
        if spec.recorder_spec is not None:
            self._recorder = self._record = spec.recorder_spec.open()
        context = NodeContext(
            name=spec.name,
            clock=self._clock,
            network=self._network,
            rng=random.Random(f"{spec.seed}/{spec.name}/{spec.incarnation}"),
            record=self._record,
            log=self._log,
            data_dir=spec.data_dir,
            logs=spec.log_file and spec.log_file.with_suffix(""),
            incarnation=spec.incarnation,
        )
        self.node = spec.factory(context)
        self._address = await self.node.listen()
        return Listening(self._pid, self._address, children_of(self.node))

    async def set_links(self, links: Mapping[Address, Address]) -> None:
        """Make the node connect to its peers only through these links (proxy addresses) from now on."""
        if isinstance(self._network, TcpNetwork):
            self._network.set_links(links)

    async def start(self) -> tuple[int, ...]:
        """Start the node and return its child processes. The history row `started` comes after the rows of the node's
        `prepare` and before the node's other rows."""
        node = self._the_node()
        if (prepare := getattr(node, "prepare", None)) is not None:
            await prepare()
        address = None if self._address is None else str(self._address)
        self._record("started", address=address, value={"pid": self._pid})
        if self._spec.probe is not None:
            self._probe = self._spec.probe()
            self._probe.start(self._record, self._spec.clock)
        await node.start()
        return children_of(node)

    async def stop(self) -> None:
        """Stop the node cleanly, and close its history file."""
        node, self.node = self.node, None
        try:
            if node is not None:
                await node.stop()
        finally:
            if self._probe is not None:
                await self._probe.stop()
            self._record("stopped")
            if self._recorder is not None:
                self._recorder.close()

    async def call(self, method: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the result of the node's `method`, awaited if it is a coroutine. The actor itself carries out
        `adjust_clock`."""
        if method == ADJUST_CLOCK:
            return self._clock.adjust(*args)
        result = getattr(self._the_node(), method)(*args, **kwargs)
        return await result if inspect.isawaitable(result) else result

    def die(self) -> None:
        """Close the history file without stopping the node, which has been killed in virtual time."""
        if self._recorder is not None:
            self._recorder.close()

    def _the_node(self) -> Node:
        if self.node is None:
            raise RuntimeError(f"{self._spec.name} does not run: it has not listened yet, or was stopped")
        return self.node

    def _log_unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._log.error("%s", context.get("message"), exc_info=context.get("exception"))


def take_over_process(log_file: Path | None, niceness: int | None) -> None:
    """Prepare this Ray worker process for one node: the process dies with its raylet, even while paused, and logs to
    the node's file."""
    if sys.platform == "linux":
        die_with_parent()
        if niceness is not None:
            renice(niceness)
    if log_file is not None:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        stream = log_file.open("a", encoding="utf-8", buffering=1)
        os.dup2(stream.fileno(), sys.stderr.fileno())  # what the interpreter itself has to say belongs here too
        handler = logging.StreamHandler(stream)
        handler.setFormatter(logging.Formatter(LOG_FORMAT))
        root = logging.getLogger("nemesrv")
        root.addHandler(handler)
        root.setLevel(logging.INFO)
        root.propagate = False
    faulthandler.enable()
    gc.freeze()  # Ray's own objects are not looked through again: such a pause would make every timer late

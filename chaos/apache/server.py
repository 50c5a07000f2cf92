"""Apache's NameServer or broker as a node. The server's JVM is behind a front at the node's address and connects
through fronts.

    listen    fronts accept. A NameServer's JVM is up, and a restarted broker's, whose requests to
              NameServers wait
    prepare   a new broker's JVM is up, with its first topics
    start     waiting requests go on: the broker registers
    stop      SIGTERM to the JVM, whose hooks run, until it has ended
    (killed)  the JVM dies with this process, and this process with the JVM

`ApacheServer` has all methods of nemesrv's own servers, plus `have_topics`. server_rows.py makes the history's rows for
the server.
"""

import asyncio
import contextlib
import os
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...remoting.node.clock import RealClock
from ...remoting.node.file_names import file_name
from ...remoting.node.network import Address
from ...remoting.node.node import NodeContext
from ...remoting.node.profile import Profile
from ...remoting.node.tasks import cancel_all
from ...remoting.topics import DEFAULT_CLUSTER
from ..faults.ports import PortHolder
from ..fronts.dialler import Dialler
from ..fronts.front import Front
from ..fronts.observed import Asked, Observation
from ..topology import NodeKind, broker_id
from . import doors, properties
from .broker_rows import BrokerRows
from .distribution import ProgramPart, distribution
from .jvm import JavaCommand, JavaDied, JavaNode, JavaProgram, dialled_at
from .libfaketime import FakedTime
from .name_server_rows import NameServerRows
from .server_rows import ServerAbout, ServerRows
from .tables import PERIOD_S, TablePoller

MAINS = {
    NodeKind.NAME_SERVER: "org.apache.rocketmq.namesrv.NamesrvStartup",
    NodeKind.BROKER: "org.apache.rocketmq.broker.BrokerStartup",
}
LOG_FILES = ("namesrv.log", "broker.log", "remoting.log")
BOOT_LIMIT_S, STOP_LIMIT_S, PATIENCE_S = 150.0, 60.0, 180.0
"""Machine time: a JVM takes seconds of CPU, and a run's JVMs start beside Spark's."""
LOOKS_S, POLLS_S = 0.1, 0.1
"""Machine time: how often its logs are read, and at most how often its tables are polled."""
_REGISTERS = frozenset({103, 322})
"""A broker's first requests: REGISTER_BROKER, or QUERY_DATA_VERSION before it."""
_UP = b"boot success"
"""In the line with which a NameServer says that it serves."""
_PORTS = range(10_000, 19_990)
"""Ports of JVMs, below those of the harness."""
_BESIDE = (-2, doors.HA, doors.DLEDGER)
"""Ports beside a broker's: VIP, HA, DLedger."""
_ROUTINE = {"waitTimeMillsInSendQueue": 200, "osPageCacheBusyTimeOutMills": 1_000}
"""How long work may wait in a broker before it answers "busy", which is the machine's fault. Longer if RocketMQ's time
runs faster than the machine's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlan:
    """The settings with which the node's process begins; the plan can be pickled. All addresses in the plan are
    advertised addresses."""

    implementation: str
    kind: NodeKind
    listen: Address
    advertised: Address
    settings: Mapping[str, object] = field(default_factory=dict)
    """RocketMQ's names to the scenario's values."""
    name_servers: Mapping[str, Address] = field(default_factory=dict)
    """A broker's list."""
    broker_name: str = ""
    broker_id: int = 0
    members: Mapping[str, Address] = field(default_factory=dict)
    """A broker's other brokers of its name."""
    controllers: Mapping[str, Address] = field(default_factory=dict)
    """A broker's controllers: the NameServers that are one."""
    cluster_name: str = DEFAULT_CLUSTER


class ApacheServer(JavaNode):
    """One NameServer or broker of Apache's, a Node (remoting/node/node.py)."""

    def __init__(self, context: NodeContext, plan: ServerPlan) -> None:
        assert context.data_dir is not None
        super().__init__(context)
        self._plan, self._folder = plan, context.data_dir
        self._logs = (context.logs or context.data_dir / "logs").resolve()
        self._is_broker = plan.kind is not NodeKind.NAME_SERVER
        self._made_by = distribution(plan.implementation)
        self._dialler = Dialler(
            context.clock,
            dialled_at(context),
            name_servers=plan.name_servers,
            brokers=plan.members,
            vip=plan.members,
            see=self._saw,
        )
        self._front = Front(context.name, self._upstream, self._saw, context.clock, vip=self._is_broker)
        self._to_controller: Dialler | None = None
        """Of a broker under a controller: to that one, by the link to the NameServer that it is part of. It waits for
        nothing: of that a broker's registrations come."""
        if plan.controllers:
            self._to_controller = Dialler(
                context.clock, dialled_at(context), name_servers=plan.controllers, brokers={}, see=_unseen
            )
        self._diallers = [self._dialler, *([self._to_controller] if self._to_controller else [])]
        self._is_controller = not self._is_broker and plan.settings.get("enableControllerInNamesrv") is True
        if plan.members or self._is_controller:
            self._front.leads, self._front.tells_by = self._led, doors.tells
        self._up = asyncio.Event()
        self._port = 0
        self._held = PortHolder(ports=_PORTS)
        self._faked: FakedTime | None = None
        self._rows: ServerRows | None = None
        self._is_up: asyncio.Future[None] | None = None
        self._topics: dict[str, int] = {}
        self._read_to: dict[str, int] = {}
        """Up to which byte each of the JVM's log files was read, a line's end."""
        self._poller: TablePoller | None = None

    # -- lifecycle ---------------------------------------------------------------------------------------------------

    async def listen(self) -> Address:
        """Make the server's front accept connections. Returns the address to advertise. Raises JavaDied, JavaMissing or
        OSError."""
        self._dialler.hold()
        for dialler in self._diallers:
            await dialler.open()
        self._dialler.tells(self._dialler.told)
        await self._front.open(self._plan.listen)
        if not self._is_broker or self._context.incarnation:
            await self._boot()
        return self._plan.advertised

    def have_topics(self, topics: Mapping[str, int]) -> None:
        """Give the broker these topics (name to queues) from its first registration on. Call it before `start`."""
        self._topics.update(topics)

    async def prepare(self) -> None:
        if self._java is None:
            await self._boot()

    async def start(self) -> None:
        """Pass on the JVM's bytes to other servers; until now the fronts kept these bytes back."""
        self._dialler.release()
        fronts = (dialler.own_addresses for dialler in self._diallers)
        self._begin(self._look_round(frozenset().union(*fronts)))

    async def stop(self) -> None:
        """Stop the server cleanly: the JVM runs its shutdown hooks, a broker unregisters, and the JVM ends."""
        if self._rows is not None:
            self._read_logs()
        if isinstance(self._rows, NameServerRows):
            self._rows.stops()
        if self._java is not None:
            await self._java.terminate(STOP_LIMIT_S)
        await cancel_all(self._tasks)
        if self._poller is not None:
            await self._poller.close()
        await self._front.close()
        for dialler in self._diallers:
            await dialler.close()
        if self._rows is not None:
            self._read_logs()
            self._rows.end(self._now_ms())
        self._forget()

    async def faulted(self, meets: Mapping[str, str]) -> None:
        for dialler in self._diallers:
            await dialler.faulted(meets)

    # -- the JVM -----------------------------------------------------------------------------------------------------

    async def _boot(self) -> None:
        """Start the JVM: a NameServer serves, a broker serves and has begun to register."""
        assert self._made_by is not None
        context, clock = self._context, self._real_clock()
        self._held = PortHolder(ports=_PORTS)
        self._port = self._held.take(beside=_BESIDE).port
        own = Address("127.0.0.1", self._port)
        said = doors.as_told(own, self._plan.advertised)
        self._dialler.says(said)
        if self._plan.members:
            self._front.addresses = said
        if self._is_controller:
            self._front.addresses = {str(Address(own.host, own.port + doors.CONTROLLER)): str(self._plan.advertised)}
        if self._to_controller is not None:
            self._to_controller.says(said)
            self._to_controller.tells({**self._dialler.told, **self._to_controller.told_of_name_servers})
        if self._rows is None:  # else a defect has put another JVM in its place
            self._rows = (BrokerRows if self._is_broker else NameServerRows)(self._put, self._about())
        self._faked = FakedTime(clock, f"{file_name(context.name)}-{context.incarnation}")
        self._read_to = {file: _size(self._logs_folder / file) for file in LOG_FILES}
        try:
            command = self._command(self._faked.environment)
            output = self._logs / "java.log"
            self._java = JavaProgram(context.name, command, output, said=self._said, ended=self._ended)
            self._is_up = asyncio.get_running_loop().create_future()
            self._java.start()
            late = "did not begin to register" if self._is_broker else f"did not say {_UP.decode()!r}"
            await self._java.within(self._is_up, BOOT_LIMIT_S, late)
        except BaseException:
            if self._java is not None:
                await self._java.kill()
            self._forget()
            raise
        self._faked.forget()
        self._serves()

    def _serves(self) -> None:
        self._up.set()
        self._begin(self._keep_looking())
        self._begin(self._measure_lag())
        if isinstance(self._rows, NameServerRows):
            own, clock, log = Address("127.0.0.1", self._port), self._real_clock(), self._context.log
            self._poller = TablePoller(own, self._context.clock, self._rows.topics, profile=self._profile, log=log)
            self._begin(self._poller.keep_polling(self._rows.polled, max(PERIOD_S, POLLS_S * clock.scale)))

    async def _stands_by(self) -> None:
        self._up.clear()
        for task in [task for task in self._tasks if task is not asyncio.current_task()]:
            task.cancel()
        if self._poller is not None:
            await self._poller.close()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._failed)
        self._tasks.append(task)

    def _failed(self, task: asyncio.Task[None]) -> None:
        """End the run, because the JVM's observer failed: a history with an unknown gap must not be judged."""
        if not task.cancelled() and (why := task.exception()) is not None:
            self._context.log.error("what the JVM does is seen no more", exc_info=why)
            asyncio.get_running_loop().call_later(0.05, os._exit, 1)

    def _command(self, environment: Mapping[str, str]) -> JavaCommand:
        assert self._made_by is not None
        home = self._folder.resolve() / "home"
        class_path = self._made_by.class_path(ProgramPart.SERVERS, verified=True)  # by the run, before it began
        part = "broker" if self._is_broker else "namesrv"
        properties.write_logback(home / "conf", self._logs_folder)
        logback = properties.logback_of_jar(class_path, part, home / "conf")
        self._logs_folder.mkdir(parents=True, exist_ok=True)
        config = properties.write(home / "conf" / f"{part}.conf", self._config())
        if isinstance(self._rows, BrokerRows):
            self._write_topics(home / "store" / "config" / "topics.json")
            offsets = home / "store" / "config" / "consumerOffset.json"
            self._rows.recovered(offsets.read_bytes() if offsets.is_file() else None)
        return JavaCommand(
            class_path=class_path,
            main=MAINS[NodeKind.BROKER if self._is_broker else NodeKind.NAME_SERVER],
            arguments=("-c", str(config)),
            properties={} if logback is None else {"rmq.logback.configurationFile": str(logback)},
            environment=environment,
            home=home,
            user_home=self._logs,
        )

    def _config(self) -> dict[str, object]:
        plan, home = self._plan, self._folder.resolve() / "home"
        if not self._is_broker:
            own = doors.controller(self._port, home) if self._is_controller else {}
            return properties.name_server(self._port, home, {**own, **plan.settings})
        scale = self._real_clock().scale
        patient = {name: round(value * scale) for name, value in _ROUTINE.items()}
        own = {"brokerClusterName": plan.cluster_name, **(patient if scale > 1 else {}), **plan.settings}
        own |= doors.role(plan.broker_id, plan.settings)
        if self._to_controller is not None:
            own |= {"controllerAddr": self._to_controller.namesrv_addr}
        if plan.settings.get("enableDLegerCommitLog") is True:
            members = {broker_id(name): self._dialler.address(name) for name in plan.members}
            members[plan.broker_id] = Address("127.0.0.1", self._port + doors.DLEDGER)
            own |= doors.dledger_group(plan.broker_id, plan.broker_name, members)
        return properties.broker(self._port, home, plan.broker_name, self._dialler.namesrv_addr.split(";"), own)

    def _write_topics(self, file: Path) -> None:
        if self._topics and not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(properties.topics_file(self._topics, self._context.clock.now_ms()))

    def _forget(self) -> None:
        if self._faked is not None:
            self._faked.forget()
        self._held.close()

    # -- what is seen ------------------------------------------------------------------------------------------------

    def _saw(self, one: Observation) -> None:
        if isinstance(one, Asked) and one.code in _REGISTERS and one.front != self._context.name:
            self._came_up()
        if self._rows is not None:
            self._rows.saw(one)

    def _said(self, line: bytes) -> None:
        if not self._is_broker and _UP in line:
            self._came_up()

    def _came_up(self) -> None:
        if self._is_up is not None and not self._is_up.done():
            self._is_up.set_result(None)

    def _about(self) -> ServerAbout:
        plan = self._plan
        timeout = plan.settings.get("registerBrokerTimeoutMills", 6_000 if self._profile is Profile.V4_9 else 24_000)
        return ServerAbout(
            name=self._context.name,
            broker_name=plan.broker_name,
            broker_id=plan.broker_id,
            elects=doors.elects(plan.settings),
            scale=self._real_clock().scale,
            name_servers={name: str(address) for name, address in plan.name_servers.items()},
            fronts={str(self._dialler.address(name)): name for name in plan.name_servers},
            register_timeout_ms=float(str(timeout)),
        )

    @property
    def _profile(self) -> Profile:
        assert self._made_by is not None
        return self._made_by.profile

    async def _upstream(self) -> Address | None:
        """Return where connections to the node go: to the JVM, once the JVM is up."""
        await self._up.wait()
        return Address("127.0.0.1", self._port)

    async def _led(self, first: bytes) -> Address | None:
        """Return, for one of several brokers of a name, the port that the caller with these first bytes wants."""
        at = await self._upstream()
        door = doors.door(first) if self._is_broker else doors.door_of_controller(first)
        return None if at is None else Address(at.host, at.port + door)

    async def _keep_looking(self) -> None:
        assert self._rows is not None
        while True:
            await asyncio.sleep(LOOKS_S)
            self._read_logs()
            self._rows.passed(self._now_ms())

    def _read_logs(self) -> None:
        assert self._rows is not None
        for file, at in self._read_to.items():
            with contextlib.suppress(OSError), (self._logs_folder / file).open("rb") as opened:
                opened.seek(at)
                *lines, rest = opened.read().split(b"\n")
                self._read_to[file] = opened.tell() - len(rest)
                now_ms = self._now_ms()
                for line in lines:
                    self._rows.logged(now_ms, line.decode("utf-8", "replace").rstrip("\r"))

    @property
    def _logs_folder(self) -> Path:
        return self._logs / "logs" / "rocketmqlogs"

    def _real_clock(self) -> RealClock:
        clock = getattr(self._context.clock, "real", self._context.clock)
        if not isinstance(clock, RealClock):
            raise JavaDied(f"{self._context.name} is {self._plan.implementation}, which goes by the real clock only")
        return clock


def _unseen(_: Observation) -> None:
    """Ignore: messages between a broker and its controller are not in the history."""


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0

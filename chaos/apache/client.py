"""A Node that runs Apache's own producer or consumer in a JVM, with fronts in this process.

    node ── start, begin, finish, clock ──► Workload.java ──► DefaultMQProducer, DefaultMQPushConsumer
      ▲ ◄── JSON lines: what it does ──────────┘                     │ connects
      └──── fronts: what passes on the wire ◄────────────────────────┘

The history's rows come from the client's printed lines (workload_rows.py) and from the wire (chaos/fronts/rows.py). The
JVM is killed and paused with the node's process. SIGTERM makes the JVM shut down cleanly.
"""

import asyncio
import contextlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...remoting.node.clock import AdjustableClock, RealClock
from ...remoting.node.file_names import file_name
from ...remoting.node.network import Address
from ...remoting.node.node import NodeContext
from ...remoting.node.tasks import cancel_all
from ..fronts import behaviour
from ..fronts.dialler import Dialler
from ..fronts.dials import DialWatch
from ..fronts.look_ups import Rules
from ..fronts.observed import Behaved, Dialled, GaveUp, Observation, Opened
from ..fronts.rows import ClientRows, TimedRow
from ..history.host_clocks import ClockReading
from . import properties
from .distribution import MAIN, class_path
from .jvm import JavaCommand, JavaNode, JavaProgram, dialled_at
from .libfaketime import FakedTime
from .workload_rows import WorkloadRows

READY_S, START_S, STOP_S = 90.0, 60.0, 20.0
"""Limits for the JVM's start, its client's start and its shutdown, on a very busy machine."""
_ASKED_AT_START = 5
_LOOKS_EACH_S = 0.25
_NO_LOGBACK = "<configuration><root level='OFF'/></configuration>"
"""For libraries in its jars, e.g. Netty. RocketMQ's client has its own log (rocketmq_client.log)."""
_SYSTEM_PROPERTIES = {
    "waitInterval": "rocketmq.client.rebalance.waitInterval",
    "minInterval": "rocketmq.client.rebalance.minInterval",
}
"""Settings that a client takes from JVM properties."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaClientConfig:
    """The settings from which a Java client is made. `settings` has RocketMQ's names as keys. All addresses are
    advertised addresses."""

    implementation: str
    role: str
    topic: str
    group: str
    name_servers: Mapping[str, Address]
    """In the order of its list. An address of no server of the run refuses connections."""
    brokers: Mapping[str, Address]
    rules: Rules
    settings: Mapping[str, object] = field(default_factory=dict)
    sends_per_s: float = 1.0
    body_bytes: int = 0
    ordered_keys: int = 0
    broadcasting: bool = False

    def properties(self, context: NodeContext, namesrv_addr: str) -> dict[str, object]:
        told: dict[str, object] = {
            "role": self.role,
            "name": context.name,
            "incarnation": context.incarnation,
            "namesrvAddr": namesrv_addr,
            "topic": self.topic,
            "group": self.group,
            "sendsPerSecond": self.sends_per_s,
            "phase": context.rng.random(),
            "bodyBytes": self.body_bytes,
            "orderedKeys": self.ordered_keys,
            "broadcasting": self.broadcasting,
        }
        own = {f"set.{name}": value for name, value in self.settings.items() if name not in _SYSTEM_PROPERTIES}
        return {**told, **own}

    @property
    def system_properties(self) -> dict[str, str]:
        known = self.settings.keys() & _SYSTEM_PROPERTIES.keys()
        return {_SYSTEM_PROPERTIES[name]: properties.said(self.settings[name]) for name in sorted(known)}


class JavaClient(JavaNode):
    """One client of Apache's: `prepare` starts its JVM, `start` starts the client in the JVM. A producer sends from
    `begin` to `finish`."""

    def __init__(self, context: NodeContext, config: JavaClientConfig) -> None:
        super().__init__(context)
        self._config = config
        self._dialler = Dialler(
            context.clock,
            dialled_at(context),
            name_servers=config.name_servers,
            brokers=config.brokers,
            see=self._see,
            nobody=[name for name, at in config.name_servers.items() if name == str(at)],
        )
        self._dials: DialWatch | None = None
        self._late = LateDials()
        self._faked: FakedTime | None = None
        self._rows = self._new_rows()
        self._clock: ClockReading | None = None
        """The most exact reading of the JVM's System.nanoTime."""
        self._workload: WorkloadRows | None = None
        self._asked_ms: list[float] = []
        self._heard: dict[str, asyncio.Future[None]] = {}
        self._chosen: Address | None = None
        self._began = False
        self._leaves = False

    def _new_rows(self) -> ClientRows:
        config, seen = self._config, self._dials is not None and self._dials.why_unseen is None
        servers, brokers = ({name: str(at) for name, at in of.items()} for of in (config.name_servers, config.brokers))
        rows = ClientRows(self._put, config.rules, servers, brokers, seen=seen, told=True)
        for one in self._dialler.behaved(self._now_ms()):
            rows.saw(one)
        return rows

    # --- a node's life ------------------------------------------------------------------------------------------------

    async def listen(self) -> Address | None:
        await self._dialler.open()
        return None

    async def prepare(self) -> None:
        """Start the JVM and read its clock; the JVM connects nowhere yet. Raises JavaDied."""
        context, config, dialler = self._context, self._config, self._dialler
        self._workload = WorkloadRows(self._put, config.group, dialler.everybodys)
        assert context.logs is not None
        home = context.logs.resolve()
        about = home / f"workload.{context.incarnation}.properties"
        properties.write(about, config.properties(context, dialler.namesrv_addr))
        quiet = home / "logback.xml"
        quiet.write_text(_NO_LOGBACK, encoding="utf-8")
        kept = {} if context.data_dir is None else {"rocketmq.client.localOffsetStoreDir": str(context.data_dir)}
        scaled = _real_clock(context)
        self._faked = None if scaled is None else FakedTime(scaled, file_name(context.name))
        command = JavaCommand(
            class_path=class_path(config.implementation, verified=True),  # by the run, before it began
            main=MAIN,
            arguments=(str(about),),
            properties={**config.system_properties, **kept, "logback.configurationFile": str(quiet)},
            environment={} if self._faked is None else self._faked.environment,
            home=home,
            user_home=home,
        )
        if scaled is None:  # who looks at its dials goes by the machine's clock
            self._dials = DialWatch(self._see, context.clock, dialler.front_of)
        self._java = JavaProgram(
            context.name, command, home / "java.log", said=self._said, ended=self._ended, dials=self._dials
        )
        try:
            await self._boot(self._java)
        except BaseException:
            await self._java.kill()
            raise
        finally:
            if self._faked is not None:
                self._faked.forget()

    async def _boot(self, program: JavaProgram) -> None:
        ready = self._hears("ready")
        program.start()
        await program.within(ready, READY_S, "was not ready")
        if self._dials is not None:
            await self._dials.told()
        self._rows = self._new_rows()
        for _ in range(_ASKED_AT_START):
            heard = self._hears("clock")
            self._ask_clock()
            await program.within(heard, READY_S, "did not tell its time")

    async def start(self) -> None:
        """Start the client. If no NameServer is reachable, the start is repeated, as a process supervisor would do."""
        looks = (self._look(), self._look_round(self._dialler.own_addresses), self._measure_lag())
        self._tasks = [asyncio.create_task(task) for task in looks]
        tried = self._hears("started", "start_failed")
        self._write("start")
        assert self._java is not None
        await self._java.within(tried, START_S, "did not start its client")

    async def stop(self) -> None:
        self._leaves = True
        if self._java is not None:
            await self._java.terminate(STOP_S)
        if self._faked is not None:
            self._faked.forget()
        await cancel_all(self._tasks)
        if self._dials is not None:
            self._dials.close()
        await self._dialler.close()
        self._rows.end(self._now_ms())

    # --- what the harness asks of a client ----------------------------------------------------------------------------

    async def begin(self) -> None:
        self._began = True
        self._write("begin")

    async def finish(self) -> None:
        if self._began and self._java is not None and self._java.children:
            finished = self._hears("finished")
            self._write("finish")
            await self._java.within(finished, START_S, "did not end its last send")

    async def chosen_name_server(self) -> Address | None:
        return self._chosen

    async def faulted(self, meets: Mapping[str, str]) -> None:
        await self._dialler.faulted(meets)

    # --- what it tells, and what is seen ------------------------------------------------------------------------------

    def _put(self, row: TimedRow) -> None:
        if row.event == "name_server_chosen":
            self._chosen = Address.parse(row.fields["name_server"])
        if self._leaves and row.event == "pull" and row.fields.get("type") == "info":
            return  # what its own leaving cuts off has no end, as of a client of ours
        super()._put(row)

    def _see(self, one: Observation) -> None:
        if self._late.is_news(one):
            self._rows.saw(one)

    def _said(self, line: bytes) -> None:
        if not line.startswith(b'{"f":'):
            return
        try:
            said = json.loads(line)
            what, at_ns = said["f"], said["at"]
        except (ValueError, KeyError):
            return
        if what == "clock" and self._asked_ms:
            reading = ClockReading.of(self._asked_ms.pop(0), at_ns / 1e6, self._now_ms())
            self._clock = min(reading, self._clock or reading, key=lambda one: one.bound_ms)
        elif what == "start_failed":  # the next one is another client: its own list, and its own first choice
            self._rows.end(self._now_ms())
            self._rows = self._new_rows()
        elif self._workload is not None and self._clock is not None:
            self._workload.heard(at_ns / 1e6 - self._clock.offset_ms, said)
        if (waiting := self._heard.get(what)) is not None and not waiting.done():
            waiting.set_result(None)

    def _hears(self, *kinds: str) -> asyncio.Future[None]:
        """Return a future with the client's next line of one of these kinds."""
        heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._heard |= dict.fromkeys(kinds, heard)
        return heard

    def _write(self, what: str) -> None:
        assert self._java is not None
        self._java.write(json.dumps({"f": what}).encode())

    def _ask_clock(self) -> None:
        self._asked_ms.append(self._now_ms())
        self._write("clock")

    async def _look(self) -> None:
        """Repeat until cancelled: write rows that waited for a time-out, and ask the JVM for its time."""
        while True:
            await self._context.clock.sleep(_LOOKS_EACH_S)
            self._rows.passed(self._now_ms())
            if not self._asked_ms:
                with contextlib.suppress(OSError):
                    self._ask_clock()


def _real_clock(context: NodeContext) -> RealClock | None:
    clock = context.clock.real if isinstance(context.clock, AdjustableClock) else context.clock
    return clock if isinstance(clock, RealClock) and clock.scale != 1 else None


class LateDials:
    """Recognizes duplicates: connection attempts of one program that a front has already reported. Call `is_news` for
    each observation, in order of time."""

    def __init__(self) -> None:
        self._refusing: set[str] = set()
        self._waiting = Counter[str]()
        """By front, the number of dials of which nothing has come yet."""
        self._let_in: dict[str, list[float]] = defaultdict(list)
        """By front, when those were let in that nobody has told of yet."""

    def is_news(self, one: Observation) -> bool:
        """Return False for a connection attempt that a front has already reported, or to an address without a front."""
        match one:
            case Behaved():
                refuses = one.behaviour.dials is behaviour.Dials.REFUSED
                (self._refusing.add if refuses else self._refusing.discard)(one.front)
            case Dialled():
                return one.front is not None and self._dialled(one.front, one.at_ms)
            case GaveUp():
                return one.front is not None and self._over(one.front)
            case Opened():
                if not self._over(one.front):
                    self._let_in[one.front].append(one.at_ms)
            case _:
                pass
        return True

    def _dialled(self, front: str, at_ms: float) -> bool:
        let_in = next((opened_ms for opened_ms in self._let_in[front] if opened_ms >= at_ms), None)
        if let_in is not None:
            self._let_in[front].remove(let_in)
            return False
        self._waiting[front] += front not in self._refusing
        return True

    def _over(self, front: str) -> bool:
        is_over = self._waiting[front] > 0
        self._waiting[front] -= is_over
        return is_over

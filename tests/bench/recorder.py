"""`python -m tests.bench recorder`: how many events a host can record, and what recording costs a NameServer.

Events: processes of their own, each with a HistoryWriter on a running event loop, write the mix of a client's rows.
Cost: look-ups of a NameServer that records beside one that does not, in turn; meanwhile a broker changes its topics ten
times a second, so that there are routes to record. A NameServer has one thread, so what recording takes of its core is
what look-ups lose; that is measured by itself, for on a busy machine two rates of look-ups differ by more.
"""

import asyncio
import contextlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rich.console import Console

from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.chaos.history.recorder import LagProbe, RecorderSpec
from nemesrv.chaos.reports.terminal import standard_output
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address, TcpNetwork
from nemesrv.remoting.node.node import NodeContext
from nemesrv.remoting.node.recording import ignore

from . import frames, measure
from .figures import OURS, Aim, Figures
from .measure import BenchError, Server, Tools

WANTED_PER_S = 200_000
COST_MAX_PERCENT = 2.0
ROUNDS = 8
TOPICS = 20
CHANGES_PER_S = 10
RECORDING, SILENT = "recording", "silent"

_WRITE = "import sys; from tests.bench.recorder import write_for; write_for(sys.argv[1], float(sys.argv[2]))"
_SERVE = "import sys; from tests.bench.recorder import serve; serve(sys.argv[1], int(sys.argv[2]), sys.argv[3])"


def run(seconds: float = 3, *, rounds: int = ROUNDS, console: Console | None = None) -> Figures:
    """Measure, print and return. BenchError when a process fails."""
    console = console or standard_output()
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="nemesrv-bench-") as name:
        folder = Path(name)
        processes = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        for count, who in ((1, "one process"), (processes, f"host: {processes} processes side by side, summed")):
            wall, cpu = _writers(folder, count, seconds)
            figures.add(f"events/s recorded, {who}", OURS, wall)
            figures.add(f"events/s of CPU, {who}", OURS, cpu)
        figures.aims.append(Aim(what=f"events/s recorded, {who}", of=None, at_least=WANTED_PER_S))
        _cost(figures, measure.build(folder), seconds, rounds)
    figures.print(console)
    return figures


# -- events a second


def client_rows(count: int) -> list[tuple[str, dict[str, Any]]]:
    """What clients record of `count` messages: seven events each."""
    found: list[tuple[str, dict[str, Any]]] = []
    for number in range(count):
        op_id, key = f"7F000001C5989F06126F{number:012X}", f"producer-0-{number}"
        queue = {"broker_name": "broker-a", "queue_id": number % 4}
        tried = {"op_id": op_id, "attempt": 0, "address": Address("127.0.0.1", 10911), **queue}
        sent = {"op_id": op_id, "topic": "orders", "msg_key": key}
        pulled = {"topic": "orders", "offset": number, "address": Address("127.0.0.1", 10911), **queue}
        found += [
            ("send", {"type": "invoke", **sent}),
            ("send_attempt", {"type": "invoke", **tried}),
            ("send_attempt", {"type": "ok", "code": 0, "duration_ms": 1.25, **tried}),
            ("send", {"type": "ok", "code": 0, "offset": number, "attempt": 1, "duration_ms": 1.5, **queue, **sent}),
            ("pull", {"type": "invoke", **pulled}),
            ("pull", {"type": "ok", "code": 0, "duration_ms": 1.75, **pulled}),
            ("receive", {"msg_key": key, "topic": "orders", "offset": number, "op_id": "take-1", **queue}),
        ]
    return found


def write_for(run_dir: str, seconds: float) -> None:
    """Record for so long, a hundred events each turn of the loop; prints events, seconds and seconds of CPU."""

    async def record() -> tuple[int, float, float]:
        spec = RecorderSpec.for_run(run_dir, f"producer-{os.getpid()}", "producer", 0, RealClock.starting_now())
        rows, count = client_rows(1000), 0
        writer = spec.open()
        try:
            begin_s, begin_cpu_s = time.perf_counter(), time.process_time()
            while time.perf_counter() - begin_s < seconds:
                first = count % len(rows)
                for event, fields in rows[first : first + 100]:
                    writer(event, **fields)
                count += 100
                await asyncio.sleep(0)
            writer.flush()
            return count, time.perf_counter() - begin_s, time.process_time() - begin_cpu_s
        finally:
            writer.close()

    print(*asyncio.run(record()), flush=True)


def _writers(folder: Path, processes: int, seconds: float) -> tuple[float, float]:
    """Events a second of all processes together, and what that were had each a core to itself all the while."""
    with tempfile.TemporaryDirectory(dir=folder) as run_dir:
        command = [sys.executable, "-c", _WRITE, run_dir, str(seconds)]
        running = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(processes)
        ]
        said = [process.communicate(timeout=seconds + 60) for process in running]
    if any(process.returncode for process in running):
        raise BenchError(f"a recording process failed: {said[0][1].strip()[-500:]}")
    figures = [[float(part) for part in out.split()] for out, _ in said]
    return sum(n / wall_s for n, wall_s, _ in figures), sum(n / cpu_s for n, _, cpu_s in figures)


# -- what it costs a NameServer


def serve(folder: str, port: int, how: str) -> None:
    """A NameServer until it is killed; `how` is RECORDING or SILENT. Prints its port when it listens."""

    async def run() -> None:
        clock = RealClock.starting_now()
        spec = RecorderSpec.for_run(folder, "ns-0", "name_server", 0, clock)
        writer = spec.open() if how == RECORDING else None
        context = NodeContext(
            name="ns-0", clock=clock, network=TcpNetwork(), rng=random.Random(1), record=writer or ignore
        )
        server = NameServer(context, NamesrvConfig(), listen=Address("127.0.0.1", port))
        await server.listen()
        await server.start()
        if writer is not None:
            probe = LagProbe()
            probe.start(writer, clock)
        print(port, flush=True)
        await asyncio.Event().wait()

    with contextlib.suppress(ImportError):
        import uvloop

        uvloop.install()
    asyncio.run(run())


def _served(folder: Path, how: str) -> AbstractContextManager[Server]:
    port = str(measure.free_address().port)
    return measure.served_by([sys.executable, "-W", "ignore", "-c", _SERVE, str(folder / how), port, how])


def _cost(figures: Figures, tools: Tools, seconds: float, rounds: int) -> None:
    """Rows of both NameServers, and by how many percent recording makes a look-up dearer."""
    cpu_us: dict[str, list[float]] = {RECORDING: [], SILENT: []}
    with contextlib.ExitStack() as stack:
        servers = {how: stack.enter_context(_served(tools.folder, how)) for how in cpu_us}
        connections = {how: stack.enter_context(frames.connected(server)) for how, server in servers.items()}
        for round_ in range(rounds):
            for how in sorted(servers, reverse=bool(round_ % 2)):
                server, connection = servers[how], connections[how]
                changes = frames.shot(connection, "changes", *frames.changing(TOPICS, changed=TOPICS))
                # A topic of a broker that does not change, so that every answer is the same.
                frames.call(connection, frames.registration(1, frames.body(frames.topics(2, prefix="fixed"))))
                look_up = frames.shot(connection, "look-up", frames.route_request("fixed-00000"))
                before_s, port, each_s = server.cpu_s(), server.address.port, seconds / rounds
                with tools.loading(port, changes, seconds=each_s, per_s=CHANGES_PER_S) as ended:
                    load = tools.load(port, look_up, seconds=each_s, connections=16, in_flight=16).checked(how)
                    ended().checked("changes")
                if load.requests:
                    cpu_us[how].append((server.cpu_s() - before_s) / load.requests * 1e6)
                    figures.add("look-ups/s", how, load.per_s)
        of_core = {how: _changes_alone(servers[how], connections[how], tools, seconds) for how in servers}
    for how, values in cpu_us.items():
        if not values:
            raise BenchError(
                f"the {how} NameServer answered no look-up in {rounds} x {seconds / rounds:g} s: the machine is too "
                "busy, so end other programs or measure longer (--seconds)"
            )
        figures.add("% of its core without look-ups", how, of_core[how], less_is_better=True)
        for value in values:
            figures.add("CPU µs a look-up", how, value, less_is_better=True)
    recording, silent = figures.rows["look-ups/s"][RECORDING], figures.rows["look-ups/s"][SILENT]
    figures.add("% fewer look-ups/s when recording", OURS, max(0.0, (1 - recording / silent) * 100))
    figures.add("% of its core that recording takes", OURS, max(0.0, of_core[RECORDING] - of_core[SILENT]))
    for what in ("% fewer look-ups/s when recording", "% of its core that recording takes"):
        figures.less_is_better.add(what)
        figures.aims.append(Aim(what=what, of=None, at_most=COST_MAX_PERCENT))


def _changes_alone(server: Server, connection: socket.socket, tools: Tools, seconds: float) -> float:
    """Percent of a core that the changes take, and the recording of them: what is missing for look-ups."""
    changes = frames.shot(connection, "changes", *frames.changing(TOPICS, changed=TOPICS))
    begin_s, before_s = time.perf_counter(), _on_cpu_s(server.pid)
    tools.load(server.address.port, changes, seconds=seconds, per_s=CHANGES_PER_S).checked("changes")
    return (_on_cpu_s(server.pid) - before_s) / (time.perf_counter() - begin_s) * 100


def _on_cpu_s(pid: int) -> float:
    """Seconds that the process's first thread has run, to the nanosecond where the kernel says so."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return Server(Address("127.0.0.1", 0), pid).cpu_s()

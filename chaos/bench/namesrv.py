"""How many route look-ups a second a NameServer answers, beside echoes that move the same bytes in the same run.

Four shots: a topic on one broker and a topic on 64, each asked with a JSON and with a ROCKETMQ header. Every row of
the table answers the same frames to the same load generator, one request in flight on each connection unless told
otherwise, server and load on a core of their own. A row's share is of the C echo (of the uvloop echo where there is no
C compiler), measured in the same run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ...remoting.bodies import DataVersion, RegisterBrokerBody, TopicConfig, TopicConfigSerializeWrapper
from ...remoting.codes import RequestCode, SerializeType
from ...remoting.command import RemotingCommand
from ...remoting.frame import decode_frame, encode_frame
from ...remoting.headers import RegisterBrokerRequestHeader
from ...remoting.network import Address
from . import measure
from .measure import BenchError, Load, Shot

TOPICS = {"topic-on-one-broker": 1, "topic-on-64-brokers": 64}
OPAQUE = 123_456_789
ROUNDS = 6
_START = "import sys; from nemesrv.actors.namesrv.standalone import run; sys.exit(run(sys.argv[1], int(sys.argv[2])))"

Target = Callable[[], AbstractContextManager[Address]]
"""Starts an empty NameServer, gives its address, and stops it at the end; e.g. one in a Ray actor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    server: str
    shot: str
    load: Load
    share: float | None
    """Of the echo's requests per second; None for the echo itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResult:
    rows: tuple[Row, ...]
    baseline: str
    compiled: bool
    connections: int
    in_flight: int

    def per_s(self, server: str, shot: str) -> float:
        """Requests per second of one row. KeyError when there is none."""
        for row in self.rows:
            if (row.server, row.shot) == (server, shot):
                return row.load.per_s
        raise KeyError((server, shot))

    def print(self, console: Console | None = None) -> None:
        """The table, and in one line how it was measured."""
        table = Table(title=f"route look-ups: {self.connections} connections, {self.in_flight} in flight on each")
        table.add_column("server", no_wrap=True)
        table.add_column("request", no_wrap=True)
        for column in ("req/s", "p50 µs", "p99 µs", f"of {self.baseline}"):
            table.add_column(column, justify="right", no_wrap=True)
        for row in self.rows:
            share = "" if row.share is None else f"{row.share:.0%}"
            numbers = (f"{row.load.per_s:,.0f}", str(row.load.p50_us), str(row.load.p99_us), share)
            table.add_row(row.server, row.shot, *numbers)
        if console is None:
            console = Console()
            console = console if console.is_terminal else Console(width=120)
        console.print(table)
        if not self.compiled:
            console.print("No C compiler: load generator and baseline are Python on uvloop, so all is slower.")


def run(
    seconds: float = 3,
    connections: int = 16,
    in_flight: int = 1,
    *,
    targets: Mapping[str, Target] | None = None,
    rounds: int = ROUNDS,
    console: Console | None = None,
) -> BenchResult:
    """Measure, print the table and return it. `targets` are further NameServers by row name. BenchError.

    Each row is measured `rounds` times, in turn with the others, for its share of `seconds` each, and its best
    round counts: what else the machine does can only slow a round down.
    """
    with tempfile.TemporaryDirectory(prefix="nemesrv-bench-") as name, contextlib.ExitStack() as servers:
        folder = Path(name)
        tools = measure.build(folder)
        begin = servers.enter_context
        populations = {
            server: begin(registered(begin(target())))
            for server, target in {"NameServer": lambda: own_process(folder), **(targets or {})}.items()
        }
        rows: list[Row] = []
        for number in range(len(populations["NameServer"].shots)):
            shots = {server: population.shots[number] for server, population in populations.items()}
            shot = shots["NameServer"]
            with contextlib.ExitStack() as echoes:
                ports = {"C echo": echoes.enter_context(measure.c_echo(tools, shot, folder))} if tools.compiled else {}
                ports["uvloop echo"] = echoes.enter_context(measure.uvloop_echo(shot, folder))
                ports |= {server: population.address.port for server, population in populations.items()}
                best: dict[str, Load] = {}
                for _ in range(rounds):
                    for population in populations.values():
                        population.refresh()
                    for server, port in ports.items():
                        load = measure.load(
                            tools,
                            port,
                            shots.get(server, shot),
                            folder,
                            seconds=seconds / rounds,
                            connections=connections,
                            in_flight=in_flight,
                        )
                        if load.bad:
                            raise BenchError(f"{server}: {load.bad} of {load.requests} answers differ ({shot.name})")
                        if server not in best or load.per_s > best[server].per_s:
                            best[server] = load
            base = next(iter(best.values())).per_s
            rows += [
                Row(server=server, shot=shot.name, load=load, share=load.per_s / base if index else None)
                for index, (server, load) in enumerate(best.items())
            ]
        result = BenchResult(
            rows=tuple(rows),
            baseline="C echo" if tools.compiled else "uvloop echo",
            compiled=tools.compiled,
            connections=connections,
            in_flight=in_flight,
        )
    result.print(console)
    return result


@contextlib.contextmanager
def own_process(folder: Path) -> Iterator[Address]:
    """Our stand-alone NameServer on a core of its own."""
    config = folder / "namesrv.conf"
    config.write_text(f"kvConfigPath={folder / 'kvConfig.json'}\nbindAddress=127.0.0.1\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with open(folder / "namesrv.log", "w+b") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, str(config), str(port)], stdout=subprocess.PIPE, stderr=log
        )
        try:
            measure.pin(process.pid, measure.cpus()[0])
            assert process.stdout is not None
            if b"boot success" not in process.stdout.readline():
                log.seek(0)
                raise BenchError(f"the NameServer did not start: {log.read().decode(errors='replace')[-500:]}")
            yield Address("127.0.0.1", port)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """A NameServer with 64 brokers in its table, and what it answers to each shot."""

    address: Address
    shots: tuple[Shot, ...]
    refresh: Callable[[], None]
    """Register the brokers again, so that neither they nor their channel are silent for too long."""


@contextlib.contextmanager
def registered(address: Address) -> Iterator[Population]:
    """Register 64 brokers over one connection, which stays open meanwhile."""
    with socket.create_connection(address, timeout=10) as connection:

        def register() -> None:
            for number in range(max(TOPICS.values())):
                topics = tuple(TopicConfig(topic_name=name) for name, brokers in TOPICS.items() if number < brokers)
                _call(connection, _registration(number, topics))

        register()
        shots = []
        for topic, brokers in TOPICS.items():
            for kind in SerializeType:
                request = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
                request.serialize_type = kind
                asked, answered = _call(connection, request)
                shots.append(
                    Shot(
                        name=f"{kind.name}, {brokers} broker{'s' if brokers > 1 else ''}, {len(answered):,} B",
                        request=asked,
                        request_offset=_opaque_offset(asked),
                        response=answered,
                        response_offset=_opaque_offset(answered),
                        text=kind is SerializeType.JSON,
                    )
                )
        yield Population(address=address, shots=tuple(shots), refresh=register)


def _registration(number: int, topics: tuple[TopicConfig, ...]) -> RemotingCommand:
    header = RegisterBrokerRequestHeader(
        broker_name=f"broker-{number:02}",
        broker_addr=f"10.0.0.{number + 1}:10911",
        cluster_name="DefaultCluster",
        ha_server_addr=f"10.0.0.{number + 1}:10912",
        broker_id=0,
    )
    wrapper = TopicConfigSerializeWrapper.of(topics, DataVersion(timestamp=1, counter=1))
    body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=())
    return RemotingCommand.request(RequestCode.REGISTER_BROKER, header, body.encode())


def _call(connection: socket.socket, command: RemotingCommand) -> tuple[bytes, bytes]:
    """The frames sent and received. BenchError unless the answer is code 0."""
    command.opaque = OPAQUE
    asked = encode_frame(command)
    connection.sendall(asked)
    answered = _receive(connection, 4)
    answered += _receive(connection, int.from_bytes(answered, "big"))
    response = decode_frame(answered)
    if response.code:
        raise BenchError(f"request {command.code} was answered with code {response.code}: {response.remark}")
    return asked, answered


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise BenchError("the NameServer closed the connection")
        data += part
    return data


def _opaque_offset(frame: bytes) -> int:
    return frame.index(b"%d" % OPAQUE) if frame[4] == SerializeType.JSON else 13


if __name__ == "__main__":
    run(float(sys.argv[1]) if len(sys.argv) > 1 else 3)

"""Peers that misbehave, against a real `nemesrv namesrv` process: each bounded in time and in what it costs."""

import os
import re
import resource
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.connection import MAX_UNSENT
from nemesrv.remoting.frame import FRAME_MAX, decode_frame, encode_frame
from tests.chaos.faults.sockets import read_exactly
from tests.interop.waiting import eventually

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (INFO|WARN|ERROR) main - .*")
"""The shape of RocketMQ's namesrv.log."""

MIB = 1024 * 1024
LEFT_OF_THE_LIMIT = 300
"""File descriptors that this process needs for itself."""


class Server:
    """One NameServer process, and what the system says about it."""

    def __init__(self, folder: Path, **settings: object) -> None:
        config = folder / "namesrv.conf"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._log = folder / "namesrv.log"
        command = [sys.executable, "-m", "nemesrv.chaos", "namesrv", "-c", str(config), "--listen-port", "0"]
        # no more than the usual 1,024 file descriptors: raising that is the server's own business
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                ["prlimit", f"--nofile=1024:{hard}", *command],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "HOME": str(folder)},
            )
        assert self.process.stdout is not None
        assert "boot success" in self.process.stdout.readline(), self.log
        self.port = self._listening_port()
        self._sockets_at_rest = self.sockets

    def _listening_port(self) -> int:
        inodes = set(self._files())
        for line in Path(f"/proc/{self.process.pid}/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                assert fields[1].startswith("0100007F:"), "it listens on loopback unless told otherwise"
                return int(fields[1].rpartition(":")[2], 16)
        raise AssertionError("it listens nowhere")

    @property
    def log(self) -> str:
        return self._log.read_text()

    def lines(self, *words: str) -> list[str]:
        return [line for line in self.log.splitlines() if all(word in line for word in words)]

    @property
    def memory(self) -> int:
        """Resident bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * resource.getpagesize()

    @property
    def sockets(self) -> int:
        return sum(file.startswith("socket:") for file in self._files())

    def rests(self) -> None:
        """Wait until every connection is gone."""
        eventually(lambda: _same(self.sockets, self._sockets_at_rest))

    def _files(self) -> Iterator[str]:
        for link in Path(f"/proc/{self.process.pid}/fd").iterdir():
            try:
                yield os.readlink(link)
            except FileNotFoundError:  # it has just been closed
                pass

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def ask(self, code: int = RequestCode.GET_ROUTEINFO_BY_TOPIC, **fields: str) -> RemotingCommand:
        """The answer on a connection of its own."""
        with self.connect() as peer:
            peer.sendall(frame(code, **(fields or {"topic": "T"})))
            return answer(peer)

    def serves(self) -> bool:
        return self.ask().code == ResponseCode.TOPIC_NOT_EXIST


def frame(code: int = RequestCode.GET_ROUTEINFO_BY_TOPIC, body: bytes = b"", **fields: str) -> bytes:
    return encode_frame(RemotingCommand.request(code, fields, body))


def answer(peer: socket.socket) -> RemotingCommand:
    """The next frame that comes; EOFError when the connection ends."""
    data = read_exactly(peer, 4)
    return decode_frame(data + read_exactly(peer, int.from_bytes(data, "big")))


def closed_within(peer: socket.socket, seconds: float) -> bool:
    """Whether the server closes the connection, answering nothing, before that."""
    peer.settimeout(seconds)
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def name(peer: socket.socket) -> str:
    """As the server's log has it."""
    host, port = peer.getsockname()
    return f"{host}:{port}"


@contextmanager
def running(folder: Path, **settings: object) -> Iterator[Server]:
    folder.mkdir(exist_ok=True)
    server = Server(folder, **settings)
    try:
        yield server
        server.process.terminate()
        assert server.process.wait(10) == 0
        for line in server.log.splitlines():
            assert LINE.fullmatch(line) or line.startswith("malformed frame: "), line
    finally:
        server.process.kill()
        server.process.communicate()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("hard-peers")) as server:
        yield server


def test_a_peer_that_does_not_read_is_closed_with_one_line_and_bounded_memory(server: Server) -> None:
    server.ask(RequestCode.PUT_KV_CONFIG, namespace="ns", key="large", value="x" * MIB)
    before = server.memory
    with server.connect() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        question, most = frame(RequestCode.GET_KV_CONFIG, namespace="ns", key="large"), before
        deadline = time.monotonic() + 10
        try:
            while time.monotonic() < deadline:
                peer.sendall(question)
                most = max(most, server.memory)
        except (ConnectionError, TimeoutError):
            pass
        eventually(lambda: _same(len(server.lines(name(peer), "too slow")), 1))
    assert most - before < 2 * MAX_UNSENT
    assert server.serves()


def _same(one: object, other: object) -> None:
    assert one == other


def test_a_silent_peer_is_closed_when_its_time_is_up_and_takes_its_broker_along(tmp_path: Path) -> None:
    with running(tmp_path / "ns", serverChannelMaxIdleTimeSeconds=1) as server, ExitStack() as peers:
        silent, half, broker = (peers.enter_context(server.connect()) for _ in range(3))
        half.sendall(frame(topic="T")[:20])
        identity = {"brokerName": "a", "brokerAddr": "10.0.0.1:1", "clusterName": "c", "brokerId": "0"}
        broker.sendall(frame(RequestCode.REGISTER_BROKER, haServerAddr="x", **identity))
        assert answer(broker).code == 0
        assert b"10.0.0.1:1" in server.ask(RequestCode.GET_BROKER_CLUSTER_INFO, a="b").body
        for peer in (silent, half, broker):
            assert closed_within(peer, 5)
        eventually(lambda: _same(server.ask(RequestCode.GET_BROKER_CLUSTER_INFO, a="b").body.count(b"10.0.0.1"), 0))
        for peer in (silent, half, broker):
            assert len(server.lines(name(peer), "IDLE exception")) == 1


def test_a_peer_that_has_closed_its_half_is_closed(server: Server) -> None:
    with server.connect() as peer:
        peer.sendall(frame(topic="T") + frame(topic="U")[:30])
        peer.shutdown(socket.SHUT_WR)
        assert answer(peer).code == ResponseCode.TOPIC_NOT_EXIST
        assert closed_within(peer, 5)
    assert server.serves()


def test_five_thousand_idle_connections_are_held_and_cost_little(server: Server) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(5000, hard - LEFT_OF_THE_LIMIT)
    server.rests()
    sockets, before = server.sockets, server.memory
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + LEFT_OF_THE_LIMIT), hard))
    try:
        with ExitStack() as held:
            peers = [held.enter_context(server.connect()) for _ in range(count)]
            eventually(lambda: _same(server.sockets, sockets + count))
            assert server.serves()
            for peer in peers[:: count // 10]:
                peer.sendall(frame(topic="T"))
                assert answer(peer).code == ResponseCode.TOPIC_NOT_EXIST
            each = (server.memory - before) / count
            print(f"{count} idle connections: {each:.0f} B of the server's memory each")
            assert each < 16 * 1024
        server.rests()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert server.serves()


def test_a_frame_of_16_mib_is_waited_for_and_served(server: Server) -> None:
    with server.connect() as peer:
        whole = frame(topic="T", body=bytes(FRAME_MAX - len(frame(topic="T"))))
        assert int.from_bytes(whole[:4], "big") == 16_777_212
        peer.sendall(whole[:-1])
        assert not closed_within(peer, 0.2)
        peer.settimeout(10)
        peer.sendall(whole[-1:])
        assert answer(peer).code == ResponseCode.TOPIC_NOT_EXIST


def test_what_is_no_frame_closes_its_connection_at_once_with_one_line(server: Server) -> None:
    with server.connect() as peer:
        peer.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert closed_within(peer, 5)
        assert len(server.lines(f"decode exception, {name(peer)}")) == 1
    assert server.serves()


def test_a_storm_of_connections_leaves_nothing_behind(server: Server) -> None:
    before = server.memory
    reset = struct.pack("ii", 1, 0)
    for number in range(3000):
        with server.connect() as peer:
            if number % 3:
                peer.sendall(frame(topic="T")[: 10 * (number % 30)])
            if number % 2:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)  # it ends with a reset, not a goodbye
    assert server.serves()
    server.rests()
    assert server.memory - before < 32 * MIB

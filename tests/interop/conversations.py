"""Record what Apache's broker and mqadmin say to Apache's NameServer, and what it answers:
`python -m tests.interop.conversations` writes tests/remoting/golden/*.hex, which our own NameServer is held to.

A relay stands between them. A line of a file is an event, in order: the connection's number, then `>` and a request's
frame, `<` and the response's, or `x` for the end of the connection.
"""

import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

from nemesrv.clients.admin import AdminClient
from nemesrv.remoting.frame import FrameReader

from . import programs
from .conftest import CLIENTS, SERVERS
from .mqadmin import MQAdmin
from .waiting import ask, eventually

GOLDEN = Path(__file__).parent.parent / "remoting" / "golden"
TOPIC = "golden-topic"


class Relay:
    """Passes every byte on, both ways, and keeps the frames in the order in which they came."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.events: list[str] = []
        self._lock = threading.Lock()
        self._count = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            number, self._count = self._count, self._count + 1
            for source, sink, sign in ((client, server, ">"), (server, client, "<")):
                threading.Thread(target=self._pass, args=(source, sink, number, sign), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, number: int, sign: str) -> None:
        reader = FrameReader()
        try:
            while data := source.recv(1 << 20):
                with self._lock:
                    self.events += [f"{number} {sign} {frame.hex()}" for frame in reader.feed(data)]
                sink.sendall(data)
            with self._lock:
                if sign == ">":
                    self.events.append(f"{number} x")
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        self._listener.close()


@contextmanager
def _serialize_type(kind: str) -> Iterator[None]:
    """Of the Java programs that are started within it."""
    with patch.dict(os.environ, {"ROCKETMQ_SERIALIZE_TYPE": kind}):
        yield


def record(profile: str, kind: str, home: Path) -> list[str]:
    """The events of a broker's life and of an admin's work, at one NameServer."""
    with ExitStack() as stack:
        server, address = programs.java_name_server("ns", home / "ns", SERVERS[profile])
        stack.enter_context(server)
        relay = Relay(address)
        stack.callback(relay.close)
        stack.enter_context(_serialize_type(kind))
        mqadmin = MQAdmin("mqadmin", home / "mqadmin", CLIENTS[profile])
        stack.enter_context(mqadmin.program)
        name_servers = [relay.address]
        broker, broker_address = programs.java_broker("b", home / "b", SERVERS[profile], name_servers, "java-b")
        stack.enter_context(broker)
        eventually(lambda: ask(address, lambda admin: admin.topic_route("TBW102")), within_s=40)
        to = ("-n", relay.address)
        mqadmin.ok("updateTopic", *to, "-b", broker_address, "-t", TOPIC, "-r", "3", "-w", "2")
        eventually(lambda: ask(address, lambda admin: admin.topic_route(TOPIC)), within_s=40)
        mqadmin("clusterList", *to)  # a broker this young has no statistics to tell
        mqadmin.ok("topicList", *to)
        mqadmin.ok("topicRoute", *to, "-t", TOPIC)
        mqadmin("topicRoute", *to, "-t", "nowhere")
        mqadmin.ok("updateKvConfig", *to, "-s", "ns", "-k", "key", "-v", "a:4;b:4")
        mqadmin.ok("deleteKvConfig", *to, "-s", "ns", "-k", "key")
        # the first of an order configuration: mqadmin complains that there is none, and makes it
        mqadmin("updateTopic", *to, "-b", broker_address, "-t", TOPIC, "-r", "3", "-w", "2", "-o", "true")
        mqadmin.ok("getNamesrvConfig", *to)
        mqadmin.ok("updateNamesrvConfig", *to, "-k", "orderMessageEnable", "-v", "true")
        mqadmin.ok("topicRoute", *to, "-t", TOPIC)
        mqadmin.ok("wipeWritePerm", *to, "-b", "java-b")
        mqadmin.ok("topicRoute", *to, "-t", TOPIC)
        mqadmin.ok("addWritePerm", *to, "-b", "java-b")
        # a 5.x broker without a timer store fails at it before the NameServer is asked
        mqadmin("deleteTopic", *to, "-c", "DefaultCluster", "-t", TOPIC)
        broker.terminate()  # upon which 5.x unregisters and 4.9 hangs up
        eventually(lambda: _no_broker(address))
        mqadmin("clusterList", *to)
        return list(relay.events)


def _no_broker(address: str) -> None:
    assert not ask(address, AdminClient.cluster_info).broker_addr_table


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for profile in ("4.9", "5.x"):
        server, clients = SERVERS[profile].version, CLIENTS[profile].version
        for kind in ("JSON", "ROCKETMQ"):
            with tempfile.TemporaryDirectory() as home:
                events = record(profile, kind, Path(home))
            comment = (
                f"# Apache RocketMQ: mqadmin {clients} and broker {server}, {kind} headers, to NameServer {server}.\n"
                "# Recorded by tests/interop/conversations.py, which says what a line is.\n"
            )
            path = GOLDEN / f"{profile}-{kind.lower()}.hex"
            path.write_text(comment + "\n".join(events) + "\n")
            print(f"{path.name}: {len(events)} events")


if __name__ == "__main__":
    main()

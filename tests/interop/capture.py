"""Record frames of real Apache RocketMQ programs into golden/*.hex: `python -m tests.interop.capture`.

Requests are what Apache's clients and brokers sent to our servers, responses what Apache's servers answered to our
clients: of each request code the first that came, or the longest where an early one says little.
"""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.actors.broker.server import Broker
from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.clients.admin import AdminClient
from nemesrv.clients.config import ProducerConfig
from nemesrv.clients.producer.producer import DefaultMQProducer
from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.connection import Connection
from nemesrv.remoting.frame import FrameReader, decode_frame
from nemesrv.remoting.message import Message
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile

from . import programs
from .conftest import CLIENTS, SERVERS
from .waiting import context, soon

GOLDEN = Path(__file__).with_name("golden")
LONGEST = frozenset({RequestCode.REGISTER_BROKER, RequestCode.HEART_BEAT})
FROM_OUR_BROKER = frozenset({RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER})
LOOPBACK = Address("127.0.0.1", 0)
BEFORE_4_9_4 = 373


@contextmanager
def _recording() -> Iterator[list[bytes]]:
    """Every whole frame that reaches one of our connections, either side."""
    frames: list[bytes] = []
    readers: dict[Connection, FrameReader] = {}
    original = Connection.data_received

    def data_received(self: Connection, data: bytes) -> None:
        frames.extend(readers.setdefault(self, FrameReader()).feed(bytes(data)))
        original(self, data)

    Connection.data_received = data_received  # type: ignore[method-assign]
    try:
        yield frames
    finally:
        Connection.data_received = original  # type: ignore[method-assign]


def _write(name: str, source: str, frame: bytes) -> None:
    text = frame.hex()
    lines = [text[start : start + 120] for start in range(0, len(text), 120)]
    (GOLDEN / f"{name}.hex").write_text("\n".join([f"# {source}", *lines, ""]))


def _requests(frames: list[bytes]) -> dict[int, bytes]:
    chosen: dict[int, bytes] = {}
    for frame in frames:
        command = decode_frame(frame)
        old = chosen.get(command.code)
        if not command.is_response and (old is None or (command.code in LONGEST and len(frame) > len(old))):
            chosen[command.code] = frame
    return chosen


def _has(frames: list[bytes], *codes: int) -> None:
    assert set(codes) <= _requests(frames).keys()


async def _name_server(home: Path, profile: str) -> tuple[NameServer, Address]:
    config = NamesrvConfig(profile=Profile(profile), kv_config_path=str(home / "kv.json"))
    server = NameServer(context("ns"), config, listen=LOOPBACK)
    address = await server.listen()
    await server.start()
    return server, address


async def _clients(home: Path, profile: str) -> None:
    """Apache's clients against ours, in this process."""
    version = CLIENTS[profile].version
    with _recording() as frames, ExitStack() as stack:
        server, address = await _name_server(home, profile)
        config = BrokerConfig(
            profile=Profile(profile),
            namesrv_addr=(address,),
            broker_ip1="127.0.0.1",
            mapped_file_size_commit_log=16 << 20,
        )
        broker = Broker(replace(context("broker"), data_dir=home / "store"), config, listen=LOOPBACK)
        await broker.listen()
        await broker.start()
        source = Path(__file__).with_name("Clients.java")
        clients = programs.java_source("clients", home, CLIENTS[profile], source, str(address), "golden")
        stack.enter_context(clients)

        def work() -> None:
            clients.wait_for("READY")
            for command in ("send", "consume", "restart"):
                clients.say(command)
                clients.wait_for(f"DONE\t{command}")

        await asyncio.to_thread(work)
        code = RequestCode
        await soon(lambda: _has(frames, code.UPDATE_CONSUMER_OFFSET, code.CONSUMER_SEND_MSG_BACK), within_s=45)
        await soon(lambda: _has(frames, code.PULL_MESSAGE, code.LOCK_BATCH_MQ, code.UNREGISTER_CLIENT), within_s=45)
        await broker.stop()
        await server.stop()
        for number, frame in _requests(frames).items():
            if number not in FROM_OUR_BROKER:
                _write(f"{version}-client-{number}", f"request {number} of Apache RocketMQ {version}'s client", frame)


async def _servers(home: Path, profile: str) -> None:
    """Apache's broker registering with ours, and Apache's servers answering our clients."""
    version = SERVERS[profile].version
    with ExitStack() as stack:
        with _recording() as frames:
            server, ours = await _name_server(home, profile)

            def start() -> tuple[str, str]:
                program, address = programs.java_name_server("java-ns", home / "java-ns", SERVERS[profile])
                stack.enter_context(program)
                names = [str(ours), address]
                broker, broker_address = programs.java_broker("java-b", home / "b", SERVERS[profile], names, "java-b")
                stack.enter_context(broker)
                return address, broker_address

            name_server, broker_address = map(Address.parse, await asyncio.to_thread(start))
            await soon(lambda: _has(frames, RequestCode.REGISTER_BROKER), within_s=45)
            for code, frame in _requests(frames).items():
                _write(f"{version}-broker-{code}", f"request {code} of Apache RocketMQ {version}'s broker", frame)
            await server.stop()
        with _recording() as frames:
            await _answers(frames, version, Profile(profile), name_server, broker_address)


async def _answers(frames: list[bytes], version: str, profile: Profile, name_server: Address, broker: Address) -> None:
    def keep(code: int, who: str, name: str = "") -> None:
        source = f"answer to request {code} of Apache RocketMQ {version}'s {who}"
        last = next(frame for frame in reversed(frames) if decode_frame(frame).is_response)
        _write(f"{version}-{who}-{code}-response{name}", source, last)

    producer = DefaultMQProducer(context("producer"), ProducerConfig(namesrv_addr=(name_server,), profile=profile))
    await producer.start()
    sent = await producer.send(Message.create("golden", b"body", tags="TagA", keys="k0"))
    keep(RequestCode.SEND_MESSAGE_V2, "broker")
    await producer.stop()
    async with AdminClient(context("admin"), (name_server,), profile=profile) as admin:
        await admin.topic_route("golden")
        keep(RequestCode.GET_ROUTEINFO_BY_TOPIC, "nameserver")
        old = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "golden"}, version=BEFORE_4_9_4)
        await admin.remoting.invoke(name_server, old, timeout_s=3)
        keep(RequestCode.GET_ROUTEINFO_BY_TOPIC, "nameserver", "-unquoted")
        await admin.cluster_info()
        keep(RequestCode.GET_BROKER_CLUSTER_INFO, "nameserver")
        await admin.topic_list()
        keep(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, "nameserver")
        assert [message async for message in admin.read_queue("golden", broker, sent.queue.queue_id)]
        keep(RequestCode.PULL_MESSAGE, "broker")


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for profile in CLIENTS:
        for part in (_clients, _servers):
            with tempfile.TemporaryDirectory() as home:
                asyncio.run(part(Path(home), profile))


if __name__ == "__main__":
    main()

"""What Apache's broker and mqadmin said to Apache's NameServer, said to ours: the answers are the same.

Recorded by tests/interop/conversations.py of commit b5490f1a into tests/remoting/golden/*.hex; no Java is needed here.
"""

import asyncio
from pathlib import Path

import pytest

from nemesrv.remoting import fastjson
from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.frame import decode_frame
from nemesrv.remoting.node.profile import Profile
from nemesrv.remoting.properties import parse_properties
from tests.virtual import run

from .helpers import LISTEN, World

GOLDEN = sorted((Path(__file__).parents[2] / "remoting" / "golden").glob("*.hex"))
OWN_SETTINGS = {"rocketmqHome", "kvConfigPath", "configStorePath", "listenPort", "bindAddress"}
SINCE_4_9_8 = {"configBlackList"}
"""The NameServer that was recorded is 4.9.7."""

Event = tuple[int, str, bytes]


def events(path: Path) -> list[Event]:
    lines = (line.split() for line in path.read_text().splitlines() if not line.startswith("#"))
    return [(int(line[0]), line[1], bytes.fromhex("".join(line[2:]))) for line in lines]


class Peer(asyncio.Protocol):
    """One connection: raw frames out, and every byte that comes back."""

    def __init__(self) -> None:
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    async def ask(self, world: World, frame: bytes) -> RemotingCommand:
        self.received = b""
        self.transport.write(frame)
        await world.clock.sleep(0.001)
        return decode_frame(self.received)


def body(code: int, data: bytes) -> object:
    """What a body says, whatever the order of its lists."""
    if code == RequestCode.GET_NAMESRV_CONFIG:
        return {key: value for key, value in parse_properties(data).items() if key not in OWN_SETTINGS | SINCE_4_9_8}
    return _sorted(fastjson.loads(data)) if data else None


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return {key: _sorted(item) for key, item in value.items()}
    return sorted(map(_sorted, value), key=repr) if isinstance(value, list) else value


def said(code: int, response: RemotingCommand) -> dict[str, object]:
    return {
        "code": response.code,
        "opaque": response.opaque,
        "flag": response.flag,
        "language": response.language,
        "remark": response.remark,
        "ext_fields": response.ext_fields or None,
        "body": body(code, response.body),
    }


def test_there_are_conversations_of_both_lines_in_both_header_types() -> None:
    assert [path.stem for path in GOLDEN] == ["4.9-json", "4.9-rocketmq", "5.x-json", "5.x-rocketmq"]
    for path in GOLDEN:
        codes = {decode_frame(frame).code for _, sign, frame in events(path) if sign == ">"}
        assert codes == {100, 101, 102, 103, 105, 106, 205, 206, 318, 319, 327, 216 if "4.9" in path.stem else 104}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_our_name_server_answers_as_apaches_did(path: Path) -> None:
    profile = Profile(path.stem.partition("-")[0])
    conversation = events(path)
    answers = {(n, decode_frame(frame).opaque): decode_frame(frame) for n, sign, frame in conversation if sign == "<"}

    async def main() -> int:
        compared, peers = 0, dict[int, Peer]()
        async with World(profile) as world:
            for number, sign, frame in conversation:
                if number not in peers:
                    connected = await world.network.connect(LISTEN, Peer)
                    assert isinstance(connected, Peer)
                    peers[number] = connected
                if sign == "x":
                    peers.pop(number).transport.close()
                elif sign == ">":
                    request = decode_frame(frame)
                    ours = await peers[number].ask(world, frame)
                    theirs = answers.get((number, request.opaque))
                    if theirs is not None:  # mqadmin does not wait for all that it asks
                        assert said(request.code, ours) == said(request.code, theirs), f"{path.name}: {request}"
                        assert ours.serialize_type is request.serialize_type
                        compared += 1
        return compared

    assert run(main) > 20

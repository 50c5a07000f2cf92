"""`nemesrv broker` as a process: boot line, clean stop, SIGKILL, and what is wrong said in one line."""

import asyncio
import contextlib
import logging
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.actors.errors import ConfigError
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address, TcpNetwork
from nemesrv.remoting.transport import RemotingClient
from tests.free_port import free_port

from .world import PULL, bodies, send_header

NOWHERE = "127.0.0.1:1"


def started(directory: Path, *, port: int = 0, properties: str = "", addresses: str = NOWHERE) -> subprocess.Popen[str]:
    config = directory / "broker.conf"
    config.write_text(f"storePathRootDir={directory / 'store'}\nlistenPort={port}\nbrokerIP1=127.0.0.1\n{properties}")
    code = (
        f"import sys; from nemesrv.actors.broker.standalone import run; sys.exit(run({addresses!r}, {str(config)!r}))"
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextlib.contextmanager
def running(directory: Path, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], Address]]:
    process = started(directory, port=port)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.fullmatch(
            r"The broker\[broker-a, (127\.0\.0\.1:\d+)\] boot success\. serializeType=JSON "
            r"and name server is 127\.0\.0\.1:1\n",
            line,
        )
        assert match, line
        yield process, Address.parse(match[1])
    finally:
        process.kill()
        process.communicate(timeout=30)


async def ask(address: Address, *requests: RemotingCommand) -> list[RemotingCommand]:
    client = RemotingClient(clock=RealClock.starting_now(), network=TcpNetwork(), log=logging.getLogger("test"))
    try:
        return [await client.invoke(address, request) for request in requests]
    finally:
        await client.close()


def send(body: bytes, **header: str) -> RemotingCommand:
    return RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, send_header(**header).to_v2(), body)


def pull() -> RemotingCommand:
    return RemotingCommand.request(RequestCode.PULL_MESSAGE, {key: str(value) for key, value in PULL.items()})


def test_what_a_broker_acknowledged_is_there_after_sigkill(tmp_path: Path) -> None:
    with running(tmp_path) as (process, address):
        answers = asyncio.run(ask(address, *(send(b"%d" % number) for number in range(20))))
        process.send_signal(signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
    assert [answer.code for answer in answers] == [0] * 20
    with running(tmp_path) as (_, address):
        (pulled,) = asyncio.run(ask(address, pull()))
    assert bodies(pulled) == [b"%d" % n for n in range(20)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path) as (process, _):
        process.send_signal(number)
        assert process.wait(30) == 0


def test_old_java_clients_send_at_the_vip_port_and_nobody_pulls_there(tmp_path: Path) -> None:
    with running(tmp_path, free_port(-2)) as (_, address):
        sent, refused = asyncio.run(ask(address.vip_channel, send(b"old"), pull()))
        (pulled,) = asyncio.run(ask(address, pull()))
    assert (sent.code, refused.code) == (ResponseCode.SUCCESS, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
    assert refused.remark == " request type 11 not supported"
    assert bodies(pulled) == [b"old"]


def test_a_vip_port_in_use_is_one_warning_and_the_broker_is_there(tmp_path: Path) -> None:
    port = free_port(-2)
    with socket.create_server(("127.0.0.1", port - 2)):
        process = started(tmp_path, properties=f"listenPort={port}")
        assert process.stdout is not None
        assert "boot success" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    (line,) = [line for line in err.splitlines() if "VIP" in line]
    assert f"cannot listen on the VIP port 127.0.0.1:{port - 2}" in line
    assert "choose another listenPort" in line


def one_line(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, err = process.communicate(timeout=60)
    lines = err.splitlines()
    assert len(lines) == 1, err
    return process.returncode, lines[0]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ("brokerId=minus", "brokerId=minus is not allowed; expected a whole number"),
        ("autoCreateTopicEnable=yes", "autoCreateTopicEnable=yes is not allowed; expected true or false"),
        ("brokerPermission=9", "brokerPermission=9 is not allowed; expected 2 (write), 4 (read), 6 (both) or 0"),
        (
            "messageDelayLevel=1s 2x",
            "messageDelayLevel=1s 2x is not allowed; expected numbers followed by s, m, h or d",
        ),
        ("namesrvAddr=here", "namesrvAddr=here is not allowed; expected host:port;host:port"),
    ],
)
def test_a_bad_setting_is_one_line_and_status_2(tmp_path: Path, properties: str, expected: str) -> None:
    status, line = one_line(started(tmp_path, properties=properties))
    assert status == 2
    assert expected in line
    assert "broker.conf" in line


def test_a_bad_address_or_file_is_status_2(tmp_path: Path) -> None:
    status, line = one_line(started(tmp_path, addresses="nonsense"))
    assert (status, "-n=nonsense" in line) == (2, True)
    code = "import sys; from nemesrv.actors.broker.standalone import run; sys.exit(run('a:1', '/nowhere/broker.conf'))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    status, line = one_line(process)
    assert (status, "/nowhere/broker.conf: cannot be read" in line) == (2, True)


def test_a_port_or_a_store_in_use_is_status_4(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        status, line = one_line(started(tmp_path, properties=f"listenPort={port}"))
        everywhere, named = one_line(started(tmp_path, properties=f"listenPort={port}\nbindAddress=0.0.0.0"))
    assert (status, f"cannot listen on 127.0.0.1:{port}" in line) == (4, True)
    assert (everywhere, f"cannot listen on 0.0.0.0:{port}" in named) == (4, True)
    with running(tmp_path):
        status, line = one_line(started(tmp_path))
    assert (status, "is in use by another broker" in line) == (4, True)


def test_rocketmqs_own_configuration_file_is_taken() -> None:
    shipped = {
        "brokerClusterName": "DefaultCluster",
        "brokerName": "broker-a",
        "brokerId": "0",
        "deleteWhen": "04",
        "fileReservedTime": "48",
        "brokerRole": "ASYNC_MASTER",
        "flushDiskType": "ASYNC_FLUSH",
        "namesrvAddr": "a:9876;b:9876",
        "defaultTopicQueueNums": " 4 ",
    }
    config = BrokerConfig.from_properties(shipped)
    assert config.namesrv_addr == (Address("a", 9876), Address("b", 9876))
    assert config.default_topic_queue_nums == 4
    assert BrokerConfig.from_properties(config.to_properties()) == config
    with pytest.raises(ConfigError, match="mappedFileSizeCommitLog"):
        BrokerConfig(mapped_file_size_commit_log=1 << 20)

"""namesrv.log of ours beside Apache's: the same requests, the same messages, line for line."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nemesrv.remoting.bodies.register import RegisterBrokerBody, TopicConfigSerializeWrapper
from nemesrv.remoting.bodies.route import DataVersion, QueueData, TopicConfig, TopicRouteData
from nemesrv.remoting.codes import LanguageCode, RequestCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.frame import decode_frame, encode_frame
from nemesrv.remoting.headers.namesrv import RegisterBrokerRequestHeader
from nemesrv.remoting.node.network import Address

from ..differential.wire import Channel
from . import programs
from .conftest import SERVERS, need
from .waiting import eventually

pytestmark = pytest.mark.java

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (\w+) (\S+) - (.*)")
"""The base pattern for namesrv.log."""

PEERS = 6
VERSIONS = {"4.9": 407, "5.x": 479}


class Peer:
    """One connection that asks in Java's name."""

    def __init__(self, address: str, version: int) -> None:
        self.channel = Channel(Address.parse(address))
        self._version = version

    def __call__(self, code: int, body: bytes = b"", **fields: str) -> RemotingCommand:
        request = RemotingCommand.request(code, fields, body, version=self._version, language=LanguageCode.JAVA)
        self.channel.send(encode_frame(request))
        return decode_frame(self.channel.frame())

    def register(
        self,
        name: str,
        address: str,
        *topics: TopicConfig,
        id_: int = 0,
        counter: int = 1,
        state: int = 0,
        **fields: str,
    ) -> int:
        header = RegisterBrokerRequestHeader(
            broker_name=name, broker_addr=address, cluster_name="c", ha_server_addr="10.0.0.9:1", broker_id=id_
        ).to_ext_fields()
        version = DataVersion(timestamp=1000, counter=counter, state_version=state)
        wrapper = TopicConfigSerializeWrapper.of(topics, version)
        body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=()).encode()
        return self(RequestCode.REGISTER_BROKER, body, **{**header, **fields}).code


def topic(name: str, queues: int = 4) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues)


def drive(address: str, profile: str) -> None:
    """Everything that a NameServer has a line for, in a fixed order."""
    # one broker a channel: of several, Java takes the one that its hash table has first
    admin, broker, slave, doomed, silent, stranger = (Peer(address, VERSIONS[profile]) for _ in range(PEERS))
    two = topic("T"), topic("U")
    assert broker.register("broker-a", "10.0.0.1:1", *two) == 0
    assert broker.register("broker-a", "10.0.0.1:1", topic("T", 8), topic("U"), counter=2, state=1) == 0
    assert slave.register("broker-a", "10.0.0.2:1", *two, id_=1) == 0
    assert broker.register("broker-a", "10.0.0.1:1", *two, bodyCrc32="1") == 1
    if profile == "5.x":
        assert broker.register("broker-b", "10.0.0.3:1", topic("T")) == 1
        assert broker.register("broker-a", "10.0.0.4:1", *two) == 0  # its stateVersion is smaller
    admin(RequestCode.WIPE_WRITE_PERM_OF_BROKER, brokerName="broker-a")
    admin(RequestCode.ADD_WRITE_PERM_OF_BROKER, brokerName="broker-a")
    for value in ("one", "two"):
        admin(RequestCode.PUT_KV_CONFIG, namespace="ns", key="k", value=value)
    admin(RequestCode.DELETE_KV_CONFIG, namespace="ns", key="k")
    admin(RequestCode.UPDATE_NAMESRV_CONFIG, b"orderMessageEnable=true")
    admin(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    admin(RequestCode.DELETE_TOPIC_IN_NAMESRV, topic="U", clusterName="c")
    admin(RequestCode.DELETE_TOPIC_IN_NAMESRV, topic="T")
    assert broker.register("broker-e", "10.0.0.5:1", topic("V"), topic("W")) == 0
    identity = {"brokerName": "broker-e", "brokerAddr": "10.0.0.5:1", "clusterName": "c", "brokerId": "0"}
    broker(RequestCode.UNREGISTER_BROKER, **identity)
    eventually(lambda: _lacks(admin, "broker-e"))
    assert doomed.register("broker-d", "10.0.0.6:1", topic("X"), topic("Y")) == 0
    doomed.channel.close()
    eventually(lambda: _lacks(admin, "broker-d"))
    if profile == "5.x":
        route = TopicRouteData(queue_datas=(QueueData(broker_name="broker-a", read_queue_nums=1),))
        for _ in range(2):
            admin(RequestCode.REGISTER_TOPIC_IN_NAMESRV, route.encode(), topic="Z")
        foreign = TopicRouteData(queue_datas=(QueueData(broker_name="nobody", read_queue_nums=1),))
        admin(RequestCode.REGISTER_TOPIC_IN_NAMESRV, foreign.encode(), topic="Z")
        at_once = {"heartbeatTimeoutMillis": "1"}
        assert silent.register("broker-s", "10.0.0.7:1", topic("S"), topic("R"), **at_once) == 0
        eventually(lambda: _lacks(admin, "broker-s"), within_s=20)
    stranger.channel.send(b"GET / HTTP/1.1\r\n\r\n")
    stranger.channel.close()
    silent.channel.close()
    slave.channel.close()
    eventually(lambda: _lacks(admin, "10.0.0.2"))
    broker.channel.close()
    eventually(lambda: _lacks(admin, "broker-a"))
    admin.channel.close()


def _lacks(admin: Peer, name: str) -> None:
    response = admin(RequestCode.GET_BROKER_CLUSTER_INFO)
    assert response.code == 0  # 4.9 reads its tables without their lock, and may fail while they change
    assert name.encode() not in response.body


@contextmanager
def _apaches(folder: Path, profile: str) -> Iterator[tuple[str, Path]]:
    own = {"rmq.logback.configurationFile": str(folder / "conf" / "logback_namesrv.xml")}  # as 5.x's runserver.sh
    program, address = programs.java_name_server("java-ns", folder, SERVERS[profile], properties=own, logs=folder)
    with program:
        yield address, folder / "namesrv.log"


@contextmanager
def _ours(folder: Path, profile: str) -> Iterator[tuple[str, Path]]:
    program, address = programs.name_server("ns", folder, profile=profile)
    with program:
        yield address, folder / "ns.err"


OURS_ALONE = re.compile(r"(INFO|WARN) (\w+=|\S+ is no setting)")
JAVAS_ALONE = re.compile(
    r"(INFO|WARN|ERROR) (\w+=|[\w.]+ = |process request exception|RemotingCommand \[code=106,|instrumented a special"
    r"|Server is running in TLS|Tls config file|Log the final used"
    r"|Using JDK SSL|SSLContext created|Unknown channel option|NettyEventExecutor|FileWatchService|RemotingServer"
    r"|Try to start service|Start service|name server address updated|createChannel|NETTY CLIENT PIPELINE|Port: \d+, Re"
    r"|closeChannel: the channel|eventCloseChannel|closeChannel: close the connection to remote address\[(?!<peer>)"
    r"|BatchUnregistrationService"
    r"|unregisterBroker, remove (addr )?from \w+ Failed, \S+ \[clusterName=c, brokerAddr=10.0.0.7)"
)
"""Settings, TLS, threads, traffic counters, 4.9's accidents with 106, and the client that a 5.x NameServer has."""


def messages(log: str, alone: re.Pattern[str]) -> list[str]:
    """Level and message of each line, sorted; peers' ports, and what is opaque in Java, are made equal.

    Of equal lines one but where they count channels: Java may submit an expired broker once more when its channel has
    closed, and then fails to remove it a second time.
    """
    found = []
    for level, thread, text in (line.groups() for line in map(LINE.fullmatch, log.splitlines()) if line):
        assert level in ("INFO", "WARN", "ERROR")
        assert thread
        text = re.sub(r"127\.0\.0\.1:\d+", "<peer>", text)
        text = re.sub(r"broker info: .*, submit", "broker info: <broker>, submit", text)
        line = f"{level} {text}"
        if not alone.match(line) and "start scanNotActiveBroker" not in line:
            found.append(line)
    channels = [line for line in found if "NETTY SERVER PIPELINE" in line]
    return sorted(channels) + sorted(set(found) - set(channels))


@pytest.mark.nightly("actors/test_standalone_log.py::test_a_line_is_as_rocketmq_writes_it")
@pytest.mark.parametrize("profile", ["4.9", "5.x"])
def test_what_happens_is_logged_in_apaches_words(profile: str, tmp_path: Path) -> None:
    need(SERVERS[profile])
    with _apaches(tmp_path / "java", profile) as (address, log):
        drive(address, profile)
        # 5.x's NameServer is a client of itself, at an address of this machine
        theirs = eventually(lambda: _complete(log, JAVAS_ALONE))
    with _ours(tmp_path / "ours", profile) as (address, log):
        drive(address, profile)
        ours = eventually(lambda: _complete(log, OURS_ALONE))
    assert ours == theirs
    assert len(ours) > 60


def _complete(log: Path, alone: re.Pattern[str]) -> list[str]:
    """The messages once all channels are gone."""
    found = messages(log.read_text(errors="replace"), alone)
    assert found.count("INFO NETTY SERVER PIPELINE: channelUnregistered, the channel[<peer>]") == PEERS
    assert found == messages(log.read_text(errors="replace"), alone)
    return found

"""namesrv.log, broker.log and remoting.log of a recorded run, as Apache's 4.9 and 5.x write them."""

import re
from collections.abc import Iterator

from .dials import Dialler
from .entries import Cluster, Entry, in_order, number_of, one_of

_CHANNEL = re.compile(r"channel #\d+ (\S+) - (\S+) (opened|closed)(?: \((\w+)\))?")
_HEADERS = "org.apache.rocketmq.remoting.protocol.header.namesrv."
_FAILED = re.compile(
    r"(?:registerBroker Exception, |Failed to register current broker to name server\. TargetHost=)(\S+?:\d+)"
    r"(?:[:,]? (.*))?"
)
_LIST_CHANGED = re.compile(r"name server address changed, old=(\S+), new=(\S+)")
_CONNECTED = re.compile(r"(new (?:consumer|producer) connected, group: .* channel: )(\S+)")


def name_server_log(of: Cluster, node: str) -> list[Entry]:
    """Of all its incarnations."""
    return in_order([*_name_server_starts(of, node), *_name_server_records(of, node)])


def _name_server_starts(of: Cluster, node: str) -> Iterator[Entry]:
    host, _, port = of.addresses[node].rpartition(":")
    for row in of.by_node[node]:
        if row["event"] == "stopped":
            hook = "shutdown hook was invoked, 1 times."  # of a JVM that gets SIGTERM
            yield Entry(row["time_ms"], "INFO", "ShutdownHook", "RocketmqNamesrv", hook)
        if row["event"] == "started":
            at = row["time_ms"]
            said = [
                "rocketmqHome=/opt/rocketmq",
                "productEnvName=center",
                "clusterTest=false",
                "orderMessageEnable=false",
                f"listenPort={port}",
                "serverWorkerThreads=8",
                "serverChannelMaxIdleTimeSeconds=120",
                "useEpollNativeSelector=false",
                *(["scanNotActiveBrokerInterval=5000"] if of.is_5 else []),
                "Server is running in TLS permissive mode",
                "Using JDK SSL provider",
                "SSLContext created for server",
            ]
            yield from (Entry(at, "INFO", "main", "RocketmqNamesrv", text) for text in said)
            boot = "The Name Server boot success. serializeType=JSON" + (f", address {host}:{port}" if of.is_5 else "")
            yield Entry(at, "INFO", "main", "RocketmqNamesrv", boot)


def _name_server_records(of: Cluster, node: str) -> Iterator[Entry]:
    for record in of.said[node]:
        if record.level == "DEBUG":
            continue
        text = of.with_hosts(record.text)
        if "broker info: UnRegisterBrokerRequestHeader" in text:
            name = f"{_HEADERS}UnRegisterBrokerRequestHeader@{number_of(text):08x}"
            text = re.sub(r"broker info: UnRegister\S*(?: \[.*\])?,", f"broker info: {name},", text)
        thread, logger = _name_server_thread(text)
        yield Entry(of.at(record), record.level, thread, logger, text)


def _name_server_thread(text: str) -> tuple[str, str]:
    if text.startswith("NETTY SERVER"):
        return f"NettyServerCodecThread_{one_of(8, text.rpartition('[')[2])}", "RocketmqRemoting"
    if text.startswith("closeChannel"):
        return "NettyServerNIOSelector_3_1", "RocketmqRemoting"
    if "channel destroyed" in text:
        return "NettyEventExecutor", "RocketmqNamesrv"
    if text.startswith(("The broker channel expired", "start scan", "configTable", "-----")):
        return "NSScheduledThread1", "RocketmqNamesrv"
    return f"RemotingExecutorThread_{one_of(8, text)}", "RocketmqNamesrv"


def broker_logs(of: Cluster, node: str) -> dict[str, list[Entry]]:
    """broker.log and remoting.log."""
    entries = in_order([*_broker_starts(of, node), *_broker_records(of, node)])
    return {
        "broker.log": [entry for entry in entries if entry.logger != "RocketmqRemoting"],
        "remoting.log": [entry for entry in entries if entry.logger == "RocketmqRemoting"],
    }


def console(of: Cluster, node: str) -> list[Entry]:
    """What a start prints that finds its port in use, once for each such time."""
    said = (
        "java.net.BindException: Address already in use\n\tat sun.nio.ch.Net.bind0(Native Method)\n"
        "\tat org.apache.rocketmq.remoting.netty.NettyRemotingServer.start(NettyRemotingServer.java:230)\n"
        "\tat org.apache.rocketmq.broker.BrokerStartup.main(BrokerStartup.java:58)"
    )
    taken = (row for row in of.rows if row["event"] == "fault" and row["fault"] == "port_taken")
    return [
        Entry(row["time_ms"], "INFO", "main", "", said)
        for row in taken
        if (row["source"], row["phase"]) == (node, "start")
    ]


def _broker_starts(of: Cluster, node: str) -> Iterator[Entry]:
    name, _, number = node.partition("/")
    settings = of.settings.get(node, {})
    host, _, port = of.addresses[node].rpartition(":")
    addresses = ";".join(of.name_servers())
    for row in of.by_node[node]:
        if row["event"] == "stopped":
            over = "Shutdown hook over, consuming total time(ms): 37"
            yield Entry(row["time_ms"], "INFO", "Thread-1", "RocketmqBroker", over)
        if row["event"] != "started":
            continue
        at = row["time_ms"] - 1
        said = [
            "rocketmqHome=/opt/rocketmq",
            *([] if of.has_lists_by_http else [f"namesrvAddr={addresses}"]),
            f"brokerIP1={settings.get('brokerIP1', host)}",
            f"brokerName={name}",
            "brokerClusterName=DefaultCluster",
            f"brokerId={number or 0}",
            "brokerPermission=6",
            f"autoCreateTopicEnable={str(settings.get('autoCreateTopicEnable', True)).lower()}",
            "registerNameServerPeriod=30000",
            *(["brokerHeartbeatInterval=1000", "brokerNotActiveTimeoutMillis=10000"] if of.is_5 else []),
            "registerBrokerTimeoutMills=24000" if of.is_5 else "registerBrokerTimeoutMills=6000",
            f"listenPort={port}",
            "brokerRole=SLAVE" if number not in ("", "0") else "brokerRole=ASYNC_MASTER",
            "load commit log OK",
            "load over, and the max phy offset = 0",
        ]
        yield from (Entry(at, "INFO", "main", "RocketmqBroker", text) for text in said)
        if of.has_lists_by_http:
            continue
        updated = f"name server address updated. NEW : [{', '.join(of.name_servers())}] , OLD: null"
        yield Entry(at, "INFO", "main", "RocketmqRemoting", updated)
        yield Entry(at, "INFO", "main", "RocketmqBroker", f"Set user specified name server address: {addresses}")


def _broker_records(of: Cluster, node: str) -> Iterator[Entry]:
    dialler = Dialler(of, node)
    ids = {row["address"]: row["value"]["client"] for row in of.by_node[node] if row["event"] == "client_heartbeat"}
    for record in of.said[node]:
        at, text = of.at(record), of.with_hosts(record.text)
        thread = f"brokerOutApi_thread_{one_of(4, at)}"
        if (channel := _CHANNEL.fullmatch(text)) is not None:
            if channel[1] == of.addresses[node]:
                yield from _served(at, channel[2], opened=channel[3] == "opened")
            else:
                yield from dialler.channel(at, channel[2], channel[3], channel[4], thread)
        elif record.level == "DEBUG":
            continue
        elif (failed := _FAILED.fullmatch(text.partition("\n")[0])) is not None:
            yield from dialler.register_failed(at, failed[1], failed[2] or "", thread)
        elif (connected := _CONNECTED.fullmatch(text)) is not None:
            address = connected[2]
            client = of.with_hosts(ids.get(record.text.rpartition(" ")[2], f"{address.partition(':')[0]}@4711"))
            info = (
                f"ClientChannelInfo [channel=[id: 0x{number_of(address):08x}, L:/{of.addresses[node]} - R:/{address}], "
                f"clientId={client}, language=JAVA, version=401, lastUpdateTimestamp={int(record.wall_ms)}]"
            )
            yield Entry(at, "INFO", "HeartbeatThread_1", "RocketmqBroker", connected[1] + info)
        elif (changed := _LIST_CHANGED.fullmatch(text)) is not None:
            new, old = changed[2].replace(";", ", "), changed[1]
            yield Entry(at, "INFO", "BrokerControllerScheduledThread1", "RocketmqBroker", _changed(of, changed))
            old = "null" if old == "None" else f"[{old.replace(';', ', ')}]"
            updated = f"name server address updated. NEW : [{new}] , OLD: {old}"
            yield Entry(at, "INFO", "BrokerControllerScheduledThread1", "RocketmqRemoting", updated)
        elif text.startswith("channel "):
            continue  # our own words for what the dialler writes in RocketMQ's
        else:
            is_main = text.startswith("The broker[") or text.startswith("unregisterBroker")
            yield Entry(at, record.level, "main" if is_main else thread, "RocketmqBroker", text)


def _changed(of: Cluster, found: re.Match[str]) -> str:
    old = "null" if found[1] == "None" else found[1]
    return (
        f"name server address changed, old: {old}, new: {found[2]}"
        if of.is_5
        else (f"name server address changed, old: {old} new: {found[2]}")
    )


def _served(at: float, peer: str, *, opened: bool) -> Iterator[Entry]:
    thread = f"NettyServerCodecThread_{one_of(8, peer)}"
    first, second = (
        ("channelRegistered {}", "channelActive, the channel[{}]")
        if opened
        else ("channelInactive, the channel[{}]", "channelUnregistered, the channel[{}]")
    )
    for text in (first, second):
        yield Entry(at, "INFO", thread, "RocketmqRemoting", "NETTY SERVER PIPELINE: " + text.format(peer))

"""rocketmq_client.log of a recorded run's client, as Apache's Java clients write it, from the rows of its history."""

import re
from collections.abc import Iterator
from typing import Any

from .dials import Dialler, thrown
from .entries import Cluster, Entry, in_order, number_of, one_of, route_text

_TOOK = re.compile(
    r"group (?P<group>\S+) (?P<what>took|dropped) MessageQueue\(topic='(?P<topic>[^']*)', "
    r"broker_name='(?P<broker>[^']*)', queue_id=(?P<queue>\d+)\).*"
)
_SENT = re.compile(r"send try (?P<attempt>\d+) to (?P<broker>\S+) failed: (?P<why>.*)")
_CLIENT = "org.apache.rocketmq.client.exception."
_CODE = re.compile(r"CODE: (?P<code>\d+)  DESC: (?P<said>[^\"')]*)")
_NOT_SENT = re.compile(r"send of \S+ did not succeed: .*no route of topic (?P<topic>[^:\s]+).*")
_OFFLINE = re.compile(r"the broker address (?P<address>\S+) is offline, remove it")
_HEARTBEAT = re.compile(r"heartbeat to broker (?P<broker>\S+) (?P<address>\S+) failed: .*")
_EACH_HEARTBEAT = 20
"""Of the successful ones every twentieth is written."""


def client_log(of: Cluster, node: str) -> list[Entry]:
    return in_order([*_of_rows(of, node), *_of_records(of, node)])


def _of_rows(of: Cluster, node: str) -> Iterator[Entry]:
    dialler, before = Dialler(of, node), _Before()
    for row in of.by_node[node]:
        at, event = row["time_ms"], row["event"]
        thread = f"MQClientFactoryScheduledThread_{one_of(4, node)}" if before.list else "main"
        if event == "started":
            before = _Before()
            yield from _started(of, node, at)
        elif event == "name_server_list":
            old = "null" if before.list is None else f"[{', '.join(before.list)}]"
            before.list = row["value"]
            text = f"name server address updated. NEW : [{', '.join(row['value'])}] , OLD: {old}"
            yield Entry(at, "INFO", thread, "RocketmqRemoting", text)
        elif event == "name_server_chosen":
            chosen, index = row["value"], row["value"]["index"] + one_of(300, node) * max(1, len(before.list or ()))
            text = f"new name server is chosen. OLD: {chosen['old'] or 'null'} , NEW: {row['name_server']}."
            yield Entry(at, "INFO", thread, "RocketmqRemoting", f"{text} namesrvIndex = {index}")
        elif event == "channel" and row["f"] in ("open", "close"):
            what = "opened" if row["f"] == "open" else "closed"
            why = "local" if at == before.timed_out_at else None
            yield from dialler.channel(at, row["address"], what, why, thread)
        elif event == "channel" and row["f"] == "connect_failed":
            yield from dialler.connect_failed(at, row["address"], row["value"]["reason"], thread)
        elif event == "timed_out" and row["f"] != "connect" and row["address"]:
            before.timed_out_at = at
            shown = of.kinds.get(of.node_at.get(row["address"], "")) != "name_server"
            yield from dialler.timed_out(at, row["address"], row["duration_ms"], thread, shown=shown)
        elif event == "name_server_call" and row["f"] == "route" and row["type"] != "ok":
            yield from _look_up_failed(row, thread)
        elif event == "route_changed":
            old, new = route_text(before.routes.get(row["topic"]), of.is_5), route_text(row["value"], of.is_5)
            before.routes[row["topic"]] = row["value"]
            text = f"the topic[{row['topic']}] route info changed, old[{old}] ,new[{new}]"
            yield Entry(at, "INFO", thread, "RocketmqClient", text)
            text = f"topicRouteTable.put. Topic = {row['topic']}, TopicRouteData[{new}]"
            yield Entry(at, "INFO", thread, "RocketmqClient", text)
    yield from _heartbeats(of, node)


class _Before:
    """What the client's lines say of what was until now."""

    def __init__(self) -> None:
        self.list: list[str] | None = None
        self.routes: dict[str, Any] = {}
        self.timed_out_at: float | None = None


def _started(of: Cluster, node: str, at: float) -> Iterator[Entry]:
    client, host = of.client_id(node), of.hosts[node]
    listed = "null" if of.has_lists_by_http else ";".join(of.name_servers())
    version = "V5_3_3" if of.is_5 else "V4_9_8"
    config = f"ClientConfig [namesrvAddr={listed}, clientIP={host}, instanceName={client.partition('@')[2]}, …]"
    for text in (
        *([] if of.has_lists_by_http else [f"user specified name server address: {listed}"]),
        f"Created a new client Instance, InstanceIndex:0, ClientID:{client}, ClientConfig:{config}, "
        f"ClientVersion:{version}, SerializerType:JSON",
        f"the client factory [{client}] start OK",
    ):
        yield Entry(at, "INFO", "main", "RocketmqClient", text)


def _look_up_failed(row: dict[str, Any], thread: str) -> Iterator[Entry]:
    outcome = row["value"]["tried"][-1]["outcome"] if row["value"]["tried"] else "not_sent"
    tried = ", ".join(dict.fromkeys(one["name_server"] for one in row["value"]["tried"]))
    text, level = "updateTopicRouteInfoFromNameServer Exception", "ERROR"
    if row["code"]:
        if row["topic"].startswith("%RETRY%"):
            return  # of which Java says nothing
        said = f"CODE: {row['code']}  DESC: No topic route info in name server for the topic: {row['topic']}"
        stack, level = f"org.apache.rocketmq.client.exception.MQClientException: {said}\n\tat …", "WARN"
    elif outcome == "connect_failed":
        stack = thrown("RemotingConnectException", f"connect to [{tried}] failed")
    else:
        waited = f"{row['duration_ms']:.0f}(ms)"
        stack = thrown(
            "RemotingTimeoutException", f"wait response on the channel <{row['name_server']}> timeout, {waited}"
        )
    yield Entry(row["time_ms"], level, thread, "RocketmqClient", f"{text}\n{stack}")


def _heartbeats(of: Cluster, node: str) -> Iterator[Entry]:
    """From what brokers recorded of them."""
    count: dict[str, int] = {}
    for row in of.rows:
        if row["event"] != "client_heartbeat" or f"@{node}#" not in row["value"]["client"]:
            continue
        broker = row["node"]
        count[broker] = count.get(broker, 0) + 1
        if count[broker] % _EACH_HEARTBEAT == 1:
            name, _, number = broker.partition("/")
            text = f"send heart beat to broker[{name} {number or 0} {of.addresses[broker]}] success"
            yield Entry(row["time_ms"], "INFO", "MQClientFactoryScheduledThread_1", "RocketmqClient", text)


def _of_records(of: Cluster, node: str) -> Iterator[Entry]:
    """What no row says, from the client's own log."""
    for record in of.said[node]:
        at, text = of.at(record), record.text.partition("\n")[0]
        if (sent := _SENT.fullmatch(text)) is not None:
            invoke, number = number_of(node, at), one_of(4, at) - 1
            waited = 3000 if "Timeout" in sent["why"] else 1
            said = (
                f"sendKernelImpl exception, resend at once, InvokeID: {invoke}, RT: {waited}ms, Broker: MessageQueue "
                f"[topic=orders, brokerName={sent['broker']}, queueId={number}]"
            )
            if (code := _CODE.search(sent["why"])) is not None:
                stack = f"{_CLIENT}MQBrokerException: {_refused(code)}"
            else:
                name = "RemotingTimeoutException" if waited > 1 else "RemotingConnectException"
                stack = thrown(name, sent["why"].partition("'")[2].rstrip("')"))
            yield Entry(at, "WARN", "main", "RocketmqClient", f"{said}\n{stack}")
        elif (found := _NOT_SENT.fullmatch(text)) is not None:
            said = f"{_CLIENT}MQClientException: No route info of this topic: {found['topic']}"
            yield Entry(at, "WARN", "main", "RocketmqClient", f"send failed\n{said}")
        elif (found := _OFFLINE.fullmatch(text)) is not None:
            broker, address = of.node_at.get(found["address"], "broker-a").partition("/")[0], found["address"]
            text = f"the broker addr[{broker} {address}] is offline, remove it"
            yield Entry(at, "INFO", "MQClientFactoryScheduledThread_1", "RocketmqClient", text)
        elif (found := _HEARTBEAT.fullmatch(text)) is not None:
            said = f"send heart beat to broker[{found['broker']} 0 {found['address']}] failed"
            yield Entry(at, "WARN", "MQClientFactoryScheduledThread_1", "RocketmqClient", said)
        elif (found := _TOOK.fullmatch(text)) is not None:
            what = "add a new mq" if found["what"] == "took" else "remove unnecessary mq"
            queue = f"MessageQueue [topic={found['topic']}, brokerName={found['broker']}, queueId={found['queue']}]"
            said = f"doRebalance, {found['group']}, {what}, {queue}"
            yield Entry(at, "INFO", "RebalanceService", "RocketmqClient", said)


def _refused(code: re.Match[str]) -> str:
    """As Apache's broker says it, which counts the reasons up where its store takes nothing."""
    said = (
        "service not available now. It may be caused by one of the following reasons: the broker's disk is full [CL:  "
        "0.97 CQ:  0.97 INDEX:  0.97], messages are put to the slave, message store has been shut down, etc."
    )
    return f"CODE: {code['code']}  DESC: {said if code['code'] == '14' else code['said']}"

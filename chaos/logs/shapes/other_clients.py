"""What clients in C++, Go and Node say of themselves: a Java client's event where the same thing happened."""

from __future__ import annotations

import re
from collections.abc import Mapping

CPP: tuple[tuple[str, str], ...] = (
    ("name_servers_said", r"user specfied name server address: ?(?P<new>\S*)"),
    ("name_servers_set", r"updateNameServerAddressList: ?\[(?P<new>[^\]]*)\]"),
    ("name_server_added", r"update Namesrv: ?(?P<address>\S+)"),
    ("name_server_refused", r"This may be invalid namer server: ?\[(?P<address>[^\]]*)\]"),
    (
        "name_server_index",
        r"namesrvIndex is: ?(?P<index>\d+), ?index: ?(?P<at>\d+), ?namesrvaddrlist size: ?(?P<size>\d+)",
    ),
    ("connected", r"connect server with addr: ?(?P<address>\S+) success"),
    ("connect_failed", r"can not connect to(?: server)?: ?(?P<address>\S+)"),
    ("connect_failed", r"connect to (?P<address>[^\s,]+) failed, (?P<why>.*)"),
    ("connect_timeout", r"connect timeout"),
    (
        "request_timeout",
        r"wait response timeout or get NULL response of code: ?(?P<code>\d+), so closeTransport of addr: ?"
        r"(?P<address>\S*)",
    ),
    ("closed", r"tcpTransport with server disconnected, erase server: ?(?P<address>\S+)"),
    ("closed", r"go to fault state, erase: ?(?P<address>\S+) from tcpMap, and reconnect it"),
    ("closed", r"CloseTransport of: ?(?P<address>\S+)(?: end)?"),
    ("disconnected", r"disconnect: ?(?P<address>\S+) completely"),
    ("closed", r"closeTransport: (?:disconnect: ?(?P<address>\S+) with state: ?\d+|erase broker: ?(?P<address_>\S+))"),
    ("choice_timeout", r"CreateName[Ss]erverTransport get timed_mutex timeout"),
    ("route_missing", r"Get topic ?\[(?P<topic>[^\]]*)\] route failed \[TOPIC_NOT_EXIST\]\.?"),
    ("route_error", r"Get topic ?\[(?P<topic>[^\]]*)\] route failed \[(?P<said>[^\]]*)\]\.?"),
    ("route_changed", r"updateTopicRouteInfoFromNameServer changed: ?(?P<topic>\S+)"),
    ("broker_offline", r"Broker name: (?P<broker>\S+) is purged from client"),
    ("broker_offline", r"Remove broker address: (?P<address>\S+)"),
    ("heartbeat", r"sendHeartbeat to broker: ?(?P<address>\S+) (?P<result>failed)"),
    ("heartbeat", r"wait (?P<result>response timeout) of heartbeat, so closeTransport of addr: ?(?P<address>\S+)"),
    ("heartbeat", r"get (?P<result>error response): ?(?P<code>\d+) of heartbeat to addr: ?(?P<address>\S+)"),
    ("send_retried", r"invokeAsync (?:retry )?failed to addr: ?(?P<address>[^,]+), ?topic: ?(?P<topic>[^,]+), .*"),
    ("client_exception", r"tryToFindTopicPublishInfo null: ?(?P<topic>\S+)"),
    ("client_started", r"MQClientFactory: ?(?P<client>\S+) start"),
    ("client_stopped", r"MQClientFactory: ?(?P<client>\S+) shutdown"),
    ("answer_late", r"response already timeout of opaque: ?(?P<opaque>\d+)"),
)

NODE: tuple[tuple[str, str], ...] = (
    ("name_servers_fetched", r"\[mq:remoting_client\] fetch name server addresses successfully, address: (?P<new>.*)"),
    ("route_missing", r"\[mq:client_api\] get Topic \[(?P<topic>[^\]]*)\] RouteInfoFromNameServer is not exist value"),
    ("route_put", r"\[mq:client_api\] get Topic \[(?P<topic>[^\]]*)\] RouteInfoFromNameServer: (?P<new>.*)"),
    (
        "route_changed",
        r"\[mq:client\] update topicRouteTable for topic: (?P<topic>[^,\s]+), with topicRouteData: (?P<new>.*)",
    ),
    (
        "route_asked",
        r"\[mq:client\] (?:updateTopicRouteInfoFromNameServer\(\)|refresh route data for) topic: "
        r"(?P<topic>[^,\s]+), .*",
    ),
    ("broker_offline", r"\[mq:client\] the broker addr\[(?P<broker>\S+) (?P<address>[^\]]*)\] is offline, remove it"),
    ("broker_offline", r"\[mq:client\] the broker\[(?P<broker>[^\]]*)\] name's host is offline, remove it"),
    ("heartbeat", r"\[mq:client\] send heartbeat: (?P<data>.*) to : (?P<address>.*), and result: (?P<result>.*)"),
    ("heartbeat_of_nobody", r"\[mq:client\] sending hea?rt?beat, but no consumer and no producer.*"),
    ("client_started", r"\[mq:remoting_client\] remoting client started"),
    ("client_stopped", r"\[mq:remoting_client\] remoting client is closed"),
    ("group_started", r"\[mq:producer\] (?P<kind>producer) started"),
    ("group_started", r"\[mq:consumer\] (?P<kind>consumer) started"),
    ("group_stopped", r"\[mq:producer\] (?P<kind>producer) closed?"),
    ("group_stopped", r"\[mq:consumer\] (?P<kind>consumer) closed?"),
    (
        "rebalanced",
        r"\[mq:consumer\] do rebalance and message queue changed, topic: (?P<topic>[^,\s]+), mqSet: (?P<queues>.*)",
    ),
)

GO: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "connect to namesrv failed.": ("route_error", {"topic": "topic", "name_servers": "namesrv"}),
    "namesrv list empty. UpdateNameServerAddress should be called first.": ("route_error", {"topic": "topic"}),
    "query topic route from server error": ("route_error", {"said": "underlayError"}),
    "queryTopicRouteInfoFromServer return nil": ("route_missing", {"topic": "topic"}),
    "queryTopicRouteInfoFromServer failed": ("route_missing", {"topic": "topic"}),
    "the topic route info changed": ("route_changed", {"topic": "topic", "old": "changedFrom", "new": "changeTo"}),
    "change the route for clients": ("route_asked", {}),
    "the broker: [name=%s, ID=%d, addr=%s,] is offline, remove it": (
        "broker_offline",
        {"broker": "brokerName", "id": "brokerID", "address": "brokerAddr"},
    ),
    "the broker name's host is offline, remove it": ("broker_offline", {"broker": "brokerName"}),
    "send heart beat to broker error": ("heartbeat", {"said": "underlayError", "=result": "exception"}),
    "send heart beat to broker failed": (
        "heartbeat",
        {
            "broker": "brokerName",
            "id": "brokerId",
            "address": "brokerAddr",
            "code": "responseCode",
            "=result": "failed",
        },
    ),
    "send heart beat to broker success": (
        "heartbeat",
        {"broker": "brokerName", "id": "brokerId", "address": "brokerAddr", "=result": "success"},
    ),
    "sending heartbeat, but no producer and no consumer": ("heartbeat_of_nobody", {"client": "clientId"}),
    "conn error, close connection": ("closed", {"address": "remoteAddr", "said": "underlayError"}),
    "get consumer list of group from broker error": (
        "consumers_unknown",
        {"group": "consumerGroup", "broker": "broker", "address": "brokerAddr", "said": "underlayError"},
    ),
    "do balance in group failed, get consumer id list failed": (
        "consumers_unknown",
        {"group": "consumerGroup", "topic": "topic"},
    ),
    "do balance in group failed, the topic does not exist": (
        "route_missing",
        {"group": "consumerGroup", "topic": "topic"},
    ),
    "no broker found for mq": ("broker_unreachable", {"queue": "MessageQueue"}),
    "pull message from broker error": ("pull_failed", {"address": "broker", "said": "underlayError"}),
    "pull broker timeout": ("pull_failed", {"address": "broker", "said": "underlayError"}),
    "the MessageQueue changed, version also updated": ("rebalanced", {"topic": "topic"}),
    "MessageQueue do balance done": ("rebalanced", {"group": "consumerGroup", "topic": "topic", "client": "clientID"}),
    "the consumer start beginning": ("group_started", {"group": "consumerGroup", "=kind": "consumer"}),
    "will remove client from clientMap": ("client_stopped", {"client": "clientID"}),
    "name server http fetch failed": ("name_servers_unfetched", {"address": "NameServerDomain", "said": "err"}),
    "load the name server snapshot local file": ("name_servers_from_file", {"path": "filePath"}),
}
"""What was said → the event, and which of its `key=value` a field has (`=field`: a word that the message means)."""

_PAIR = re.compile(r'([A-Za-z_][\w.]*)=("(?:[^"\\]|\\.)*"|\S*)')


def go_event_of(text: str) -> tuple[str, dict[str, str]] | None:
    """Of `msg="…" topic=T` as of `said                     topic=T`."""
    pairs = {key: _unquoted(said) for key, said in _PAIR.findall(text)}
    said = pairs["msg"] if text.startswith("msg=") and "msg" in pairs else _before_pairs(text)
    found = GO.get(said)
    if found is None:
        return None
    event, fields = found
    taken = {name: pairs[key] for name, key in fields.items() if key in pairs}
    return event, taken | {name[1:]: word for name, word in fields.items() if name.startswith("=")}


def _before_pairs(text: str) -> str:
    first = re.search(r"(?:^|\s+)[A-Za-z_][\w.]*=(?![%\s])", text)
    if first is not None and text[: first.start()].strip() not in GO and "[name=" in text:
        return next((said for said in GO if text.startswith(said)), text.strip())
    return (text if first is None else text[: first.start()]).strip()


def _unquoted(said: str) -> str:
    if not said.startswith('"'):
        return said
    return said[1:-1].replace('\\"', '"').replace("\\\\", "\\")

"""Routes and rows of topics as RocketMQ prints them, as the history has them. Pure.

TopicRouteData [orderTopicConf=null, queueDatas=[QueueData […], …], brokerDatas=[BrokerData […]], …]
  ─► {"brokers": {"broker-a": {"0": "10.0.0.2:10911"}}, "queues": {"broker-a": [4, 4, 6, 0]}}
"""

from __future__ import annotations

import re
from typing import Any

_QUEUES = re.compile(
    r"QueueData \[brokerName=(?P<name>[^,\]]*), readQueueNums=(?P<read>\d+), writeQueueNums=(?P<write>\d+), "
    r"perm=(?P<perm>\d+)(?:, topicSys(?:n)?(?:F|f)lag=(?P<flag>\d+))?[^\]]*\]"
)
_BROKER = re.compile(
    r"BrokerData \[(?:cluster=[^,]*, )?brokerName=(?P<name>[^,\]]*), brokerAddrs=\{(?P<addresses>[^}]*)\}"
)
_ADDRESS = re.compile(r"(-?\d+)=([^,\s}]+)")


def queue_row(text: str) -> tuple[str, list[int]] | None:
    """Broker name and its row [read, write, perm, topicSysFlag]; None where there is none."""
    found = _QUEUES.search(text)
    if found is None:
        return None
    return found["name"], [int(found["read"]), int(found["write"]), int(found["perm"]), int(found["flag"] or 0)]


def route_of(text: str) -> dict[str, Any] | None:
    """The route; None for `null` and for what was cut so short that nothing of it can be read."""
    brokers = {
        found["name"]: {id_: address for id_, address in _ADDRESS.findall(found["addresses"])}
        for found in _BROKER.finditer(text)
    }
    queues = {
        found["name"]: [int(found["read"]), int(found["write"]), int(found["perm"]), int(found["flag"] or 0)]
        for found in _QUEUES.finditer(text)
    }
    if not brokers and not queues:
        return None
    return {"brokers": dict(sorted(brokers.items())), "queues": dict(sorted(queues.items()))}

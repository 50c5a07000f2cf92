"""Logs of a small cluster as 4.9 writes them, by who wrote what when: well, but for what is put in or left out."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nemesrv.operations.cluster.logged import LOOK_UPS
from nemesrv.operations.inferring.said import Hearing
from nemesrv.operations.logs_to_rows.gather import Gathered, gather

BEGIN = datetime(2026, 6, 27, 8, 0, 0, tzinfo=UTC)
NS_0, NS_1 = "10.0.1.1:9876", "10.0.1.2:9876"
BROKER_A, BROKER_B = "10.0.2.1:10911", "10.0.2.2:10911"
WHY = "because channel destroyed"
Said = tuple[float, str]
Logs = dict[str, Sequence[Said]]
"""File to what stands in it, put in order by when; a tuple is in order already."""


def row(broker: str = "broker-a") -> str:
    return f"QueueData [brokerName={broker}, readQueueNums=4, writeQueueNums=4, perm=6, topicSysFlag=0]"


def boot(at_s: float, address: str) -> list[Said]:
    return [(at_s, "listenPort=9876"), (at_s, f"The Name Server boot success. serializeType=JSON, address {address}")]


def heard(first_s: float, last_s: float, name: str = "broker-a", address: str = BROKER_A) -> list[Said]:
    """A broker that registers each 30 s."""
    said = f"cluster [C] brokerName [{name}] master address change from"
    times = [first_s + 30 * number for number in range(int((last_s - first_s) // 30) + 1)]
    return [
        (first_s, f"{said} null to {address}"),
        (first_s, f"new broker registered, {address} HAServer: 10.0.2.1:10912"),
        *((at_s, f"{said} {address} to {address}") for at_s in times[1:]),
    ]


def dropped(at_s: float, name: str = "broker-a", address: str = BROKER_A, topic: str = "orders") -> list[Said]:
    return [
        (at_s, f"the broker's channel destroyed, {address}, clean it's data structure at once"),
        (at_s, f"remove brokerAddr[0, {address}] from brokerAddrTable, {WHY}"),
        (at_s, f"remove brokerName[{name}] from brokerAddrTable, {WHY}"),
        (at_s, f"remove topic[{topic} {row(name)}], from topicQueueTable, {WHY}"),
    ]


def name_server(address: str, *more: Said, until_s: float = 600, topics: Sequence[str] = ("orders",)) -> list[Said]:
    """Whole and well: started at 0, broker-a from 10 s on."""
    came = [(10.0, f"new topic registered, {topic} {row()}") for topic in topics]
    return [*boot(0, address), *came, *heard(10, until_s), *more]


def broker(
    name: str = "broker-a", address: str = BROKER_A, names: str = f"{NS_0};{NS_1}", *more: Said, until_s: float = 600
) -> list[Said]:
    at = [10.0 + 30 * number for number in range(int((until_s - 10) // 30) + 1)]
    return [
        (5, f"brokerName={name}"),
        (5, f"namesrvAddr={names}"),
        (5, "autoCreateTopicEnable=false"),
        (5, f"The broker[{name}, {address}] boot success. serializeType=JSON and name server is {names}"),
        *((one, f"register broker[0]to name server {server} OK") for one in at for server in names.split(";")),
        *more,
    ]


def client(*asked: float, at: str = NS_0, topic: str = "orders", names: str = f"{NS_0}, {NS_1}") -> list[Said]:
    """Sits on one NameServer and gets code 17 at those times."""
    return [
        (50, f"name server address updated. NEW : [{names}] , OLD: null"),
        (50, "Created new MQClientInstance for clientId:[10.0.3.1@4711]"),
        (51, f"new name server is chosen. OLD: null , NEW: {at}. namesrvIndex = 3"),
        *((at_s, no_route(topic)) for at_s in asked),
    ]


def no_route(topic: str) -> str:
    return (
        "updateTopicRouteInfoFromNameServer Exception\n"
        "org.apache.rocketmq.client.exception.MQClientException: CODE: 17  DESC: No topic route info in name server "
        f"for the topic: {topic}\nSee http://rocketmq.apache.org/docs/faq/ for further details."
    )


def stamped(lines: Iterable[Said], ahead_s: float = 8 * 3600, millis: bool = False) -> str:
    """Lines at so many seconds, as a clock writes them that is so far ahead of UTC."""
    text = []
    for at_s, said in lines:
        at = BEGIN + timedelta(seconds=at_s + ahead_s)
        digits = f",{at.microsecond // 1000:03d}" if millis else ""
        text.append(f"{at:%Y-%m-%d %H:%M:%S}{digits} INFO main - {said}\n")
    return "".join(text)


def written(folder: Path, logs: Logs) -> Path:
    """The folder with these logs in it."""
    for file, said in logs.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(stamped(said if isinstance(said, tuple) else sorted(said, key=lambda one: one[0])))
    return folder


def logs_of(
    ns_0: Sequence[Said] | None = None,
    ns_1: Sequence[Said] | None = None,
    broker_a: Sequence[Said] | None = None,
    producer: Sequence[Said] | None = None,
) -> Logs:
    return {
        "ns-0/namesrv.log": name_server(NS_0) if ns_0 is None else ns_0,
        "ns-1/namesrv.log": name_server(NS_1) if ns_1 is None else ns_1,
        "broker-a/broker.log": broker() if broker_a is None else broker_a,
        "producer-0/rocketmq_client.log": client(300, 330) if producer is None else producer,
    }


def read_logs(places: Sequence[Path | str]) -> Gathered:
    return gather(None, places, LOOK_UPS, Hearing)

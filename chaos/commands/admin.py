"""`nemesrv admin`: mqadmin's sub-commands and flags, executed by nemesrv's AdminClient.

Commands that change something go to every NameServer of `-n`; the others ask the first reachable NameServer. The
printed columns are mqadmin's columns (`tools/command/**/*SubCommand` in RocketMQ's source).
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import click

from ...clients.admin import AdminClient
from ...remoting.bodies.client import TopicOffset
from ...remoting.bodies.route import BrokerData, ClusterInfo, TopicRouteData
from ...remoting.codes import MASTER_ID, ResponseCode
from ...remoting.errors import ClientError, ResponseError, RocketMQError
from ...remoting.message import MessageQueue
from ...remoting.node.clock import Clock
from ...remoting.node.network import Address
from ...remoting.node.this_machine import on_this_machine
from ...remoting.topics import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX
from ..errors import HarnessError
from ..reports.text import rows_fitting
from .options import AddressList

MAX_QUEUE_NUMS = 65_536
_PERMS = {"2": "-W-", "4": "R--", "6": "RW-"}

T = TypeVar("T")
Flag = Callable[[Any], Any]
Work = Callable[..., Awaitable[None]]

admin = click.Group("admin")


def command(name: str, *flags: Flag) -> Callable[[Work], click.Command]:
    """Make a sub-command from a coroutine, which gets an AdminSession and the flags after `-n`."""

    def made(work: Work) -> click.Command:
        @functools.wraps(work)
        def call(name_servers: tuple[Address, ...], **said: Any) -> None:
            run(name_servers, lambda session: work(session, **said))

        return admin.command(name)(functools.reduce(lambda given, flag: flag(given), reversed((_n, *flags)), call))

    return made


# -- flags


def _text(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    try:
        value.encode()
    except UnicodeEncodeError as exc:
        raise click.BadParameter("the value is not UTF-8") from exc
    if not value.strip():
        raise click.BadParameter("the value is empty")
    return value.strip()


def _address(_: click.Context, __: click.Parameter, value: tuple[Address, ...] | None) -> Address | None:
    if value is not None and len(value) > 1:
        raise click.BadParameter("several addresses are given; expected one host:port")
    return value[0] if value else None


def _flag(*names: str, help: str, required: bool = True) -> Flag:
    return click.option(*names, help=help, required=required, callback=_text)


_n = click.option(
    "-n", "--namesrvAddr", "name_servers", required=True, type=AddressList(), help='NameServers: "host:port;host:port".'
)
_t = _flag("-t", "--topic", "topic", help="Name of the topic.")
_maybe_b = click.option(
    "-b", "--brokerAddr", "broker", type=AddressList(), callback=_address, help="Address of one broker."
)
_maybe_c = _flag("-c", "--clusterName", "cluster", help="Name of a cluster, instead of a broker (-b).", required=False)
_queues = functools.partial(click.option, type=click.IntRange(0, MAX_QUEUE_NUMS), default=8, show_default=True)
_broker_name = _flag("-b", "--brokerName", "broker_name", help="Name of the broker (brokerName), such as broker-a.")
_namespace = _flag("-s", "--namespace", "namespace", help="Namespace of the KV entry, such as ORDER_TOPIC_CONFIG.")
_key = _flag("-k", "--key", "key", help="Name of the setting, or key of the KV entry.")
_value = _flag("-v", "--value", "value", help="New value of the setting or KV entry.")


# -- cluster and brokers


@command("clusterList")
async def cluster_list(session: AdminSession) -> None:
    """Print every broker of every cluster: version, load, hours since its oldest message, and how full its disk is."""
    info = await session.cluster_info()
    rows = [
        (cluster, data.broker_name, broker_id, parsed(text))
        for cluster in sorted(info.cluster_addr_table)
        for data in brokers_of(info, cluster)
        for broker_id, text in sorted(data.broker_addrs.items())
    ]
    tables = await session.each([row[-1] for row in rows], session.client.broker_runtime_info)
    of_broker = ("#Cluster Name", "#Broker Name", "#BID", "#Addr")
    of_load = ("#Version", "#InTPS(LOAD)", "#OutTPS(LOAD)", "#PCWait(ms)", "#Hour", "#SPACE")
    loads = [_load(tables.get(row[-1]), session.clock.now_ms()) for row in rows]
    print_table((*of_broker, *of_load), [(*row, *load) for row, load in zip(rows, loads, strict=True)])


def _load(table: Mapping[str, str] | None, now_ms: int) -> tuple[str, ...]:
    """Return the cells from #Version on; no cells for a broker that did not answer."""
    if table is None:
        return ("",) * 6
    earliest_ms = _number(table.get("earliestMessageTimeStamp"))
    tps_out = table.get("getTransferedTps", table.get("getTransferredTps"))
    return (
        table.get("brokerVersionDesc", ""),
        _rate(table.get("putTps"), table, "send"),
        _rate(tps_out, table, "pull"),
        table.get("pageCacheLockTimeMills", ""),
        f"{(now_ms - earliest_ms) / 3_600_000:.2f}" if earliest_ms > 0 else "",
        f"{_number(table.get('commitLogDiskRatio')):.4f}",
    )


def _rate(tps: str | None, table: Mapping[str, str], pool: str) -> str:
    """Return the first of three rates, how many requests wait in the pool, and how long the first has waited."""
    first = _number((tps or "").partition(" ")[0])
    size = table.get(f"{pool}ThreadPoolQueueSize", "")
    wait_ms = table.get(f"{pool}ThreadPoolQueueHeadWaitTimeMills", "")
    return f"{first:.2f}({size},{wait_ms}ms)"


def _number(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


@command("brokerStatus", _maybe_b, _maybe_c)
async def broker_status(session: AdminSession, broker: Address | None, cluster: str | None) -> None:
    """Print the runtime figures of a broker, or of every broker of a cluster."""
    asked = await session.one_or_all(broker, cluster, session.brokers)
    tables = await session.each(asked, session.client.broker_runtime_info)
    for address, table in tables.items():
        for key, value in sorted(table.items()):
            click.echo(f"{'' if broker else f'{address!s:<24} '}{key:<32}: {value}")


# -- topics


@command("topicList", click.option("-c", "--clusterModel", "with_cluster", is_flag=True, help="Add clusters, groups."))
async def topic_list(session: AdminSession, with_cluster: bool) -> None:
    """Print the name of every topic that the first reachable NameServer knows."""
    client = session.client
    topics = sorted(await session.ask(lambda ns: client.topic_list(name_server=ns)))
    if not with_cluster:
        for topic in topics:
            click.echo(topic)
        return
    info = await session.cluster_info()
    groups = await session.each(masters_of(info.broker_addr_table.values()), client.consumer_groups)
    cluster_of = {name: cluster for cluster, names in info.cluster_addr_table.items() for name in names}
    rows = []
    for topic in topics:
        if topic.startswith((RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX)):
            continue
        try:
            clusters = {cluster_of.get(data.broker_name, "") for data in (await session.route(topic)).broker_datas}
        except click.ClickException:  # it has no route any more
            clusters = set()
        consumers = {group for table in groups.values() for group in table.get(topic, ())}
        for cluster in sorted(clusters) or [""]:
            rows += [(cluster, topic, group) for group in sorted(consumers) or [""]]
    print_table(("#Cluster Name", "#Topic", "#Consumer Group"), rows)


@command("topicRoute", _t)
async def topic_route(session: AdminSession, topic: str) -> None:
    """Print a topic's route as JSON."""
    route = await session.route(topic)
    click.echo(json.dumps(json.loads(route.encode(standard_json=True)), indent=2, sort_keys=True))


@command("topicStatus", _t)
async def topic_status(session: AdminSession, topic: str) -> None:
    """Print the offsets of a topic's queues, and the time of each queue's last message."""
    masters = masters_of((await session.route(topic)).broker_datas)
    tables = await session.each(masters, lambda broker: session.client.topic_stats(broker, topic))
    queues: dict[MessageQueue, TopicOffset] = {}
    for table in tables.values():
        queues |= table.offset_table
    print_table(
        ("#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated"),
        [
            (queue.broker_name, queue.queue_id, at.min_offset, at.max_offset, _time(at.last_update_timestamp))
            for queue, at in sorted(queues.items(), key=lambda row: row[0])
        ],
    )


def _time(time_ms: int) -> str:
    try:
        return datetime.fromtimestamp(time_ms / 1000).isoformat(timespec="seconds") if time_ms > 0 else ""
    except (ValueError, OverflowError, OSError):
        return ""


@command(
    "updateTopic",
    _maybe_b,
    _maybe_c,
    _t,
    _queues("-r", "--readQueueNums", "read", help="Number of read queues."),
    _queues("-w", "--writeQueueNums", "write", help="Number of write queues."),
    click.option(
        "-p",
        "--perm",
        type=click.Choice([*_PERMS]),
        default="6",
        show_default=True,
        help="Permission of the topic: 2 write, 4 read, 6 both.",
    ),
)
async def update_topic(
    session: AdminSession, broker: Address | None, cluster: str | None, topic: str, read: int, write: int, perm: str
) -> None:
    """Create or change a topic at one broker, or at every master of a cluster."""

    async def create(address: Address) -> None:
        await session.client.create_topic(address, topic, read_queue_nums=read, write_queue_nums=write, perm=int(perm))

    done = await session.each(await session.one_or_all(broker, cluster, session.masters), create)
    _say(done, f"topic {topic} is there: readQueueNums={read} writeQueueNums={write} perm={_PERMS[perm]}")


@command("deleteTopic", _flag("-c", "--clusterName", "cluster", help="Name of the topic's cluster."), _t)
async def delete_topic(session: AdminSession, cluster: str, topic: str) -> None:
    """Delete a topic at every master of a cluster, then at every NameServer."""
    client, masters = session.client, await session.masters(cluster)
    done = await session.each(masters, lambda broker: client.delete_topic_in_broker(broker, topic))
    _say(done, f"broker: topic {topic} is deleted")
    session.settle("name servers were not asked, because a broker that keeps the topic registers it again")
    done = await session.every(lambda ns: client.delete_topic_in_name_server(topic, cluster=cluster, name_server=ns))
    _say(done, f"name server: topic {topic} is deleted")


def _say(addresses: Iterable[Address], text: str) -> None:
    for address in addresses:
        click.echo(f"{address}  {text}")


# -- NameServers


@command("wipeWritePerm", _broker_name)
async def wipe_write_perm(session: AdminSession, broker_name: str) -> None:
    """Take a broker's write permission away, at every NameServer."""
    done = await session.every(lambda ns: session.client.wipe_write_perm(broker_name, name_server=ns))
    for address, count in done.items():
        click.echo(f"{address}  {broker_name}: {count} topics without write permission")


@command("addWritePerm", _broker_name)
async def add_write_perm(session: AdminSession, broker_name: str) -> None:
    """Give a broker's write permission back, at every NameServer."""
    done = await session.every(lambda ns: session.client.add_write_perm(broker_name, name_server=ns))
    for address, count in done.items():
        click.echo(f"{address}  {broker_name}: {count} topics with write permission again")


@command("updateKvConfig", _namespace, _key, _value)
async def update_kv_config(session: AdminSession, namespace: str, key: str, value: str) -> None:
    """Set a KV entry at every NameServer."""
    done = await session.every(lambda ns: session.client.put_kv_config(namespace, key, value, name_server=ns))
    _say(done, f"{namespace}: {key} = {value}")


@command("deleteKvConfig", _namespace, _key)
async def delete_kv_config(session: AdminSession, namespace: str, key: str) -> None:
    """Delete a KV entry at every NameServer."""
    done = await session.every(lambda ns: session.client.delete_kv_config(namespace, key, name_server=ns))
    _say(done, f"{namespace}: {key} is deleted")


@command("getNamesrvConfig")
async def get_namesrv_config(session: AdminSession) -> None:
    """Print every NameServer's settings."""
    done = await session.every(lambda ns: session.client.name_server_config(name_server=ns))
    for address, properties in done.items():
        click.echo(f"============{address}============")
        for key, value in sorted(properties.items()):
            click.echo(f"{key:<50}=  {value}".rstrip())


@command("updateNamesrvConfig", _key, _value)
async def update_namesrv_config(session: AdminSession, key: str, value: str) -> None:
    """Change a setting of every NameServer."""
    done = await session.every(lambda ns: session.client.update_name_server_config({key: value}, name_server=ns))
    _say(done, f"{key} = {value}")


# -- consumers


@command("consumerProgress", _flag("-g", "--groupName", "group", help="Name of the consumer group."))
async def consumer_progress(session: AdminSession, group: str) -> None:
    """Print for each queue how many messages a consumer group is behind."""
    brokers = masters_of((await session.route(RETRY_GROUP_TOPIC_PREFIX + group)).broker_datas)
    stats = (await session.each(brokers, lambda broker: session.client.consume_stats(broker, group))).values()
    queues = sorted(((queue, at) for each in stats for queue, at in each.offset_table.items()), key=lambda row: row[0])
    behind = [at.broker_offset - at.consumer_offset for _, at in queues]
    print_table(
        ("#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Diff", "#LastTime"),
        [
            (*queue, at.broker_offset, at.consumer_offset, diff, _time(at.last_timestamp))
            for (queue, at), diff in zip(queues, behind, strict=True)
        ],
    )
    click.echo(f"\nConsume TPS: {sum(each.consume_tps for each in stats):.2f}")
    click.echo(f"Diff Total: {sum(behind)}")


# -- what every `nemesrv admin` command shares


class AdminSession:
    """Sends the requests of one command. `failed` has the errors of the requests that `each` sent."""

    def __init__(self, client: AdminClient, name_servers: Sequence[Address], clock: Clock) -> None:
        self.client, self.name_servers, self.clock = client, tuple(name_servers), clock
        self.failed: list[tuple[Address, RocketMQError]] = []
        self._left = list(name_servers)

    async def ask(self, question: Callable[[Address], Awaitable[T]]) -> T:
        """Return the answer of one NameServer. All calls of `ask` use the same NameServer while it is reachable.

        Raises ClickException if a NameServer refuses the request, and HarnessError if no NameServer is reachable.
        """
        gone: list[tuple[Address, RocketMQError]] = []
        while self._left:
            try:
                return await question(self._left[0])
            except (ResponseError, ClientError) as exc:
                raise click.ClickException(_why(self._left[0], exc)) from exc
            except RocketMQError as exc:
                gone.append((self._left.pop(0), exc))
        raise HarnessError(f"no name server can be reached: {_all(gone)}")

    async def each(self, addresses: Iterable[Address], question: Callable[[Address], Awaitable[T]]) -> dict[Address, T]:
        """Ask the server at each of `addresses` and return the answers by address, in that order. Failed requests are
        left out; `settle` raises an error that names them."""
        asked = tuple(dict.fromkeys(addresses))
        answers = await asyncio.gather(*(self._one(address, question) for address in asked))
        return {address: answer[0] for address, answer in zip(asked, answers, strict=True) if answer is not None}

    async def every(self, question: Callable[[Address], Awaitable[T]]) -> dict[Address, T]:
        return await self.each(self.name_servers, question)

    async def _one(self, address: Address, question: Callable[[Address], Awaitable[T]]) -> tuple[T] | None:
        try:
            return (await question(address),)
        except RocketMQError as exc:
            self.failed.append((address, exc))
            return None

    async def cluster_info(self) -> ClusterInfo:
        return await self.ask(lambda ns: self.client.cluster_info(name_server=ns))

    async def route(self, topic: str) -> TopicRouteData:
        """Return the topic's route; ClickException if no NameServer has a route."""
        return await self.ask(lambda ns: self.client.topic_route(topic, name_server=ns))

    async def one_or_all(
        self, broker: Address | None, cluster: str | None, of: Callable[[str], Awaitable[list[Address]]]
    ) -> list[Address]:
        """Return the broker, or those `of` the cluster. Raises UsageError unless exactly one of the two is given."""
        if broker is not None and cluster is None:
            return [broker]
        if broker is None and cluster is not None:
            return await of(cluster)
        raise click.UsageError("give either -b (a broker's host:port) or -c (a cluster's name)")

    async def brokers(self, cluster: str) -> list[Address]:
        """Return masters and slaves of the cluster. Raises ClickException if the cluster does not exist."""
        datas = brokers_of(await self.cluster_info(), cluster)
        return [parsed(text) for data in datas for text in data.broker_addrs.values()]

    async def masters(self, cluster: str) -> list[Address]:
        """Return the cluster's masters. Raises ClickException if the cluster has no master."""
        found = masters_of(brokers_of(await self.cluster_info(), cluster))
        if not found:
            raise click.ClickException(f"-c: cluster {cluster} has no master now")
        return found

    def settle(self, then: str = "") -> None:
        """Raise an error that names all peers that failed: ClickException (exit status 2) if they refused the request,
        HarnessError (4) if one could not be reached. `then` says what the command did not do because of that."""
        if not self.failed:
            return
        text = _all(self.failed) + (f"; {then}" if then else "")
        if all(isinstance(exc, ResponseError | ClientError) for _, exc in self.failed):
            raise click.ClickException(text)
        raise HarnessError(text)


def run(name_servers: Sequence[Address], work: Callable[[AdminSession], Awaitable[None]]) -> None:
    """Run the command `work`, then report failures."""

    async def session() -> None:
        context = on_this_machine("admin")
        async with AdminClient(context, name_servers) as client:
            asked = AdminSession(client, name_servers, context.clock)
            await work(asked)
            asked.settle()

    asyncio.run(session())


def brokers_of(info: ClusterInfo, cluster: str) -> list[BrokerData]:
    """Return the cluster's brokers by name; ClickException if the cluster does not exist."""
    if cluster not in info.cluster_addr_table:
        known = ", ".join(sorted(info.cluster_addr_table)) or "none"
        raise click.ClickException(f"-c: there is no cluster {cluster}; known: {known}")
    names = sorted(set(info.cluster_addr_table[cluster]) & info.broker_addr_table.keys())
    return [info.broker_addr_table[name] for name in names]


def masters_of(datas: Iterable[BrokerData]) -> list[Address]:
    return [parsed(data.broker_addrs[MASTER_ID]) for data in datas if MASTER_ID in data.broker_addrs]


def parsed(text: str) -> Address:
    """Return a broker's registered address. Raises HarnessError if the address is invalid."""
    try:
        return Address.parse(text)
    except ValueError as exc:
        raise HarnessError(f"a broker registered an invalid address: {exc}") from exc


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table with columns as wide as necessary. An empty cell is `-`, so every row has the same number of
    words."""
    for line in rows_fitting([header, *([str(cell) or "-" for cell in row] for row in rows)], None):
        click.echo(line)


def _all(failed: Iterable[tuple[Address, RocketMQError]]) -> str:
    return "; ".join(_why(address, exc) for address, exc in failed)


def _why(address: Address, exc: RocketMQError) -> str:
    if isinstance(exc, ResponseError):
        known = {int(code): code.name for code in ResponseCode}
        return f"{address} answers {known.get(exc.code, 'code')} ({exc.code:d}): {exc.remark or 'without a remark'}"
    text = str(exc)
    return text if str(address) in text else f"{address}: {text}"

"""The prober is the harness's own client. The prober creates the topic, starts many short-lived clients, and reads
every queue at the end.

Only many starts of clients can show whether a client chooses its first NameServer uniformly. Each short-lived client
runs the code of nemesrv's clients up to the first route query, over the prober's links. All rows of one short-lived
client have the same op_id.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from ....clients.admin import AdminClient
from ....clients.config import CLIENT_IP, ClientConfig, ProducerConfig
from ....clients.name_server_client import LastAnswers, NameServerClient
from ....clients.producer.send_request import single
from ....remoting.codes import MASTER_ID, LanguageCode
from ....remoting.errors import RocketMQError, TransportError
from ....remoting.message import Message, MessageQueue
from ....remoting.message_id import UniqIdGenerator
from ....remoting.node.network import Address
from ....remoting.node.node import Node, NodeContext
from ....remoting.node.recording import ignore
from ....remoting.transport import RemotingClient

TRIES = 3
"""Of a call that the run needs: a machine that stands still makes one time out."""
POLL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ProberWorkload:
    topic: str
    queues: int
    others: tuple[tuple[str, int], ...] = ()
    """Further topics that producers send to, and of dead letters, with their queues; read at the end, too."""
    config: ClientConfig


class ProberNode(Node):
    def __init__(self, context: NodeContext, workload: ProberWorkload) -> None:
        self._context, self._workload = context, workload
        self._starts = 0
        self._answers: LastAnswers = {}
        self.plant: Callable[[NameServerClient], None] = lambda client: None
        """A planted defect, put into each client that is started."""

    def _admin(self) -> AdminClient:
        # What the harness does for itself is no client behaviour, so it leaves no rows.
        context = dataclasses.replace(self._context, record=ignore)
        config = self._workload.config
        return AdminClient(context, config.namesrv_addr, profile=config.profile)

    async def create_topic(self, brokers: Mapping[str, Address]) -> None:
        topic, queues = self._workload.topic, self._workload.queues
        async with self._admin() as admin:
            for address in brokers.values():
                for attempt in range(1, TRIES + 1):
                    try:
                        await admin.create_topic(address, topic, read_queue_nums=queues, write_queue_nums=queues)
                        break
                    except TransportError:
                        if attempt == TRIES:
                            raise

    async def await_routes(self, brokers: Mapping[Address, Collection[str]], timeout_s: float) -> None:
        """Wait until each NameServer's route of the topic has all of that NameServer's `brokers`. Raises TimeoutError
        if the wait takes too long."""
        async with self._admin() as admin, self._context.clock.timeout(timeout_s):
            for name_server, wanted in brokers.items():
                while not set(wanted) <= await self._routed(admin, name_server):
                    await self._context.clock.sleep(POLL_S)

    async def _routed(self, admin: AdminClient, name_server: Address) -> set[str]:
        try:
            route = await admin.topic_route(self._workload.topic, name_server=name_server)
        except RocketMQError:
            return set()
        return {queue.broker_name for queue in route.queue_datas}

    async def warm_up(self, brokers: Mapping[str, tuple[str, Address]], timeout_s: float) -> dict[str, float]:
        """Send one message to each broker, to all at the same time. Returns the answer time in seconds of each broker
        that answered in time. `brokers` gives brokerName and address of each node. The message's topic is the broker's
        name, as with `mqadmin clusterRT`; no consumer of the run subscribes to this topic.
        """
        answered: dict[str, float] = {}
        clock, config = self._context.clock, ProducerConfig(profile=self._workload.config.profile)
        ids = UniqIdGenerator(CLIENT_IP, self._context.rng)
        async with self._admin() as admin:

            async def send(node: str, broker_name: str, address: Address) -> None:
                message, now_ms = Message.create(broker_name, b"warm-up"), clock.now_ms()
                request = single(message, config, lambda: ids.next_id(now_ms))
                command = request.command(MessageQueue(message.topic, message.topic, 0), config, now_ms=now_ms)
                began_s = clock.monotonic_s()
                with contextlib.suppress(TransportError):
                    await admin.remoting.invoke(address, command, timeout_s=timeout_s)
                    answered[node] = clock.monotonic_s() - began_s

            await asyncio.gather(*(send(node, *where) for node, where in brokers.items()))
        return answered

    async def probe(self, starts: int) -> None:
        for _ in range(starts):
            await self._start_one()

    async def _start_one(self) -> None:
        op_id = f"{self._context.name}-start-{self._starts}"
        self._starts += 1
        base, config = self._context, self._workload.config

        def record(event: str, /, **fields: object) -> None:
            base.record(event, op_id=op_id, **fields)

        context = dataclasses.replace(base, record=record)
        remoting = RemotingClient(
            **base.seams,
            connect_timeout_s=config.connect_timeout_ms / 1000,
            close_on_timeout=config.client_close_socket_if_timeout,
            language=LanguageCode.PYTHON,
            version=config.profile.version,
        )
        client = NameServerClient(
            context,
            remoting,
            config.namesrv_addr,
            config.profile,
            lock_timeout_s=config.lock_timeout_ms / 1000,
            answers=self._answers,
        )
        self.plant(client)
        client.start()
        try:
            await client.query_route(self._workload.topic, config.mq_client_api_timeout_ms / 1000)
        except RocketMQError as exc:
            base.log.info("%s got no route: %s", op_id, exc)
        finally:
            await remoting.close()

    async def read_all(self, brokers: Mapping[str, Address], elected: Collection[str] = ()) -> None:
        """Read every queue of each of the workload's topics, at each broker (name to address). `read_all` records each
        message once. The queues of broker names in `elected` are read at the current master. A `read_done` row is
        recorded for each completely read queue, so checks know which queues were not read."""
        async with self._admin() as admin:
            for broker_name, begun in brokers.items():
                address = await self._master(admin, broker_name) or begun if broker_name in elected else begun
                for topic, queues in ((self._workload.topic, self._workload.queues), *self._workload.others):
                    for queue_id in range(queues):
                        await self._read_queue(admin, topic, broker_name, address, queue_id)

    async def _master(self, admin: AdminClient, broker_name: str) -> Address | None:
        for name_server in self._workload.config.namesrv_addr:
            try:
                route = await admin.topic_route(self._workload.topic, name_server=name_server)
            except RocketMQError:
                continue
            for data in route.broker_datas:
                if data.broker_name == broker_name and (at := data.broker_addrs.get(MASTER_ID)) is not None:
                    return Address.parse(str(at))
        return None

    async def _read_queue(
        self, admin: AdminClient, topic: str, broker_name: str, address: Address, queue_id: int
    ) -> None:
        record = self._context.record
        where = {"topic": topic, "broker_name": broker_name, "queue_id": queue_id}
        for attempt in range(TRIES):
            try:
                messages = [message async for message in admin.read_queue(topic, address, queue_id)]
                end = messages[-1].queue_offset + 1 if messages else await admin.max_offset(address, topic, queue_id)
            except RocketMQError as exc:
                self._context.log.warning("final read of %s, try %d: %s", where, attempt, exc)
                continue
            for message in messages:
                of_record = {"offset": message.queue_offset, "msg_id": message.offset_msg_id}
                record("read", msg_key=message.keys, **of_record, **where)
            record("read_done", offset=end, attempt=attempt, **where)
            return

"""Our producer or consumer as a program that speaks docs/conform-protocol.md's JSON lines, whole or with a defect.

    python -m tests.conformance.client [--profile 4.9|5.x] [--defect NAME] [--every SECONDS]

Where and what it is told by NAMESRV_ADDR or NEMESRV_NAMESRV_HTTP, NEMESRV_TOPIC, NEMESRV_GROUP and NEMESRV_ROLE.
`Client` is the same program on any clock and network, which is how memory.py runs it.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from nemesrv.clients.client_instance import MQClientInstance
from nemesrv.clients.config import ProducerConfig, parse_name_servers
from nemesrv.clients.consumer.config import ConsumeFromWhere, ConsumerConfig
from nemesrv.clients.consumer.consumer import DefaultMQPushConsumer
from nemesrv.clients.producer.producer import DefaultMQProducer
from nemesrv.conformance.situations import Role
from nemesrv.remoting.errors import RocketMQError
from nemesrv.remoting.message import Message, StoredMessage
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.node import NodeContext
from nemesrv.remoting.node.profile import Profile
from nemesrv.remoting.node.this_machine import on_this_machine

Tell = Callable[..., None]


class Client:
    """One process of the program. `settings` go into its producer's or consumer's config; a defect changes either."""

    def __init__(
        self,
        context: NodeContext,
        *,
        name_servers: Sequence[Address],
        topic: str,
        group: str,
        role: Role = Role.PRODUCER,
        profile: Profile = Profile.V5_X,
        every_s: float = 0.2,
        tell: Tell = lambda **said: None,
        **settings: Any,
    ) -> None:
        self.context, self.topic, self.role, self.every_s = context, topic, role, every_s
        self.configured = tuple(name_servers)
        self.tell = tell
        common = {"namesrv_addr": self.configured, "profile": profile, **settings}
        self.node: DefaultMQProducer | DefaultMQPushConsumer
        if role is Role.PRODUCER:
            self.node = DefaultMQProducer(context, ProducerConfig(producer_group=group, **common))
        else:
            config = ConsumerConfig(
                consumer_group=group,
                subscriptions=((topic, "*"),),
                consume_from_where=ConsumeFromWhere.FIRST_OFFSET,
                **common,
            )
            self.node = DefaultMQPushConsumer(context, config, self._received)
        self._sending: asyncio.Task[None] | None = None
        self.situation = ""
        """What it is put through, where a defect is to show there alone."""

    @property
    def instance(self) -> MQClientInstance:
        return self.node.client

    def said(self, number: int, ok: bool) -> bool:
        """What it tells of that send; a defect may lie."""
        return ok

    async def start(self) -> None:
        await self.node.start()
        self.tell(f="started")
        if isinstance(self.node, DefaultMQProducer):
            self._sending = asyncio.create_task(self._send_all(self.node))

    async def stop(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        await self.node.stop()

    async def _send_all(self, producer: DefaultMQProducer) -> None:
        number = 0
        while True:
            key = f"{self.context.name}-{number}"
            self.tell(f="send", id=key)
            broker = ""
            try:
                broker = (await producer.send(Message.create(self.topic, key.encode(), keys=key))).queue.broker_name
            except RocketMQError:
                pass
            ok = self.said(number, bool(broker))
            self.tell(f="sent", id=key, type="ok" if ok else "fail", **({"broker": broker} if broker else {}))
            number += 1
            await self.context.clock.sleep(self.every_s)

    def _received(self, messages: Sequence[StoredMessage]) -> bool:
        for message in messages:
            self.tell(f="received", id=message.body.decode())
        return True


def main() -> None:
    from tests.conformance.sabotage import DEFECTS

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--profile", default="5.x", choices=[each.value for each in Profile])
    parser.add_argument("--defect", choices=DEFECTS, metavar="NAME", help=", ".join(DEFECTS))
    parser.add_argument("--every", type=float, default=0.2)
    asyncio.run(_main(parser.parse_args(), DEFECTS))


async def _main(args: argparse.Namespace, defects: Any) -> None:
    environ = os.environ

    def tell(**said: Any) -> None:
        print(json.dumps(said), flush=True)

    defect = defects[args.defect] if args.defect else None
    by_http = urlsplit(environ.get("NEMESRV_NAMESRV_HTTP", "")).netloc
    client = Client(
        on_this_machine(f"client-{os.getpid()}"),
        name_servers=parse_name_servers(environ.get("NAMESRV_ADDR", "")),
        topic=environ["NEMESRV_TOPIC"],
        group=environ["NEMESRV_GROUP"],
        role=Role(environ.get("NEMESRV_ROLE", "producer")),
        profile=Profile(args.profile),
        every_s=args.every,
        tell=tell,
        **({"address_server": Address.parse(by_http)} if by_http else {}),
        **(defect.settings if defect else {}),
    )
    if defect is not None:
        defect.plant(client)
    ending, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, ending.set)
    loop.run_in_executor(None, sys.stdin.read).add_done_callback(lambda _: ending.set())
    await client.start()
    await ending.wait()
    try:
        async with asyncio.timeout(1.5):
            await client.stop()
    except TimeoutError:
        pass  # what hangs is left behind
    os._exit(0)


if __name__ == "__main__":
    main()

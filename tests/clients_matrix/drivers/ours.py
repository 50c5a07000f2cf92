"""nemesrv's own client with its defaults, in the profile of the first argument: sends each 200 ms and push-consumes
until SIGTERM or the end of stdin.

python ours.py 4.9|5.x
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from nemesrv.actors.broker.config import parse_name_servers
from nemesrv.clients.config import ProducerConfig
from nemesrv.clients.consumer.config import ConsumerConfig
from nemesrv.clients.consumer.consumer import DefaultMQPushConsumer
from nemesrv.clients.producer.producer import DefaultMQProducer
from nemesrv.remoting.errors import RocketMQError
from nemesrv.remoting.message import Message, StoredMessage
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.node import NodeContext
from nemesrv.remoting.node.profile import Profile
from nemesrv.remoting.node.this_machine import on_this_machine

ROLE, TOPIC, GROUP = (
    os.environ.get("NEMESRV_ROLE", "producer"),
    os.environ["NEMESRV_TOPIC"],
    os.environ["NEMESRV_GROUP"],
)


def say(**event: Any) -> None:
    print(json.dumps(event), flush=True)


def context(name: str) -> NodeContext:
    return on_this_machine(f"{name}-{os.getpid()}", logging.getLogger(name))


def received(messages: Sequence[StoredMessage]) -> bool:
    for each in messages:
        say(f="received", id=each.body.decode(), queue=each.queue_id)
    return True


async def send(producer: DefaultMQProducer, number: str) -> None:
    say(f="send", id=number)
    try:
        queue = (await producer.send(Message.create(TOPIC, number.encode(), keys=number))).queue
        say(f="sent", id=number, type="ok", broker=queue.broker_name, queue=queue.queue_id)
    except RocketMQError as exc:
        say(f="sent", id=number, type="fail", error=str(exc))


async def sending(producer: DefaultMQProducer) -> None:
    count = 0
    while True:
        await send(producer, f"{os.getpid()}-{count}")
        count += 1
        await asyncio.sleep(0.2)


async def main(profile: Profile) -> None:
    loop, ending = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ending.set)
    by_http = urlsplit(os.environ.get("NEMESRV_NAMESRV_HTTP", "")).netloc
    place: Any = {"namesrv_addr": parse_name_servers(os.environ.get("NAMESRV_ADDR", "")), "profile": profile}
    if by_http:
        place["address_server"] = Address.parse(by_http)
    running: list[DefaultMQProducer | DefaultMQPushConsumer] = []
    if ROLE != "producer":
        subscribed = ConsumerConfig(consumer_group=GROUP, subscriptions=((TOPIC, "*"),), **place)
        running.append(DefaultMQPushConsumer(context("consumer"), subscribed, received))
        await running[0].start()
    tasks = [loop.run_in_executor(None, sys.stdin.read)]
    tasks[0].add_done_callback(lambda _: ending.set())
    if ROLE != "consumer":
        producer = DefaultMQProducer(context("producer"), ProducerConfig(producer_group=GROUP, **place))
        await producer.start()
        running.append(producer)
    say(f="started")
    if ROLE != "consumer":
        tasks.append(asyncio.create_task(sending(producer)))
    await ending.wait()
    for task in tasks[1:]:
        task.cancel()
    with suppress(TimeoutError):  # what hangs is left behind
        async with asyncio.timeout(1.5):
            await asyncio.gather(*(each.stop() for each in running), return_exceptions=True)
    os._exit(0)


asyncio.run(main(Profile(sys.argv[1])))

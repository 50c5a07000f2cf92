"""The C++ client inside the PyPI packages rocketmq (1.x) and rocketmq-python-cvs (2.1.0), with its defaults.

Sends each 200 ms and push-consumes until SIGTERM or the end of stdin. It does not tell the broker of a message.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from rocketmq.client import Message, Producer, PushConsumer, RecvMessage, SendStatus

ROLE, TOPIC, GROUP = (
    os.environ.get("NEMESRV_ROLE", "producer"),
    os.environ["NEMESRV_TOPIC"],
    os.environ["NEMESRV_GROUP"],
)
ending = threading.Event()
lock = threading.Lock()


def say(**event: Any) -> None:
    with lock:
        print(json.dumps(event), flush=True)


def received(message: RecvMessage) -> None:
    say(f="received", id=message.body.decode(), queue=message.queue_id)


def send(producer: Producer, number: str) -> None:
    message = Message(TOPIC)
    message.set_keys(number)
    message.set_body(number)
    say(f="send", id=number)
    try:
        status = producer.send_sync(message).status
    except Exception as exc:
        say(f="sent", id=number, type="fail", error=str(exc))
        return
    say(f="sent", id=number, **({"type": "ok"} if status == SendStatus.OK else {"type": "fail", "error": status.name}))


def end_of_input() -> None:
    while sys.stdin.buffer.read1(4096):
        pass
    ending.set()


def sending(producer: Producer) -> None:
    count = 0
    while not ending.is_set():
        send(producer, f"{os.getpid()}-{count}")
        count += 1
        ending.wait(0.2)


def find_name_servers(client: Producer | PushConsumer) -> None:
    if "NEMESRV_NAMESRV_HTTP" in os.environ:
        client.set_namesrv_domain(os.environ["NEMESRV_NAMESRV_HTTP"])
    else:
        client.set_namesrv_addr(os.environ["NAMESRV_ADDR"])


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    stop: list[Callable[[], None]] = []
    threads = [threading.Thread(target=end_of_input, daemon=True)]
    if ROLE != "producer":
        consumer = PushConsumer(GROUP)
        find_name_servers(consumer)
        consumer.subscribe(TOPIC, received)
        consumer.start()
        stop.append(consumer.shutdown)
    if ROLE != "consumer":
        producer = Producer(GROUP)
        find_name_servers(producer)
        producer.start()
        stop.append(producer.shutdown)
        threads.append(threading.Thread(target=sending, args=(producer,), daemon=True))
    say(f="started")
    for thread in threads:
        thread.start()
    ending.wait()
    leave = threading.Timer(1.5, os._exit, (0,))  # what hangs is left behind
    leave.daemon = True
    leave.start()
    for thread in threads[1:]:
        thread.join()
    for each in stop:
        each()
    os._exit(0)


main()

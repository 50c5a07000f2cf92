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
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[3]))

from nemesrv.actors.broker.config import parse_name_servers
from nemesrv.conformance.situations import Role
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile
from nemesrv.remoting.node.this_machine import on_this_machine
from tests.conformance.client import Client

ROLE, TOPIC, GROUP = (
    os.environ.get("NEMESRV_ROLE", "producer"),
    os.environ["NEMESRV_TOPIC"],
    os.environ["NEMESRV_GROUP"],
)
PROFILE = Profile(sys.argv[1])


def say(**event: Any) -> None:
    print(json.dumps(event), flush=True)


def say_of_messages(**event: Any) -> None:
    if event["f"] != "started":
        say(**event)


def client(role: str, tell: Any = say) -> Client:
    place: dict[str, Any] = {"name_servers": parse_name_servers(os.environ.get("NAMESRV_ADDR", ""))}
    if by_http := urlsplit(os.environ.get("NEMESRV_NAMESRV_HTTP", "")).netloc:
        place["address_server"] = Address.parse(by_http)
    own = {"topic": TOPIC, "group": GROUP, "role": Role(role), "profile": PROFILE, "tell": tell}
    return Client(on_this_machine(f"{role}-{GROUP}-{os.getpid()}", logging.getLogger(role)), **place, **own)


async def main() -> None:
    loop, ending = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ending.set)

    def hear_the_end() -> None:
        while os.read(0, 4096):
            pass
        loop.call_soon_threadsafe(ending.set)

    threading.Thread(target=hear_the_end, daemon=True).start()  # a start that fails waits for no input
    both = (client("consumer", tell=say_of_messages), client("producer")) if ROLE == "both" else ()
    running = both or (client(ROLE),)
    for each in running:
        await each.start()
    await ending.wait()
    with suppress(TimeoutError):  # what hangs is left behind
        async with asyncio.timeout(1.5):
            await asyncio.gather(*(each.stop() for each in running), return_exceptions=True)
    os._exit(0)


asyncio.run(main())

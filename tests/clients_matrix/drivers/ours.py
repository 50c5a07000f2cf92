"""nemesrv's own client with its defaults, in the profile of the first argument: sends each 200 ms and push-consumes
until SIGTERM or the end of stdin.

python ours.py 4.9|5.x [DEFECT [BESIDE]]

DEFECT (tests/conformance/sabotage.py) makes it wrong in one way, and BESIDE right clients more are in its process.
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
from nemesrv.remoting.codes import LanguageCode
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
DEFECT, BESIDE = (*sys.argv[2:], *("", "0")[len(sys.argv) - 2 :])


def say(**event: Any) -> None:
    print(json.dumps(event), flush=True)


def say_of_messages(**event: Any) -> None:
    if event["f"] != "started":
        say(**event)


def client(role: str, group: str = GROUP, tell: Any = say, **settings: Any) -> Client:
    place: dict[str, Any] = {"name_servers": parse_name_servers(os.environ.get("NAMESRV_ADDR", ""))}
    if by_http := urlsplit(os.environ.get("NEMESRV_NAMESRV_HTTP", "")).netloc:
        place["address_server"] = Address.parse(by_http)
    own = {"topic": TOPIC, "group": group, "role": Role(role), "profile": PROFILE, "tell": tell, **settings}
    made = Client(on_this_machine(f"{role}-{group}-{os.getpid()}", logging.getLogger(role)), **place, **own)
    if int(BESIDE):  # Java's clients are told apart by the thread that connects
        made.instance.remoting.language = LanguageCode.JAVA
    return made


async def beside(number: int) -> None:
    """One right client more, for ever."""
    await client("consumer", f"{GROUP}-{number}", lambda **_event: None).start()
    await asyncio.Event().wait()


async def main() -> None:
    loop, ending = asyncio.get_running_loop(), asyncio.Event()
    if threading.current_thread() is threading.main_thread():
        loop.add_signal_handler(signal.SIGTERM, ending.set)

    def hear_the_end() -> None:
        while os.read(0, 4096):
            pass
        loop.call_soon_threadsafe(ending.set)

    threading.Thread(target=hear_the_end, daemon=True).start()  # a start that fails waits for no input
    if DEFECT:  # imported before any client starts: a start that ends soon must see them all
        from tests.conformance.sabotage import WRONG

        wrong = next(each for each in WRONG if each.name == DEFECT)
    for number in range(int(BESIDE)):
        threading.Thread(target=lambda number=number: asyncio.run(beside(number)), daemon=True).start()
    if DEFECT:
        running = [client(ROLE, **wrong.settings)]
        wrong.plant(running[0])
    elif ROLE == "both":
        running = [client("consumer", tell=say_of_messages), client("producer")]
    else:
        running = [client(ROLE)]
    for each in running:
        await each.start()
    await ending.wait()
    with suppress(TimeoutError):  # what hangs is left behind
        async with asyncio.timeout(1.5):
            await asyncio.gather(*(each.stop() for each in running), return_exceptions=True)
    os._exit(0)


if int(BESIDE):  # each in a thread of its own, the first one too
    first = threading.Thread(target=lambda: asyncio.run(main()))
    first.start()
    first.join()  # else the interpreter shuts down beside it
else:
    asyncio.run(main())

"""A node touches time, connections and chance only through its context: read in the source, not hoped for.

Looks at every file of remoting, actors, clients and experiment/workloads. Allowed: `asyncio.create_task`, futures,
events, queues and gather; `context.clock`, `context.network` and `context.rng`, whatever they are called on the way.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("remoting", "actors", "clients", "chaos/experiment/workloads")

EXCEPTIONS = {
    "remoting/node/clock.py": "it is the seam to time",
    "remoting/node/network.py": "it is the seam to connections",
    "remoting/node/this_machine.py": "makes the context of a program that a person runs",
    "actors/actor.py": "the Ray shell, which makes a node's context",
    "actors/cluster.py": "the driver's side of the Ray shells, no node",
    "actors/ray_host.py": "starts and ends the driver's Ray, no node",
    "actors/host_agent.py": "kills, watches and holds what is per host for a driver elsewhere, no node",
    "actors/hosts.py": "the driver's side of the host agents, no node",
    "actors/joined_ray.py": "joins and leaves a Ray cluster of others, no node",
    "actors/processes.py": "kills and watches processes for the driver, no node",
    "actors/supervisor.py": "stops a command and whatever it started, no node",
    "actors/watch.py": "watches processes for the driver, no node",
    "actors/standalone.py": "signals and the event loop of the stand-alone commands",
    "actors/broker/standalone.py": "a stand-alone broker finds its own address by a socket",
}

FORBIDDEN_MODULES = {
    *("time", "socket", "select", "selectors", "uuid", "secrets", "threading", "concurrent"),
    *("subprocess", "signal", "numpy", "uvloop"),
}
FORBIDDEN_OF = {
    "asyncio": {
        *("sleep", "wait_for", "timeout", "timeout_at", "to_thread", "open_connection"),
        *("start_server", "open_unix_connection", "start_unix_server"),
        *("create_subprocess_exec", "create_subprocess_shell"),
    },
    "os": {"urandom", "getrandom", "times", "fork"},
}
FORBIDDEN_METHODS = {
    *("time", "call_at", "create_connection", "create_server", "create_unix_connection"),
    *("create_unix_server", "create_datagram_endpoint", "sock_connect", "sock_accept"),
    *("run_in_executor", "now", "utcnow", "today"),
}
"""Calls of these on anything: an event loop's way to time and sockets, and datetime's to the wall clock."""

CLOCK_METHODS = {"sleep", "call_later", "timeout"}
"""Calls of these on anything but a clock."""


def ways_around(source: str) -> list[str]:
    """Each place where `source` goes around the seams, as `line: what`."""
    return [f"{line}: {what}" for line, what in sorted(_found(ast.parse(source)))]


def _found(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                module = alias.name.partition(".")[0]
                if module in FORBIDDEN_MODULES:
                    yield node.lineno, f"import {alias.name}"
                elif module in ("random", *FORBIDDEN_OF) and alias.asname not in (None, module):
                    yield node.lineno, f"import {alias.name} under the name {alias.asname}"
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            module = node.module.partition(".")[0]
            names = {alias.name for alias in node.names}
            forbidden = names if module in FORBIDDEN_MODULES else names & FORBIDDEN_OF.get(module, set())
            forbidden |= names if module == "random" else set()
            for name in forbidden:
                yield node.lineno, f"from {node.module} import {name}"
        elif isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            if node.attr in FORBIDDEN_OF.get(owner, ()) or (owner == "random" and node.attr != "Random"):
                yield node.lineno, f"{owner}.{node.attr}"
        if isinstance(node, ast.Call):
            yield from _found_call(node)


def _found_call(call: ast.Call) -> Iterator[tuple[int, str]]:
    called = ast.unparse(call.func)
    if called in ("__import__", "importlib.import_module"):
        yield call.lineno, called
    elif called == "random.Random":
        yield call.lineno, "random.Random()"  # as an annotation it is the seam's own type
    elif called == "asyncio.wait" and any(keyword.arg == "timeout" for keyword in call.keywords):
        yield call.lineno, "asyncio.wait with a timeout"
    elif isinstance(call.func, ast.Attribute):
        owner, method = ast.unparse(call.func.value), call.func.attr
        if owner in FORBIDDEN_OF and method in FORBIDDEN_OF[owner]:
            return  # reported as an attribute
        if method in FORBIDDEN_METHODS or (method in CLOCK_METHODS and not owner.endswith("clock")):
            yield call.lineno, f"{owner}.{method}()"


def node_files() -> list[str]:
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path.relative_to(ROOT).as_posix() for path in files]


@pytest.mark.parametrize("name", [name for name in node_files() if name not in EXCEPTIONS])
def test_a_node_s_source_keeps_to_the_seams(name: str) -> None:
    assert ways_around((ROOT / name).read_text(encoding="utf-8")) == []


def test_the_seams_and_the_shells_are_the_only_exceptions_and_each_is_needed() -> None:
    assert set(EXCEPTIONS) <= set(node_files())
    for name in EXCEPTIONS:
        assert ways_around((ROOT / name).read_text(encoding="utf-8")), f"{name} needs no exception"


def test_the_folders_of_nodes_are_really_looked_at() -> None:
    folders = {name.rpartition("/")[0] for name in node_files()}
    assert {"remoting", "actors", "actors/namesrv", "actors/broker", "clients", "chaos/experiment/workloads"} <= folders


@pytest.mark.parametrize(
    "snippet",
    [
        "import time",
        "import time as clock",
        "from time import monotonic",
        "import socket",
        "import uuid",
        "from secrets import token_hex",
        "import asyncio as aio",
        "from asyncio import sleep",
        "from random import choice",
        "from random import Random",
        "async def wait():\n    await asyncio.sleep(1)",
        "sleep = asyncio.sleep",
        "async def wait(call):\n    return await asyncio.wait_for(call, 3)",
        "async def wait(call):\n    async with asyncio.timeout(3):\n        await call",
        "async def wait(calls):\n    await asyncio.wait(calls, timeout=3)",
        "def now(loop):\n    return loop.time()",
        "asyncio.get_running_loop().call_later(3, print)",
        "self._loop.call_at(3, print)",
        "async def dial():\n    return await asyncio.open_connection('127.0.0.1', 1)",
        "async def dial(loop):\n    return await loop.create_connection(Protocol, '127.0.0.1', 1)",
        "random.shuffle(addresses)",
        "rng = random.Random()",
        "rng = random.SystemRandom()",
        "token = os.urandom(8)",
        "stamp = datetime.now()",
        "stamp = datetime.datetime.utcnow()",
        "module = __import__('ti' + 'me')",
        "def later(self):\n    self._timer.sleep(3)",
    ],
)
def test_a_planted_way_around_the_seams_is_found(snippet: str) -> None:
    assert len(ways_around(snippet)) == 1


@pytest.mark.parametrize(
    "snippet",
    [
        "import random\ndef pick(rng: random.Random) -> int:\n    return rng.randrange(3)",
        "import asyncio\ntask = asyncio.create_task(run())\nevent = asyncio.Event()\nqueue = asyncio.Queue()",
        "async def wait(self):\n    await self._context.clock.sleep(3)\n    now_ms = self.clock.now_ms()",
        "self._endpoint.clock.call_later(3, print)",
        "async def wait(clock, calls):\n    async with clock.timeout(3):\n        await asyncio.gather(*calls)",
        "future = asyncio.get_running_loop().create_future()\nasyncio.get_running_loop().call_soon(print)",
        "async def wait(tasks):\n    await asyncio.wait(tasks)",
        "import os\nos.fsync(3)\nfrom datetime import UTC, datetime\ndatetime.fromtimestamp(0, UTC)",
        "async def dial(self, address):\n    return await self._context.network.connect(address, Protocol)",
    ],
)
def test_the_seams_themselves_are_no_way_around(snippet: str) -> None:
    assert ways_around(snippet) == []

"""One process of a program: what it is told, what it says, and that nothing of it is left."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from nemesrv.actors.processes import Process
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.fronts.dials import DialWatch
from nemesrv.chaos.fronts.observed import Dialled, Reported
from nemesrv.conformance import subject as subject_module
from nemesrv.conformance.situations import Role
from nemesrv.conformance.subject import Instructions, Program, Subject, parse, told_of
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address

NAME_SERVERS = (Address("127.0.0.1", 9876), Address("127.0.0.1", 9877))
TOLD = Instructions(name_servers=NAME_SERVERS, topic="orders", group="shop", role=Role.CONSUMER)
PYTHON = (sys.executable, "-I", "-S", "-c")
LIMIT_S = 30.0
R = TypeVar("R")


def unwatched() -> DialWatch:
    return DialWatch(lambda _dial: None, RealClock.starting_now(), lambda _address: None)


class World:
    """One process of a script in Python, and what was heard of it."""

    def __init__(
        self, folder: Path, script: str, *arguments: str, told: Instructions = TOLD, dials: DialWatch | None = None
    ) -> None:
        self.said: list[Reported] = []
        self._news = asyncio.Event()
        self.log = folder / "program.log"
        self.subject = Subject(
            Program((*PYTHON, script, *arguments)),
            told,
            log=self.log,
            saw=self._saw,
            now_ms=lambda: time.monotonic() * 1000,
            dials=dials or unwatched(),
        )

    def _saw(self, told: Reported) -> None:
        self.said.append(told)
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not condition():
                self._news.clear()
                await self._news.wait()

    @property
    def lines(self) -> list[str]:
        return [line[10:] for line in self.log.read_text(errors="replace").splitlines()]


def done(work: Callable[[], Awaitable[R]]) -> R:
    async def main() -> R:
        return await work()

    return asyncio.run(main())


def to_its_end(world: World) -> str:
    async def work() -> str:
        await world.subject.start()
        await asyncio.wait_for(world.subject.ended(), LIMIT_S)
        return await world.subject.stop()

    return done(work)


def stopped(world: World, **how: Any) -> str:
    """How it ended after it was stopped when it had said that it had started."""

    async def work() -> str:
        await world.subject.start()
        try:
            await world.until(lambda: any(told.f == "started" for told in world.said))
        finally:
            ended = await world.subject.stop(**how)
        return ended

    return done(work)


def test_a_program_is_told_its_name_servers_by_environment_and_placeholders(tmp_path: Path) -> None:
    script = """
import os, sys
for name in ("NAMESRV_ADDR", "ROCKETMQ_NAMESRV_ADDR", "NEMESRV_TOPIC", "NEMESRV_GROUP", "NEMESRV_ROLE"):
    print(name, os.environ[name])
print(sys.argv[1:4], open(sys.argv[4]).read().strip())
"""
    world = World(tmp_path, script, "-n{namesrv}", "{topic}/{group}/{role}", "{other}", "{namesrv_file}")
    assert to_its_end(world) == "exit 0"
    assert world.lines == [
        "NAMESRV_ADDR 127.0.0.1:9876;127.0.0.1:9877",
        "ROCKETMQ_NAMESRV_ADDR 127.0.0.1:9876;127.0.0.1:9877",
        "NEMESRV_TOPIC orders",
        "NEMESRV_GROUP shop",
        "NEMESRV_ROLE consumer",
        "['-n127.0.0.1:9876;127.0.0.1:9877', 'orders/shop/consumer', '{other}'] 127.0.0.1:9876;127.0.0.1:9877",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.log"]


def test_a_list_by_http_is_told_in_no_other_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "10.0.0.1:9876")
    told = Instructions(
        name_servers=NAME_SERVERS, address_server=Address("127.0.0.1", 8080), topic="orders", group="shop"
    )
    script = "import os, sys; print(os.environ.get('NAMESRV_ADDR'), os.environ['JAVA_TOOL_OPTIONS'], sys.argv[1:])"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx64m")
    world = World(tmp_path, script, "{namesrv}", "{namesrv_http}", "{namesrv_domain}", told=told)
    assert to_its_end(world) == "exit 0"
    assert world.lines == [
        "None -Xmx64m -Drocketmq.namesrv.domain=127.0.0.1:8080 "
        "['', 'http://127.0.0.1:8080/rocketmq/nsaddr', '127.0.0.1:8080']"
    ]


def test_json_lines_of_the_protocol_are_heard_and_all_others_are_kept(tmp_path: Path) -> None:
    script = r"""
import sys
sys.stdout.buffer.write(b'\xff\x00 garbage\n{"f": "unheard of"}\n{"f": \n[1]\n')
print('{"f": "sent", "id": "7", "type": "ok"}')
print('{"f": "started"}', file=sys.stderr)
print('no end of line', end='')
"""
    world = World(tmp_path, script)
    assert to_its_end(world) == "exit 0"
    assert [(told.f, told.value) for told in world.said] == [("sent", {"id": "7", "type": "ok"})]
    assert "no end of line" in world.subject.last_lines
    assert "last output" in told_of(world.subject.last_lines)
    assert len(world.lines) == 7


GO = [
    "ERROR no route",
    "panic: runtime error: nil pointer",
    "",
    "goroutine 1 [running]:",
    *(f"main.f{n}()" for n in range(9)),
]
PYTHON_CHAIN = [
    "Traceback (most recent call last):",
    "  File 'a.py', line 1",
    "KeyError: 'route'",
    "",
    "During handling:",
]


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (GO, "panic: runtime error: nil pointer | … | main.f3() | main.f4()"),
        ([*PYTHON_CHAIN, *PYTHON_CHAIN[:2], "ValueError: no list", *"abcdefg"], "ValueError: no list | … | b | c"),
        (
            ['Exception in thread "main" java.lang.Error: x', *"abcdefg"],
            'Exception in thread "main" java.lang.Error: x | … |',
        ),
        (
            ["ok", "RemotingConnectException: refused", "error: again", *"abcdefg"],
            "RemotingConnectException: refused | … | b",
        ),
        (["panic: it is still to be seen", *"abc"], "panic: it is still to be seen | a | b | c"),
        (["terrors and mirrors", *"abcdefg"], "b | c | d"),
    ],
)
def test_the_line_that_says_why_is_told_before_the_last_lines(tmp_path: Path, output: list[str], told: str) -> None:
    world = World(tmp_path, "import sys; print('\\n'.join(sys.argv[1:])); sys.exit(2)", *output)
    assert to_its_end(world) == "exit 2"
    assert told_of(world.subject.last_lines).startswith(f"; its last output: {told}")


def test_of_lines_that_are_no_text_only_that_is_told(tmp_path: Path) -> None:
    noise = r"import sys; sys.stdout.buffer.write(bytes(range(128, 228)) + b'\n' + bytes(range(128, 200)) + b'\n')"
    world = World(tmp_path, f"{noise}; print('Größe: 3 \x1b[1mMB\x1b[0m')")
    assert to_its_end(world) == "exit 0"
    assert told_of(world.subject.last_lines) == "; its last output: (bytes that are no text) | Größe: 3 ·[1mMB·[0m"


def test_of_endless_output_only_so_much_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject_module, "LOG_MAX", 100_000)
    world = World(tmp_path, "import sys; sys.stdout.write('x' * 1_000_000 + '\\n'); sys.stdout.write('y\\n' * 200_000)")
    assert to_its_end(world) == "exit 0"
    assert world.log.stat().st_size < 101_000
    assert world.log.read_text().endswith("(what came after this is not kept)\n")


def test_it_is_ended_by_sigterm(tmp_path: Path) -> None:
    world = World(tmp_path, 'import time; print(\'{"f": "started"}\', flush=True); time.sleep(60)')
    assert stopped(world) == "stopped"
    assert not world.subject.is_running


def test_it_may_end_in_order_when_its_stdin_ends(tmp_path: Path) -> None:
    script = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('{"f": "started"}', flush=True)
sys.stdin.read()
print("in order")
"""
    world = World(tmp_path, script)
    assert stopped(world) == "stopped"
    assert world.lines[-1] == "in order"


def test_what_hangs_at_its_end_is_killed_and_said_to_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject_module, "STOP_S", 0.05)
    script = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('{"f": "started"}', flush=True)
time.sleep(60)
"""
    assert stopped(World(tmp_path, script)) == "hung"


def test_killed_means_by_sigkill_at_once(tmp_path: Path) -> None:
    world = World(tmp_path, 'import time, signal; print(\'{"f": "started"}\', flush=True); time.sleep(60)', told=TOLD)
    assert stopped(world, kill=True) == "killed"


def test_a_child_that_it_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    script = """
import subprocess, sys
child = subprocess.Popen(["sleep", "60"])
print(child.pid)
print('{"f": "started"}')
"""
    world = World(tmp_path, script)
    assert stopped(world) == "stopped"
    with suppress(ProcessLookupError):  # gone already
        child = Process(int(world.lines[0]))
        assert child.gone(LIMIT_S)
        child.close()


def test_one_that_hears_send_is_asked_to_send(tmp_path: Path) -> None:
    script = """
import json, sys
print('{"f": "started", "hears": ["send"]}', flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"f": "sent", "id": asked["id"], "type": "ok"}), flush=True)
"""
    world = World(tmp_path, script)

    async def work() -> None:
        await world.subject.start()
        try:
            await world.until(lambda: len(world.said) > 1)
        finally:
            await world.subject.stop()

    done(work)
    assert world.said[1].value == {"id": f"{world.subject.pid}-0", "type": "ok"}


def test_a_file_that_is_no_program_is_told_by_name(tmp_path: Path) -> None:
    script = tmp_path / "client"
    script.write_text("no first line that names an interpreter\n")
    with pytest.raises(ScenarioError, match=r"chmod \+x"):
        Program((str(script),)).check()
    script.chmod(0o755)
    Program((str(script),)).check()
    subject = Subject(
        Program((str(script),)),
        TOLD,
        log=tmp_path / "log",
        saw=lambda told: None,
        now_ms=lambda: 0.0,
        dials=unwatched(),
    )
    with pytest.raises(ScenarioError, match=r"a program that can be started \(Exec format error\); a script needs"):
        done(subject.start)


@pytest.mark.parametrize(
    ("words", "by_argument"),
    [(("c", "-n", "{namesrv}"), True), (("c", "{namesrv}", "{namesrv_http}"), False), (("c",), False)],
)
def test_whether_a_program_takes_its_list_by_argument(words: tuple[str, ...], by_argument: bool) -> None:
    assert Program(words).takes_list_by_argument is by_argument


def test_a_line_of_another_shape_is_no_line_of_the_protocol() -> None:
    assert parse(b'{"f": "received", "id": "1"}') == {"f": "received", "id": "1"}
    for line in (b"", b"started", b'{"f": 1}', b'{"id": "1"}', b"{" * 100_000, b'[{"f": "sent"}]'):
        assert parse(line) is None


class Watching(World):
    """The same program with its connect() calls seen."""

    def __init__(self, folder: Path, script: str) -> None:
        self.dialled: list[Dialled] = []
        self.dials = DialWatch(self.dialled.append, RealClock.starting_now(), {NAME_SERVERS[0]: "ns-0"}.get)
        super().__init__(folder, script, dials=self.dials)


def test_its_dials_are_seen_to_the_last_and_it_ends_as_it_would_without(tmp_path: Path) -> None:
    script = """
import os, socket, sys
print(os.getpid(), os.getpgrp() == os.getsid(0))
for port in (9876, 9):
    socket.socket().connect_ex(("127.0.0.1", port))
sys.exit(3)
"""
    world = Watching(tmp_path, script)
    assert to_its_end(world) == "exit 3"
    assert world.lines == [f"{world.subject.process} True"]
    assert world.subject.process != world.subject.pid
    if world.dials.why_unseen is None:
        assert [(dialled.address.port, dialled.front) for dialled in world.dialled] == [(9876, "ns-0"), (9, None)]


def test_a_daemon_that_it_becomes_is_stopped_with_it(tmp_path: Path) -> None:
    script = """
import os, time
if os.fork():
    os._exit(0)
os.setsid()
print('{"f": "started"}', flush=True)
time.sleep(60)
"""
    assert stopped(Watching(tmp_path, script)) == "stopped"

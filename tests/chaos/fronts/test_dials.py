"""connect() calls of a program and its descendants are seen, also those that nobody answers; nothing holds it up."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from nemesrv.chaos.fronts import dials as dials_module
from nemesrv.chaos.fronts import sockets
from nemesrv.chaos.fronts.behaviour import DROPS_SYNS
from nemesrv.chaos.fronts.dials import DialWatch
from nemesrv.chaos.fronts.observed import Dialled, GaveUp
from nemesrv.chaos.fronts.sockets import DiallingLately, descendants, dialling, process_of
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address
from tests.chaos.fronts.world import LIMIT_S, World, in_world

PYTHON = (sys.executable, "-I", "-S", "-c")
DIALS = """
import socket, sys
for host, port in zip(sys.argv[1::2], map(int, sys.argv[2::2])):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as dialler:
        dialler.settimeout(0.2)
        try:
            dialler.connect((host, port))
            print("connected", flush=True)
        except OSError as exc:
            print(type(exc).__name__, flush=True)
"""


class Ran:
    """A program that has ended, and its dials."""

    def __init__(self, dials: DialWatch, seen: list[Dialled | GaveUp], status: int, said: str) -> None:
        self.dials, self.status, self.said = dials, status, said
        self.seen = [each for each in seen if isinstance(each, Dialled)]
        self.given_up = [each for each in seen if isinstance(each, GaveUp)]

    def need_sight(self) -> None:
        if self.dials.why_unseen is not None:
            pytest.skip(self.dials.why_unseen)


async def ran(command: Sequence[str], front_of: dict[Address, str] | None = None) -> Ran:
    seen: list[Dialled | GaveUp] = []
    dials = DialWatch(seen.append, RealClock.starting_now(), (front_of or {}).get)
    process = await asyncio.create_subprocess_exec(
        *dials.command(command), pass_fds=dials.pass_fds, start_new_session=True, stdout=subprocess.PIPE
    )
    dials.watch()
    async with asyncio.timeout(LIMIT_S):
        said, _ = await process.communicate()
        await dials.ended()
    assert process.returncode is not None
    return Ran(dials, seen, process.returncode, said.decode())


def closed_port() -> tuple[socket.socket, Address]:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    return bound, Address(*bound.getsockname())


@in_world
async def test_dials_that_are_let_in_refused_and_dropped_are_seen_with_their_fronts(world: World) -> None:
    refusing, refuses = closed_port()
    dropping = World([])
    await dropping.open()
    await dropping.front.behave(DROPS_SYNS)
    with refusing:
        fronts = {world.address: "ns-0", dropping.address: "ns-1"}
        asked = [str(part) for each in (world.address, refuses, dropping.address) for part in each]
        it = await ran([*PYTHON, DIALS, *asked], fronts)
    await dropping.close()
    assert it.said.split() == ["connected", "ConnectionRefusedError", "TimeoutError"]
    it.need_sight()
    assert [(one.address, one.front) for one in it.seen] == [
        (world.address, "ns-0"),
        (refuses, None),
        (dropping.address, "ns-1"),
    ]
    assert {one.process for one in it.seen} == {it.dials.process}
    assert it.seen[0].at_ms < it.seen[2].at_ms
    assert (it.status, it.dials.exit_code, it.dials.lost) == (0, 0, 0)


@in_world
async def test_a_dial_without_an_answer_is_given_up_when_its_socket_is_closed(world: World) -> None:
    once = (
        "import socket, sys, time; d = socket.socket(); d.settimeout(0.7); started = time.monotonic()\n"
        "try: d.connect((sys.argv[1], int(sys.argv[2])))\n"
        "except TimeoutError: d.close(); print(time.monotonic() - started, flush=True); time.sleep(0.5)"
    )
    await world.front.behave(DROPS_SYNS)
    it = await ran([*PYTHON, once, *map(str, world.address)], {world.address: "ns-0"})
    it.need_sight()
    (dialled,), (given_up,) = it.seen, it.given_up
    took_ms = given_up.at_ms - dialled.at_ms
    assert given_up.front == "ns-0"
    assert -100.0 <= took_ms - 1000 * float(it.said) <= 400.0  # this machine may be late


@in_world
async def test_a_dial_that_is_answered_is_not_given_up(world: World) -> None:
    it = await ran([*PYTHON, DIALS, *map(str, world.address)], {world.address: "ns-0"})
    it.need_sight()
    assert (len(it.seen), it.given_up) == (1, [])


def test_descendants_and_mapped_addresses_are_seen_and_other_sockets_are_not() -> None:
    bound, address = closed_port()
    others = """
import os, socket, subprocess, sys
port = sys.argv[2]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as resolver:
    resolver.connect(("127.0.0.1", int(port)))
with socket.socket(socket.AF_UNIX) as local:
    local.connect_ex("/nobody/listens/here")
subprocess.run([sys.executable, "-I", "-S", "-c", sys.argv[1], "127.0.0.1", port, "::ffff:127.0.0.1", port], check=True)
"""

    async def body() -> Ran:
        return await ran([*PYTHON, others, DIALS, str(address.port)], {address: "broker-a"})

    with bound:
        it = asyncio.run(body())
    it.need_sight()
    assert [(one.address, one.front) for one in it.seen] == [(address, "broker-a")] * 2
    assert it.dials.process not in {one.process for one in it.seen}


@in_world
async def test_asking_again_how_a_dial_goes_is_no_second_dial(world: World) -> None:
    await world.front.behave(DROPS_SYNS)
    twice = (
        "import socket, sys; d = socket.socket(); d.setblocking(False)\n"
        "print([d.connect_ex((sys.argv[1], int(sys.argv[2]))) for _ in range(3)])"
    )
    it = await ran([*PYTHON, twice, *map(str, world.address)])
    it.need_sight()
    assert len(it.seen) == 1


@pytest.mark.parametrize(
    ("command", "status"),
    [(["sh", "-c", "exit 3"], 3), (["sh", "-c", "kill -KILL $$"], -9), (["sh", "-c", "kill -TERM $$"], -15)],
)
def test_it_ends_as_the_program_ends(command: list[str], status: int) -> None:
    it = asyncio.run(ran(command))
    assert (it.status, it.dials.exit_code) == (status, status)


def test_a_program_that_is_not_there_is_told() -> None:
    it = asyncio.run(ran(["/no/such/program"]))
    assert it.status == 127
    assert isinstance(it.dials.not_started, FileNotFoundError)


def test_it_lasts_as_long_as_anything_that_the_program_has_started() -> None:
    it = asyncio.run(ran(["sh", "-c", "(sleep 0.3; echo late) & exit 5"]))
    assert (it.said.strip(), it.status) == ("late", 5)


def test_signals_of_the_process_group_reach_the_program_and_it_is_waited_for() -> None:
    async def body() -> tuple[int | None, bytes]:
        dials = DialWatch(lambda _seen: None, RealClock.starting_now(), lambda _address: None)
        script = "trap 'echo ending; exit 4' TERM; echo ready; while :; do sleep 0.05; done"
        process = await asyncio.create_subprocess_exec(
            *dials.command(["sh", "-c", script]),
            pass_fds=dials.pass_fds,
            start_new_session=True,
            stdout=subprocess.PIPE,
        )
        dials.watch()
        assert process.stdout is not None
        async with asyncio.timeout(LIMIT_S):
            assert await process.stdout.readline() == b"ready\n"
            os.killpg(process.pid, signal.SIGTERM)
            said, _ = await process.communicate()
            await dials.ended()
        return process.returncode, said

    assert asyncio.run(body()) == (4, b"ending\n")


def test_a_program_whose_dials_nobody_reads_any_more_dials_on() -> None:
    bound, address = closed_port()

    async def body() -> tuple[int | None, bytes]:
        dials = DialWatch(lambda _seen: None, RealClock.starting_now(), lambda _address: None)
        many = [str(part) for _ in range(200) for part in address]
        process = await asyncio.create_subprocess_exec(
            *dials.command([*PYTHON, DIALS, *many]), pass_fds=dials.pass_fds, stdout=subprocess.PIPE
        )
        dials.close()
        async with asyncio.timeout(LIMIT_S):
            said, _ = await process.communicate()
        return process.returncode, said

    with bound:
        status, said = asyncio.run(body())
    assert status == 0
    assert said.split() == [b"ConnectionRefusedError"] * 200


def test_nobody_s_dials_are_seen_without_root() -> None:
    """As another user, who needs an interpreter and a copy of ours that he may read."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if os.geteuid() != 0 or python is None or shutil.which("setpriv") is None:
        pytest.skip("needs root, setpriv and a python3 in /usr to become nobody with; else all tests are without root")
    bound, address = closed_port()
    supervise = Path(dials_module.__file__).with_name("supervise.py").read_text()
    read, write = os.pipe()
    with bound, os.fdopen(read) as told:
        as_nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs")
        command = [*as_nobody, python, "-I", "-S", "-c", supervise, str(write), python, "-c", DIALS, *map(str, address)]
        done = subprocess.run(command, pass_fds=(write,), capture_output=True, text=True, timeout=LIMIT_S, check=False)
        os.close(write)
        lines = told.read()
    assert done.stdout.split() == ["ConnectionRefusedError"], done.stderr
    if '"seen": false' in lines:
        pytest.skip(lines)
    assert f'"host": "127.0.0.1", "port": {address.port}' in lines


@in_world
async def test_where_dropping_syns_cannot_be_had_the_reason_is_told(world: World, tmp_path: Path) -> None:
    blind = tmp_path / "supervise.py"
    source = Path(dials_module.__file__).with_name("supervise.py").read_text()
    blind.write_text(source.replace('{"x86_64":', '{"none":').replace('"aarch64":', '"none too":'))
    await world.front.behave(DROPS_SYNS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dials_module, "_SUPERVISE", blind)
        it = await ran([*PYTHON, DIALS, *map(str, world.address)], {world.address: "ns-0"})
    assert it.said.split() == ["TimeoutError"]
    assert it.dials.why_unseen is not None
    assert "connect() calls are not known on" in it.dials.why_unseen
    assert [(one.address, one.front) for one in it.seen] == [(world.address, "ns-0")]


def test_whose_a_connection_is_and_who_dials_is_read_from_proc() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as dialler,
    ):
        own, peer = Address(*listener.getsockname()), Address(*dialler.getsockname())
        assert process_of(peer, own, (1, os.getpid())) == os.getpid()
        assert process_of(peer, Address("127.0.0.1", 1), (os.getpid(),)) is None
    bound = socket.socket()
    with bound, socket.socket() as filler, socket.socket() as unanswered:
        bound.bind(("127.0.0.1", 0))
        bound.listen(0)
        filler.connect(bound.getsockname())
        unanswered.setblocking(False)
        unanswered.connect_ex(bound.getsockname())
        assert Address(*bound.getsockname()) in {remote for _local, remote in dialling()}


def test_many_lookers_read_the_sockets_for_a_fifth_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, read = [0.0], []

    def reads(table: str) -> str:
        read.append(table)
        now_s[0] += 0.015
        return ""

    monkeypatch.setattr(sockets, "_read", reads)
    lately = DiallingLately(lambda: now_s[0], lambda: now_s[0])
    for _ in range(1_000):
        lately.look()
        now_s[0] += 0.006  # of 20 stands, each 50 ms or more
    assert len(read) * 0.015 < 0.2 * now_s[0]
    ago_s, seen = lately.look()
    assert ago_s <= DiallingLately.OLD_S
    assert not seen


def test_descendants_are_found() -> None:
    child = subprocess.Popen(["sh", "-c", "sleep 30 & wait"], start_new_session=True)
    try:
        while len(found := descendants(child.pid)) < 2:
            pass
        assert found[0] == child.pid
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()

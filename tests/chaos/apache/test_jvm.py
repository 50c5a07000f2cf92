"""A child that is told of, spoken to, ended, and blamed with its last line; a shell script stands for the JVM."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nemesrv.chaos.apache import jvm
from nemesrv.chaos.apache.jvm import JavaCommand, JavaDied, JavaProgram, telling
from nemesrv.chaos.fronts.dials import DialWatch
from nemesrv.remoting.node.clock import RealClock

_LIMIT_S = 60.0


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JavaCommand:
    """Runs the shell's text that stands in $SCRIPT in place of java."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\neval "$SCRIPT"\n')
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{java.parent}:{os.environ['PATH']}")
    return JavaCommand(class_path="x/*", main="Main", home=tmp_path / "home", user_home=tmp_path / "logs")


def _program(
    command: JavaCommand, script: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ends: list[int]
) -> JavaProgram:
    monkeypatch.setenv("SCRIPT", script)
    return JavaProgram("ns-0", command, tmp_path / "ns-0.out", ended=ends.append)


async def _says(program: JavaProgram, text: bytes) -> None:
    """The program says this, in a line that comes after this call."""
    heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    before = program._said

    def said(line: bytes) -> None:
        if before is not None:
            before(line)
        if text in line and not heard.done():
            heard.set_result(None)

    program._said = said
    await program.within(heard, _LIMIT_S, f"did not say {text!r}")


def test_it_is_ready_when_it_says_so_and_ends_when_it_is_told_to(
    command: JavaCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ends: list[int] = []

    async def run() -> int:
        program = _program(command, "echo The boot success.; exec sleep 600", monkeypatch, tmp_path, ends)
        program.start()
        await _says(program, b"boot success")
        assert program.children == (program.pid,)
        code = await program.terminate(_LIMIT_S)
        assert program.children == ()
        return code

    assert asyncio.run(run()) == -signal.SIGTERM
    assert ends == []  # it was asked to
    assert (tmp_path / "ns-0.out").read_text() == "The boot success.\n"


def test_its_temporary_files_are_its_own_and_gone_when_it_is(
    command: JavaCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (option,) = (word for word in command.words() if word.startswith("-Djava.io.tmpdir="))
    folder = Path(option.partition("=")[2])

    async def run() -> None:
        program = _program(command, f"touch {folder}/key && echo made; exec sleep 600", monkeypatch, tmp_path, [])
        program.start()
        await _says(program, b"made")
        assert (folder / "key").exists()
        await program.kill()

    asyncio.run(run())
    assert not folder.exists()


def test_an_end_by_itself_is_told_with_the_line_that_names_the_reason(
    command: JavaCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a stack trace that is not the last line but the last without frames."""
    ends: list[int] = []

    async def run() -> str:
        script = r"printf 'java.net.BindException: Address in use\n\tat Main.main(Main.java:3)\n' >&2; exit 3"
        program = _program(command, script, monkeypatch, tmp_path, ends)
        program.start()
        with pytest.raises(JavaDied) as died:
            await _says(program, b"boot success")
        return str(died.value)

    said = "ns-0's Java process ended with exit status 3; its last line: java.net.BindException: Address in use"
    assert asyncio.run(run()) == said
    assert ends == [3]


def test_lines_go_in_and_out(command: JavaCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def run() -> list[bytes]:
        monkeypatch.setenv("SCRIPT", "while read line; do echo got $line; done")
        said: list[bytes] = []
        program = JavaProgram("producer-0", command, tmp_path / "out", said=said.append)
        program.start()
        for word in (b"one", b"two\n"):
            program.write(word)
        await _says(program, b"got two")
        await program.kill()
        return said

    assert asyncio.run(run()) == [b"got one", b"got two"]


def test_what_is_set_of_the_process_is_on_its_command_line(command: JavaCommand) -> None:
    words = " ".join(command.words())
    assert words.startswith(f"java {jvm.JAVA_FLAGS[0]} ")
    assert f"-Duser.home={command.user_home}" in words
    assert words.endswith("-cp x/* Main")
    assert command.environ()["ROCKETMQ_HOME"] == str(command.home)


def test_nothing_written_tells_nothing() -> None:
    assert telling(["", "\tat a.B.c(B.java:1)"]) == ""


def test_the_run_says_how_a_program_ended_by_itself(tmp_path: Path) -> None:
    assert jvm.last_words(tmp_path) == ""
    (tmp_path / "broker-a").mkdir()
    jvm.leave_last_words(tmp_path / "broker-a", "broker-a's Java process ended with exit status 1; its last line: x")
    assert jvm.last_words(tmp_path) == "; broker-a's Java process ended with exit status 1; its last line: x"


def test_one_whose_dials_are_seen_is_told_of_with_who_sees_them_and_ends_as_it_is_told(
    command: JavaCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SCRIPT", "echo up; exec sleep 600")

    async def run() -> tuple[int, int]:
        dials = DialWatch(lambda _one: None, RealClock.starting_now(), lambda _address: None)
        program = JavaProgram("producer-0", command, tmp_path / "out", dials=dials)
        program.start()
        await _says(program, b"up")
        await dials.told()
        children = program.children
        assert children == (dials.process, program.pid)
        assert len(set(children)) == 2
        code = await program.terminate(_LIMIT_S)
        dials.close()
        return code, children[0]

    code, java = asyncio.run(run())
    assert code == -signal.SIGTERM
    assert not _is_there(java)


def test_one_whose_dials_are_seen_dies_with_who_sees_them_and_with_us(command: JavaCommand, tmp_path: Path) -> None:
    """SIGKILL of whoever is between it and us, and of us: nothing is left."""
    script = f"""
import asyncio, os, signal
from pathlib import Path
from nemesrv.chaos.apache.jvm import JavaCommand, JavaProgram
from nemesrv.chaos.fronts.dials import DialWatch
from nemesrv.remoting.node.clock import RealClock

async def main():
    dials = DialWatch(lambda one: None, RealClock.starting_now(), lambda address: None)
    home = Path({str(tmp_path)!r})
    command = JavaCommand(class_path="x/*", main="Main", home=home, user_home=home)
    up = asyncio.Event()
    program = JavaProgram("producer-0", command, home / "out", said=lambda line: up.set(), dials=dials)
    program.start()
    await up.wait()
    await dials.told()
    print(*program.children, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""
    environment = {**os.environ, "SCRIPT": "echo up; exec sleep 600"}
    for whom in ("us", "who sees"):
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment) as node:
            try:
                assert node.stdout is not None
                java, sees = map(int, node.stdout.readline().split())
                os.kill(node.pid if whom == "us" else sees, signal.SIGKILL)
                deadline_s = time.monotonic() + _LIMIT_S
                while _is_there(java) and time.monotonic() < deadline_s:
                    time.sleep(0.01)
                assert not _is_there(java), f"it outlived SIGKILL of {whom}"
            finally:
                node.kill()


def _is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False

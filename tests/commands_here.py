"""Shell scripts whose `nemesrv` and `pytest` run in this very process, and judge there plainly, without Spark.

    bash ─► bin/nemesrv: its words, its folder, its stdout and stderr ─► a socket ─► this process ─► exit status

Each command would start a JVM of its own otherwise, which costs more than all that it judges. That the installed
command does the same in a process of its own is proven where chaos/programs.py is used, and that Spark comes to the
same verdicts in tests/chaos/test_engines.py.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.verdict import Verdict

_ASKS = """#!{python} -SE
import json, os, socket, sys
asked = socket.socket(socket.AF_UNIX)
asked.connect({address!r})
socket.send_fds(asked, [json.dumps([{name!r}, sys.argv[1:], os.getcwd()]).encode()], [1, 2])
sys.exit(int(asked.recv(16)))
"""
_IMPORTED = "-Wignore:Module already imported:pytest.PytestAssertRewriteWarning"
"""Of plugins, which the pytest that runs these tests has in this process already."""
_OF_OTHERS = ("xdist", "timeout", "cacheprovider", "faulthandler")
"""Plugins of pytest that belong to the tests around."""


class Shell:
    """`run` does what bash does. Context manager; `folder` gets the commands."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._listener = socket.socket(socket.AF_UNIX)
        monkeypatch.setattr("nemesrv.chaos.checks.spark.session.session", lambda *_args, **_options: None)
        monkeypatch.setattr("nemesrv.chaos.checks.spark.session.stop", lambda _spark: None)
        monkeypatch.setattr("nemesrv.chaos.checks.spark.judge.check_run", _judged_plainly)

    def __enter__(self) -> Shell:
        self._listener.bind("")  # an address of the kernel's choice, which is no file
        self._listener.listen()
        self._folder.mkdir()
        for name in ("nemesrv", "pytest"):
            file = self._folder / name
            file.write_text(_ASKS.format(python=sys.executable, address=self._listener.getsockname(), name=name))
            file.chmod(0o755)
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def run(self, commands: str, cwd: Path) -> str:
        """What the commands print, on stdout and stderr."""
        env = {**os.environ, "PATH": os.pathsep.join((str(self._folder), os.environ["PATH"]))}
        with tempfile.TemporaryFile() as said:
            with subprocess.Popen(
                ["bash", "-c", commands], cwd=cwd, env=env, stdout=said, stderr=said, stdin=subprocess.DEVNULL
            ) as shell:
                ended = os.pidfd_open(shell.pid)
                try:
                    while self._listener in select.select([self._listener, ended], [], [])[0]:
                        self._answer()
                finally:
                    os.close(ended)
                    shell.kill()
            said.seek(0)
            return said.read().decode()

    def _answer(self) -> None:
        asked, _ = self._listener.accept()
        with asked:
            text, files, _, _ = socket.recv_fds(asked, 1 << 16, 2)
            name, words, cwd = json.loads(text)
            with _as_in(cwd), _printing_to(files):
                status = _nemesrv(words) if name == "nemesrv" else _pytest(words)
            asked.sendall(str(status).encode())


def _judged_plainly(run_dir: str, checks: Iterable[str], _spark: object) -> list[Verdict]:
    found = {verdict.name: verdict for verdict in verdicts(Path(run_dir))}
    return [found[name] for name in checks]


def _nemesrv(words: Sequence[str]) -> int:
    from nemesrv.chaos.__main__ import cli
    from nemesrv.chaos.commands.ending import end

    try:
        cli.main(list(words), prog_name="nemesrv", standalone_mode=False)
    except BaseException as exc:
        return int(end(exc) or 0)
    return 0


def _pytest(words: Sequence[str]) -> int:
    modules, path = set(sys.modules), list(sys.path)
    try:
        return int(pytest.main([*words, _IMPORTED, *(f"-pno:{name}" for name in _OF_OTHERS)]))
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(os.getcwd()):
                del sys.modules[name]


@contextmanager
def _as_in(folder: str) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _printing_to(files: Sequence[int]) -> Iterator[None]:
    """stdout and stderr, the files and Python's, are these two, which are closed at the end."""
    before = sys.stdout, sys.stderr
    kept = [os.dup(number) for number in (1, 2)]
    for number, file in enumerate(files, 1):
        os.dup2(file, number)
        os.close(file)
    sys.stdout, sys.stderr = _text(1), _text(2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before
        for number, file in enumerate(kept, 1):
            os.dup2(file, number)
            os.close(file)


def _text(number: int) -> IO[str]:
    return open(number, "w", encoding="utf-8", closefd=False)

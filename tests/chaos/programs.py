"""Running the installed `nemesrv` command in tests, and finding what it left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

NEMESRV = (sys.executable, "-m", "nemesrv.chaos")


def nemesrv(
    *args: str, cwd: Path, env: Mapping[str, str] | None = None, timeout_s: float = 180
) -> subprocess.CompletedProcess[str]:
    """The finished command, its output as text."""
    return subprocess.run(
        [*NEMESRV, *args],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def processes_of(mark: str) -> list[str]:
    """`pid command` of every process, but ours, that has `mark` in its environment or command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        if folder.name == str(os.getpid()):
            continue
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if command and (mark.encode() in environment or mark in command):
            found.append(f"{folder.name} {command[:200]}")
    return found

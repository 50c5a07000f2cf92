"""Workload.java as classes, compiled once for each version of Apache's client into the user's cache folder."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

from .distribution import Part, distribution
from .maven import JavaMissing, cache, require

SOURCE = Path(__file__).with_name("Workload.java")
MAIN = "Workload"
_LIMIT_S = 120


def class_path(implementation: str, *, verified: bool = False) -> str:
    """Of a client of that version, the workload before its jars. JavaMissing when there is no JDK, or it refuses.

    `verified`: somebody has held the jars against their checksums.
    """
    made_by = distribution(implementation)
    assert made_by is not None, implementation
    return compiled(made_by.class_path(Part.CLIENTS, verified=verified))


def compiled(class_path: str) -> str:
    """The class path with the workload before Apache's jars. JavaMissing when there is no JDK, or it refuses."""
    require("javac", "java")
    version = subprocess.run(["javac", "-version"], capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    made_of = "\n".join((SOURCE.read_text(encoding="utf-8"), class_path, version.stdout))
    folder = cache("apache") / f"workload-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}"
    if not folder.is_dir():
        _compile(class_path, folder)
    return f"{folder}:{class_path}"


def _compile(class_path: str, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        made = Path(temporary) / "classes"
        command = ["javac", "-nowarn", "-encoding", "UTF-8", "-d", str(made), "-cp", class_path, str(SOURCE)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
        except subprocess.TimeoutExpired as exc:
            raise JavaMissing(f"{SOURCE.name}: javac took longer than {_LIMIT_S} s") from exc
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
            raise JavaMissing(f"{SOURCE.name} cannot be compiled for {class_path}: {first[:300]}")
        try:
            made.rename(folder)
        except OSError:
            if not folder.is_dir():  # another run was quicker
                raise

"""Apache RocketMQ's programs by Maven coordinates, resolved once into the user's cache folder.

Which repository Maven asks is the machine's own business (its settings.xml); nothing here names one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

RESOLVE_TIMEOUT_S = 240


class JavaMissing(Exception):
    """Apache's programs cannot be had here; the text says what is missing."""


def require(*programs: str) -> None:
    """JavaMissing when one of a JDK's programs is not on PATH."""
    for program in programs:
        if shutil.which(program) is None:
            raise JavaMissing(f"{program} is missing: install a JDK 17")


def cache(name: str) -> Path:
    """The folder of the user's cache that keeps what `name` needs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nemesrv" / name


def resolve(what: str, pom: str, folder: Path, arguments: Sequence[str] = ()) -> Path:
    """`folder` with the jars that `pom` depends on, whole or not at all. JavaMissing says why `what` is not there."""
    if folder.is_dir():
        return folder
    if shutil.which("mvn") is None:
        raise JavaMissing("mvn is missing: install Apache Maven")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        file, target = Path(temporary) / "pom.xml", Path(temporary) / "jars"
        file.write_text(pom, encoding="utf-8")
        command = ["mvn", "--batch-mode", "--quiet", "--file", str(file), *arguments, "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as exc:
            raise JavaMissing(f"{what}: Maven took longer than {RESOLVE_TIMEOUT_S} s") from exc
        if done.returncode != 0 or not any(target.glob("*.jar")):
            errors = [line for line in done.stdout.splitlines() if "[ERROR]" in line] or ["no reason given"]
            raise JavaMissing(f"{what}: Maven has no jars: {errors[0][:300]}")
        try:
            target.rename(folder)
        except OSError:
            if not folder.is_dir():  # another run was quicker
                raise
    return folder

"""Where the Apache RocketMQ programs come from: Maven coordinates, resolved once into the user's cache folder.

Which repository Maven asks is the machine's own business (its settings.xml); nothing here names one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from enum import Enum
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")
RESOLVE_TIMEOUT_S = 240


class Jars(Enum):
    """(profile of pom.xml, version). 4.9.8 was published without its servers; 4.9.7's are the nearest."""

    CLIENTS_4_9 = ("clients", "4.9.8")
    SERVERS_4_9 = ("servers", "4.9.7")
    CLIENTS_5_X = ("clients", "5.3.3")
    SERVERS_5_X = ("servers", "5.3.3")


class JarsMissing(Exception):
    """The programs cannot be had here; the text says what is missing."""


def class_path(jars: Jars) -> str:
    """What `java -cp` takes. Raises JarsMissing."""
    for program in ("java", "javac"):
        if shutil.which(program) is None:
            raise JarsMissing(f"{program} is missing: install a JDK 17")
    profile, version = jars.value
    folder = _cache() / f"{profile}-{version}"
    if not folder.is_dir():
        _resolve(profile, version, folder)
    return f"{folder}/*"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nemesrv" / "interop"


def _resolve(profile: str, version: str, folder: Path) -> None:
    """The folder is there whole or not at all."""
    if shutil.which("mvn") is None:
        raise JarsMissing("mvn is missing: install Apache Maven")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        target = Path(temporary) / "jars"
        command = [
            "mvn",
            "--batch-mode",
            "--quiet",
            "--file",
            str(POM),
            f"-P{profile}",
            f"-Drocketmq.version={version}",
        ]
        command += ["dependency:copy-dependencies", f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as exc:
            raise JarsMissing(f"RocketMQ {version} {profile}: Maven took longer than {RESOLVE_TIMEOUT_S} s") from exc
        if done.returncode != 0 or not any(target.glob("*.jar")):
            errors = [line for line in done.stdout.splitlines() if "[ERROR]" in line] or ["no reason given"]
            raise JarsMissing(f"RocketMQ {version} {profile}: Maven has no jars: {errors[0][:300]}")
        try:
            target.rename(folder)
        except OSError:
            if not folder.is_dir():  # another run was quicker
                raise

"""Fetches Apache RocketMQ's programs by Maven into the user's cache folder, once, and verifies them at every use.

Maven's settings.xml on this machine names the repositories. Maven compares each jar with its published checksum; before
every use, nemesrv compares the jars with its own list of checksums.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import HarnessError

RESOLVE_TIMEOUT_S = 240
SUMS = "SHA256SUMS"
"""The list beside the jars, in the format of sha256sum(1)."""
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_OF_PROJECT = re.compile(
    r"^Failed to execute goal .*? for project \S+: (The following artifacts could not be resolved: )?"
)


class JavaMissing(HarnessError):
    """Apache's programs cannot be found or fetched on this machine. The error's text says which program is missing."""


def require(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            home = Path(os.environ.get("JAVA_HOME") or os.devnull, "bin")
            mend = f"put {home} on it" if (home / program).is_file() else "install a JDK 17"
            raise JavaMissing(f"{program} is not on PATH: {mend}")


def cache(name: str) -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nemesrv" / name


def resolve(what: str, pom: str, folder: Path, arguments: Sequence[str] = ()) -> Path:
    """Fill `folder` with the jars that `pom` depends on, completely or not at all. Raises JavaMissing, which says why
    `what` is missing."""
    if folder.is_dir():
        verify(folder, f"remove {folder}, and it is resolved again")
        return folder
    if shutil.which("mvn") is None:
        raise JavaMissing("mvn is missing: install Apache Maven")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        file, target = Path(temporary) / "pom.xml", Path(temporary) / "jars"
        file.write_text(pom, encoding="utf-8")
        command = ["mvn", "--batch-mode", "--quiet", "--strict-checksums", "--file", str(file), *arguments]
        command += ["dependency:copy-dependencies", f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as exc:
            raise JavaMissing(f"{what}: Maven took longer than {RESOLVE_TIMEOUT_S} s") from exc
        if done.returncode != 0 or not any(target.glob("*.jar")):
            raise JavaMissing(f"{what}: {why_none(done.stdout + done.stderr)}")
        keep_sums(target)
        try:
            target.rename(folder)
        except OSError:
            if not folder.is_dir():  # another run was quicker
                raise
    return folder


def why_none(said: str) -> str:
    """Return in one sentence why Maven failed: the first error in its output, else the last line."""
    lines = [_ESCAPES.sub("", line).strip() for line in said.splitlines()]
    errors = [line.rpartition("[ERROR]")[2].strip() for line in lines if "[ERROR]" in line]
    absent = re.search(r"Could not find artifact (org\.apache\.rocketmq:\S+)", errors[0]) if errors else None
    if absent is not None:
        return f"Maven found no {absent[1]}: is there such a version?"
    last = next((line for line in reversed(lines) if line), "no reason given")
    why = _OF_PROJECT.sub("", errors[0].removesuffix(" -> [Help 1]")) if errors else last
    return f"Maven has no jars: {why[:400]}"


def checksums(folder: Path) -> dict[str, str]:
    found = {}
    for jar in sorted(folder.glob("*.jar")):
        with jar.open("rb") as file:
            found[jar.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def keep_sums(folder: Path) -> None:
    text = "".join(f"{digest}  {name}\n" for name, digest in checksums(folder).items())
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=f".{SUMS}-", delete=False, encoding="utf-8") as file:
        file.write(text)
    Path(file.name).replace(folder / SUMS)


def verify(folder: Path, mend: str) -> None:
    """Raise JavaMissing, which says what to do, if a jar has changed. If the folder has no list of checksums, write
    one."""
    try:
        text = (folder / SUMS).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        keep_sums(folder)
        return
    wrong = differing(read_sums(text), checksums(folder))
    if wrong:
        raise JavaMissing(f"{folder / wrong} is not the file that {folder / SUMS} has the checksum of: {mend}")


def read_sums(text: str) -> dict[str, str]:
    lines = (line.split(maxsplit=1) for line in text.splitlines())
    return {parts[1].strip().lstrip("*"): parts[0].lower() for parts in lines if len(parts) == 2}


def differing(listed: Mapping[str, str], found: Mapping[str, str]) -> str | None:
    """Return the first jar that is missing, or whose checksum is wrong or not in the list; None if all jars match."""
    return next((name for name in sorted({*listed, *found}) if listed.get(name) != found.get(name)), None)

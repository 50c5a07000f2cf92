"""Finds the program of a node (nemesrv's own, or a version of Apache's from Maven or a folder), and the program's jars.

ours                     nemesrv's own
apache-5.3.3             org.apache.rocketmq of that version, resolved into the user's cache folder on first use
apache:/opt/rocketmq     the distribution in that folder, what ROCKETMQ_HOME names: bin/, conf/, lib/*.jar
"""

import hashlib
import re
import subprocess
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ...remoting.node.profile import Profile
from .maven import SUMS, JavaMissing, cache, require, resolve, verify

OURS = "ours"
ALLOWED = "ours, apache-VERSION such as apache-4.9.7 or apache-5.3.3, or apache:FOLDER with FOLDER/lib/rocketmq-*.jar"
POM = Path(__file__).with_name("pom.xml")
_VERSION = re.compile(r"apache-((?:4|5)\.\d+\.\d+)")
_JAR_VERSION = re.compile(r"rocketmq-common-(\d+\.\d+\.\d+[^/]*)\.jar")


class ProgramPart(StrEnum):
    """A set of RocketMQ's jars (of servers, of clients with or without the tools, of tests), named as its profile in
    pom.xml."""

    SERVERS = "servers"
    CLIENTS = "clients"
    """With the tools."""
    CLIENT = "client"
    """Without the tools: 3.6.2.Final and 4.9.6 were published like this."""
    TESTS = "tests"


_NEAREST = {(ProgramPart.SERVERS, "4.9.8"): "4.9.7"}
"""4.9.8 was published without its servers."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A version of Apache's programs. `text` is a name of the distribution for scenarios, with a whole path."""

    text: str
    version: str | None = None
    home: Path | None = None

    def __str__(self) -> str:
        return self.text

    def version_of(self, part: ProgramPart) -> str:
        if self.version is not None:
            return _NEAREST.get((part, self.version), self.version)
        assert self.home is not None
        jars = sorted((self.home / "lib").glob("rocketmq-common-*.jar"))
        found = [match[1] for jar in jars if (match := _JAR_VERSION.fullmatch(jar.name))]
        if not found:
            raise JavaMissing(f"{self.home} is no RocketMQ distribution: there is no lib/rocketmq-common-VERSION.jar")
        return found[0]

    @property
    def profile(self) -> Profile:
        """The profile (4.9 or 5.x) by whose timers this version is judged. Raises JavaMissing if the folder is no
        distribution of Apache's."""
        return Profile.V4_9 if self.version_of(ProgramPart.SERVERS).startswith("4.") else Profile.V5_X

    def class_path(self, part: ProgramPart, *, verified: bool = False) -> str:
        """Return the argument of `java -cp`. Raises JavaMissing, whose text says how to get a missing jar, or what is
        wrong with a jar.

        The jars are compared with the list of checksums in their folder. A user's folder needs no list. `verified`:
        True if the jars were already compared.
        """
        require("java")
        version = self.version_of(part)
        if self.home is not None:
            lib = self.home / "lib"
            if (lib / SUMS).exists() and not verified:
                verify(lib, "unpack the distribution again, or remove the list")
            return f"{lib}/*"
        group = "com.alibaba.rocketmq" if version.startswith("3.") else "org.apache.rocketmq"
        arguments = (f"-P{part}", f"-Drocketmq.version={version}", f"-Drocketmq.group={group}")
        folder = cache("apache") / f"{part}-{version}"
        if verified and folder.is_dir():
            return f"{folder}/*"
        return f"{resolve(f'RocketMQ {version} {part}', POM.read_text(encoding='utf-8'), folder, arguments)}/*"


def distribution(text: str) -> Distribution | None:
    """Return the implementation that a scenario names for a node; None for nemesrv's own. Raises ValueError if
    `text` has none of the forms `ours`, `apache-4.x.y`, `apache-5.x.y` and `apache:FOLDER`."""
    if text == OURS:
        return None
    if match := _VERSION.fullmatch(text):
        return Distribution(text, version=match[1])
    if text.startswith("apache:") and len(text) > len("apache:"):
        home = Path(text.removeprefix("apache:")).expanduser().absolute()
        return Distribution(f"apache:{home}", home=home)  # a node's process has another working folder
    raise ValueError(f"{text!r} is no implementation; expected {ALLOWED}")


SOURCE = Path(__file__).with_name("Workload.java")
MAIN = "Workload"
_LIMIT_S = 120


def class_path(implementation: str, *, verified: bool = False) -> str:
    """Return the class path of an Apache client of this implementation: nemesrv's compiled workload, then the jars.
    Raises JavaMissing if a jar or a working JDK is missing. `verified`: True if the jars' checksums were already
    compared."""
    made_by = distribution(implementation)
    assert made_by is not None, implementation
    jars = made_by.class_path(ProgramPart.CLIENTS, verified=verified)
    require("javac", "java")
    version = subprocess.run(["javac", "-version"], capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    made_of = "\n".join((SOURCE.read_text(encoding="utf-8"), jars, version.stdout))
    folder = cache("apache") / f"workload-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}"
    if not folder.is_dir():
        _compile(jars, folder)
    return f"{folder}:{jars}"


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

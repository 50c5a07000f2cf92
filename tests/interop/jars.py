"""Where the Apache RocketMQ programs of these tests come from: Maven coordinates, resolved once and kept in a cache.

python -m tests.interop.jars        resolves those of every day; clients of other ages come as a test asks for them
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from nemesrv.chaos.apache.distribution import Distribution, ProgramPart
from nemesrv.chaos.apache.maven import JavaMissing, require

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Jars:
    """A profile of pom.xml, and the version."""

    part: ProgramPart
    version: str

    CLIENTS_4_9: ClassVar[Jars]
    SERVERS_4_9: ClassVar[Jars]
    """4.9.8 was published without its servers; these are the nearest."""
    CLIENTS_5_X: ClassVar[Jars]
    SERVERS_5_X: ClassVar[Jars]
    TESTS_4_9: ClassVar[Jars]

    def source(self, text: str) -> str:
        """A Java source as it is for this version, in its package."""
        here = of_version(text, self.number)
        return here.replace("org.apache.rocketmq", "com.alibaba.rocketmq") if self.number < (4,) else here

    @property
    def number(self) -> Version:
        return number(self.version)


def number(version: str) -> Version:
    """4.0.0-incubating is 4.0.0."""
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def of_version(text: str, version: Version) -> str:
    """A source without what the clients of that version do not have."""
    taken, kept = True, []
    for line in text.splitlines(keepends=True):
        mark = re.fullmatch(r"\s*// (?:(since|before) ([\d.]+)|end)\n", line)
        if mark is None:
            kept += [line] if taken else []
        else:
            taken = mark[1] is None or (version >= number(mark[2])) == (mark[1] == "since")
    return "".join(kept)


Jars.CLIENTS_4_9 = Jars(ProgramPart.CLIENTS, "4.9.8")
Jars.SERVERS_4_9 = Jars(ProgramPart.SERVERS, "4.9.7")
Jars.CLIENTS_5_X = Jars(ProgramPart.CLIENTS, "5.3.3")
Jars.SERVERS_5_X = Jars(ProgramPart.SERVERS, "5.3.3")
Jars.TESTS_4_9 = Jars(ProgramPart.TESTS, "4.9.7")

_WITHOUT_TOOLS = {"3.6.2.Final": "3.2.6", "4.9.6": "4.9.5"}
"""To the nearest that has them."""
_VERSIONS = (
    *("3.2.6", "3.6.2.Final", "4.0.0-incubating", "4.2.0", "4.3.2", "4.4.0", "4.5.2", "4.7.1"),
    *("4.9.3", "4.9.4", "4.9.5", "4.9.6", "4.9.7", "4.9.8"),
    *("5.0.0", "5.1.4", "5.2.0", "5.3.3", "5.4.0", "5.5.0"),
)
AGES = tuple(Jars(ProgramPart.CLIENT if each in _WITHOUT_TOOLS else ProgramPart.CLIENTS, each) for each in _VERSIONS)
"""Java clients, the oldest first."""


def tools(clients: Jars) -> Jars:
    """mqadmin of these clients' time."""
    return Jars(ProgramPart.CLIENTS, _WITHOUT_TOOLS.get(clients.version, clients.version))


def class_path(jars: Jars) -> str:
    """What `java -cp` takes. JavaMissing says what is missing."""
    require("java", "javac")
    return Distribution(f"apache-{jars.version}", version=jars.version).class_path(jars.part)


if __name__ == "__main__":
    for each in (Jars.CLIENTS_4_9, Jars.SERVERS_4_9, Jars.CLIENTS_5_X, Jars.SERVERS_5_X, Jars.TESTS_4_9):
        with suppress(JavaMissing):  # a test that needs it says so
            class_path(each)

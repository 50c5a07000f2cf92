"""Where the Apache RocketMQ programs of these tests come from: Maven coordinates, resolved once and kept in a cache.

python -m tests.interop.jars        resolves all of them
"""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from pathlib import Path

from nemesrv.chaos.bench.maven import JavaMissing, cache, require, resolve

POM = Path(__file__).with_name("pom.xml")


class Jars(Enum):
    """(profile of pom.xml, version). 4.9.8 was published without its servers; 4.9.7's are the nearest."""

    CLIENTS_4_9 = ("clients", "4.9.8")
    SERVERS_4_9 = ("servers", "4.9.7")
    CLIENTS_5_X = ("clients", "5.3.3")
    SERVERS_5_X = ("servers", "5.3.3")
    TESTS_4_9 = ("tests", "4.9.7")


def class_path(jars: Jars) -> str:
    """What `java -cp` takes. JavaMissing says what is missing."""
    require("java", "javac")
    profile, version = jars.value
    arguments = (f"-P{profile}", f"-Drocketmq.version={version}")
    folder = cache("interop") / f"{profile}-{version}"
    return f"{resolve(f'RocketMQ {version} {profile}', POM.read_text(), folder, arguments)}/*"


if __name__ == "__main__":
    for each in Jars:
        with suppress(JavaMissing):  # a test that needs it says so
            class_path(each)

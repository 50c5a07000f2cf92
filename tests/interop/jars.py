"""Where the Apache RocketMQ programs of these tests come from: Maven coordinates, resolved once and kept in a cache.

python -m tests.interop.jars        resolves all of them
"""

from __future__ import annotations

from contextlib import suppress
from enum import Enum

from nemesrv.chaos.apache.distribution import Distribution, Part
from nemesrv.chaos.apache.maven import JavaMissing, require


class Jars(Enum):
    """(profile of pom.xml, version). 4.9.8 was published without its servers; 4.9.7's are the nearest."""

    CLIENTS_4_9 = (Part.CLIENTS, "4.9.8")
    SERVERS_4_9 = (Part.SERVERS, "4.9.7")
    CLIENTS_5_X = (Part.CLIENTS, "5.3.3")
    SERVERS_5_X = (Part.SERVERS, "5.3.3")
    TESTS_4_9 = (Part.TESTS, "4.9.7")


def class_path(jars: Jars) -> str:
    """What `java -cp` takes. JavaMissing says what is missing."""
    require("java", "javac")
    part, version = jars.value
    return Distribution(f"apache-{version}", version=version).class_path(part)


if __name__ == "__main__":
    for each in Jars:
        with suppress(JavaMissing):  # a test that needs it says so
            class_path(each)

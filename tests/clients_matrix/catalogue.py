"""One row a client: where it comes from, what it needs, how it is started, and which profile it is held against."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from ..interop.jars import AGES, Version

DRIVERS = Path(__file__).with_name("drivers")


class Registry(StrEnum):
    MAVEN = "Maven"
    GO = "Go modules"
    PYPI = "PyPI"
    NPM = "npm"
    CRATES = "crates.io"
    HERE = "this repository"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    name: str
    says: str
    """As a reader of the table knows it."""
    registry: Registry
    package: str
    version: str
    driver: str
    """Its file in drivers/, beside which its language's protocol file is copied."""
    needs: tuple[str, ...]
    """Programs on PATH: to build it, and to run it."""
    command: tuple[str, ...]
    """{folder} is where install.py built it, {python} this interpreter, {drivers} our folder of that name, and {home} a
    folder for what the client logs."""
    profile: str
    """What `nemesrv conform --profile` holds it against."""
    servers: str = "4.9"
    """The profile of the servers it is tried at."""
    spring_boot: str = field(default="", repr=False)
    """The version of Spring Boot's that its dependencies are of."""
    ends_with: int = 0
    """Its exit status after SIGTERM."""
    findings: tuple[str, ...] = ()
    """What its driver met at Apache's servers as at ours, one sentence each."""
    of_two_runs: str = field(default="", repr=False)
    """Why two runs of it may not agree, where they did not."""


_JAVA_FLAGS = (
    "-Xmx128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.net.preferIPv4Stack=true",
    "-Duser.home={home}",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
)


_JAVA_PROFILES = {(5, 3): "5.3", (5,): "5.0", (4, 9, 1): "4.9", (4, 7, 1): "4.7", (4, 3): "4.3", (3,): "3.2"}
"""From which version on, the newest first."""


def _profile_at(number: Version) -> str:
    return "java-" + next(name for since, name in _JAVA_PROFILES.items() if number >= since)


_SEVERAL = "which of its clients has the NameServer that fails is chance, and a rule about another one is left out."


def _java(version: str, profile: str) -> Client:
    return Client(
        name=f"java-{version}",
        says=f"Java {version}",
        registry=Registry.MAVEN,
        package=f"{'com.alibaba' if version.startswith('3.') else 'org.apache'}.rocketmq:rocketmq-client",
        version=version,
        driver="Driver.java",
        needs=("java", "javac", "mvn"),
        command=("java", *_JAVA_FLAGS, "-cp", "{folder}/classes:{folder}/jars/*", "Driver"),
        profile=profile,
        servers="5.x" if version.startswith("5.") else "4.9",
    )


def _spring(version: str, boot: str, profile: str, servers: str, *, stream: bool = False) -> Client:
    main = "Stream" if stream else "Spring"
    starter = "rocketmq-spring-boot-starter"
    return Client(
        name=f"{'stream' if stream else 'spring'}-{version}",
        says=f"{'spring-cloud-stream-rocketmq' if stream else 'rocketmq-spring'} {version}",
        registry=Registry.MAVEN,
        package="com.alibaba.cloud:spring-cloud-starter-stream-rocketmq"
        if stream
        else f"org.apache.rocketmq:{starter}",
        version=version,
        spring_boot=boot,
        driver=f"{main}.java",
        needs=("java", "javac", "mvn"),
        command=("java", *_JAVA_FLAGS, "-cp", "{folder}/classes:{folder}/jars/*", main),
        of_two_runs=_SEVERAL,
        profile=profile,
        servers=servers,
    )


def _ours(rocketmq: str, profile: str) -> Client:
    return Client(
        name=f"ours-{rocketmq}",
        says=f"nemesrv's own, profile {rocketmq}",
        registry=Registry.HERE,
        package="nemesrv",
        version="",
        driver="ours.py",
        needs=(),
        command=("{python}", "{drivers}/ours.py", rocketmq),
        profile=profile,
        servers=rocketmq,
    )


_ALL = (
    *(_java(age.version, _profile_at(age.number)) for age in AGES),
    Client(
        name="ons-1.8.8",
        says="Aliyun's ons-client 1.8.8.Final",
        registry=Registry.MAVEN,
        package="com.aliyun.openservices:ons-client",
        version="1.8.8.Final",
        driver="Ons.java",
        needs=("java", "javac", "mvn"),
        command=("java", *_JAVA_FLAGS, "-cp", "{folder}/classes:{folder}/jars/*", "Ons"),
        profile="ons",
        of_two_runs=_SEVERAL,
    ),
    _spring("2.2.2", "2.7.18", "java-4.9", "4.9"),
    _spring("2.3.1", "3.2.5", "java-5.3", "5.x"),
    _spring("2021.0.5.0", "2.6.13", "java-4.9", "4.9", stream=True),
    Client(
        name="go-2.1.2",
        says="Go 2.1.2",
        registry=Registry.GO,
        package="github.com/apache/rocketmq-client-go/v2",
        version="v2.1.2",
        driver="driver.go",
        needs=("go",),
        command=("env", "HOME={home}", "ROCKETMQ_GO_LOG_LEVEL=error", "{folder}/driver"),
        profile="go",
    ),
    Client(
        name="go-2.0.0",
        says="Go 2.0.0",
        registry=Registry.GO,
        package="github.com/apache/rocketmq-client-go/v2",
        version="v2.0.0",
        driver="driver.go",
        needs=("go",),
        command=("env", "HOME={home}", "ROCKETMQ_GO_LOG_LEVEL=error", "{folder}/driver"),
        profile="go-2.0",
        of_two_runs="how many look-ups its first second has depends on how much of a busy machine it gets.",
    ),
    Client(
        name="cpp-1.x",
        says="C++ 1.x (in PyPI's rocketmq)",
        registry=Registry.PYPI,
        package="rocketmq",
        version="0.4.4",
        driver="driver_cpp.py",
        needs=(),
        command=("env", "HOME={home}", "{python}", "{folder}/driver_cpp.py"),
        profile="cpp-1",
    ),
    Client(
        name="cpp-2.1.0",
        says="C++ 2.1.0 (in PyPI's rocketmq-python-cvs)",
        registry=Registry.PYPI,
        package="rocketmq-python-cvs",
        version="2.1.0.3",
        driver="driver_cpp.py",
        needs=(),
        command=("env", "HOME={home}", "{python}", "{folder}/driver_cpp.py"),
        profile="cpp-2.1",
        ends_with=-signal.SIGSEGV,
        findings=(
            "a push consumer's shutdown() ends in SIGSEGV (10 of 10 at ours, 4 of 4 at Apache's 4.9.7).",
            "a push consumer that takes over the queues of one that was killed pulls each once, hands the messages of "
            "the answer to nobody and never asks again, in some of the times (8 of 13 at ours, 1 of 7 at Apache's "
            "4.9.7); they wait until the group changes again.",
            "asks its address server for the list only where the folder logs/rocketmq-cpp stands in its home, for it "
            "makes snapshot/ in it and no folder above; else every send fails for want of a route (3 of 3 in a fresh "
            "home, 0 of 2 with that folder, which C++ 1.x leaves there).",
        ),
        of_two_runs="each in a home of its own; in the other run its two consumers ended 10.8 s after their start, by "
        "signal 11 and 6 (malloc(): unaligned tcache chunk), in both situations that need two.",
    ),
    Client(
        name="cpp-3.0.0",
        says="C++ 3.0.0 (in npm's rocketmq-nodejs)",
        registry=Registry.NPM,
        package="rocketmq-nodejs",
        version="1.1.2",
        driver="driver_rocketmq_nodejs.js",
        needs=("node", "npm"),
        command=("env", "HOME={home}", "node", "{folder}/driver_rocketmq_nodejs.js"),
        profile="cpp-3",
        ends_with=-signal.SIGKILL,
        findings=(
            "exit() waits for ever in ~EventLoop for the library's own thread, in some of the times (2 of 6, after "
            "NameServers were lost); the driver therefore ends itself with SIGKILL.",
        ),
    ),
    Client(
        name="node-3.12.0",
        says="Node ali-ons 3.12.0",
        registry=Registry.NPM,
        package="ali-ons",
        version="3.12.0",
        driver="driver_ali_ons.js",
        needs=("node", "npm"),
        command=("node", "{folder}/driver_ali_ons.js"),
        profile="node",
        findings=(
            "commits the offset -1 of its retry topic's queues each 5 s; Apache's brokers take it, and so does ours.",
        ),
    ),
    Client(
        name="node-2.0.1",
        says="Node rocketmq 2.0.1",
        registry=Registry.NPM,
        package="rocketmq",
        version="2.0.1",
        driver="driver_rocketmq.js",
        needs=("node", "npm"),
        command=("env", "HOME={home}", "node", "{folder}/driver_rocketmq.js"),
        profile="node-2",
        of_two_runs="it draws a NameServer for each request, so that it is chance when it meets the one of four that "
        "is back; and how many steps tell that it draws is chance, too: 92 and 90 were too few.",
    ),
    Client(
        name="rust-1.0.0",
        says="Rust 1.0.0",
        registry=Registry.CRATES,
        package="rocketmq-client-rust",
        version="1.0.0",
        driver="driver.rs",
        needs=("cargo",),
        command=("{folder}/driver",),
        profile="rust",
        servers="5.x",
        of_two_runs="what it leaves to chance differs: it turns to whoever answers quickest, so that it may leave a "
        "silent NameServer in one run and come back to it in the next.",
    ),
    _ours("4.9", "java-4.9"),
    _ours("5.x", "java-5.3"),
)

CLIENTS: Mapping[str, Client] = {client.name: client for client in _ALL}

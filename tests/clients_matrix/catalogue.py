"""One row a client: where it comes from, what it needs, how it is started, and which profile it is held against."""

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


_JAVA_PROFILES = {
    **{(5, 3): "5.3", (5, 1, 4): "5.1", (5,): "5.0"},
    **{(4, 9, 1): "4.9", (4, 7, 1): "4.7", (4, 3): "4.3", (3,): "3.2"},
}
"""From which version on, the newest first."""


def _profile_at(number: Version) -> str:
    return "java-" + next(name for since, name in _JAVA_PROFILES.items() if number >= since)


_SCANS = (
    "chance decides where in its scan, each 3 s, a poll falls, and so between both words of `failover` and of "
    "`leaves_on_closed_at_accept`"
)


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
        of_two_runs=_SCANS if version == "5.0.0" else "",
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
        findings=(
            "CreateReplyMessage() reads the given body as properties, so each reply arrives without a body, unless the "
            "program sets Body itself.",
            "a transaction producer answers a broker's check only if its group is the first of its client instance: "
            "without an instance name of its own, half messages of a second group in the program never end.",
            "the messages of a batch have no UNIQ_KEY, so the send's result has no message id.",
        ),
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
        findings=(
            "a batch is sent without defaultTopicQueueNums, and every broker refuses it (Apache's 4.9.7: "
            "NumberFormatException).",
        ),
        of_two_runs="a send without a route makes 6 look-ups (`sendSync`: 3 tries, and 2 look-ups in each), and the "
        "machine's load decides how many sends, each 200 ms, its first second has",
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
            "a push consumer's shutdown() ends with SIGSEGV (10 of 10 times with our servers, 4 of 4 with Apache's "
            "4.9.7).",
            "a push consumer that takes over the queues of a killed consumer sometimes pulls each queue once, drops "
            "the messages and never pulls again until the group changes (8 of 13 times with our servers, 1 of 7 with "
            "Apache's 4.9.7).",
            "the client asks the address server for the NameServer list only if its home has the folder "
            "logs/rocketmq-cpp, which the client does not make itself. Without the list every send fails (3 of 3 times "
            "without the folder, 0 of 2 with the folder).",
        ),
        of_two_runs="in both runs its consumers crashed 10.8 to 14.7 s after their start, with signals 11 and 6 "
        "(malloc(): unaligned tcache chunk)",
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
            "exit() sometimes waits for ever for the library's own thread (2 of 6 times, after NameServers were lost), "
            "so the driver ends itself with SIGKILL.",
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
            "the client commits the offset -1 for queues of its retry topic every 5 s; Apache's and nemesrv's brokers "
            "accept this commit.",
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
    ),
    _ours("4.9", "java-4.9"),
    _ours("5.x", "java-5.3"),
)

CLIENTS: Mapping[str, Client] = {client.name: client for client in _ALL}

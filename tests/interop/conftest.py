"""The worlds of these tests, each started once: Apache's servers, and ours with Apache's clients at work."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from nemesrv.chaos.apache.maven import JavaMissing

from ..clients_matrix.catalogue import CLIENTS as OF_MATRIX
from ..clients_matrix.install import ClientMissing, command
from . import programs
from .jars import Jars, Version, class_path, tools
from .mqadmin import MQAdmin
from .programs import Program

CLIENTS = {"4.9": Jars.CLIENTS_4_9, "5.x": Jars.CLIENTS_5_X}
SERVERS = {"4.9": Jars.SERVERS_4_9, "5.x": Jars.SERVERS_5_X}
PREFIX = "interop"
SOURCES = Path(__file__).parent


def need(*jars: Jars) -> None:
    """Skip, saying why, where those cannot be had."""
    for each in jars:
        try:
            class_path(each)
        except JavaMissing as exc:
            pytest.skip(str(exc))


@dataclass(frozen=True, slots=True)
class Apache:
    """Apache's broker, registered with Apache's NameServer and with ours."""

    broker: str
    name_server: str
    our_name_server: str


@dataclass(frozen=True, slots=True)
class NotJava:
    """A client of another language."""

    version: str
    """Its name in the matrix."""
    number: Version
    """Of the Java client that has as much."""
    language: str
    """As its requests name it."""
    makes_topics: bool = True
    """By its first send."""

    def command(self) -> tuple[str, ...]:
        """What starts its language's file in this folder, built for this version."""
        client = OF_MATRIX[self.version]
        source = f"clients{Path(client.driver).suffix}"
        words = tuple(word.replace(client.driver, source) for word in client.command)
        return command(replace(client, name=f"interop-{client.name}", driver=f"../../interop/{source}", command=words))


@dataclass(frozen=True, slots=True)
class World:
    """Two NameServers, two brokers, of one side. The clients have sent, and their consumers are at work."""

    profile: str
    """Of the servers."""
    age: Jars | NotJava
    """Of the clients."""
    name_servers: tuple[str, ...]
    brokers: dict[str, str]
    clients: Program
    mqadmin: MQAdmin

    @property
    def name_server(self) -> str:
        return self.name_servers[0]


@pytest.fixture(scope="session")
def mqadmin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MQAdmin]:
    need(Jars.CLIENTS_4_9)
    admin = MQAdmin("mqadmin", tmp_path_factory.mktemp("mqadmin") / "home", Jars.CLIENTS_4_9)
    with admin.program:
        yield admin


@pytest.fixture(scope="session")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apache]:
    need(Jars.SERVERS_4_9)
    home = tmp_path_factory.mktemp("apache")
    with ExitStack() as stack:
        ours, our_address = programs.name_server("ns", home / "ns")
        stack.enter_context(ours)
        theirs, their_address = programs.java_name_server("java-ns", home / "java-ns", Jars.SERVERS_4_9)
        stack.enter_context(theirs)
        both = [our_address, their_address]
        broker, broker_address = programs.java_broker("java-broker", home / "java-b", Jars.SERVERS_4_9, both, "java-b")
        stack.enter_context(broker)
        yield Apache(broker_address, their_address, our_address)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Clients of every day, or those that the module names (CLIENTS_OF)."""
    if "world" in metafunc.fixturenames:
        ages = getattr(metafunc.module, "CLIENTS_OF", tuple(CLIENTS.values()))
        metafunc.parametrize("world", ages, ids=[age.version for age in ages], indirect=True, scope="session")


@pytest.fixture(scope="session")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    age: Jars | NotJava = request.param
    profile = "4.9" if age.number < (5,) else "5.x"
    need(*([age] if isinstance(age, Jars) else []), admins_of(age))
    home = tmp_path_factory.mktemp(f"world-{age.version}")
    with ExitStack() as stack:
        start_name_server, start_broker = servers_of(profile)
        name_servers = []
        for name in ("ns-0", "ns-1"):
            program, address = start_name_server(name, home / name)
            stack.enter_context(program)
            name_servers.append(address)
        brokers = {}
        for name in ("broker-a", "broker-b"):
            program, brokers[name] = start_broker(name, home / name, name_servers, name)
            stack.enter_context(program)
        clients = stack.enter_context(_clients(home / "clients", age, name_servers))
        admin = MQAdmin("mqadmin", home / "mqadmin", admins_of(age))
        stack.enter_context(admin.program)
        if isinstance(age, NotJava) and not age.makes_topics:
            for address in brokers.values():
                admin.ok(
                    "updateTopic", "-n", name_servers[0], "-b", address, "-t", f"{PREFIX}-topic", "-r", "4", "-w", "4"
                )
        for command in ("send", "consume", "orderly", "lite"):
            clients.say(command)
            clients.wait_for(f"DONE\t{command}")
        yield World(profile, age, tuple(name_servers), brokers, clients, admin)


def admins_of(age: Jars | NotJava) -> Jars:
    """mqadmin beside these clients."""
    return tools(age) if isinstance(age, Jars) else Jars.CLIENTS_4_9


Starts = Callable[..., tuple[Program, str]]


def servers_of(profile: str) -> tuple[Starts, Starts]:
    """What starts a NameServer and a broker: ours, or Apache's where NEMESRV_INTEROP_SERVERS=apache asks for them, to
    tell a fault of ours from what the clients do anywhere."""
    if os.environ.get("NEMESRV_INTEROP_SERVERS") != "apache":
        return partial(programs.name_server, profile=profile), partial(programs.broker, profile=profile)
    jars = SERVERS[profile]
    need(jars)
    more = {"transactionTimeOut": 1000, "transactionCheckInterval": 1000}
    return (
        lambda name, folder: programs.java_name_server(name, folder, jars),
        lambda name, folder, *about: programs.java_broker(name, folder, jars, *about, more=more),
    )


def _clients(folder: Path, age: Jars | NotJava, name_servers: list[str]) -> Program:
    folder.mkdir()
    words = (";".join(name_servers), PREFIX)
    if isinstance(age, Jars):
        program = programs.java_source("clients", folder, age, SOURCES / "Clients.java", *words)
    else:
        try:
            program = Program("clients", (*age.command(), *words), folder)
        except ClientMissing as exc:
            pytest.skip(str(exc))
    program.wait_for("READY")
    return program

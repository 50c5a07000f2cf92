"""The worlds of these tests, each started once: Apache's servers, and ours with Apache's clients at work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from nemesrv.chaos.apache.maven import JavaMissing

from . import programs
from .jars import Jars, class_path
from .mqadmin import MQAdmin
from .programs import Program

CLIENTS = {"4.9": Jars.CLIENTS_4_9, "5.x": Jars.CLIENTS_5_X}
SERVERS = {"4.9": Jars.SERVERS_4_9, "5.x": Jars.SERVERS_5_X}
PREFIX = "interop"


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
class World:
    """Ours: two NameServers, two brokers. Java's clients have sent, and their consumers are at work."""

    profile: str
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


@pytest.fixture(scope="session", params=["4.9", "5.x"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    profile: str = request.param
    need(CLIENTS[profile])
    home = tmp_path_factory.mktemp(f"world-{profile}")
    with ExitStack() as stack:
        name_servers = []
        for number in range(2):
            name = f"ns-{number}"
            program, address = programs.name_server(name, home / name, profile=profile)
            stack.enter_context(program)
            name_servers.append(address)
        brokers = {}
        for name in ("broker-a", "broker-b"):
            program, brokers[name] = programs.broker(name, home / name, name_servers, name, profile=profile)
            stack.enter_context(program)
        clients = stack.enter_context(_clients(home / "clients", profile, name_servers))
        admin = MQAdmin("mqadmin", home / "mqadmin", CLIENTS[profile])
        stack.enter_context(admin.program)
        for command in ("send", "consume"):
            clients.say(command)
            clients.wait_for(f"DONE\t{command}")
        yield World(profile, tuple(name_servers), brokers, clients, admin)


def _clients(folder: Path, profile: str, name_servers: list[str]) -> Program:
    folder.mkdir()
    source = Path(__file__).with_name("Clients.java")
    program = programs.java("clients", folder, CLIENTS[profile], str(source), ";".join(name_servers), PREFIX)
    program.wait_for("READY")
    return program

"""Each client of the catalogue starts, sends and receives at our servers, and ends when it is told to; at Apache's
servers with NEMESRV_INTEROP_SERVERS=apache."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from nemesrv.remoting.node.network import Address
from tests.interop.conftest import servers_of
from tests.interop.programs import Program
from tests.interop.waiting import ask, eventually

from .catalogue import CLIENTS, Client, Registry
from .install import ClientMissing, command

TOPIC = "orders"
SENT = 3


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], tuple[str, ...]]]:
    """The addresses of two NameServers of a profile, with a broker; started when they are first asked for."""
    running: dict[str, tuple[str, ...]] = {}
    with ExitStack() as stack:

        def of(profile: str) -> tuple[str, ...]:
            if profile not in running:
                home = tmp_path_factory.mktemp(f"servers-{profile}")
                start_name_server, start_broker = servers_of(profile)
                both = [start_name_server(f"ns-{i}", home / f"ns-{i}") for i in range(2)]
                for program, _ in both:
                    stack.enter_context(program)
                addresses = tuple(address for _, address in both)
                broker, address = start_broker("broker-a", home / "broker-a", addresses, "broker-a")
                stack.enter_context(broker)
                ask(addresses[0], lambda admin: admin.create_topic(Address.parse(address), TOPIC))
                for each in addresses:
                    eventually(lambda each=each: ask(each, lambda admin: admin.topic_route(TOPIC)))
                running[profile] = addresses
            return running[profile]

        yield of


def events(program: Program, kind: str) -> list[dict[str, Any]]:
    """What the driver has said of that kind so far."""
    said = [json.loads(line) for line in list(program.lines) if line.startswith("{")]
    return [event for event in said if event["f"] == kind]


def started(client: Client, name_servers: Sequence[str], folder: Path, role: str) -> Program:
    try:
        words = command(client)
    except ClientMissing as exc:
        pytest.skip(str(exc))
    env = {
        "NAMESRV_ADDR": ";".join(name_servers),
        "NEMESRV_TOPIC": TOPIC,
        "NEMESRV_GROUP": f"group-{client.name.replace('.', '-')}",
        "NEMESRV_ROLE": role,
    }
    return Program(client.name, words, folder, env=env)


@pytest.mark.nightly_but("java-4.9.8", "node-3.12.0", "ours-4.9")
@pytest.mark.timeout(2_000)  # Rust is built from its source, once a machine
@pytest.mark.parametrize(
    "client",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.java] if each.registry is Registry.MAVEN else [])
        for each in CLIENTS.values()
    ],
)
def test_a_client_sends_and_receives_and_ends_at_sigterm(
    client: Client, servers: Callable[[str], tuple[str, ...]], tmp_path: Path
) -> None:
    with started(client, servers(client.servers), tmp_path, "both") as program:

        def has_received_what_it_sent() -> None:
            acknowledged = [each["id"] for each in events(program, "sent") if each["type"] == "ok"]
            received = {each["id"] for each in events(program, "received")}
            assert len(received & set(acknowledged)) >= SENT, program.output()

        program.wait_for('"f":', within_s=60)
        eventually(has_received_what_it_sent, within_s=60)
        status = program.terminate(within_s=20)
    said = [json.loads(line)["f"] for line in program.lines if line.startswith("{")]
    assert said.count("started") == 1
    begun = [each["id"] for each in events(program, "send")]
    ended = [each["id"] for each in events(program, "sent")]
    assert len(set(begun)) == len(begun)
    assert begun[: len(ended)] == ended, "one after the other"
    assert len(begun) - len(ended) <= 1, "at most the last one was under way"
    assert status == client.ends_with

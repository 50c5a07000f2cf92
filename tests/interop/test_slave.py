"""An unmodified Java consumer reads from our slave what it never saw at the master, which was killed before."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from . import programs
from .conftest import CLIENTS, PREFIX, _clients, need
from .test_clients import TAGS
from .waiting import eventually

pytestmark = pytest.mark.java


@pytest.mark.nightly_but("5.x")
@pytest.mark.parametrize("profile", ["4.9", "5.x"])
def test_a_late_consumer_reads_everything_from_the_slave(tmp_path: Path, profile: str) -> None:
    need(CLIENTS[profile])
    with ExitStack() as stack:
        name_server, address = programs.name_server("ns", tmp_path / "ns", profile=profile)
        stack.enter_context(name_server)
        master, _ = programs.broker("master", tmp_path / "master", [address], "broker-a", profile=profile)
        stack.enter_context(master)
        role = {"brokerId": 1, "brokerRole": "SLAVE"}
        slave, _ = programs.broker("slave", tmp_path / "slave", [address], "broker-a", profile=profile, more=role)
        stack.enter_context(slave)
        clients = stack.enter_context(_clients(tmp_path / "clients", CLIENTS[profile], [address]))
        clients.say("send")
        clients.wait_for("DONE\tsend")

        def stored(node: str, *names: str) -> bytes:
            file = (tmp_path / node / "store").joinpath(*names)
            return file.read_bytes() if file.exists() else b"{}"

        def copied() -> None:
            delivered = json.loads(stored("slave", "config", "delayOffset.json")).get("offsetTable", {})
            assert delivered.get("1") == 1, "the delayed message is in its own topic by now"
            assert f"{PREFIX}-topic" in json.loads(stored("slave", "config", "topics.json"))["topicConfigTable"]
            assert stored("master", "commitlog", f"{0:020d}") == stored("slave", "commitlog", f"{0:020d}")

        eventually(copied, within_s=60)
        master.kill()
        clients.say("late")
        clients.wait_for("DONE\tlate")

        def read() -> set[str]:
            received = (line.split("\t") for line in list(clients.lines) if line.startswith("RECEIVE\tlate\t"))
            keys = {fields[2] for fields in received}
            missing = TAGS.keys() - keys
            assert not missing
            return keys

        assert eventually(read, within_s=60) == TAGS.keys()

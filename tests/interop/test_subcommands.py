"""mqadmin's subcommands, all of 4.9.8 and of 5.3.3, against our cluster: what works, and what is refused.

docs/compatibility.md says why. NEMESRV_INTEROP_SERVERS=apache: against Apache's, which refuse some, too.
"""

import json
import re
from pathlib import Path

import pytest
import yaml

from .conftest import CLIENTS, PREFIX, World, need
from .mqadmin import SOURCE, MQAdmin
from .programs import java_source
from .waiting import eventually

pytestmark = pytest.mark.java

ASKED: dict[str, str] = yaml.safe_load(Path(__file__).with_name("subcommands.yaml").read_text(encoding="utf-8"))


def asked(what: str, profile: str) -> list[str]:
    """The lines of subcommands.yaml that are for this profile."""
    return (ASKED.get(what, "") + ASKED.get(f"{what} in {profile}", "")).splitlines()


def subcommands(profile: str) -> tuple[set[str], set[str], set[str]]:
    """mqadmin's that work at a cluster of ours, those that it refuses, and those that are not tried."""
    work = [*asked("works", profile), ASKED["goes on"], "queryMsgTraceById"]  # which test_clients.py asks
    work_, refused = ({line.split()[0] for line in lines} for lines in (work, asked("refused", profile)))
    return work_, refused, {*ASKED[f"not tried in {profile}"].split()}


def _words(world: World, folder: Path) -> dict[str, object]:
    """What stands in braces in subcommands.yaml."""
    sent = next(line.split("\t") for line in world.clients.lines if line.startswith("SEND\tlast\t"))
    _, _, _, _, id_, offset_id, last_broker, queue, offset = sent
    topic = f"{PREFIX}-topic"
    ids = {"id": id_, "offset_id": offset_id, "last_broker": last_broker, "queue": queue, "offset": offset}
    return {
        **{"cluster": "DefaultCluster", "topic": topic, "group": f"{PREFIX}-all", "prefix": PREFIX, "folder": folder},
        **{"broker": world.brokers["broker-a"], "other": world.brokers["broker-b"], "name_server": world.name_server},
        **{"last_address": world.brokers[last_broker], "in_topic": f" -t {topic}" * (world.profile == "5.x"), **ids},
    }


def _said(world: World, line: str) -> str:
    command, *arguments = line.split()
    return world.mqadmin(command, "-n", world.name_server, *arguments)


@pytest.mark.nightly("test_each_that_mqadmin_lists_works_is_refused_or_is_not_tried")
def test_what_an_operator_asks_for_is_done(world: World, tmp_path: Path) -> None:
    topics = [{"topicName": "listed", "readQueueNums": 2, "writeQueueNums": 2}]
    (tmp_path / "topics.json").write_text(json.dumps(topics))
    (tmp_path / "groups.json").write_text(json.dumps([{"groupName": "listed"}]))

    def received() -> None:
        assert any(line.startswith("RECEIVE\tall\tlast-0") for line in list(world.clients.lines))

    eventually(received, within_s=45)
    wrong = {}
    for line in asked("works", world.profile):
        command, _, expected = line.format(**_words(world, tmp_path)).partition(" => ")
        said = _said(world, command)
        if expected not in said or "Exception" in said:
            wrong[command] = said[:300]
    assert wrong == {}


@pytest.mark.nightly("test_each_that_mqadmin_lists_works_is_refused_or_is_not_tried")
def test_what_is_not_there_is_refused_in_words(world: World, tmp_path: Path) -> None:
    for line in asked("refused", world.profile):
        said = _said(world, line.format(**_words(world, tmp_path)))
        assert "request type" in said, (line, said)
        assert "not supported" in said


@pytest.mark.nightly("test_each_that_mqadmin_lists_works_is_refused_or_is_not_tried")
def test_what_goes_on_until_it_is_stopped_goes_on(world: World, tmp_path: Path) -> None:
    with java_source("mqadmin", tmp_path, CLIENTS[world.profile], SOURCE) as program:
        program.wait_for("READY")
        program.say("\t".join([*ASKED["goes on"].split(), "-n", world.name_server]))
        first = program.wait_for("DefaultCluster")
        program.wait_for("DefaultCluster", after=first + 1)


@pytest.mark.parametrize("profile", CLIENTS)
def test_each_that_mqadmin_lists_works_is_refused_or_is_not_tried(profile: str, tmp_path: Path) -> None:
    need(CLIENTS[profile])
    listed = re.findall(r"^ {3}(\w+) ", MQAdmin("mqadmin", tmp_path, CLIENTS[profile])(), re.MULTILINE)
    assert sorted(listed) == sorted(name for names in subcommands(profile) for name in names)

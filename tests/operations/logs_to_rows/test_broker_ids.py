"""Slaves, and brokers that elect their master, by their own logs: who has which id when, and what changes it."""

from pathlib import Path

import pytest

from nemesrv.chaos.oracle.roles import members_of
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.settings.setting import DLEDGER
from nemesrv.operations.inferring.episodes import episodes_of
from nemesrv.operations.logs_to_rows.reconstruct import Reconstructed, reconstruct
from tests.operations.logs_to_rows.test_reconstruct import LIST
from tests.operations.made_logs import read_logs, stamped

Lines = list[tuple[float, str]]
SERVERS = {"ns-0": "10.0.1.1:9876", "ns-1": "10.0.1.2:9876"}
MEMBERS = {1: "10.0.2.1:10911", 2: "10.0.2.2:10911", 3: "10.0.2.3:10911"}
"""Of a DLedger group, by the id of each as a slave: one more than that in its dLegerSelfId."""
END_S, DIES_S, ELECTED_S, BACK_S = 600, 201.0, 210.0, 330.0


def imported(folder: Path, logs: dict[str, Lines]) -> Reconstructed:
    for node, lines in logs.items():
        file = folder / node / ("namesrv.log" if node.startswith("ns-") else "broker.log")
        file.parent.mkdir(parents=True)
        file.write_text(stamped(sorted(lines, key=lambda line: line[0])))
    return reconstruct(read_logs([folder]).lines)


def booted(address: str, at_s: float) -> Lines:
    said = f"The broker[broker-a, {address}] boot success. serializeType=JSON and name server is {LIST}"
    return [(at_s - 1, f"namesrvAddr={LIST}"), (at_s - 1, "registerNameServerPeriod=30000"), (at_s, said)]


def registers(at_s: float, id_: int | None) -> Lines:
    """As 4.9 says it, or 5.x, which names no id."""
    if id_ is None:
        told = "Registering current broker to name server completed. TargetHost="
        return [(at_s, f"{told}{server}") for server in SERVERS.values()]
    return [(at_s, f"register broker[{id_}]to name server {server} OK") for server in SERVERS.values()]


def slave_of_5x() -> dict[str, Lines]:
    """A master and its slave; no log of 5.x says brokerId."""
    logs: dict[str, Lines] = {name: [(0.1, "The Name Server boot success. serializeType=JSON")] for name in SERVERS}
    for node, address in (("broker-a", MEMBERS[1]), ("the-other", MEMBERS[2])):
        logs[node] = booted(address, 10.0)
        about = f"BrokerIdentityInfo [clusterName=C, brokerAddr={address}] HAService: {address}"
        for name in SERVERS:
            logs[name].append((20.2, f"new broker registered, {about}"))
        for tick in range(20, END_S, 30):
            logs[node] += registers(tick + 0.2, None)
    topic = "QueueData [brokerName=broker-a, readQueueNums=4, writeQueueNums=4, perm=6, topicSysFlag=0]"
    for name in SERVERS:
        logs[name].append((20.2, f"new topic registered, orders {topic}"))
    logs["the-other"].append((50.4, f"Update slave topic config from master, {MEMBERS[1]}"))
    return logs


def test_a_slave_of_5x_is_known_by_whom_it_copies_and_is_no_stranger(tmp_path: Path) -> None:
    found = imported(tmp_path, slave_of_5x())
    assert found.topology["brokers"] == {"broker-a": {"0": [MEMBERS[1]], "1": [MEMBERS[2]]}}
    assert {source["source"] for source in found.sources} == {"broker-a", "broker-a/1", *SERVERS}
    assert episodes_of(found.rows).episodes == []
    ids = {(row["address"], row["broker_id"]) for row in found.rows if row["event"] == "registration"}
    assert ids == {(MEMBERS[1], 0), (MEMBERS[2], 1)}


def test_two_brokers_that_claim_one_name_are_no_master_and_slave(tmp_path: Path) -> None:
    logs = slave_of_5x()
    logs["the-other"] = [line for line in logs["the-other"] if "Update slave" not in line[1]]
    assert "broker-a/1" not in {source["source"] for source in imported(tmp_path, logs).sources}


def election() -> dict[str, Lines]:
    """The leader of a DLedger group of 4.9 dies, another is elected, and the first is its slave when it is back."""
    logs: dict[str, Lines] = {name: [(0.1, "The Name Server boot success. serializeType=JSON")] for name in SERVERS}
    for id_, address in MEMBERS.items():
        node = f"host-{id_}"
        logs[node] = booted(address, 10.0)
        roles = [(12.0, "LEADER", 1), (BACK_S + 3, "FOLLOWER", 2)] if id_ == 1 else [(12.0, "FOLLOWER", 1)]
        roles += [(ELECTED_S, "LEADER", 2)] if id_ == 2 else []
        if id_ == 1:
            logs[node] += booted(address, BACK_S)
        for at_s, role, term in roles:
            logs[node].append((at_s, f"Begin handling broker role change term={term} role={role} currStoreRole=SLAVE"))
            to = "master brokerName=broker-a" if role == "LEADER" else f"slave brokerName=broker-a brokerId={id_}"
            logs[node].append((at_s, f"Begin to change to {to}"))
        ticks = [20 + 30 * number for number in range(19) if id_ != 1 or not DIES_S < 20 + 30 * number < BACK_S]
        for tick in sorted([*ticks, *(at_s for at_s, _, _ in roles)]):
            held = [role for at_s, role, _ in roles if at_s <= tick][-1]
            logs[node] += registers(tick + 0.3, 0 if held == "LEADER" else id_)
            if held == "LEADER":
                said = f"cluster [C] brokerName [broker-a] master address change from null to {address}"
                for name in SERVERS:
                    logs[name].append((tick + 0.3, said))
        for name in SERVERS:
            logs[name].append((12.3, f"new broker registered, {address} HAServer: {address}"))
    topic = "QueueData [brokerName=broker-a, readQueueNums=4, writeQueueNums=4, perm=6, topicSysFlag=0]"
    for name in SERVERS:
        logs[name].append((12.3, f"new topic registered, orders {topic}"))
        logs[name].append((DIES_S, f"the broker's channel destroyed, {MEMBERS[1]}, clean it's data structure at once"))
        gone = f"remove brokerAddr[0, {MEMBERS[1]}] from brokerAddrTable, because channel destroyed"
        logs[name].append((DIES_S, gone))
        logs[name].append((BACK_S + 3.3, f"new broker registered, {MEMBERS[1]} HAServer: {MEMBERS[1]}"))
    return logs


@pytest.fixture(scope="module")
def elected(tmp_path_factory: pytest.TempPathFactory) -> Reconstructed:
    return imported(tmp_path_factory.mktemp("election"), election())


def test_an_election_is_one_change_of_roles_beside_the_death_that_led_to_it(elected: Reconstructed) -> None:
    faults = {one.hypotheses[0].fault: one.hypotheses[0] for one in episodes_of(elected.rows).episodes}
    assert set(faults) == {"kill", "switch"}, [one.sentence for one in faults.values()]
    assert faults["kill"].timeline[0]["nodes"] == ["broker-a"]
    assert faults["switch"].timeline == [], "nobody did it"
    said = faults["switch"].sentence
    assert "broker-a/2 registers as broker-a at ns-0, ns-1 from 210" in said
    assert "it was made master by an election (term 2)" in said
    assert "broker-a is its slave, id 1, from 333" in said


def test_every_member_keeps_its_name_and_registers_under_the_id_that_it_had_then(elected: Reconstructed) -> None:
    assert elected.topology["brokers"]["broker-a"] == {
        "0": [MEMBERS[1]], "2": [MEMBERS[2]], "3": [MEMBERS[3]],
    }  # fmt: skip
    held = [
        (row["time_ms"] / 1000 > (DIES_S + ELECTED_S) / 2, row["address"], row["broker_id"])
        for row in elected.rows
        if row["event"] == "registration" and row["node"] == "ns-0"
    ]
    assert set(held) == {
        (False, MEMBERS[1], 0), (False, MEMBERS[2], 2), (False, MEMBERS[3], 3),
        (True, MEMBERS[1], 1), (True, MEMBERS[2], 0), (True, MEMBERS[3], 3),
    }  # fmt: skip


def test_the_checks_are_told_that_this_name_elects_its_master(elected: Reconstructed) -> None:
    assert members_of(World.of_rows(elected.rows))["broker-a"].elected_by == DLEDGER

"""Which version wrote a log: what it says of itself, or how it spells its lines."""

from pathlib import Path

import pytest

from nemesrv.operations.logs_to_rows.reconstruct import Reconstructed, reconstruct
from tests.operations.made_logs import read_logs

BROKER = "10.0.2.1:10911"
STAMP = "2020-09-10 16:31:{:02d} INFO main - "
JAR = """\
2020-09-10 16:42:04 ERROR BrokerControllerScheduledThread1 - registerBroker Exception, 10.0.1.1:9876
org.apache.rocketmq.remoting.exception.RemotingTimeoutException: wait response on the channel <10.0.1.1:9876> timeout
\tat org.apache.rocketmq.remoting.netty.NettyRemotingAbstract.invokeSyncImpl(NettyRemotingAbstract.java:381) \
~[rocketmq-remoting-4.0.0-incubating.jar:4.0.0-incubating]
"""


def read(folder: Path, *texts: str, file: str = "a.log") -> Reconstructed:
    (folder / file).write_text("".join(f"{STAMP.format(number)}{text}\n" for number, text in enumerate(texts)))
    return reconstruct(*read_logs([folder])[:2])


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (f"new broker registerd, {BROKER} HAServer: 10.0.2.1:10912", "up to 4.1.0"),
        (f"new broker registered, {BROKER} HAServer: 10.0.2.1:10912", "4.2.0 to 4.9.8"),
        (f"cluster [c] brokerName [b] master address change from null to {BROKER}", "4.9.4 to 4.9.8"),
        ("register broker to name server 10.0.1.1:9876 OK", "up to 4.4.0"),
        ("register broker[0]to name server 10.0.1.1:9876 OK", "4.5 to 4.9.8"),
        ("Registering current broker to name server completed. TargetHost=10.0.1.1:9876", "5.x"),
        ("The Name Server boot success.", "up to 3.5"),
        ("the topic[T] route info changed, odl[null] ,new[TopicRouteData []]", "up to 3.2"),
    ],
)
def test_a_version_is_told_by_how_it_spells_its_lines(tmp_path: Path, text: str, version: str) -> None:
    (source,) = read(tmp_path, text).sources
    assert (source["version"], source["version_by"]) == (version, "a.log:1")


def test_a_version_that_stands_in_a_stack_trace_is_that(tmp_path: Path) -> None:
    (tmp_path / "broker.log").write_text(JAR)
    (source,) = reconstruct(read_logs([tmp_path]).lines).sources
    assert source["version"] == "4.0.0"


def test_of_a_log_that_two_versions_wrote_none_is_said(tmp_path: Path) -> None:
    """An upgrade between: the dialect's name stands there, as where nothing says it."""
    ok = "register broker{} name server 10.0.1.1:9876 OK"
    (source,) = read(tmp_path, ok.format(" to"), ok.format("[0]to")).sources
    assert (source["version"], source["version_by"]) == ("4.x", None)


def test_one_registration_that_failed_among_many_is_one_failure(tmp_path: Path) -> None:
    """As 4.4 spells those that succeeded: unread, they would make a NameServer that is lost until the end."""
    ok = "register broker to name server 10.0.1.1:9876 OK"
    found = read(tmp_path, *[ok] * 20, "registerBroker Exception, 10.0.1.1:9876", *[ok] * 20, file="broker.log")
    outcomes = [row["type"] for row in found.rows if row["event"] == "register"]
    assert outcomes == ["ok"] * 20 + ["info"] + ["ok"] * 20
    assert [entry["what"] for entry in found.timeline if entry["node"] == "broker"] == ["failed", "registered"]


def test_a_controller_is_no_name_server_and_what_it_tells_is_said(tmp_path: Path) -> None:
    """By DLedger it scans each 5 s in a NameServer's words."""
    told = [
        "Controller n0 change role to leader, try process a initial proposal",
        *["start scanNotActiveBroker"] * 9,
        "The broker with brokerId: 2 in broker-set: broker-a has been inactive",
        "Elect a new master in broker-set: broker-a done, result: ElectMasterResponseHeader{masterBrokerId=1}",
    ]
    found = read(tmp_path, *told, file="controller.log")
    assert found.sources == []
    (note,) = found.notes
    assert "controller.log is a controller's, 12 of 12 lines understood" in note
    assert "08:31:11 it elected a master of broker-a (controller.log:12)" in note

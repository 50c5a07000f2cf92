"""Which files are one process's: told by what stands in them, whatever they are called; what is not used is said."""

import shutil
from pathlib import Path

import pytest

from nemesrv.operations.logs_to_rows.reconstruct import reconstruct
from nemesrv.operations.logs_to_rows.sources import sources_of
from tests.operations.made_logs import read_logs

APACHES = Path(__file__).parents[3] / "docs" / "incident-logs"
OK = "2026-06-27 16:00:0{} INFO main - register broker[0]to name server 10.0.1.1:9876 OK\n"
BROKER = "".join(OK.format(number) for number in range(5))
REMOTING = "2026-06-27 16:00:01 INFO main - createChannel: connect remote host[10.0.1.1:9876] success, x\n"
NAME_SERVER = "2026-06-27 16:00:02 INFO main - new broker registered, 10.0.2.1:10911 HAServer: 10.0.2.1:10912\n"
CLIENT = "2026-06-27 08:02:51,122 WARN RocketmqClient - updateTopicRouteInfoFromNameServer Exception\n" * 3
CLIENT += "2026-06-27 08:02:52,122 INFO RocketmqClient - the client factory [10.0.3.3@p-1] start OK\n"
STRANGE = "2026-06-27 16:00:03 INFO main - nobody knows this one\n"
NO_EVENT = "2026-06-27 16:00:03 INFO main - [WATERMARK] Send Queue Size: 0 SlowTimeMills: 0\n"


def kinds(folder: Path, **texts: str) -> list[tuple[str, list[str]]]:
    for name, text in texts.items():
        (folder / name.replace("__", "-").replace("_", ".")).write_text(text)
    lines, files, *_ = read_logs([folder])
    return [(source.kind, source.files) for source in sources_of(lines, files)]


@pytest.mark.parametrize(
    ("one", "other"),
    [("broker_log", "remoting_log"), ("01__broker_log", "02__remoting_log"), ("foo_txt", "bar_txt"), ("a", "b")],
)
def test_a_brokers_two_logs_are_one_source_whatever_they_are_called(tmp_path: Path, one: str, other: str) -> None:
    ((kind, files),) = kinds(tmp_path, **{one: BROKER, other: REMOTING})
    assert kind == "broker"
    assert len(files) == 2


def test_a_name_server_s_log_that_is_called_broker_is_a_name_server_s(tmp_path: Path) -> None:
    assert kinds(tmp_path, broker_log=NAME_SERVER) == [("name_server", ["broker.log"])]


def test_two_brokers_logs_that_are_numbered_are_two(tmp_path: Path) -> None:
    assert [kind for kind, _ in kinds(tmp_path, **{"1__broker_log": BROKER, "2__broker_log": BROKER})] == ["broker"] * 2


LATER, LAST = BROKER.replace(" 16:", " 17:"), BROKER.replace(" 16:", " 18:")
OF_A, OF_B = (f"2026-06-27 16:00:00 INFO main - brokerName=broker-{name}\n" for name in "ab")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("broker__a_log", "broker__b_log"),
        ("broker__0_log", "broker__1_log"),
        ("prod_mq__broker__x__0_main__91aa_log", "prod_mq__broker__z__0_main__0c0c_log"),
        ("broker__10_0_2_3_log", "broker__10_0_2_4_log"),
        ("broker1_log", "broker2_log"),
        ("mq__1_log", "mq__2_log"),
    ],
)
def test_what_stands_behind_the_program_s_name_is_the_node_s(tmp_path: Path, one: str, other: str) -> None:
    assert kinds(tmp_path, **{one: BROKER, other: LATER}) == [
        ("broker", [name.replace("__", "-").replace("_", ".")]) for name in (one, other)
    ]


@pytest.mark.parametrize(
    "other",
    ["broker_1_log", "broker_log_1", "broker__2026__06__27_log", "broker_log__2026__06__27_1", "broker__error_log",
     "broker_2026__06__27_1_log", "broker_log_bak", "broker__20260627__1_log"],
)  # fmt: skip
def test_a_rotation_s_number_or_date_is_no_node_s(tmp_path: Path, other: str) -> None:
    assert len(kinds(tmp_path, broker_log=BROKER, **{other: LATER})) == 1


def test_a_remoting_log_is_of_the_broker_whose_name_stands_behind_its_own(tmp_path: Path) -> None:
    found = kinds(
        tmp_path, broker__a_log=BROKER, remoting__a_log=REMOTING, broker__b_log=BROKER, remoting__b_log=REMOTING
    )
    assert found == [("broker", [f"broker-{name}.log", f"remoting-{name}.log"]) for name in "ab"]


@pytest.mark.parametrize(("name", "key"), [("producer-1", "producer-1"), ("2", "client-2")])
def test_a_client_has_the_name_that_stands_behind_its_log_s(tmp_path: Path, name: str, key: str) -> None:
    (tmp_path / f"rocketmq_client-{name}.log").write_text(CLIENT)
    assert [source.key for source in sources_of(*read_logs([tmp_path])[:2])] == [key]


def test_a_remoting_log_beside_the_only_broker_s_is_that_broker_s(tmp_path: Path) -> None:
    assert len(kinds(tmp_path, broker__a_log=BROKER, remoting_log=REMOTING)) == 1


@pytest.mark.parametrize(
    ("one", "other", "nodes"),
    [
        (BROKER, BROKER.replace(":00:0", ":00:1"), 1),  # one after the other
        (BROKER + LATER, BROKER.replace(":00:", ":20:") + LATER.replace(":00:", ":20:"), 2),  # by turns
        (BROKER + LATER, BROKER + LATER, 1),  # a copy
        (BROKER + LATER + LAST, LATER + LAST + LAST.replace(" 18:", " 19:"), 1),  # a block twice
        (OF_A + BROKER, OF_B + LATER, 2),
        (OF_A + BROKER, OF_A + LATER, 1),
    ],
)
def test_numbered_files_are_of_one_node_only_if_they_may_be(tmp_path: Path, one: str, other: str, nodes: int) -> None:
    assert len(kinds(tmp_path, broker_1_log=one, broker_2_log=other)) == nodes


@pytest.mark.parametrize("sample", ["broker-partition", "broker-crash-5"])
def test_logs_in_one_folder_tell_what_they_tell_in_folders(tmp_path: Path, sample: str) -> None:
    for path in (APACHES / sample).glob("*/*.gz"):
        node = path.parent.name.removeprefix("broker-").removeprefix("ns-")
        shutil.copy(path, tmp_path / path.name.replace(".log", f"-{node}.log"))
    flat, nested = (reconstruct(*read_logs([folder])[:2]) for folder in (tmp_path, APACHES / sample))
    assert flat.nodes.roles == nested.nodes.roles
    told, said = ([str({**entry, "file": ""}) for entry in found.timeline] for found in (flat, nested))
    assert sorted(told) == sorted(said)
    assert len(flat.rows) == len(nested.rows)


def test_what_is_not_used_is_named_with_its_share_and_the_reason(tmp_path: Path) -> None:
    (tmp_path / "broker.log").write_text(BROKER + STRANGE * 5)
    (tmp_path / "watermark.log").write_text(NO_EVENT * 10)
    (tmp_path / "stats.log").write_text(NO_EVENT + STRANGE * 4)
    (tmp_path / "app.log").write_text("nothing of RocketMQ's\n" * 5)
    notes = read_logs([tmp_path]).notes
    assert "broker.log: 5 of its 10 lines (50%) are of no known shape" in notes
    assert (
        "watermark.log gives no events (10 lines, 33% of all): none of what was understood tells of a registration, a "
        "connection or a route; only errors that its lines state count"
    ) in notes
    assert any(note.startswith("stats.log gives no events (5 lines, 17% of all, 4 of them not") for note in notes)
    assert any(note.startswith("app.log: none of its 5 lines was understood") for note in notes)


PASTED = """\
2026-06-27 16:00:10 INFO main - The broker[broker-a, 10.0.2.1:10911] boot success. serializeType=JSON and name \
server is 10.0.1.1:9876
2026-06-27 16:00:20 INFO brokerOutApi_thread_1 - register broker[0]to name server 10.0.1.1:9876 OK
2026-06-27 16:00:20 INFO RemotingExecutorThread_2 - new broker registered, 10.0.2.1:10911 HAServer: 10.0.2.1:10912
2026-06-27 16:02:21 INFO NettyServerCodecThread_3 - NETTY SERVER PIPELINE: channelInactive, the channel[10.0.2.1:40122]
2026-06-27 16:02:21 INFO NettyEventExecutor - the broker's channel destroyed, 10.0.2.1:10911, clean it's data \
structure at once
2026-06-27 16:02:21 INFO NettyEventExecutor - remove brokerAddr[0, 10.0.2.1:10911] from brokerAddrTable, because \
channel destroyed
and then on the client, which logs in UTC:
2026-06-27 08:02:51,122 WARN RocketmqRemoting - NETTY CLIENT PIPELINE: CLOSE 10.0.2.1:10911
2026-06-27 08:02:52,122 WARN RocketmqClient - updateTopicRouteInfoFromNameServer Exception
org.apache.rocketmq.client.exception.MQClientException: CODE: 17  DESC: No topic route info in name server for the \
topic: T
"""


def test_lines_of_three_programs_in_one_paste_are_of_three(tmp_path: Path) -> None:
    """An excerpt of an issue, in two zones: each program has its own clock."""
    (tmp_path / "paste.txt").write_text(PASTED)
    lines, files, *_ = read_logs([tmp_path])
    found = reconstruct(lines, files)
    assert {source.kind: len(source.lines) for source in found.found} == {"name_server": 4, "broker": 2, "client": 2}
    assert {source.kind: source.zone_ms // 3_600_000 for source in found.found} == {
        "name_server": 8,
        "broker": 8,
        "client": 0,
    }
    assert [(row["event"], row["node"]) for row in found.rows if row["event"] == "broker_dropped"] == [
        ("broker_dropped", "ns-0")
    ]


def test_a_log_in_which_two_appenders_write_every_line_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "broker.log").write_text("".join(line * 2 for line in BROKER.splitlines(keepends=True)))
    lines, files, *_ = read_logs([tmp_path])
    (source,) = sources_of(lines, files)
    assert [line.line for line in source.lines] == [1, 3, 5, 7, 9]


def test_a_folder_that_has_a_word_of_a_host_s_name_is_that_host_s(tmp_path: Path) -> None:
    """Nothing else tells these two apart."""
    names = ["mq-namesrv-prod01.corp.example:9876", "mq-namesrv-prod02.corp.example:9876"]
    ok = "2026-06-27 16:00:01 INFO main - register broker to name server {} OK\n"
    for number, folder in enumerate(["prod02", "prod01"]):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "namesrv.log").write_text(NAME_SERVER.replace(":02", f":0{number}"))
    (tmp_path / "broker.log").write_text("".join(map(ok.format, names)))
    found = reconstruct(*read_logs([tmp_path])[:2])
    by_folder = {source.key: found.nodes.name_servers[source.name] for source in found.found if source.kind != "broker"}
    assert by_folder == {"prod01": [names[0]], "prod02": [names[1]]}

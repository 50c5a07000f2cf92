"""An incident from lines: who wrote what, by which clock, and the rows that it comes to."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest

from nemesrv.operations.inferring.episodes import episodes_of
from nemesrv.operations.logs_to_rows.reconstruct import Reconstructed, reconstruct
from nemesrv.operations.logs_to_rows.timeline import ANSWERED
from tests.operations import made_logs
from tests.operations.made_logs import BEGIN, NS_0, NS_1, read_logs, stamped
from tests.operations.made_logs import BROKER_A as BROKER
from tests.operations.made_logs import WHY as DESTROYED

LIST = f"{NS_0};{NS_1}"


def name_server(dropped: bool) -> list[tuple[float, str]]:
    """4.9: it begins, hears of the broker each 30 s from 20 s on, and drops it at 170 s, if it does."""
    heard = [20.2, *(30.2 + 30 * number for number in range(9) if not dropped or number in (0, 1, 7, 8))]
    lines = [
        (0.1, "The Name Server boot success. serializeType=JSON"),
        (20.2, f"new topic registered, orders {made_logs.row()}"),
        (20.2, f"new broker registered, {BROKER} HAServer: 10.0.2.1:10912"),
        *((at_s, f"cluster [C] brokerName [broker-a] master address change from null to {BROKER}") for at_s in heard),
    ]
    if dropped:
        lines += [
            (180.4, "NETTY SERVER PIPELINE: IDLE exception [10.0.2.1:5511]"),
            *made_logs.dropped(180.4),
            (240.2, f"new broker registered, {BROKER} HAServer: 10.0.2.1:10912"),
        ]
    return sorted(lines, key=lambda line: line[0])


def broker() -> list[tuple[float, str]]:
    lines = [
        (9.0, f"namesrvAddr={LIST}"),
        (9.0, "registerNameServerPeriod=30000"),
        (10.1, f"The broker[broker-a, {BROKER}] boot success. serializeType=JSON and name server is {LIST}"),
    ]
    for at_s in (20.2, *(30.2 + 30 * number for number in range(9))):
        lines.append((at_s, "register broker[0]to name server 10.0.1.2:9876 OK"))
        if at_s < 70 or at_s > 240:
            lines.append((at_s, "register broker[0]to name server 10.0.1.1:9876 OK"))
        else:
            lines.append((at_s + 6, "registerBroker Exception, 10.0.1.1:9876"))
    return sorted(lines, key=lambda line: line[0])


def of_logs(folder: Path, logs: Mapping[str, str], **given: dict[str, float]) -> Reconstructed:
    """What logs under these names in the folder come to."""
    for name, text in logs.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return reconstruct(read_logs([folder]).lines, **given)  # type: ignore[arg-type]


def incident(
    folder: Path, *, broker_ahead_s: float = 8 * 3600, one_ahead_s: float = 8 * 3600, **given: dict[str, float]
) -> Reconstructed:
    """A broker is cut from one of two NameServers for some minutes; clocks as one likes."""
    logs = {
        "ns-0/namesrv.log": stamped(name_server(dropped=True), one_ahead_s),
        "ns-1/namesrv.log": stamped(name_server(dropped=False)),
        "broker-host/broker.log": stamped(broker(), broker_ahead_s),
    }
    return of_logs(folder, logs, **given)


def told(found: Reconstructed, event: str, node: str) -> list[float]:
    return [row["time_ms"] for row in found.rows if row["event"] == event and row["node"] == node]


def test_a_drop_has_its_reason_its_moment_and_its_line(tmp_path: Path) -> None:
    found = incident(tmp_path)
    (drop,) = (row for row in found.rows if row["event"] == "broker_dropped")
    assert (drop["node"], drop["broker_name"], drop["address"]) == ("ns-0", "broker-a", BROKER)
    assert drop["value"] | {"line": 0} == {"reason": "idle", "learnt": "log", "file": "ns-0/namesrv.log", "line": 0}
    text = (tmp_path / "ns-0/namesrv.log").read_text().splitlines()
    assert "remove brokerAddr" in text[drop["value"]["line"] - 1]
    assert abs(drop["time_ms"] - 180_400) < 1_000


def test_routes_lose_what_is_dropped_and_have_again_what_comes_back(tmp_path: Path) -> None:
    rows = [row for row in incident(tmp_path).rows if row["event"] == "route" and row["node"] == "ns-0"]
    held = {"brokers": {"broker-a": {"0": BROKER}}, "queues": {"broker-a": [4, 4, 6, 0]}}
    assert [row["value"] for row in rows if row["topic"] == "orders"] == [held, None, held]


def test_name_servers_without_an_address_are_known_by_who_registered_there(tmp_path: Path) -> None:
    found = incident(tmp_path)
    assert found.topology["name_servers"] == {"ns-0": ["10.0.1.1:9876"], "ns-1": ["10.0.1.2:9876"]}
    assert found.topology["brokers"] == {"broker-a": {"0": [BROKER]}}
    assert found.topology["clusters"] == {"C": ["broker-a"]}


def test_the_period_is_a_settings_line_s_and_the_scan_the_dialect_s(tmp_path: Path) -> None:
    timers = incident(tmp_path).timers
    period = timers["registration_period"]
    assert (period["ms"], period["by"]) == (30_000, "settings")
    assert period["lines"] == [{"file": "broker-host/broker.log", "line": 2}]
    assert (timers["scan"]["ms"], timers["scan"]["by"]) == (10_000, "default")


@pytest.mark.parametrize("ahead_s", [0, 8 * 3600 + 1.5, 8 * 3600 - 37, 9 * 3600, -5.5 * 3600 + 4, -56 * 365 * 86400])
def test_a_clock_in_any_zone_and_off_is_found_by_what_two_logs_share(tmp_path: Path, ahead_s: float) -> None:
    found = incident(tmp_path, broker_ahead_s=ahead_s)
    (source,) = (one for one in found.sources if one["source"] == "broker-a")
    hours, minutes = int(source["zone"][:3]), int(source["zone"][4:])
    zone_s = hours * 3600 + (minutes if hours >= 0 else -minutes) * 60
    assert zone_s + source["offset_ms"] / 1000 == pytest.approx(ahead_s, abs=1.0)
    assert source["certainty"] in ("certain", "likely")
    assert told(found, "register", "broker-a")[0] == pytest.approx(20_200, abs=1_500)


def test_a_name_server_that_is_off_does_not_pull_the_others_along(tmp_path: Path) -> None:
    found = incident(tmp_path, one_ahead_s=8 * 3600 + 95)
    offsets = {one["source"]: one["offset_ms"] for one in found.sources}
    assert offsets["ns-0"] == pytest.approx(95_000, abs=1_000)
    assert offsets["ns-1"] == offsets["broker-a"] == 0


def test_what_a_person_says_of_a_clock_counts(tmp_path: Path) -> None:
    found = incident(tmp_path, broker_ahead_s=0, zones={"broker-a": 0}, offsets={"broker-a": 0.0})
    (source,) = (one for one in found.sources if one["source"] == "broker-a")
    assert (source["zone"], source["zone_by"]) == ("+00:00", "given")
    assert (source["certainty"], source["offset_ms"]) == ("certain", 0)
    assert told(found, "register", "broker-a")[0] == pytest.approx(20_200, abs=1_500)


def test_the_time_line_says_who_lost_whom_and_how(tmp_path: Path) -> None:
    said = [(one["node"], one["what"], one["subject"], one["how"]) for one in incident(tmp_path).timeline]
    for entry in (
        ("ns-0", "came", "broker-a", ""),
        ("broker-a", "failed", "ns-0", "its registration there"),
        ("ns-0", "lost", "broker-a", "idle"),
        ("ns-0", "came", "broker-a", "again"),
        ("broker-a", "registered", "ns-0", "again"),
    ):
        assert said.count(entry) == 1, (entry, said)


@pytest.mark.parametrize(("ahead_h", "shown"), [((8, 8, 0), "+08:00"), ((0, 0, 8), "Z"), ((8, 0, -5), "-05:00")])
def test_times_of_day_are_in_the_zone_of_most_logs(tmp_path: Path, ahead_h: tuple[int, ...], shown: str) -> None:
    one, other, brokers = (hours * 3600 for hours in ahead_h)
    logs = {
        "10.0.1.1/namesrv.log": stamped(name_server(dropped=False), one),
        "10.0.1.2/namesrv.log": stamped(name_server(dropped=False), other),
        "10.0.2.1/broker.log": stamped(broker(), brokers),
    }
    zones = {"10.0.1.1": one * 1000, "10.0.1.2": other * 1000, "10.0.2.1": brokers * 1000}
    found = of_logs(tmp_path, logs, zones=zones).to_json()
    begun = datetime.fromisoformat(found["origin"])
    assert found["origin"].endswith(shown)
    assert begun == BEGIN
    assert {entry["wall"][-len(shown) :] for entry in found["timeline"]} == {shown}


def test_a_registration_that_is_refused_with_a_code_was_answered_and_nothing_was_lost(tmp_path: Path) -> None:
    """5.x refuses the first one when it has a single topic (apache/rocketmq#4523)."""
    stack = "org.apache.rocketmq.client.exception.MQBrokerException: CODE: 1  DESC: register broker failed"
    well = [
        (at_s, said.replace("registerBroker Exception, ", "register broker[0]to name server "))
        for at_s, said in broker()
    ]
    well = [(at_s, f"{said} OK" if said.endswith("10.0.1.1:9876") else said) for at_s, said in well]
    for said, code in ((f"\n{stack} BROKER: {BROKER}", 1), ("", None)):
        failed = (15.0, f"Failed to register current broker to name server. TargetHost=10.0.1.2:9876{said}")
        logs = {f"ns-{number}/namesrv.log": stamped(name_server(dropped=False)) for number in (0, 1)}
        logs["broker-a/broker.log"] = stamped(sorted([*well, failed], key=lambda line: line[0]))
        found = of_logs(tmp_path / f"code-{code}", logs)
        (failure,) = (row for row in found.rows if row["event"] == "register" and row["type"] != "ok")
        assert failure.get("code") == code
        (how,) = (one["how"] for one in found.timeline if one["what"] == "failed")
        assert how == ("its registration there" if code is None else f"{ANSWERED} 1")
        pairs = [hypothesis.fault for one in episodes_of(found.rows).episodes for hypothesis in one.hypotheses[:1]]
        assert bool(pairs) == (code is None), pairs


def test_every_row_of_a_node_says_where_it_stands(tmp_path: Path) -> None:
    for row in incident(tmp_path).rows:
        if row["role"] != "harness" and row["event"] not in ("timer_lag",):
            value = row.get("value")
            assert row.get("source") or (isinstance(value, dict) and value.get("file") and value.get("line")), row


def test_no_logs_at_all_are_no_incident() -> None:
    found = reconstruct([])
    assert found.sources == []
    assert found.timeline == []


def test_a_name_server_that_gives_up_everybody_after_silence_was_not_stopped(tmp_path: Path) -> None:
    """As one that nobody lists any more: its log ends so, and it lives."""
    said = [(20.2, "The Name Server boot success. serializeType=JSON")]
    for number in (1, 2):
        address = f"10.0.2.{number}:10911"
        said += [
            (30.2, f"new broker registered, {address} HAServer: 10.0.2.{number}:10912"),
            (30.2, f"cluster [C] brokerName [broker-{number}] master address change from null to {address}"),
            (150.4, f"NETTY SERVER PIPELINE: IDLE exception [10.0.2.{number}:5511]"),
            *made_logs.dropped(150.4, f"broker-{number}", address)[:3],
        ]
    said.sort(key=lambda line: line[0])
    for silent, name in ((True, "silent"), (False, "closed")):
        kept = [line for line in said if silent or "IDLE" not in line[1]]
        rows = of_logs(tmp_path / name, {"namesrv.log": stamped(kept)}).rows
        assert [row["event"] for row in rows].count("stopped") == (not silent), name
        assert [row["event"] for row in rows].count("broker_dropped") == 2 * silent, name


def _claimed(*, whole: bool) -> list[tuple[float, str]]:
    """10.9.9.9 registers as broker-a, and goes: the line of its coming may be missing."""
    change = "cluster [C] brokerName [broker-a] master address change from {} to {}"
    stranger = "10.9.9.9:10911"
    return [
        (0.1, "The Name Server boot success. serializeType=JSON"),
        (20.0, f"new topic registered, orders {made_logs.row()}"),
        (20.0, f"new broker registered, {BROKER} HAServer: 10.0.2.1:10912"),
        (20.0, change.format("null", BROKER)),
        (50.0, change.format(BROKER, BROKER)),
        *([(60.0, change.format(BROKER, stranger))] if whole else []),
        *made_logs.dropped(80.0, address=stranger)[:2],
        (110.0, change.format("null", BROKER)),
    ]


@pytest.mark.parametrize("whole", [True, False])
def test_a_line_that_says_which_address_was_removed_is_believed(tmp_path: Path, whole: bool) -> None:
    lines = [(5.0, "cluster [C] brokerName [broker-a] master address change from null to 10.9.9.9:10911")]
    logs = {"ns-1/namesrv.log": stamped(lines), "ns-0/namesrv.log": stamped(_claimed(whole=whole))}
    rows = of_logs(tmp_path, logs).rows
    dropped = [row["address"] for row in rows if row["event"] == "broker_dropped" and row["node"] == "ns-0"]
    assert dropped == ["10.9.9.9:10911"]


def test_who_came_in_anothers_place_was_not_there_before(tmp_path: Path) -> None:
    """A log that begins between: broker-a's own address was there from the first line on, the stranger's was not."""
    said = [line for line in _claimed(whole=True) if line[0] > 30]
    rows = of_logs(tmp_path, {"namesrv.log": stamped(said)}).rows
    came = {row["address"]: row["time_ms"] for row in reversed(rows) if row["event"] == "registration"}
    assert came["10.9.9.9:10911"] - came[BROKER] == pytest.approx(10_000.0)


def test_a_block_that_was_pasted_twice_is_told_once(tmp_path: Path) -> None:
    lines = _claimed(whole=True)
    rows = of_logs(tmp_path, {"namesrv.log": stamped([*lines, *lines[4:]])}).rows
    assert [row["address"] for row in rows if row["event"] == "broker_dropped"] == ["10.9.9.9:10911"]


@pytest.mark.parametrize(("ends_s", "stops"), [(113.0, [113.0]), (None, [])])
def test_a_broker_that_says_so_has_stopped(tmp_path: Path, ends_s: float | None, stops: list[float]) -> None:
    """Without that line its log ends with what it did 12 s after its leave, and nobody knows."""
    lines = [(at_s, said) for at_s, said in broker() if at_s < 95]
    lines += [(100.0, f"unregisterBroker OK, NamesrvAddr: {server}") for server in LIST.split(";")]
    lines += [(112.0, "closeChannel: close the connection to remote address[10.0.1.1:9876] result: true")]
    lines += [(112.0, "NETTY CLIENT PIPELINE: CLOSE 10.0.1.1:9876")]
    if ends_s is not None:
        lines += [(ends_s, "Shutdown hook over, consuming total time(ms): 13202")]
    found = of_logs(tmp_path, {"broker.log": stamped(lines), "namesrv.log": stamped(name_server(dropped=False))})
    stopped = [row["time_ms"] + found.origin_ms for row in found.rows if row["event"] == "stopped"]
    assert [(at - BEGIN.timestamp() * 1000) / 1000 for at in stopped] == [pytest.approx(at, abs=1.0) for at in stops]


HOOK = "shutdown hook was invoked, 1 times."


def stopped_and_started_again(*, says_so: bool) -> list[tuple[float, str]]:
    """A NameServer's log: its process ends at 100 s, and another begins 20 s later."""
    lines = [line for line in name_server(dropped=False) if line[0] < 95]
    if says_so:
        lines += [(100.0, HOOK), (100.2, f"remove brokerAddr[0, {BROKER}] from brokerAddrTable, {DESTROYED}")]
        lines += [(100.3, "shutdown hook done, consuming time total(ms): 340")]
    again = [line for line in name_server(dropped=False) if line[0] > 20]
    return [
        *lines,
        (120.1, "The Name Server boot success. serializeType=JSON"),
        *((at + 100, said) for at, said in again),
    ]


@pytest.mark.parametrize("says_so", [True, False])
def test_a_name_server_whose_hook_ran_was_stopped_and_one_without_it_ended(tmp_path: Path, says_so: bool) -> None:
    found = of_logs(tmp_path, {"namesrv.log": stamped(stopped_and_started_again(says_so=says_so))})
    assert told(found, "stopped", "ns-0") == ([pytest.approx(100_000.0, abs=1_000)] if says_so else [])
    assert not told(found, "broker_dropped", "ns-0")  # it closed its channels because it stopped
    assert len(told(found, "started", "ns-0")) == 2
    first = episodes_of(found.rows, timers=found.timers_used).to_json()["episodes"][0]["hypotheses"][0]
    assert ("stopped cleanly" in first["sentence"]) is says_so, first["sentence"]


def test_a_broker_whose_hook_began_and_whose_log_ends_there_has_stopped(tmp_path: Path) -> None:
    """Who is killed while it stops says no more."""
    lines = [(at_s, said) for at_s, said in broker() if at_s < 95] + [(100.0, "Shutdown hook was invoked, 1")]
    found = of_logs(tmp_path, {"broker.log": stamped(lines), "namesrv.log": stamped(name_server(dropped=False))})
    assert len(told(found, "stopped", "broker-a")) == 1


def test_a_client_that_only_a_brokers_log_names_is_told_as_one_whose_log_is_missing(tmp_path: Path) -> None:
    channel = "ClientChannelInfo [channel=[id: 0x1, L:/10.0.2.1:10911 - R:/10.0.3.1:5], clientId=10.0.3.1@7#1]"
    heard = (60.0, f"new consumer connected, group: audit CONSUME_PASSIVELY CLUSTERING channel: {channel}")
    (note,) = of_logs(tmp_path, {"broker.log": stamped(sorted([*broker(), heard]))}).notes
    assert note.startswith("what 10.0.3.1@7 suffered is not known")


@pytest.mark.parametrize(("said_s", "answered"), [(100.5, False), (103.0, True)])
def test_an_ok_behind_a_new_topic_is_of_a_oneway_request(tmp_path: Path, said_s: float, answered: bool) -> None:
    created = (100.0, "create new topic TopicConfig [topicName=RMQ_SYS_TRANS_HALF_TOPIC, readQueueNums=1]")
    ok = (said_s, "register broker[0]to name server 10.0.1.1:9876 OK")
    (tmp_path / "broker.log").write_text(stamped(sorted([*broker(), created, ok])))
    times = told(reconstruct(read_logs([tmp_path]).lines), "register", "broker-a")
    assert any(abs(at_ms - (said_s - 9.0) * 1000) < 1_000 for at_ms in times) is answered

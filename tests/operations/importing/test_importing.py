"""A run folder made of logs, without Spark: what is in it, and what is refused."""

import json
import math
import os
import sys
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from unittest.mock import Mock

import pytest

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.finishing import with_inferred
from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.errors import HarnessError, ScenarioError
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.judging import Engine, apart, find, judge, show
from nemesrv.chaos.oracle.timers import Timers
from nemesrv.chaos.reports.answers import answers, of_incident
from nemesrv.chaos.reports.html.first_screen import story_lanes
from nemesrv.chaos.reports.html.page import html_of
from nemesrv.chaos.reports.html.run_to_draw import Run, RunToDraw
from nemesrv.chaos.reports.imported import suffered_lines
from nemesrv.chaos.shapes import shape_of
from nemesrv.chaos.topology import Topology
from nemesrv.chaos.verdict import Finding, Validity
from nemesrv.operations.cluster.doctor import diagnosed
from nemesrv.operations.importing.fault_rows import fault_rows, unexplained
from nemesrv.operations.importing.importing import Imported, offsets_given, written, zones_given
from nemesrv.operations.importing.printing import _timeline, _topology, episode_lines, lines_of, undecided_lines
from nemesrv.operations.inferring.conditions import _follows
from nemesrv.operations.inferring.episodes import episodes_of
from nemesrv.operations.inferring.said import all_heard
from nemesrv.operations.inferring.suffering import Suffered
from nemesrv.operations.logs_to_rows.gather import Gathered
from nemesrv.operations.logs_to_rows.reconstruct import reconstruct
from tests.chaos.builder import valid
from tests.operations.logs_to_rows.test_reconstruct import broker, name_server
from tests.operations.made_logs import read_logs, stamped
from tests.ran import ran

APACHES = Path(__file__).parents[3] / "docs" / "incident-logs"


def logs(folder: Path, *, but: str = "") -> Path:
    for name, text in {
        "ns-0/namesrv.log": stamped(name_server(dropped=True)),
        "ns-1/namesrv.log": stamped(name_server(dropped=False)),
        "broker-host/broker.log": stamped(broker()),
    }.items():
        if name != but:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    return folder


def imported(tmp_path: Path, *, but: str = "") -> Imported:
    return written(tmp_path / "run", read_logs([logs(tmp_path / "logs", but=but)]))


def test_the_folder_has_what_a_run_s_has(tmp_path: Path) -> None:
    one = imported(tmp_path)
    assert one.folder.scenario().cluster.name_servers == 2
    begin = next(row for row in read_rows(one.folder.path) if row["event"] == "run_begin")
    assert begin["value"]["imported"] is True
    document = json.loads((one.folder.path / "incident.json").read_text())
    assert {"format", "sources", "topology", "timers", "timeline", "episodes", "not_seen"} <= document.keys()
    assert document["episodes"], "a broker was dropped, so that something happened"


@pytest.mark.parametrize("shape", ["halves", "majority", "groups ns-0 broker-a | ns-1", "isolate ns-0"])
def test_a_fault_on_a_shape_has_the_rows_of_each_link_that_a_run_would_cut(shape: str) -> None:
    nodes = Topology(name_servers=3, brokers=2, producers=2, consumers=2, prober=False)
    first = {"certainty": "likely", "timeline": [{"at_s": 60.0, "do": "black_hole", "links": [shape]}]}
    roles = {node: kind.value for node, kind in nodes.kinds.items()}
    rows, (stretch,) = fault_rows(roles, [{"hypotheses": [first]}], 9e4)
    separates = shape_of(shape, nodes)
    cut = {link for link in nodes.links if separates(*link) is not None}
    assert {(row["source"], row["target"]) for row in rows} == cut != set()
    assert stretch.nodes == {node for link in cut for node in link}


@pytest.mark.parametrize(
    ("certainty", "score", "said"),
    [
        ("likely", 0.96, []),
        ("unsure", 0.96, ["a likely fault explains that {}, but the fault's form is not known"] * 2),
        ("unsure", 0.4, ["nobody knows why {}"] * 2),
    ],
)
def test_a_loss_under_a_fault_of_unknown_form_has_a_cause(certainty: str, score: float, said: list[str]) -> None:
    first = {"certainty": certainty, "timeline": [{"at_s": 60.0, "do": "cut", "links": ["broker-a <-> ns-0"]}]}
    roles = {"ns-0": "name_server", "broker-a": "broker"}
    rows, faults = fault_rows(roles, [{"score": score, "hypotheses": [first]}], 9e4)
    assert bool(rows) == (certainty == "likely")
    lost = {"what": "failed", "how": "", "time_ms": 7e4, "node": "broker-a", "subject": "ns-0"}
    entries = [{**lost, "wall": "2023-11-15T06:16:09.500+08:00"}]
    assert [one[1] for one in unexplained(entries, roles, faults, Timers(), 9e4)] == [
        one.format("broker-a failed at ns-0 at 06:16:09") for one in said
    ]


def test_the_members_of_the_one_group_of_all_consumers_are_named() -> None:
    topology = {
        "name_servers": {},
        "brokers": {},
        "clients": {
            name: {"id": "", "kind": name[:-2], "sat_on": []} for name in ("consumer-0", "producer-0", "consumer-1")
        },
    }
    assert [*_topology(topology)][-1].endswith(": consumer-0, consumer-1")


@pytest.mark.nightly("none: it takes two processes, each with an order of sets of its own")
def test_the_same_logs_tell_the_same_each_time() -> None:
    """Whatever order the process has for the words in a set; with seed 0 a bound once had an event less than with 1."""

    def told(hash_seed: int) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
        command = [sys.executable, "-c", _TELL, str(APACHES / "broker-partition")]
        return ran(command, env=environment, check=True).stdout

    assert told(0) == told(1) != ""


_TELL = """
import sys
from nemesrv.operations.logs_to_rows.gather import gather
from nemesrv.operations.logs_to_rows.reconstruct import reconstruct
print(reconstruct(gather(None, sys.argv[1:]).lines).to_json())
"""


def test_the_page_draws_a_likely_fault_of_unknown_form_and_a_name_server_without_a_log(tmp_path: Path) -> None:
    one = imported(tmp_path, but="ns-1/namesrv.log")
    first = one.document["episodes"][0]
    first["score"], first["hypotheses"][0]["certainty"] = 0.9, "unsure"
    (one.folder.path / "incident.json").write_text(json.dumps(one.document))
    told = RunToDraw(Run(name="incident"), [], one.folder.path)
    page = html_of(told, [])
    assert page.count("UTC+08:00") == 1, "all of the page's times are in the zone of the logs"
    assert '"zone_ms":28800000.0' in page
    band = next(band for band in told.bands if "form not known" in band.title)
    assert (band.is_likely, band.start_ms) == (True, first["from_ms"])
    assert {lane.group for lane in story_lanes(told)} == {"ns-0", "ns-1"}, "the broker's lanes at each NameServer"
    kinds = {lane.group: {bar.kind for bar in lane.bars} for lane in told.lanes["routes"]}
    assert kinds["ns-1"] == {"unlogged"} != kinds["ns-0"], "that its log is missing does not say that it had nothing"


def test_what_cut_the_broker_off_is_told_first(tmp_path: Path) -> None:
    first = imported(tmp_path).document["episodes"][0]["hypotheses"][0]
    assert first["timeline"][0]["do"] == "black_hole"
    assert "broker-a" in str(first["timeline"][0]["links"])
    assert "ns-0" in str(first["timeline"][0]["links"])


def test_nothing_is_invalid_for_what_nobody_can_know(tmp_path: Path) -> None:
    for but in ("", "broker-host/broker.log", "ns-1/namesrv.log"):
        one = imported(tmp_path / (but or "all").replace("/", "-"), but=but)
        assert [v.name for v in verdicts(one.folder.path) if v.verdict is Validity.INVALID] == [], but


def test_an_inferred_moment_is_no_evidence_for_its_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = written(tmp_path / "cut", read_logs([APACHES / "broker-partition"]))
    judged = judge(find(str(one.folder.path), None, Mock()), Engine.PLAIN, Mock())
    show(judged)
    first, routes, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("What happened: no data passed on broker-a <-> ns-0, ")
    assert ". VALID cut (8 of 26 checks judged, profile 4.9). As far as these logs show, no node broke a rule" in first
    inferred = "ns-0 dropped broker-a 105.0 ± 15.0 s after the cut, whose time is inferred"
    assert routes == f"Routes: {inferred}; all 3 NameServers agree."
    undecided = "routes_are_true: not decided: ns-0, broker-a: 105.0 ± 15.0 s after the cut shows nothing, "
    assert f"{undecided}because the time of the cut was inferred from it." in others
    drops = [
        (finding.examined, verdict.examined)
        for verdict in judged.verdicts
        for finding in verdict.findings
        if verdict.name == "routes_are_true" and finding.after == "black_hole-1 start" and finding.measured_ms
    ]
    assert drops == [(0, 72)]


@pytest.mark.parametrize(("bound_ms", "examined"), [(15_000.0, 0), (500.0, 1)])
def test_of_an_inferred_fault_only_an_inexact_moment_is_no_evidence(bound_ms: float, examined: int) -> None:
    fault = Mock(fault_id="kill-1", start_ms=50_000, end_ms=9e5, value={"bounds_ms": [bound_ms, 500.0]})
    about = {"subject": "ns-0", "object": "broker-a", "kind": "must not hold", "after": "kill-1 start"}
    drop = Finding(**about, from_ms=180_000, bound_ms=130_000, to_ms=9e5, measured_ms=105_000)
    verdict = valid("routes_are_true", examined=1, findings=(drop,))
    told = with_inferred(verdict, Mock(run={"imported": True}, faults=[fault]))
    assert (told.examined, told.verdict is Validity.VALID) == (examined, bool(examined))
    assert with_inferred(verdict, Mock(run={}, faults=[fault])) == verdict, "an injected fault's moment is known"
    silence = replace(verdict, findings=(replace(drop, from_ms=190_000),))
    assert with_inferred(silence, Mock(run={"imported": True}, faults=[fault])) == silence, "from a line of a log"


@pytest.mark.parametrize(
    ("incident", "happened", "effect"),
    [
        ("broker-partition", "no data passed on broker-a <-> ns-0, ", "A client has no address of a broker "),
        ("broker-crash-5", "the process of broker-a crashed or was killed, ", "Broker address 10.0.2.1:10911 "),
    ],
)
def test_apaches_own_logs_are_not_called_wrong(tmp_path: Path, incident: str, happened: str, effect: str) -> None:
    one = written(tmp_path / "run", read_logs([APACHES / incident]))
    truth = json.loads((APACHES / incident / "truth.json").read_text())
    dropped = {(drop["name_server"], drop["broker"], drop["reason"]) for drop in truth["broker_dropped"]}
    lost = {(entry["node"], entry["subject"], entry["how"]) for entry in one.found.timeline if entry["what"] == "lost"}
    assert lost == dropped
    examined, _ = apart([*CHECKS], verdicts(one.folder.path))
    told = of_incident(answers(examined, one.folder.scenario(), incident), one.document)
    behaved = "As far as these logs show, no node broke a rule of RocketMQ; what went wrong came from outside"
    assert told.lines()[0].startswith(f"What happened: {happened}")
    assert told.lines()[0].endswith(f"VALID {incident}. {behaved}.")
    assert effect not in told.lines()[0], "what follows from a fault is none"
    first, *others = episode_lines(one.document)
    assert happened in first
    assert [line for line in others if line.startswith(f"    follows from 1: {effect}")] == others[-1:]


def test_what_each_client_suffered_is_told_from_its_own_log_and_no_more(tmp_path: Path) -> None:
    of_run = {
        incident: written(tmp_path / incident, read_logs([APACHES / incident])).document
        for incident in ("broker-partition", "broker-crash-5")
    }
    cut, crash = ([*suffered_lines(document["suffered"])] for document in of_run.values())
    assert cut == [
        "consumer-0: a pull from broker-a failed (code 25, SUBSCRIPTION_NOT_LATEST) 3 times at 07:43:37; "
        "its route of orders had no broker-a from 07:46:33 to 07:47:33, 60 s; "
        'a call ended with "The broker[broker-a] not exist" 14 times from 07:46:34 to 07:46:38; '
        "a pull from broker-a failed (code 25, SUBSCRIPTION_NOT_LATEST) 4 times at 07:47:38"
    ], "producer-0 was at another NameServer"
    assert crash[1] == (
        "producer-0: a try to send to broker-a failed 9 times from 07:46:04 to 07:46:20; "
        "its route of orders had no broker-a from 07:46:22 to 07:48:22, 120 s"
    )
    told = [*lines_of(of_run["broker-partition"])]
    assert f"  {cut[0]}" == told[told.index("what clients suffered, as their own logs say") + 1]


def test_trouble_is_told_with_how_often_and_from_when_to_when() -> None:
    one = Suffered("producer-0", "its route of orders had no broker-a", 0.0, math.inf, times=None)
    assert one.sentence(UTC) == "its route of orders had no broker-a from 00:00:00 to the end of its log"
    assert Suffered("c", "a pull failed", 0.0, 0.0).sentence(UTC) == "a pull failed at 00:00:00"
    thrice = Suffered("c", "a pull failed", 0.0, 9_000.0, 3)
    assert thrice.sentence(UTC) == "a pull failed 3 times from 00:00:00 to 00:00:09"


def test_a_channel_that_ended_is_not_said_to_be_closed_by_the_client_that_logged_it() -> None:
    """A broker that dies ends the channel; its client's log has `CLOSE`, as if the client had closed it."""
    found = reconstruct(read_logs([APACHES / "broker-crash-5"]).lines)
    assert [line.split("  ")[-2] for line in _timeline(found.timeline) if "connection" in line] == [
        "consumer-0's connection to broker-a ended",
        "producer-0's connection to broker-a ended",
    ]


def test_what_a_client_says_follows_from_a_fault_of_that_broker_at_that_time_only() -> None:
    read = read_logs([APACHES / "broker-crash-5"])
    found = reconstruct(read.lines)
    (fault,) = episodes_of(found.rows, timers=found.timers_used).episodes
    lines = [one for one in all_heard(read.listeners).said if one.cause == "broker-address-not-reached"]
    assert all(_follows(found, fault, line) for line in lines)
    line = next(line for line in lines if line.stamp_ms)
    assert not _follows(found, fault, replace(line, text=line.text.replace("10.0.2.1", "10.0.2.2"), detail=""))
    assert not _follows(found, fault, replace(line, stamp_ms=(line.stamp_ms or 0) - 60_000))
    assert not _follows(found, fault, replace(line, file="ns-0/namesrv.log.gz"))
    cut = replace(fault.hypotheses[0], timeline=[{"at_s": 84.5, "do": "cut", "links": ["broker-a <-> ns-0"]}])
    assert not _follows(found, replace(fault, hypotheses=[cut]), line), "clients reach it all the same"


def test_what_an_unknown_program_s_log_says_of_the_fault_s_broker_follows_from_the_fault(tmp_path: Path) -> None:
    pulling = "2026-11-23 07:46:{:02d},000 WARN Mine - pulling broker-a failed: The broker[broker-a] not exist\n"
    (tmp_path / "consumer-9.log").write_text("".join(map(pulling.format, range(34, 39))))
    servers = [APACHES / "broker-partition" / name for name in ("ns-0", "ns-1", "ns-2", "broker-a", "broker-b")]
    places = [*servers, tmp_path / "consumer-9.log"]
    document = written(tmp_path / "run", read_logs(places)).document
    assert [one.get("follows") for one in document["episodes"]] == [None, 1]
    assert document["episodes"][1]["hypotheses"][0]["fault"] == "broker_is_not_registered"
    said = "\n".join(lines_of(document))
    assert 'consumer-9: a call ended with "The broker[broker-a] not exist" 5 times from 07:46:34 to 07:46:38' in said
    assert "consumer-9.log: none of its" not in said, "the answer quotes the file"


@pytest.mark.parametrize("name", ["broker-partition", "broker-crash-5"])
def test_doctor_says_the_same_number_of_a_fault(name: str) -> None:
    found = reconstruct(read_logs([APACHES / name]).lines)
    fault = episodes_of(found.rows, timers=found.timers_used).episodes[0]
    assert diagnosed([APACHES / name]).answer.score == fault.score > fault.hypotheses[1].score


def test_an_alternative_that_hardly_fits_is_not_printed() -> None:
    told = [{"certainty": "unsure", "sentence": f"{score}", "score": score} for score in (0.04, 0.05, 0.04)]
    lines = episode_lines({"episodes": [{"hypotheses": told}]})
    assert list(lines) == ["  1. unsure (0.04): 0.04", "    or 1=2 (0.05 of the likelihood; the first has 0.04): 0.05"]


@pytest.mark.parametrize(
    ("what", "subject", "how", "sentence"),
    [
        ("came", "broker-a", "again", "broker-a was registered at x again"),
        ("timed_out", "ns-0", "", "x waited in vain for an answer of ns-0"),
        ("registered", "ns-0", "again", "x registered with ns-0 again"),
        ("failed", "ns-0", "its registration there", "x could not register with ns-0"),
        ("failed", "orders", "code 17", "x failed at orders (code 17)"),
        ("chose", "ns-1", "left ns-0", "x left ns-0 and chose ns-1"),
        ("changed", "orders", "now broker-b", "x's route of orders is now broker-b"),
        ("lost", "broker-a", "idle", "x lost broker-a (idle)"),
        ("started", "x", "", "x started"),
    ],
)
def test_an_entry_of_the_time_line_is_a_sentence(what: str, subject: str, how: str, sentence: str) -> None:
    at = {"wall": "2026-06-27T08:00:00", "time_ms": 90_500.0, "file": "f", "line": 7}
    entry = {"node": "x", "what": what, "subject": subject, "how": how, **at}
    assert next(iter(_timeline([entry]))) == f"  08:00:00      90.5 s  {sentence}  f:7"


def test_a_person_is_told_clocks_topology_time_line_and_faults(tmp_path: Path) -> None:
    text = "\n".join(lines_of(imported(tmp_path).document))
    for said in (
        "+08:00 (layout)",
        "ns-0 10.0.1.1:9876",
        "ns-0 lost broker-a (idle)",
        "registration_period 30 s",
        "1. ",
    ):
        assert said in text
    nothing = {"sources": [], "checks_need": {}}
    assert "namesrv.log" in "\n".join(undecided_lines({"one_master": "nothing"}, nothing))
    first = next(undecided_lines({"no_acknowledged_loss": "nothing", "one_master": "nothing"}, nothing))
    assert first == "Whether an acknowledged message was lost, these logs do not show."


def test_logs_that_are_here_are_not_asked_for() -> None:
    document = {"sources": [{"kind": "client"}], "checks_need": {}}
    told = "\n".join(undecided_lines({"dead_name_servers_left": "no NameServer was lost"}, document))
    assert "dead_name_servers_left: no other logs; no NameServer was lost" in told
    assert "rocketmq_client.log" not in told


def test_wrong_options_are_refused_in_a_sentence() -> None:
    with pytest.raises(ScenarioError, match=r"--zone: 'ns-0=\+25:00' is not allowed"):
        zones_given(["ns-0=+25:00"])
    with pytest.raises(ScenarioError, match=r"--offset: 'ns-0=soon' is not allowed"):
        offsets_given(["ns-0=soon"])
    assert zones_given(["client.log=+00:00", "+08:00"]) == {"client.log": 0, "*": 28_800_000}
    assert offsets_given(["ns-0=+1.5s", "b=-20ms"]) == {"ns-0": 1500.0, "b": -20.0}


def test_a_setting_that_a_broker_prints_sets_the_timers(tmp_path: Path) -> None:
    read = read_logs([logs(tmp_path / "logs")])
    boot = next(line for line in read.lines if line.event == "broker_boot")
    fields = {"key": "registerNameServerPeriod", "value": "40000"}
    said = boot._replace(event="setting", fields=fields)
    one = written(tmp_path / "run", read._replace(lines=[said, *read.lines]))
    period = one.document["timers"]["registration_period"]
    assert (period["ms"], period["by"]) == (40_000, "settings")


def test_logs_without_a_line_of_rocketmq_s_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="no line of these logs"):
        written(tmp_path / "run", Gathered([], [], [], []))
    assert not (tmp_path / "run").exists()


def test_logs_of_a_run_of_nemesrv_s_own_are_refused_in_one_sentence(tmp_path: Path) -> None:
    ok = "2023-11-14 22:13:41,661 INFO nemesrv.broker-{}: register broker[0]to name server 10.0.1.3:9876 OK\n"
    for name in "ab":
        (tmp_path / f"broker-{name}.log").write_text(ok.format(name) * 3)
    read = read_logs([tmp_path])
    with pytest.raises(ScenarioError) as refused:
        written(tmp_path / "run", read)
    assert str(refused.value) == (
        "broker-a.log and 1 more are logs of a run of nemesrv, and import reads only logs of RocketMQ's programs: "
        "`nemesrv check RUN_DIR` judges a run, and `nemesrv replay RUN_DIR` repeats it"
    )
    assert all(note.endswith("it is a log of nemesrv's own run") for note in read.notes)


def test_large_logs_are_told_as_small_ones_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nemesrv.chaos.logs import files, reading
    from nemesrv.operations.cluster.doctor import diagnosed

    places = [logs(tmp_path)]
    full = "2026-06-27 16:05:{second:02d} ERROR StoreThread - append\njava.io.IOException: No space left on device\n"
    with next(tmp_path.rglob("broker.log")).open("a") as file:
        file.writelines(full.format(second=second) for second in range(40))
    size = sum(file.stat().st_size for file in tmp_path.rglob("*.log"))
    assert not reading.are_large(places)
    small = diagnosed(places)
    monkeypatch.setattr(reading, "LARGE", size - 1)
    monkeypatch.setattr(reading, "_TASK", 1)
    monkeypatch.setattr(files, "RANGE", 4_000)
    assert reading.are_large(places)
    assert diagnosed(places).answer == small.answer
    assert small.answer.name == "disk-full"
    assert not reading.are_large([tmp_path / "nowhere"])  # who reads them says so
    assert reading.are_large(["hdfs://there/logs"])


def test_a_cause_that_lines_say_outright_is_an_episode_with_its_lines(tmp_path: Path) -> None:
    logs(tmp_path / "logs")
    full = "2026-06-27 16:05:{second:02d} ERROR StoreThread - append\njava.io.IOException: No space left on device\n"
    (tmp_path / "logs" / "broker-host" / "store.log").write_text("".join(full.format(second=n) for n in range(20)))
    document = written(tmp_path / "run", read_logs([tmp_path / "logs"])).document
    told = [one["hypotheses"][0] for one in document["episodes"]]
    disk = next(one for one in told if one["fault"] == "disk_full")
    assert disk["certainty"] == "certain"
    assert (disk["for"][0]["file"], disk["for"][0]["line"]) == ("broker-host/store.log", 2)
    assert "black_hole" in {one["fault"] for one in told}


def test_logs_of_which_no_line_is_read_are_refused_with_what_a_line_says(tmp_path: Path) -> None:
    path = tmp_path / "nohup.out"
    path.write_text("java.net.BindException: Address already in use\n")
    with pytest.raises(HarnessError, match=r"one line says: A server did not start.* \(nohup.out:1; `nemesrv doctor`"):
        written(tmp_path / "run", read_logs([path]))

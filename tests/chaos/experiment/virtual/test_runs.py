"""Whole runs on the virtual clock: they repeat to the byte, are quick, and the checks find shipped scenarios VALID."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nemesrv.actors.cluster import ClusterError
from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.errors import HarnessError, ScenarioError
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.runner import Options, record_virtual, run_all
from nemesrv.chaos.scenarios.loading import find, parse, shipped
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.verdict import Validity

AT_5_X = {"acting-master", "broker-hang", "name-server-crash", "smoke"}
SHORT: dict[str, Any] = {
    "name": "short",
    "cluster": {"name_servers": 2, "brokers": 2},
    "workload": {"client_starts": 10},
    "timeline": [
        {"at_s": 2, "do": "latency", "links": ["* <-> *"], "latency_ms": 20, "jitter_ms": 10},
        {"at_s": 4, "do": "black_hole", "links": ["broker-a <-> ns-0"]},
        {"at_s": 5, "do": "heal"},
        {"at_s": 6, "do": "kill", "nodes": ["broker-a"]},
        {"at_s": 7, "do": "pause", "nodes": ["ns-1"]},
        {"at_s": 9, "do": "resume", "nodes": ["ns-1"]},
        {"at_s": 12, "do": "restart", "nodes": ["broker-a"]},
        {"at_s": 14, "do": "cut", "links": ["clients <-> chosen"]},
        {"at_s": 15, "do": "stop", "nodes": ["ns-0"]},
        {"at_s": 18, "do": "bandwidth", "links": ["clients <-> brokers"], "rate_kb_s": 5},
        {"at_s": 19, "do": "reset", "links": ["producer-0 -> broker-b"]},
    ],
    "settle_s": 40,
    "checks": ["no_acknowledged_loss"],
}


def short(profile: str = "4.9") -> Scenario:
    return parse({**SHORT, "cluster": {**SHORT["cluster"], "profile": profile}}, file="short.yaml")


@pytest.fixture
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """No report.html is drawn, which takes longer than a short run."""
    monkeypatch.setitem(sys.modules, "bokeh", None)


def digest(folder: Path) -> dict[str, str]:
    """File to hash, of everything that a run leaves but the brokers' own files."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for part in ("history", "logs")
        for path in sorted((folder / part).rglob("*"))
        if path.is_file()
    }


_IN_A_PROCESS = """
import sys
from pathlib import Path
from tests.chaos.experiment.virtual.test_runs import record_virtual, repeated
for name in sys.argv[2:]:
    record_virtual(repeated(name), 7, Path(sys.argv[1]) / name)
"""


def repeated(name: str) -> Scenario:
    return short(name) if name in ("4.9", "5.x") else find(name)


def recorded_elsewhere(names: Sequence[str], place: Path, hash_seed: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _IN_A_PROCESS, str(place), *names],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        cwd=Path(__file__).parents[4],
    )


@pytest.mark.nightly("test_the_same_seed_gives_the_same_history_byte_for_byte_in_any_process")
@pytest.mark.parametrize("name", ["acting-master", "slave-reads", "broker-crash"])
def test_a_shipped_scenario_is_the_same_by_any_order_of_sets(tmp_path: Path, name: str) -> None:
    for hash_seed in ("1", "2"):
        assert recorded_elsewhere([name], tmp_path / hash_seed, hash_seed).wait() == 0
    assert digest(tmp_path / "1" / name) == digest(tmp_path / "2" / name)


def test_the_same_seed_gives_the_same_history_byte_for_byte_in_any_process(tmp_path: Path) -> None:
    other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    running = recorded_elsewhere(("4.9", "5.x"), tmp_path / "other", other)
    for profile in ("4.9", "5.x"):
        record_virtual(short(profile), 7, tmp_path / "here" / profile)
    assert running.wait() == 0
    record_virtual(short(), 8, tmp_path / "another seed")
    assert digest(tmp_path / "another seed") != digest(tmp_path / "here" / "4.9")
    for profile in ("4.9", "5.x"):
        first = digest(tmp_path / "here" / profile)
        assert first == digest(tmp_path / "other" / profile)
        assert "history/part-00000.parquet" in first
        assert "logs/broker-a.log" in first


def test_the_history_of_a_run_tells_what_the_harness_did_and_that_no_timer_was_late(tmp_path: Path) -> None:
    rows = read_rows(record_virtual(short(), 3, tmp_path / "run").path)
    phases = [row["phase"] for row in rows if row["event"] == "phase"]
    assert phases[0] == "steady"
    assert phases[-2:] == ["final_reads", "end"]
    faults = {(row["fault"], row["injection"], row["phase"]) for row in rows if row["event"] == "fault"}
    injected = {
        ("latency", "toxiproxy.latency"),
        ("black_hole", "toxiproxy.bandwidth.rate=0"),
        ("kill", "sigkill"),
        ("pause", "sigstop"),
        ("stop", "sigterm"),
        ("cut", "toxiproxy.disabled"),
        ("bandwidth", "toxiproxy.bandwidth"),
        ("reset", "toxiproxy.reset_peer"),
    }
    assert faults == {(*each, phase) for each in injected for phase in ("start", "end")}
    assert {row["incarnation"] for row in rows if row["node"] == "broker-a"} == {0, 1}
    lags = [row for row in rows if row["event"] == "timer_lag" and row["node"] != "ns-1"]
    assert len(lags) > 400
    assert {row["lag_ms"] for row in lags} == {0.0}
    assert max(row["lag_ms"] for row in rows if row["event"] == "timer_lag" and row["node"] == "ns-1") > 1000
    acknowledged = {row["msg_key"] for row in rows if row["event"] == "send" and row["type"] == "ok"}
    assert len(acknowledged) > 200
    assert acknowledged <= {row["msg_key"] for row in rows if row["event"] == "read"}


def test_lost_packets_are_refused_where_every_byte_goes_through_a_proxy(tmp_path: Path) -> None:
    lossy = {"at_s": 1, "do": "packet_loss", "links": ["broker-a <-> ns-0"]}
    scenario = parse({**SHORT, "timeline": [lossy]}, file="lossy.yaml")
    with pytest.raises(ScenarioError, match=r"timeline\.0\.do.*--clock virtual"):
        run_all([scenario], Options(seed=1, out=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("no_page")
def test_a_run_says_first_which_checks_will_judge_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kill = {"at_s": 1, "do": "kill", "nodes": ["broker-a"]}
    restart = {"at_s": 10, "do": "restart", "nodes": ["broker-a"]}
    document = {**SHORT, "timeline": [kill, restart], "settle_s": 5, "checks": ["queue_ownership"]}
    run_all([parse(document, file="short.yaml")], Options(seed=1, out=tmp_path / "run", virtual=True))
    first = capsys.readouterr().err.splitlines()[0]
    assert re.fullmatch(
        r"\w+: queue_ownership: after the last fault nothing is judged, .*`settle_s: \d+` is enough", first
    )


def test_a_defect_that_was_not_found_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "consumer-gives-queues-up-uncommitted"
    scenario = find("smoke").model_copy(update={"defect": name, "checks": ("routes_are_true",)})
    assert run_all([scenario], Options(seed=3, virtual=True, out=tmp_path / "run", quiet=True, latest=False)) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in said] == ["VALID", "1", "No", "Checks"]  # one line above the report's
    assert said[-2:] == [
        f"No check found the planted defect {name} in this run.",
        f"Checks find the defect with this command: {DEFECTS[name].command}",
    ]


@pytest.mark.usefixtures("no_page")
def test_a_promise_that_nothing_could_break_is_undecided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = find("smoke", ["promises.brokers_left_within_s=10", "checks=all"])
    assert run_all([scenario], Options(seed=3, virtual=True, out=tmp_path / "run", quiet=True, latest=False)) == 3
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in said[:3]] == ["UNKNOWN", "Clients:", "22"]


def test_where_only_answers_are_lost_a_broker_is_dropped_an_idle_time_later(tmp_path: Path) -> None:
    """Measured on the Java programs: exactly 120.0 s after the first registration that follows the fault."""
    lossy = {"at_s": 5, "do": "packet_loss", "links": ["broker-a -> ns-0"], "stream": "downstream"}
    few = {"client_starts": 0, "sends_per_s": 1}
    scenario = parse({**SHORT, "workload": few, "timeline": [lossy], "settle_s": 1, "steady_s": 170}, file="lossy.yaml")
    timeline = [*scenario.timeline, scenario.timeline[0].model_copy(update={"at_s": 170.0, "do": "heal", "links": ()})]
    rows = read_rows(record_virtual(scenario.model_copy(update={"timeline": tuple(timeline)}), 1, tmp_path / "r").path)
    (dropped,) = [row for row in rows if row["event"] == "broker_dropped"]
    fault_ms = next(row["time_ms"] for row in rows if row["event"] == "fault")
    registered = [row for row in rows if row["event"] == "register" and row["node"] == "broker-a"]
    sent_ms = [row["time_ms"] - row["duration_ms"] for row in registered]
    landed_ms = min(at_ms for at_ms in sent_ms if at_ms > fault_ms)
    assert dropped["node"] == "ns-0"
    assert dropped["time_ms"] - landed_ms == pytest.approx(120_000, abs=10)


@pytest.mark.usefixtures("no_page")
def test_each_of_several_scenarios_has_a_folder_below_that_of_out(tmp_path: Path) -> None:
    short = find("smoke", ["steady_s=5", "settle_s=5", "checks=[availability]"])
    run_all([short, short], Options(seed=1, virtual=True, out=tmp_path / "out", quiet=True, latest=False))
    assert [(tmp_path / "out" / name / "verdicts.json").is_file() for name in ("smoke", "smoke-2")] == [True, True]


def test_a_folder_that_is_not_empty_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(HarnessError, match="not empty"):
        record_virtual(short(), 1, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_run_that_fails_leaves_what_was_recorded_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nemesrv.chaos.experiment.workloads.prober import ProberNode

    async def fails(self: ProberNode, brokers: object) -> int:
        raise OSError("planted")

    monkeypatch.setattr(ProberNode, "read_all", fails)
    with pytest.raises((OSError, ClusterError), match="planted"):
        record_virtual(short(), 1, tmp_path / "run")
    rows = read_rows(tmp_path / "run")
    assert {"run_begin", "send", "receive"} <= {row["event"] for row in rows}
    assert "run_end" not in {row["event"] for row in rows}


SHIPPED = [(name, "5.x" if name in AT_5_X else "4.9") for name in shipped()]


@pytest.mark.nightly_but("broker-crash-4.9")
@pytest.mark.parametrize(("name", "profile"), SHIPPED)
def test_a_shipped_scenario_is_valid(name: str, profile: str, tmp_path: Path) -> None:
    scenario = find(name, (f"cluster.profile={profile}",))
    folder = record_virtual(scenario, 1, tmp_path / "run")
    found = {verdict.name: verdict.verdict for verdict in verdicts(folder.path)}
    assert {name: found[name] for name in scenario.checks} == dict.fromkeys(scenario.checks, Validity.VALID)

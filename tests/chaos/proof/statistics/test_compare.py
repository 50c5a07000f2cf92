"""`nemesrv compare`: what is a sample, what the exit status says, and what a wrong argument gets."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.commands.ending import explain
from nemesrv.chaos.commands.sides import run_folders
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.history.rows import write_parquet
from nemesrv.chaos.proof.statistics.compare import (
    Sides,
    compare_runs,
    exit_status,
    print_sides,
    run_of,
    settings_that_differ,
)
from nemesrv.chaos.proof.statistics.samples import METRICS, RunSamples
from nemesrv.chaos.proof.statistics.two_samples import Comparison, ComparisonOutcome
from tests.chaos.builder import KILL, HistoryBuilder, cluster

STALE, AVAILABLE = "staleness, clients", "availability, send"


def runs(count: int, mean_ms: float, seed: int, share: float = 1.0, **settings: object) -> list[RunSamples]:
    """Runs of eight clients, whose staleness is uniform around a mean that is the run's own."""
    rng = np.random.default_rng(seed)
    return [
        RunSamples(
            run=f"run-{number}",
            scenario="crash",
            settings={"P_ms": 30_000, **settings},
            samples={
                STALE: tuple(rng.uniform(0, 2 * mean_ms * rng.uniform(0.8, 1.2), 8)),
                AVAILABLE: tuple(1 - (1 - share) * rng.random(8)),
            },
            cut_short={STALE: 1},
        )
        for number in range(count)
    ]


def told(found: list[Comparison]) -> dict[str, Comparison]:
    return {each.name: each for each in found}


def test_a_run_is_a_sample() -> None:
    found = compare_runs(runs(5, 30_000, 1), runs(6, 5_000, 2))
    assert (told(found)[STALE].n_a, told(found)[STALE].n_b) == (5, 6)
    assert told(found)[STALE].outcome == ComparisonOutcome.DIFFERS
    assert told(found)[AVAILABLE].outcome == ComparisonOutcome.NO_DIFFERENCE
    assert exit_status(found) == 1
    assert set(told(found)) == {STALE, AVAILABLE} < set(METRICS)


def test_of_one_run_a_side_nothing_can_be_told_however_many_clients_it_had() -> None:
    found = compare_runs(runs(1, 30_000, 1), runs(1, 1_000, 2))
    assert {each.outcome for each in found} == {ComparisonOutcome.CANNOT_TELL}
    assert (exit_status(found), told(found)[STALE].n_a) == (3, 1)


def test_settings_that_differ_are_said() -> None:
    differing = settings_that_differ(runs(2, 1, 1), runs(1, 1, 1, P_ms=10_000))
    assert differing == {"P_ms": (["30000"], ["10000"])}


def test_a_folder_of_runs_stands_for_the_runs_in_it(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_parquet(cluster().end(10).rows, tmp_path / "crash" / name)
    (tmp_path / "latest").symlink_to(tmp_path / "crash" / "two")
    both = [tmp_path / "crash" / "one", tmp_path / "crash" / "two"]
    assert run_folders("A", tmp_path) == run_folders("A", tmp_path / "crash") == both
    assert run_folders("A", both[1]) == [both[1]]
    for wrong in (tmp_path / "none", tmp_path / "crash" / "one" / "history"):
        with pytest.raises(ScenarioError, match="a run folder"):
            run_folders("A", wrong)


def test_a_wrong_argument_gets_one_sentence_and_exit_status_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for args in ((), ("one",), (".", ".")):
        with pytest.raises(Exception, match="run folder") as error:
            cli.main(["compare", *args], standalone_mode=False)
        status, sentence = explain(error.value)
        assert (status, sentence.count("\n"), "run folder" in sentence) == (2, 0, True)


def recorded(path: Path, poll_s: float, clients: int) -> Path:
    """broker-a dies at 100 s; client i of n learns of it after i/n of its poll interval."""
    names = [f"producer-{number}" for number in range(clients)]
    builder: HistoryBuilder = cluster(
        name_servers=1, clients=names, workload={"topic": "orders"}, timers={"P_ms": poll_s * 1000}
    )
    for name in names:
        builder.learns(name, "broker-a", "broker-b")
    builder.at(100).fault(*KILL).route("ns-0", "orders", "broker-b")
    for number, name in enumerate(names):
        late_s = (number + 1) * poll_s / clients
        builder.at(100 + late_s).learns(name, "broker-b")
    write_parquet(builder.end(200).rows, path)
    return path


def test_two_runs_are_compared_from_their_histories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow, fast = (run_of(recorded(tmp_path / name, poll_s, 12)) for name, poll_s in (("slow", 30), ("fast", 10)))
    sides = Sides(a=[slow] * 5, b=[fast] * 5)
    print_sides(sides, as_json=True)
    assert sides.exit_status == 1
    document = json.loads(capsys.readouterr().out)
    stale = {each["name"]: each for each in document["comparisons"]}[STALE]
    assert (stale["outcome"], stale["n_a"]) == ("differs", 5)
    assert stale["estimate"] == pytest.approx(-10_833, abs=1)
    assert stale["low"] <= stale["estimate"] <= stale["high"]
    assert document["differ_in"] == {"P_ms": [["30000"], ["10000"]]}
    copies = Sides(a=[replace(slow, fixed_phases=True)] * 5, b=[replace(fast, fixed_phases=True)] * 5)
    print_sides(copies, as_json=False)
    assert copies.exit_status == 3
    assert "--set 'phases={}' draws other phases" in " ".join(capsys.readouterr().out.split())
    same, few = Sides(a=[slow] * 5, b=[slow] * 5), Sides(a=[slow], b=[slow])
    for sides in (same, few):
        print_sides(sides, as_json=False)
    assert (same.exit_status, few.exit_status) == (0, 3)
    shown = capsys.readouterr().out
    assert "no difference found" in shown
    assert "cannot tell" in shown
    assert "With B, by the test: no metric differs. Of " in shown
    assert "With B, no metric was tested." in shown
    assert "With B, by the test: staleness, clients 5.42 s instead of 16.25 s." in document["sentence"]
    assert "A recovery ends with a client's first good send or pull at any broker" in " ".join(shown.split())


def test_a_scenario_is_run_on_both_sides_with_the_same_seeds_and_what_one_side_changes_is_told(tmp_path: Path) -> None:
    file = tmp_path / "short.yaml"
    file.write_text(SHORT, encoding="utf-8")
    words = [str(file), "--set-b", "timeline.0.nodes=[broker-b]", "--runs", "2", "--seed", "7", "--json"]
    done = CliRunner().invoke(cli, ["compare", *words, "--out", str(tmp_path / "kept")])
    assert done.exit_code == 3, done.output
    document = json.loads(done.stdout)
    assert [Path(run).name for run in document["a"] + document["b"]] == ["a-7", "a-8", "b-7", "b-8"]
    assert [run[0]["name"] for run in document["checks"][0]] == ["routes_are_true"] * 2
    assert "transitions" in document["sentence"]
    was, _ = document["clients"]["producer-0"]
    assert was["sends"] > 20
    assert (tmp_path / "kept" / "b-8" / "scenario.yaml").is_file()
    first, other = (str(tmp_path / "kept" / name) for name in ("a-7", "b-7"))
    again = CliRunner().invoke(cli, ["compare", first, "--set-b", "settle_s=20", "--runs", "1"])
    assert again.exit_code == 3, again.output
    assert "With B, no metric was tested. Of" in again.output
    same = CliRunner().invoke(cli, ["compare", first, other])
    assert "routes_are_true" not in same.output, "nothing judged these"


SHORT = """
cluster: {name_servers: 2, brokers: 2}
workload: {producers: 1, consumers: 1, sends_per_s: 1, client_starts: 0}
timeline:
  - {at_s: 10, do: stop, nodes: [broker-a]}
settle_s: 20
checks: [routes_are_true]
"""

"""A recorded run replayed on the virtual clock: with another seed it is the same; with another fault it is not."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.operations.replay.original import Original
from nemesrv.operations.replay.running import Replayed, ReplayOptions, read_original, replay

SCENARIO: dict[str, Any] = {
    "name": "cut-off",
    "cluster": {"name_servers": 2, "brokers": 2},
    "workload": {"sends_per_s": 1, "client_starts": 0},
    "timeline": [
        {"at_s": 20, "do": "black_hole", "links": ["broker-a <-> ns-0"]},
        {"at_s": 30, "do": "kill", "nodes": ["ns-1"]},
        {"at_s": 90, "do": "restart", "nodes": ["ns-1"]},
        {"at_s": 175, "do": "heal"},
    ],
    "settle_s": 50,
    "checks": ["routes_are_true"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("original") / "run"
    return record_virtual(parse(SCENARIO, file="x.yaml"), 3, out).path


@pytest.fixture(scope="module")
def original(folder: Path) -> Original:
    return read_original(folder, ReplayOptions())


def again(original: Original, out: Path, *sets: str, seed: int = 99) -> Replayed:
    return replay(original, ReplayOptions(out=out, seed=seed, sets=sets))


@pytest.mark.nightly_but("timeline.0.do=cut-came", "timeline.1.at_s=45-time")
@pytest.mark.parametrize(
    ("change", "part"),
    [
        ("timeline.0.do=cut", "came"),
        ("timeline.0.links=['broker-b <-> ns-0']", "came"),
        ("nodes.broker-a.name_servers=[ns-1]", "came"),
        ("timeline.1.at_s=45", "time"),
        ("registerNameServerPeriod=60000", "time"),
    ],
)
def test_what_is_not_the_same_is_less_alike(change: str, part: str, original: Original, tmp_path: Path) -> None:
    found = again(original, tmp_path / "out", change).similarity
    assert found.similarity is not None
    assert found.similarity < 0.95, found.sentence
    assert getattr(found, part) < 0.97, found.sentence


def test_a_run_without_its_scenario_and_a_folder_without_a_history_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="it has no history"):
        read_original(tmp_path, ReplayOptions())
    with pytest.raises(ScenarioError, match="there is no such folder"):
        read_original(tmp_path / "none", ReplayOptions())
    (tmp_path / "history").symlink_to(folder / "history")
    with pytest.raises(ScenarioError, match=r"a run with a scenario\.yaml, or an import with an incident\.json"):
        read_original(tmp_path, ReplayOptions())
    with pytest.raises(ScenarioError, match="--hypothesis: expected an import with it"):
        read_original(folder, ReplayOptions(hypotheses={1: 2}))
    with pytest.raises(ScenarioError, match=r"--set: setle_s: 3 is not allowed|setle_s"):
        again(read_original(folder, ReplayOptions()), tmp_path / "out", "setle_s=3")


def test_the_command_says_how_alike_runs_are_by_words_and_status(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = CliRunner().invoke(cli, ["replay", str(folder), "--out", str(out), "-q"])
    assert done.exit_code == 0, done.output
    assert "cut-off: It happens again: " in done.output
    assert "in the same order" in done.output
    assert f"`nemesrv run {folder / 'scenario.yaml'}` repeats the run exactly" in done.output
    assert f"scenario: {out / 'scenario.yaml'}" in done.output
    assert f"`nemesrv compare {folder} --set 'phases={{}}' --set-b KEY=VALUE` tests a change" in done.output
    assert f"`nemesrv check {out}` says whether this replay lost messages" in done.output
    document = json.loads((out / "replay.json").read_text(encoding="utf-8"))
    assert document["similarity"] > 0.99
    kinds = {transition["kind"] for transition in document["transitions"]}
    assert {"lost", "came", "route", "started", "registers", "chose"} <= kinds
    other = ["replay", str(folder), "--out", str(tmp_path / "other"), "-q", "--set", "timeline.1.nodes=[broker-b]"]
    other += ["--set", "timeline.2.nodes=[broker-b]", "--json"]
    done = CliRunner().invoke(cli, other)
    assert done.exit_code == 1, done.output
    assert json.loads(done.output)["parts"]["came"] < 0.7


def test_a_hypothesis_is_an_episode_and_a_place(folder: Path) -> None:
    done = CliRunner().invoke(cli, ["replay", str(folder), "--hypothesis", "one"])
    assert done.exit_code == 2
    assert "'one' is not allowed; expected EPISODE=PLACE, both from 1, such as 1=2" in done.output


@pytest.mark.nightly("test_the_command_says_how_alike_runs_are_by_words_and_status")
def test_what_a_fix_would_have_changed_is_said_client_by_client(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    varied = ["--vary", "timeline.1.nodes=[broker-b] timeline.2.nodes=[broker-b]", "--vary", "settle_s=50"]
    done = CliRunner().invoke(cli, ["replay", str(folder), "--out", str(out), "-q", *varied])
    assert done.exit_code == 0, done.output
    assert "With settle_s=50, in one run: the clients fare the same." in done.output
    first, second = json.loads((out / "replay.json").read_text(encoding="utf-8"))["variants"]
    assert first["happens"] == "in part" or first["happens"] == "not"
    assert "would not have happened" in first["sentence"]
    assert (out / second["run_dir"] / "scenario.yaml").is_file()
    was, now = second["clients"]["producer-0"]
    assert was == now
    assert was["sends"] > 200
    longer = [*varied[:1], "brokerChannelExpiredTime=600000"]
    also = CliRunner().invoke(cli, ["replay", str(folder), "--out", str(tmp_path / "longer"), "-q", *longer])
    assert "set both. Java's 4.9 has brokerChannelExpiredTime as a constant" in also.output
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "The original above, the replay beneath" in page
    assert "What would have been different" in page
    assert "happens again</span> cut-off" in page
    head = "cost for the clients (seconds since the start of the timeline)\n"
    costs = done.output.partition(head)[2].splitlines()[:4]
    whose, told = zip(*(line.strip().split(": ", 1) for line in costs), strict=True)
    assert whose == ("original", "replay", *(f"with {one['vary']}" for one in (first, second)))
    assert all("without broker-" in sentence for sentence in told)
    assert told[1] != told[2]
    assert "Cost for the clients" in page
    wrong = CliRunner().invoke(cli, ["replay", str(folder), "--vary", "cluster.profile=6"])
    assert isinstance(wrong.exception, ScenarioError)
    assert "cluster.profile" in str(wrong.exception)

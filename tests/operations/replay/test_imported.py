"""An import replayed: who is there, timers, lists, phases and faults of incident.json as a scenario; what is wrong."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.history.rows import read_rows, write_parquet
from nemesrv.chaos.history.transitions import Transition
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.operations.replay.original import PHASES_NOT_KEPT
from nemesrv.operations.replay.running import (
    ReplayOptions,
    as_logged,
    cost_of_original,
    lines_of,
    read_original,
    replay,
    scenario_of,
    write,
)

SEEN = {
    "started", "registration", "broker_dropped", "route", "register", "name_server_list", "name_server_chosen",
    "route_changed", "timed_out", "client_gone", "node",
}  # fmt: skip
"""What logs of all nodes would have shown."""
CUT_MS = 150_000.0
CALLED = {"broker-a": "trade-1", "broker-b": "trade-2", "ns-0": "ns-3", "producer-0": "client-7"}
"""What the import calls them."""


def called(text: Any) -> Any:
    return CALLED.get(text, text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition of broker-a and ns-0, as an import of logs with stamps of whole seconds would have it."""
    scenario = {
        "name": "hidden",
        "cluster": {"name_servers": 2, "brokers": 2},
        "workload": {"sends_per_s": 1, "client_starts": 0, "consumers": 1, "producers": 1},
        "config": {"clients": {"pollNameServerInterval": 20000}},
        "timeline": [{"at_s": 70, "do": "black_hole", "links": ["broker-a <-> ns-0"]}, {"at_s": 240, "do": "heal"}],
        "settle_s": 60,
        "checks": ["routes_are_true"],
    }
    run = record_virtual(parse(scenario, file="x.yaml"), 5, tmp_path_factory.mktemp("truth") / "run").path
    rows = [row for row in read_rows(run) if row["event"] in SEEN and row["node"] != "prober"]
    begin = next(row for row in read_rows(run) if row["event"] == "run_begin")
    zero_ms = next(row["time_ms"] for row in read_rows(run) if row["event"] == "phase" and row["phase"] == "steady")
    said = {"profile": "4.9", "timers": begin["value"]["timers"], "imported": True, "scenario": "imported"}
    out = [{**begin, "value": said}]
    for row in rows:
        stamp = row["time_ms"] // 1000 * 1000 + 500
        renamed = {key: called(row[key]) for key in ("node", "source", "broker_name", "topic")}
        out.append(
            {**row, **renamed, "time_ms": 0.0 if row["event"] == "node" else stamp, "value": _renamed(row["value"])}
        )
    imported = tmp_path_factory.mktemp("imported") / "run"
    write_parquet(out, imported)
    at_s = zero_ms / 1000
    document = {
        "format": 1,
        "origin": "2026-01-01T10:00:00.000+08:00",
        "sources": [{"source": called(node), "bound_ms": 500.0} for node in ("ns-0", "ns-1", "broker-a", "producer-0")],
        "topology": {
            "clusters": {"DefaultCluster": ["trade-1", "trade-2"]},
            "name_servers": {"ns-3": ["10.0.1.1:9876"], "ns-1": ["10.0.1.2:9876"]},
            "brokers": {"trade-1": {"0": ["10.0.2.3:10911"]}, "trade-2": {"0": ["10.0.2.4:10911"]}},
            "clients": {
                "client-7": {"kind": "unknown", "name_servers": []},
                "consumer-0": {"kind": "consumer", "name_servers": []},
            },
        },
        "timers": {"registration_period": {"ms": 30000, "by": "fitted"}, "route_poll": {"ms": 20000, "by": "settings"}},
        "episodes": [
            {
                "from_ms": zero_ms + 70_000,
                "to_ms": zero_ms + 250_000,
                "hypotheses": [
                    {
                        "rank": 1,
                        "fault": "partition",
                        "certainty": "likely",
                        "sentence": "trade-1 and ns-3 did not reach each other.",
                        "timeline": [
                            {"at_s": at_s + 70.2, "do": "black_hole", "links": ["trade-1 <-> ns-3"]},
                            {"at_s": at_s + 239.8, "do": "heal"},
                        ],
                    },
                    {
                        "rank": 2,
                        "fault": "kill",
                        "certainty": "unsure",
                        "sentence": "trade-1 died.",
                        "timeline": [{"at_s": at_s + 70, "do": "kill", "nodes": ["trade-1"]}],
                    },
                ],
            }
        ],
        "not_seen": [],
    }
    (imported / "incident.json").write_text(json.dumps(document), encoding="utf-8")
    return imported


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {called(key): _renamed(one) for key, one in value.items()}
    return [_renamed(one) for one in value] if isinstance(value, list) else value


def incident(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "incident.json").read_text(encoding="utf-8"))
    return found


def put(document: dict[str, Any], folder: Path, out: Path) -> None:
    """The import in that folder, with another incident.json, into `out`."""
    (out / "history").symlink_to(folder / "history")
    (out / "incident.json").write_text(json.dumps(document), encoding="utf-8")


@pytest.mark.nightly("test_the_scenario_has_what_the_import_found")
def test_the_first_hypothesis_happens_again_and_the_second_does_not(folder: Path, tmp_path: Path) -> None:
    original = read_original(folder, ReplayOptions())
    found = replay(original, ReplayOptions(out=tmp_path / "first"))
    assert found.similarity.similarity is not None
    assert found.similarity.similarity > 0.9, [p for p in found.similarity.pairs if abs(p.apart_ms or 9e9) > 1000]
    assert {pair.what.node for pair in found.similarity.pairs} >= {"ns-3", "trade-1", "client-7"}
    document = write(found)
    assert document["original"] == str(folder)
    assert document["names"]["broker-a"] == "trade-1"
    scenario = found.folder.scenario_file.read_text(encoding="utf-8")
    assert scenario.startswith(f"# replay of {folder}"[:100])
    assert "# broker-a is trade-1 there\n" in scenario
    other = replay(read_original(folder, ReplayOptions(hypotheses={1: 2})), ReplayOptions(out=tmp_path / "second"))
    assert other.similarity.similarity is not None
    assert other.similarity.similarity < 0.6, other.similarity.sentence
    assert any("not sure" in note for note in other.original.notes)
    told = "\n".join(lines_of(write(other), other.folder.path))
    begun = datetime(2026, 1, 1, 10) + timedelta(milliseconds=other.original.from_ms)
    zero = f"0 s here is {other.original.from_ms / 1000:.1f} s of the import"
    assert f"only in the original (seconds since {begun:%Y-%m-%d %H:%M:%S} UTC+08:00 in the original; {zero}):" in told
    alone = next(pair.original for pair in other.similarity.pairs if pair.replay is None and pair.original)
    assert f" s ({begun + timedelta(milliseconds=alone.at_ms):%H:%M:%S})  " in told


def test_what_has_no_end_is_read_as_the_import_writes_it(folder: Path, tmp_path: Path) -> None:
    document = incident(folder)
    document["episodes"][0] |= {"to_ms": None}
    document["episodes"][0]["hypotheses"][0] |= {"bounds_ms": [1000.0, None]}
    put(document, folder, tmp_path)
    assert scenario_of(read_original(tmp_path, ReplayOptions()), (), file="x").timeline[0].do == "black_hole"


def test_an_episode_that_follows_is_replayed_and_needs_no_note(folder: Path, tmp_path: Path) -> None:
    document = incident(folder)
    effect = {"rank": 1, "fault": "broker_is_not_registered", "sentence": "A client has no address of trade-1"}
    document["episodes"].append({"from_ms": CUT_MS + 90_000, "to_ms": None, "hypotheses": [effect], "follows": 1})
    put(document, folder, tmp_path)
    assert read_original(tmp_path, ReplayOptions()).notes == read_original(folder, ReplayOptions()).notes
    asked = read_original(tmp_path, ReplayOptions(episodes=(1, 2))).notes
    assert asked[0] == "Episode 2 has no fault that explains it, so nothing is done for it."


def test_a_hypothesis_is_counted_by_its_place_whatever_its_rank(folder: Path, tmp_path: Path) -> None:
    document = incident(folder)
    first, second = document["episodes"][0]["hypotheses"]
    first["rank"], second["rank"] = 2, 1
    put(document, folder, tmp_path)
    for place, told in ((1, first), (2, second)):
        (chosen,) = read_original(tmp_path, ReplayOptions(hypotheses={1: place})).chosen
        assert chosen["sentence"] == told["sentence"]


@pytest.mark.parametrize("virtual", [True, False])
def test_on_the_real_clock_a_replay_says_that_phases_are_not_kept(virtual: bool, folder: Path) -> None:
    notes = read_original(folder, ReplayOptions(virtual=virtual)).notes
    assert (PHASES_NOT_KEPT in notes) is not virtual


def test_the_scenario_has_what_the_import_found(folder: Path) -> None:
    original = read_original(folder, ReplayOptions())
    scenario = scenario_of(original, (), file="x")
    assert (scenario.cluster.name_servers, scenario.cluster.brokers) == (2, 2)
    assert scenario.config == {"clients": {"pollNameServerInterval": 20000}}
    assert scenario.nodes["producer-0"].in_order
    assert [action.do for action in scenario.timeline] == ["black_hole", "heal"]
    assert scenario.timeline[0].at_s == pytest.approx(60, abs=1)
    assert {original.names[node] for node in ("broker-a", "ns-0", "producer-0")} <= {*CALLED.values(), "ns-1"}
    assert {"broker-a", "broker-b", "producer-0"} <= scenario.phases.keys()


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("format",), 2, "format: 2 is not allowed; expected 1"),
        (("episodes",), [], "episodes: none is not allowed; expected an episode with a hypothesis and its timeline"),
        (("topology", "name_servers"), "ns-0", "topology.name_servers: 'ns-0' is not allowed; expected a mapping"),
        (("timers", "route_poll", "ms"), -5, "timers.route_poll.ms: -5 is not allowed; expected a number above 0"),
        (("episodes", 0, "hypotheses", 0, "rank"), 0, "hypotheses.0.rank: 0 is not allowed"),
        (("episodes", 0, "hypotheses", 0, "timeline", 0, "do"), "hole", "timeline.0.do: 'hole' is not allowed"),
        (("episodes", 0, "hypotheses", 0, "timeline", 0, "links"), ["trade-9 <-> ns-3"], "0.links: 'trade-9 <-> ns-"),
        (("episodes", 0, "hypotheses", 0, "timeline", 0, "at_s"), "soon", "timeline.0.at_s: 'soon' is not allowed"),
    ],
)  # fmt: skip
def test_an_edited_incident_that_is_wrong_is_refused_in_a_sentence(
    place: tuple[Any, ...], value: Any, said: str, folder: Path, tmp_path: Path
) -> None:
    document = incident(folder)
    at = document
    for part in place[:-1]:
        at = at[part]
    at[place[-1]] = value
    put(document, folder, tmp_path)
    with pytest.raises(ScenarioError) as error:
        scenario_of(read_original(tmp_path, ReplayOptions()), (), file="x")
    assert said in str(error.value)
    assert str(tmp_path / "incident.json") in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("before_s", "at_first_registration"), [(20.0, True), (1.0, False)])
def test_a_broker_that_took_its_time_to_boot_is_started_when_it_had(
    before_s: float, at_first_registration: bool, folder: Path, tmp_path: Path
) -> None:
    """Apache's broker reads its store first: from its log's beginning to its first registration are 10 s and more."""
    rows = [row for row in read_rows(folder) if row["event"] == "registration" and row["broker_name"] == "trade-1"]
    came_ms = next(row["time_ms"] for row in rows if row["time_ms"] > CUT_MS)
    started_s = came_ms / 1000 - before_s
    document = incident(folder)
    kills = [{"at_s": started_s - 30, "do": "kill", "nodes": ["trade-1"]}]
    document["episodes"][0]["hypotheses"][0]["timeline"] = [
        *kills,
        {"at_s": started_s, "do": "restart", "nodes": ["trade-1", "trade-2"]},
    ]
    put(document, folder, tmp_path)
    original = read_original(tmp_path, ReplayOptions())
    restarts = [entry for entry in original.document["timeline"] if entry["do"] == "restart"]
    at_s = {node: entry["at_s"] + original.from_ms / 1000 for entry in restarts for node in entry["nodes"]}
    assert at_s["broker-a"] == pytest.approx(came_ms / 1000 if at_first_registration else started_s, abs=0.01)
    notes = [note for note in original.notes if note.startswith("trade-1 registered 20 s after")]
    assert bool(notes) == at_first_registration


def test_the_cost_of_an_import_is_what_its_clients_logs_say(folder: Path, tmp_path: Path) -> None:
    document = incident(folder)
    document["suffered"] = [{"client": "client-7", "says": "a look-up failed 2 times"}]
    put(document, folder, tmp_path)
    said = cost_of_original(read_original(tmp_path, ReplayOptions()))
    assert said == "the clients' logs say: client-7: a look-up failed 2 times"
    assert cost_of_original(read_original(folder, ReplayOptions())) is None


def test_a_hypothesis_or_episode_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(
        ScenarioError, match=r"--hypothesis: 1=7 is not allowed; expected one of the 2 hypotheses of episode 1"
    ):
        read_original(folder, ReplayOptions(hypotheses={1: 7}))
    with pytest.raises(ScenarioError, match="--episode: 4 is not allowed; expected an episode from 1 to 1"):
        read_original(folder, ReplayOptions(episodes=(4,)))


def _without(folder: Path, out: Path, *, routes: bool) -> Path:
    """The import as it is with NameServers' and brokers' logs alone, and, if so, no route in them."""
    rows = [row for row in read_rows(folder) if row["role"] not in ("producer", "consumer")]
    rows = [row for row in rows if row["event"] != "node" or not row["source"].startswith(("client", "consumer"))]
    write_parquet([row for row in rows if routes or row["event"] not in ("route", "topic")], out)
    document = json.loads((folder / "incident.json").read_text())
    document["topology"]["clients"] = {}
    (out / "incident.json").write_text(json.dumps(document))
    return out


def test_without_clients_logs_clients_and_a_topic_are_made_up(folder: Path, tmp_path: Path) -> None:
    named = read_original(_without(folder, tmp_path / "named", routes=True), ReplayOptions())
    nothing = read_original(_without(folder, tmp_path / "nothing", routes=False), ReplayOptions())
    assert [
        (one.document["workload"]["producers"], one.document["workload"]["consumers"]) for one in (named, nothing)
    ] == [(1, 1)] * 2
    assert [note for note in named.notes if note.startswith("No log of")] == [
        "No log of a producer or consumer is there: one producer and one consumer of orders, which NameServers and "
        "brokers name, were added, so that sends and pulls are seen. The similarity counts no "
        "transition of theirs."
    ]
    assert [note for note in nothing.notes if note.startswith("No log of")] == [
        "No log of a producer or consumer is there, and no log names a topic: one producer and one consumer of orders, "
        "made up, were added, so that sends and pulls are seen. The similarity counts no "
        "transition of theirs."
    ]


def test_of_a_route_such_brokers_are_compared_as_the_log_ever_names() -> None:
    def routes(*said: str) -> list[Transition]:
        return [Transition(float(at), "ns-0", "route", "orders", how) for at, how in enumerate(said)]

    logged = routes("broker-a", "nobody", "broker-a")
    ours = routes("broker-a, broker-b", "broker-b", "broker-b (read-only)", "broker-a, broker-b")
    assert [one.how for one in as_logged(ours, logged)] == ["broker-a", "nobody", "broker-a"]
    assert as_logged(ours, []) == ours


def test_an_import_is_compared_as_it_was_recorded_and_with_a_setting_it_is_run_first(folder: Path) -> None:
    same = CliRunner().invoke(cli, ["compare", str(folder), str(folder), "--json"], catch_exceptions=False)
    assert same.exit_code == 3, same.output
    sentence = json.loads(same.stdout)["sentence"]
    assert sentence.startswith("With B, no metric was tested. ")
    assert sentence.endswith(" all would have happened, at the same times.")
    sets = ["--set-b", "pollNameServerInterval=60000", "--set-b", "timeline.0.links=['broker-b <-> ns-0']"]
    words = [str(folder), *sets, "--runs", "1", "--seed", "1", "--json"]
    varied = CliRunner().invoke(cli, ["compare", *words], catch_exceptions=False)
    assert varied.exit_code == 3, varied.output
    document = json.loads(varied.stdout)
    assert document["a"] == ["replay-of-run of seed 1"]
    assert document["differ_in"]["P_ms"] == [["20000"], ["60000"]]
    assert "transitions" in document["sentence"]

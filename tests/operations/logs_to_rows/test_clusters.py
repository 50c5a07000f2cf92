"""Logs of two clusters in one folder: each is told as it is alone, and nobody is blamed for the other's brokers."""

import gzip
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from nemesrv.operations.cluster.doctor import diagnosed
from nemesrv.operations.inferring.episodes import episodes_of
from nemesrv.operations.logs_to_rows.clusters import clusters_of
from nemesrv.operations.logs_to_rows.line import Line
from nemesrv.operations.logs_to_rows.reconstruct import Reconstructed, reconstruct
from nemesrv.operations.logs_to_rows.sources import sources_of as sources_in
from tests.operations.importing.recording import drawn, recorded
from tests.operations.importing.truth import done, is_true, truly_done
from tests.operations.importing.writing import sources_of, written
from tests.operations.made_logs import read_logs

CRASH, PARTITION = 0, 3
"""Seeds of the incidents of eu/ and us/: both have an ns-0, a broker-a, a producer-0."""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """eu/ and us/, of which the second has addresses of its own."""
    folder = tmp_path_factory.mktemp("mixed")
    for place, seed in (("eu", CRASH), ("us", PARTITION)):
        of, sources = sources_of(recorded(drawn(seed), folder / f"run-{place}"))
        written(folder / "logs" / place, of, sources)
    for file in (folder / "logs" / "us").rglob("*.log"):
        file.write_text(file.read_text().replace("10.0.", "10.7."))
    return folder / "logs"


def imported(folder: Path, only: Callable[[Line], bool] = lambda _: True) -> Reconstructed:
    return reconstruct([line for line in read_logs([folder]).lines if only(line)])


def told(found: Reconstructed) -> list[tuple[str, str]]:
    episodes = episodes_of(found.rows, timers=found.timers_used).episodes
    return [(one.hypotheses[0].sentence, one.hypotheses[0].certainty) for one in episodes]


def files(found: Reconstructed) -> set[str]:
    return {file.partition("/")[0] for one in found.sources for file in one["files"]}


def apart(found: Reconstructed) -> list[str]:
    return [note for note in found.notes if "clusters" in note]


@pytest.mark.parametrize(("place", "seed"), [("eu", CRASH), ("us", PARTITION)])
def test_each_half_alone_is_one_cluster_and_its_fault_is_told(logs: Path, place: str, seed: int) -> None:
    found = imported(logs / place)
    assert apart(found) == []
    nodes = [*found.nodes.roles]
    (episode,) = episodes_of(found.rows, timers=found.timers_used).to_json()["episodes"]
    assert is_true(done(episode["hypotheses"][0]["timeline"], nodes, {}), truly_done(drawn(seed).scenario, nodes))


@pytest.mark.parametrize("place", ["eu", "us"])
def test_together_the_larger_is_told_as_it_is_alone(logs: Path, place: str) -> None:
    other = {"eu": "us", "us": "eu"}[place]

    def is_larger(line: Line) -> bool:
        """The other's later half is missing, so that this one has more lines."""
        return line.file.startswith(f"{place}/") or line.line % 3 == 0

    found = imported(logs, is_larger)
    assert files(found) == {place}
    assert told(found) == told(imported(logs / place))
    assert found.topology == imported(logs / place).topology
    (note,) = apart(found)
    assert f"of {place}/ (" in note
    assert f"read it alone, from {other}/" in note


def test_of_two_whole_clusters_neither_is_in_the_other_s_history(logs: Path) -> None:
    found = imported(logs)
    (kept,) = files(found)
    strange = {"eu": "10.7.", "us": "10.0."}[kept]
    assert not any(strange in str(row) for row in found.rows)
    assert "registered as" not in str(told(found))
    assert "never registered" not in str(told(found))


def test_a_log_that_names_nobody_is_of_the_cluster_in_whose_folder_it_stands(logs: Path) -> None:
    def names_somebody(line: Line) -> bool:
        return not line.file.startswith("us/ns-1/") or line.event == "name_server_boot"

    groups = clusters_of(sources_in(filter(names_somebody, read_logs([logs]).lines)))
    by_place = [{file.partition("/")[0] for source in group for file in source.files} for group in groups]
    assert sorted(map(sorted, by_place)) == [["eu"], ["us"]]
    assert any(source.key.endswith("us/ns-1") for group in groups for source in group)


def without(lines: Iterable[Line], *events: str) -> list[Line]:
    return [line for line in lines if line.event not in events]


def test_one_cluster_stays_one_however_little_its_logs_say(logs: Path) -> None:
    """Brokers' logs that begin after their start do not say their address."""
    whole = read_logs([logs / "eu"]).lines
    for lines in (
        without(whole, "broker_boot", "setting"),
        without(whole, "route_changed"),
        without(whole, "registered", "broker_boot", "name_servers_set", "setting"),
        [line for line in whole if "producer" not in line.file and "consumer" not in line.file],
    ):
        assert len(clusters_of(sources_in(lines))) == 1


def test_name_servers_of_whom_no_broker_that_they_name_has_a_log_are_of_those_who_list_some(logs: Path) -> None:
    """Cut to what one broker's silence left there, while its own log does not say its address."""
    whole = read_logs([logs / "eu"]).lines
    boot = next(line for line in whole if line.event == "broker_boot" and "broker-a" in line.file)
    kept = [
        line
        for line in whole
        if (line.event in ("live_removed", "address_removed", "name_removed", "master_address", "broker_registered")
            and line.fields.get("address") == boot.fields["address"])
        or (line.file.startswith("broker-a") and line.event == "registered")
        or (line.file.startswith("broker-b") and line.event in ("registered", "broker_boot"))
    ]  # fmt: skip
    assert len(clusters_of(sources_in(kept))) == 1


def test_lines_of_both_clusters_in_one_file_are_named(logs: Path) -> None:
    """As `docker compose logs` writes them: each line behind its node's name."""

    def in_one(line: Line) -> Line:
        place, node, *_ = line.file.split("/")
        return line._replace(file="name-servers.log", prefix=f"{place}-{node}") if node.startswith("ns-") else line

    (note,) = apart(reconstruct([in_one(line) for line in read_logs([logs]).lines]))
    assert "with its lines of name-servers.log in files of their own" in note


INCIDENTS = Path(__file__).parents[3] / "docs" / "incident-logs"


@pytest.mark.parametrize(("shift_days", "when"), [(0, "of the same time"), (2, "48.0 hours apart")])
def test_two_incidents_at_the_same_addresses_are_told_apart(tmp_path: Path, shift_days: int, when: str) -> None:
    for file in INCIDENTS.rglob("*.log.gz"):
        text = gzip.decompress(file.read_bytes()).decode()
        if "broker-partition" in file.parts:
            text = re.sub(r"2026-11-(\d\d)", lambda found: f"2026-11-{int(found[1]) - shift_days}", text)
        place = tmp_path / file.relative_to(INCIDENTS).with_suffix("")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    found = imported(tmp_path)
    assert files(found) == {"broker-crash-5"}
    (note,) = apart(found)
    assert when in note
    assert note.endswith("read it alone, from broker-partition/")
    if not shift_days:
        told = diagnosed([tmp_path])
        assert told.lines[0].startswith("These logs are of 2 clusters, ")
        assert {one.client for one in told.suffering} == {"consumer-0", "producer-0"}, "none of the other cluster's"


def test_a_cluster_whose_logs_are_in_a_folder_a_day_stays_one(tmp_path: Path) -> None:
    for file in INCIDENTS.rglob("broker-crash-5/**/*.log.gz"):
        lines = gzip.decompress(file.read_bytes()).decode().splitlines(keepends=True)
        for day, part in (("1", lines[: len(lines) // 2]), ("2", lines[len(lines) // 2 :])):
            place = tmp_path / day / file.relative_to(INCIDENTS).with_suffix("")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("".join(part))
    assert apart(imported(tmp_path)) == []

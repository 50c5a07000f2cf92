"""Logs that are written of our own runs tell what Apache's own logs of the same scenario tell, in the same order."""

import gzip
from collections.abc import Collection, Iterable
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest
import yaml

from nemesrv.chaos.logs.reading import read_plain
from nemesrv.chaos.logs.stream import LogRow, Reader
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse

from ..importing.own_logs import loud
from ..importing.writing import HostClock, lines_of, rolled, sources_of, written

REAL = Path(__file__).parents[3] / "docs" / "incident-logs"
INCIDENTS = ("broker-partition", "broker-crash-5")
ROUTES = frozenset(
    {"broker_registered", "channel_idle", "channel_destroyed", "broker_expired", "live_removed", "address_removed"}
    | {"name_removed", "cluster_name_removed", "cluster_removed", "topic_gone"}
)
DIALS = frozenset(
    {"connecting", "connected", "connect_failed", "closed"}
    | {"request_timeout", "closed_on_timeout", "register_failed"}
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each incident's scenario on our own nodes, on the virtual clock."""
    found = {}
    for name in INCIDENTS:
        document = yaml.safe_load((REAL / name / "scenario.yaml").read_text())
        document["cluster"]["profile"] = "5.x" if document["cluster"].pop("implementation")[7] == "5" else "4.9"
        del document["workload"]["implementation"], document["timers"]
        found[name] = tmp_path_factory.mktemp(name) / "run"
        with loud():
            record_virtual(parse(document, file=f"{name}.yaml"), 1, found[name])
    return found


@pytest.fixture(scope="module")
def folders(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same as logs."""
    found = {}
    for name, run in runs.items():
        found[name] = tmp_path_factory.mktemp(f"{name}-logs")
        of, sources = sources_of(run)
        written(found[name], of, sources)
    return found


@cache
def _events(folder: Path) -> list[LogRow]:
    """Of every log below the folder, by their stamps."""
    return sorted(read_plain([folder]).rows, key=lambda row: (row.stamp_ms is None, row.stamp_ms))


def sequence(events: Iterable[LogRow], kinds: Collection[str], *about: str) -> list[str]:
    """The events of these kinds whose fields have one of `about`; those of one second together, and told once in a row.

    Threads write within a second in any order.
    """
    kept = [
        e for e in events if e.event in kinds and any(word in value for value in e.fields.values() for word in about)
    ]
    told = [
        "+".join(sorted({e.event for e in same})) for _, same in groupby(kept, key=lambda e: (e.stamp_ms or 0) // 1000)
    ]
    return [one for one, _ in groupby(told)]


@pytest.mark.parametrize("incident", INCIDENTS)
@pytest.mark.parametrize("node", ["ns-0", "ns-1"])
def test_a_name_server_tells_what_apaches_does(incident: str, node: str, folders: dict[str, Path]) -> None:
    about = ("broker-a", ":10911")
    real = sequence(_events(REAL / incident / node), ROUTES, *about)
    assert real[0] == "broker_registered"
    assert sequence(_events(folders[incident] / node), ROUTES, *about) == real


def test_a_broker_tells_of_the_name_server_that_it_cannot_reach_what_apaches_does(folders: dict[str, Path]) -> None:
    real = sequence(_events(REAL / "broker-partition" / "broker-a"), DIALS, "10.0.1.1:9876")
    assert real.count("closed+closed_on_timeout+register_failed+request_timeout") == 5
    assert sequence(_events(folders["broker-partition"] / "broker-a"), DIALS, "10.0.1.1:9876") == real


@pytest.mark.parametrize("incident", INCIDENTS)
@pytest.mark.parametrize("node", ["producer-0", "consumer-0"])
def test_a_client_tells_no_event_that_apaches_does_not(incident: str, node: str, folders: dict[str, Path]) -> None:
    kinds = frozenset({"client_created", "name_server_chosen", "route_changed", "connected", "broker_offline"})
    real = {event.event for event in _events(REAL / incident / node)} & kinds
    ours = {event.event for event in _events(folders[incident] / node)} & kinds
    assert {"client_created", "name_server_chosen", "route_changed", "connected"} <= ours <= real


@pytest.mark.parametrize("writer", ["server", "client-4.9", "client-5.x", "slf4j"])
def test_each_layout_is_read_back_at_the_time_that_it_was_written(writer: str, runs: dict[str, Path]) -> None:
    incident = "broker-crash-5" if writer == "client-5.x" else "broker-partition"
    of, sources = sources_of(runs[incident], slf4j=["consumer-0"])
    source = next(source for source in sources if source.writer == writer)
    clock, reader = HostClock(offset_ms=90_500), Reader(source.file)
    events = [*reader.rows(lines_of(source, of.origin_wall_ms, clock)), *reader.finished()]
    assert reader.counts.understood > 5
    assert {event.zone for event in events} == {"+08:00" if writer in ("server", "client-5.x") else None}
    first_ms = of.origin_wall_ms + source.entries[0].at_ms + 90_500
    for event in events[:1]:
        if event.zone is not None:
            assert event.stamp_ms is not None
            assert -1_000 < event.stamp_ms - 8 * 3_600_000 - first_ms < 60_000


def test_a_file_that_was_rolled_has_its_lines_in_order_of_age(tmp_path: Path) -> None:
    path = tmp_path / "namesrv.log"
    path.write_text("".join(f"line {number}\n" for number in range(10)))
    live, newest, oldest = rolled(path, 3)
    assert live.read_text().splitlines()[-1] == "line 9"
    assert (newest.name, oldest.name) == ("namesrv.1.log.gz", "namesrv.2.log.gz")
    text = "".join(gzip.decompress(older.read_bytes()).decode() for older in (oldest, newest))
    assert (text + live.read_text()).splitlines() == [f"line {number}" for number in range(10)]

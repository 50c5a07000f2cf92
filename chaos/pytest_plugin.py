"""The pytest plugin: a running cluster and its fault controls for a test, judged when the test has done its steps.

    @pytest.mark.nemesrv(name_servers=3, brokers=2)
    def test_routes_survive_a_partition(nemesrv_cluster):
        nemesrv_cluster.black_hole("broker-a <-> ns-0", for_s=155)
        nemesrv_cluster.must_be_valid("routes_converge", "routes_are_true")

A test that never asks for the verdict is judged all the same, by the checks of its marker. The seed, the line that
replays it and the run folder stand in the report of a failing test and in JUnit's properties. Loaded by its entry
point; it imports Ray and Spark when the first cluster is asked for, not before.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .experiment.harness import Harness
    from .experiment.session import RunningCluster
    from .scenarios.model import Scenario

MARKER = "nemesrv"
FIXTURE = "nemesrv_cluster"
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
DEFAULT_CHECKS = ("routes_converge", "routes_are_true", "no_acknowledged_loss")
_KEYS = {
    "name_servers": ("cluster", "name_servers"),
    "brokers": ("cluster", "brokers"),
    "profile": ("cluster", "profile"),
    "time_scale": ("timers", "time_scale"),
    "topic": ("workload", "topic"),
    "producers": ("workload", "producers"),
    "consumers": ("workload", "consumers"),
    "sends_per_s": ("workload", "sends_per_s"),
    "client_starts": ("workload", "client_starts"),
    "settle_s": ("settle_s",),
    "checks": ("checks",),
    "seed": ("seed",),
}
_USAGE = f"nemesrv({', '.join(f'{key}=…' for key in (*_KEYS, 'clock'))}): the cluster of this test, every key optional"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("nemesrv", "a RocketMQ NameServer cluster under chaos")
    group.addoption("--nemesrv-seed", type=int, metavar="N", help="seed of every random choice; default: a new one")
    group.addoption("--nemesrv-profile", choices=["4.9", "5.x"], help="RocketMQ's line, where a marker names none")
    group.addoption("--nemesrv-clock", choices=["real", "virtual"], help="where a marker names none; default: real")
    group.addoption("--nemesrv-runs", metavar="DIR", default="runs", help="where run folders go; default: runs")
    group.addoption(
        "--nemesrv-summary",
        metavar="FILE",
        default=os.environ.get(SUMMARY_VARIABLE),
        help=f"append each verdict as Markdown to FILE; default: ${SUMMARY_VARIABLE}",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _USAGE)


@pytest.fixture(scope="session")
def nemesrv_harness() -> Iterator[Harness]:
    """Ray and Spark, shared by all clusters of the session."""
    from .experiment.harness import Harness

    with Harness() as harness:
        yield harness


@pytest.fixture
def nemesrv_cluster(request: pytest.FixtureRequest, nemesrv_harness: Harness) -> Iterator[RunningCluster]:
    """NameServers, brokers, producers and consumers, up and at work, as the test's marker has them."""
    from .experiment.run_folder import RunFolder
    from .experiment.session import session
    from .experiment.stage import RealStage
    from .experiment.virtual.stage import VirtualStage
    from .judging import judge, of_run
    from .runner import require_parts

    scenario, virtual = scenario_of(request.node, request.config)
    require_parts([scenario], virtual=virtual)
    stage = VirtualStage(nemesrv_harness) if virtual else RealStage(nemesrv_harness)
    folder = RunFolder.create(scenario.name, root=Path(request.config.getoption("--nemesrv-runs")))
    node = request.node
    node.user_properties += [("nemesrv_seed", scenario.seed), ("nemesrv_run", str(folder.path))]
    node.add_report_section("setup", "nemesrv", _story(node, folder.path, scenario, virtual))
    with session(
        scenario, folder, stage, lambda run, as_run: judge(of_run(run, as_run), nemesrv_harness.spark()).verdicts
    ) as cluster:
        yield cluster
    _summarise(request.config, cluster, virtual)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Judge what the test did not have judged: a test that looks at nothing must not pass."""
    result = yield
    cluster: Any = pyfuncitem.funcargs.get(FIXTURE)
    if cluster is not None and cluster.verdicts is None:
        cluster.must_be_valid()
    return result


def scenario_of(item: pytest.Item, config: pytest.Config) -> tuple[Scenario, bool]:
    """The scenario that the marker describes, and whether the virtual clock is meant. UsageError says what is wrong."""
    import secrets

    from .errors import ScenarioError
    from .runner import Options, as_run_with
    from .scenarios.model import parse

    marker = item.get_closest_marker(MARKER)
    if marker is not None and marker.args:
        raise pytest.UsageError(f"{item.nodeid}: the marker nemesrv takes keywords only: {_USAGE}")
    given = dict(marker.kwargs) if marker else {}
    clock = given.pop("clock", None) or config.getoption("--nemesrv-clock") or "real"
    if clock not in ("real", "virtual"):
        raise pytest.UsageError(f"{item.nodeid}: marker nemesrv: clock={clock!r}: allowed is real or virtual")
    virtual = clock == "virtual"
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", item.name).strip("-")[:100] or "test"
    document: dict[str, Any] = {"name": name, "checks": DEFAULT_CHECKS, "settle_s": 70}
    document["cluster"] = {"external": not virtual}
    document["workload"] = {"client_starts": 0}
    if profile := config.getoption("--nemesrv-profile"):
        document["cluster"]["profile"] = profile
    for key, value in given.items():
        if key not in _KEYS:
            raise pytest.UsageError(
                f"{item.nodeid}: marker nemesrv: {key}: allowed is one of {', '.join(_KEYS)}, clock"
            )
        *section, last = _KEYS[key]
        place = document.setdefault(section[0], {}) if section else document
        place[last] = value
    seed = config.getoption("--nemesrv-seed")
    document["seed"] = seed if seed is not None else document.get("seed", secrets.randbelow(2**31))
    try:
        scenario = parse(document, file=f"{item.nodeid}: marker nemesrv")
    except ScenarioError as exc:
        raise pytest.UsageError(str(exc)) from exc
    return as_run_with(scenario, Options(virtual=virtual)), virtual


def _story(item: pytest.Item, folder: Path, scenario: Scenario, virtual: bool) -> str:
    from .reports.summary import replay_line

    seed = scenario.seed or 0
    return (
        f"seed {seed}; replay: pytest {shlex.quote(item.nodeid)} --nemesrv-seed {seed}\n"
        f"run folder: {folder} (report.html, verdicts.json, history/, logs/)\n"
        f"the same faults without the test: {replay_line(folder / 'scenario.yaml', seed, virtual=virtual)}"
    )


def _summarise(config: pytest.Config, cluster: RunningCluster, virtual: bool) -> None:
    from .reports.summary import append, replay_line, summary

    file = config.getoption("--nemesrv-summary")
    if file and cluster.verdicts is not None:
        scenario = cluster.scenario
        replay = replay_line(cluster.run_dir / "scenario.yaml", cluster.seed, virtual=virtual)
        append(Path(file), summary(scenario.name, cluster.seed, scenario.cluster.profile, cluster.verdicts, replay))

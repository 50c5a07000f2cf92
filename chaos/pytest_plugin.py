"""The pytest plugin: gives a test a running cluster with fault controls, and judges the run after the test's steps.

    @pytest.mark.nemesrv(name_servers=3, brokers=2)
    def test_routes_survive_a_partition(nemesrv_cluster):
        nemesrv_cluster.black_hole("broker-a <-> ns-0", for_s=155)
        nemesrv_cluster.must_be_valid("routes_converge", "routes_are_true")

The checks in the test's marker judge the run even if the test fails or does not ask for the verdict. A failing test's
report has seed, the command that repeats the run, run folder and verdict. The properties `nemesrv_seed` and
`nemesrv_run` in the JUnit file have seed and run folder. Wrong markers end the session before any test, with a line for
each wrong marker. Ray and Spark are not imported before a cluster needs them.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from .experiment.harness import Harness
    from .experiment.session import RunningCluster
    from .scenarios.model import Scenario
    from .verdict import Verdict

MARKER = "nemesrv"
FIXTURE = "nemesrv_cluster"
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
CLOCKS = ("real", "virtual")
RUNS = "runs"
AFTER_CTRL_C_S = 7.0
"""Limit for ending Ray's processes: pytest-xdist kills its workers after 10 s."""
_WRONG = "nemesrv_wrong"
DEFAULT_CHECKS = ("routes_converge", "routes_are_true", "no_acknowledged_loss")
_KEYS = {
    "name_servers": ("cluster", "name_servers"),
    "brokers": ("cluster", "brokers"),
    "slaves": ("cluster", "slaves"),
    "profile": ("cluster", "profile"),
    "clients": ("cluster", "clients"),
    "settings": ("config",),
    "time_scale": ("timers", "time_scale"),
    "timers": ("timers",),
    "topic": ("workload", "topic"),
    "producers": ("workload", "producers"),
    "consumers": ("workload", "consumers"),
    "sends_per_s": ("workload", "sends_per_s"),
    "client_starts": ("workload", "client_starts"),
    "settle_s": ("settle_s",),
    "checks": ("checks",),
    "seed": ("seed",),
    "defect": ("defect",),
}
_USAGE = f"nemesrv({', '.join(f'{key}=…' for key in (*_KEYS, 'clock'))}): the cluster of this test, every key optional"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("nemesrv", "a RocketMQ NameServer cluster under chaos")
    group.addoption("--nemesrv-seed", type=int, metavar="N", help="seed of each test; default: the marker's, or new")
    group.addoption("--nemesrv-profile", choices=["4.9", "5.x"], help="RocketMQ version, if a marker sets none")
    group.addoption("--nemesrv-clock", choices=CLOCKS, help="clock, if the test's marker sets none; default: real")
    group.addoption("--nemesrv-engine", choices=["plain", "spark"], help="engine of checks; default: as `nemesrv run`")
    group.addoption("--nemesrv-runs", metavar="DIR", default=RUNS, help="folder for runs of tests; default: runs")
    group.addoption(
        "--nemesrv-ray",
        metavar="auto|HOST:PORT",
        default=os.environ.get("RAY_ADDRESS"),
        help="run clusters on the hosts of this Ray cluster; default: $RAY_ADDRESS, else a new Ray cluster",
    )
    group.addoption(
        "--nemesrv-summary",
        metavar="FILE",
        default=os.environ.get(SUMMARY_VARIABLE),
        help=f"append each verdict as Markdown to FILE; default: ${SUMMARY_VARIABLE}",
    )


def _ray(config: pytest.Config) -> str | None:
    """Return the address of the Ray cluster to use; None: the session's own Ray."""
    address: str | None = config.getoption("--nemesrv-ray")
    return None if address in (None, "", "local") else address


def __tracebackhide__(_exception: object) -> bool:
    return True


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _USAGE)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Raise UsageError with a line for each selected test whose marker is wrong, before anything is started."""
    wrong: dict[str, None] = {}
    for item in items:
        if item.get_closest_marker(MARKER) is not None:
            try:
                scenario_of(item, config)
            except pytest.UsageError as exc:
                wrong[str(exc)] = None  # once for all parameters of a test
    if wrong:
        said = "\n".join(wrong)
        if hasattr(config, "workeroutput"):  # of pytest-xdist, which loses what a worker says of a usage error
            config.workeroutput[_WRONG] = said
        raise pytest.UsageError(said)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """End the session with the message of a pytest-xdist worker that refused a marker; xdist would lose the message."""
    if said := getattr(node, "workeroutput", {}).get(_WRONG):
        raise pytest.UsageError(said)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Report a test that Ctrl-C interrupts as failed, with its run's properties; pytest itself would not report the
    test."""
    try:
        return (yield)
    except KeyboardInterrupt:
        if FIXTURE in getattr(item, "fixturenames", ()):
            _report(item, "call", "failed", "interrupted by Ctrl-C")
            _report(item, "teardown", "passed", None)
        raise


def _report(
    item: pytest.Item, when: Literal["call", "teardown"], outcome: Literal["passed", "failed"], said: str | None
) -> None:
    keywords: dict[str, Literal[1]] = dict.fromkeys(item.keywords, 1)
    told = [(f"Captured {what} {of}", text) for of, what, text in item._report_sections]
    properties = item.user_properties
    report = pytest.TestReport(
        item.nodeid, item.location, keywords, outcome, said, when, sections=told, user_properties=properties
    )
    item.ihook.pytest_runtest_logreport(report=report)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With pytest-xdist: report the results that workers sent after Ctrl-C, before the JUnit file is written."""
    distributed: Any = session.config.pluginmanager.getplugin("dsession")
    if exitstatus != pytest.ExitCode.INTERRUPTED or not hasattr(distributed, "nodemanager"):
        return
    distributed.nodemanager.teardown_nodes()
    while not distributed.queue.empty():
        event, said = distributed.queue.get()
        if event == "testreport":
            said["rep"].node = said["node"]
            session.config.hook.pytest_runtest_logreport(report=said["rep"])


@pytest.fixture(scope="session")
def nemesrv_harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    """Ray and Spark, shared by all clusters of the session."""
    from .experiment.harness import Harness

    ends = None if request.config.getoption("usepdb", False) else AFTER_CTRL_C_S  # in a debugger it is no end
    with Harness(ray=_ray(request.config), after_ctrl_c_s=ends) as harness:
        yield harness


@pytest.fixture
def nemesrv_cluster(request: pytest.FixtureRequest, nemesrv_harness: Harness) -> Iterator[RunningCluster]:
    """A running cluster of NameServers, brokers, producers and consumers, as the test's marker says."""
    from .errors import HarnessError

    try:
        yield from _cluster(request, nemesrv_harness)
    except (HarnessError, pytest.UsageError) as exc:  # a sentence for a person, who has no use for our source
        raise pytest.fail.Exception(f"nemesrv: {exc}", pytrace=False) from None


def _cluster(request: pytest.FixtureRequest, harness: Harness) -> Iterator[RunningCluster]:
    from .experiment.hosts_stage import real_stage
    from .experiment.run_folder import RunFolder
    from .experiment.session import session
    from .experiment.virtual.stage import VirtualStage
    from .judging import Engine, engine_for, judge, of_run
    from .runner import planted, require_parts

    scenario, node = scenario_of(request.node, request.config), request.node
    virtual = scenario.clock == "virtual"
    joins = _ray(request.config) is not None
    engine = request.config.getoption("--nemesrv-engine")
    spark = engine_for(engine, virtual=virtual) is Engine.SPARK
    require_parts(f"{FIXTURE} on the {scenario.clock} clock", [scenario], virtual=virtual, joins=joins, spark=spark)
    stage = VirtualStage() if virtual else real_stage(harness)
    if spark:
        harness.start_spark()
    folder = RunFolder.create(scenario.name, root=Path(request.config.getoption("--nemesrv-runs")))
    node.user_properties += [("nemesrv_seed", scenario.seed), ("nemesrv_run", str(folder.path))]
    node.add_report_section("setup", "nemesrv", _replay(node, folder.path, scenario))

    def judged(run: RunFolder, as_run: Scenario) -> Sequence[Verdict]:
        return judge(of_run(run, as_run), engine_for(engine, virtual=virtual, where=run.path), harness.spark).verdicts

    with session(scenario, folder, stage, judged, planted(scenario)) as cluster:
        yield cluster
    _summarise(request.config, cluster)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Judge the run of a test that has not asked for the verdict itself, so that no run stays unjudged. A test that
    failed stays failed, whatever the verdict."""
    cluster: Any = pyfuncitem.funcargs.get(FIXTURE)
    try:
        result = yield
    except (Exception, pytest.fail.Exception) as exc:
        if cluster is not None:
            pyfuncitem.add_report_section("call", "nemesrv", _verdict_after(exc, cluster))
        raise
    if cluster is not None and cluster.verdicts is None:
        cluster.must_be_valid()
    return result


def _verdict_after(failure: BaseException, cluster: RunningCluster) -> str:
    """Return the verdict on a failed test's run, in one line. Never raises."""
    from .errors import HarnessError
    from .verdict import worst

    if cluster.verdicts is None and isinstance(failure, HarnessError):
        return "not judged: the experiment itself failed, or was asked for what there is not"
    try:
        verdicts = cluster.check()
    except Exception as exc:
        return f"not judged: {' '.join(str(exc).split()) or type(exc).__name__}"
    said = ", ".join(f"{verdict.name} {verdict.verdict}" for verdict in verdicts)
    return f"verdict: {worst(verdict.verdict for verdict in verdicts)} ({said})"


def scenario_of(item: pytest.Item, config: pytest.Config) -> Scenario:
    """The scenario that a test's marker describes, with seed and clock. Raises UsageError, which says what is wrong
    with the marker."""
    import secrets

    from .checks import CHECKS
    from .errors import ScenarioError, nearest
    from .runner import Options, as_run_with
    from .scenarios.loading import parse

    where = f"{item.nodeid.partition('[')[0]}: marker {MARKER}"
    marker = item.get_closest_marker(MARKER)
    if marker is not None and marker.args:
        shown = ", ".join(map(repr, marker.args))
        raise pytest.UsageError(f"{where}: {shown} is not allowed; expected keywords only, {_USAGE}")
    given = dict(marker.kwargs) if marker else {}
    clock = given.pop("clock", None) or config.getoption("--nemesrv-clock") or "real"
    if clock not in CLOCKS:
        allowed = f"{' or '.join(map(repr, CLOCKS))}{nearest(str(clock), CLOCKS)}"
        raise pytest.UsageError(f"{where}: clock: {clock!r} is not allowed; expected {allowed}")
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", item.name).strip("-")[:100] or "test"
    document: dict[str, Any] = {"name": name, "checks": DEFAULT_CHECKS, "settle_s": 70}
    document["cluster"] = {"external": clock == "real", "operator": True}
    document["workload"] = {"client_starts": 0}
    if profile := config.getoption("--nemesrv-profile"):
        document["cluster"]["profile"] = profile
    if given.get("clients"):  # their timers go as the machine's clock does, and a test that starts none must not pass
        document["timers"] = {"time_scale": 1}
        document["checks"] = (*DEFAULT_CHECKS, *(name for name, check in CHECKS.items() if check.outside))
        if clock == "virtual":
            raise pytest.UsageError(
                f"{where}: clock: 'virtual' is not allowed; expected 'real' where there are clients under test"
            )
    for key, value in given.items():
        if key not in _KEYS:
            keys = (*_KEYS, "clock")
            raise pytest.UsageError(
                f"{where}: {key}={value!r} is not allowed; expected "
                f"one of the keys {', '.join(keys)}{nearest(key, keys)}"
            )
        if key == "defect" and (beside := item.path.parent / str(value)).is_file():
            value = str(beside)
        *section, last = _KEYS[key]
        place = document.setdefault(section[0], {}) if section else document
        if key == "timers" and isinstance(value, Mapping):
            value = {**document.get("timers", {}), **value}
        if isinstance(place, dict):  # else `timers` is no mapping, which the scenario will say
            place[last] = value
    seed = config.getoption("--nemesrv-seed")
    document["seed"] = seed if seed is not None else document.get("seed", secrets.randbelow(2**31))
    try:
        scenario = parse(document, file=where)
    except ScenarioError as exc:
        raise pytest.UsageError(str(ScenarioError(where, _key_of_marker(exc.key), exc.value, exc.allowed))) from exc
    return as_run_with(scenario, Options(virtual=clock == "virtual"))


def _key_of_marker(key: str) -> str:
    for name, place in _KEYS.items():
        of = ".".join(place)
        if key == of or key.startswith(f"{of}."):
            rest = key.removeprefix(of)
            return name if rest.removeprefix(".").isdigit() else f"{name}{rest}"
    return key


def _replay(item: pytest.Item, folder: Path, scenario: Scenario) -> str:
    """Return how to repeat the test, where its run is, and how to repeat the run without the test."""
    from .reports.ci import replay_line

    seed, profile, runs = scenario.seed or 0, *map(item.config.getoption, ("--nemesrv-profile", "--nemesrv-runs"))
    words: list[str] = ["pytest", item.nodeid, "--nemesrv-seed", str(seed), "--nemesrv-clock", scenario.clock or "real"]
    words += ["--nemesrv-profile", profile] if profile else []
    words += ["--nemesrv-runs", runs] if runs != RUNS else []
    again = replay_line(folder / "scenario.yaml", seed, virtual=scenario.clock == "virtual")
    return (
        f"seed {seed}, {scenario.clock} clock; replay: {shlex.join(words)}\n"
        f"run folder: {folder} (report.html, verdicts.json, history/, logs/)\n"
        f"the same faults without the test: {again}"
    )


def _summarise(config: pytest.Config, cluster: RunningCluster) -> None:
    from .reports.answers import answers
    from .reports.ci import append, replay_line, summary

    file = config.getoption("--nemesrv-summary")
    if file and cluster.verdicts is not None:
        scenario = cluster.scenario
        replay = replay_line(cluster.run_dir / "scenario.yaml", cluster.seed, virtual=scenario.clock == "virtual")
        about = f"seed {cluster.seed}, profile {scenario.cluster.profile}"
        told = answers(cluster.verdicts, scenario, scenario.name, about)
        append(Path(file), summary(told, cluster.verdicts, replay))

"""An experiment on three hosts, each a network namespace with its own `ray start` and one with another clock."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from nemesrv.chaos.history.rows import read_rows
from tests.chaos.judged import found_wrong
from tests.hosts.bench import FORGOTTEN_S, HOSTS, Bench, missing

pytestmark = [pytest.mark.ray, pytest.mark.toxiproxy]

SHORT = """
description: A broker is cut from a NameServer on another host.
cluster: {name_servers: 2, brokers: 2}
timers: {time_scale: 10}
placement: {hosts: [a, b, c], ns-0: {host: b}, ns-1: {host: c}, brokers: {host: a}, producers: {host: c}}
workload: {producers: 1, consumers: 1, client_starts: 0}
timeline:
  - {at_s: 5, do: black_hole, links: [broker-a <-> ns-0]}
  - {at_s: 50, do: heal}
settle_s: 40
checks: [routes_converge]
"""
LOST = """
description: A host is lost and comes back, another is paused.
cluster: {name_servers: 3, brokers: 3}
timers: {time_scale: 10}
placement: {hosts: [a, b, c]}
workload: {producers: 2, consumers: 1, client_starts: 0}
timeline:
  - {at_s: 10, do: lose_host, hosts: [b]}
  - {at_s: 160, do: return_host, hosts: [b]}
  - {at_s: 220, do: pause_host, hosts: [c]}
  - {at_s: 250, do: return_host, hosts: [c]}
settle_s: 80
checks: [routes_converge]
"""
LONG = """
description: Nothing happens for long.
cluster: {name_servers: 3, brokers: 2}
timers: {time_scale: 1}
workload: {producers: 1, consumers: 1, client_starts: 0}
timeline: []
steady_s: 600
settle_s: 0
checks: [routes_converge]
"""
STEADY = "s  steady"


@pytest.fixture(scope="module", autouse=True)
def hosts_can_be_had() -> None:
    if reason := missing():
        pytest.skip(reason)


@pytest.fixture(scope="module")
def bench(hosts_can_be_had: None) -> Iterator[Bench]:
    with Bench() as made:
        yield made


@pytest.fixture
def clean(bench: Bench) -> Iterator[Bench]:
    """Its three Ray nodes are there, and afterwards nothing of ours is left on any host."""
    yield bench
    assert_nothing_is_left(bench)


def assert_nothing_is_left(bench: Bench, within_s: float = 15.0) -> None:
    until_s = time.monotonic() + within_s
    while left := [(host, command) for host in bench.hosts for command in bench.ours(host)]:
        assert time.monotonic() < until_s, left
    assert not [*bench.temporary.glob("nsv-*")], "runs have left it in the hosts' folder for temporary files"


def command(scenario: Path, out: Path, bench: Bench) -> list[str]:
    return [sys.executable, "-m", "tests.hosts.record", str(scenario), str(out), bench.head]


def written(folder: Path, text: str, name: str = "scenario") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def recorded(bench: Bench, folder: Path, text: str) -> Path:
    done = bench.run(command(written(folder, text), folder / "run", bench), limit_s=200)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "run"


def wrong(run: Path) -> dict[str, object]:
    """By check, what it found INVALID."""
    return {name: verdict.examples for name, verdict in found_wrong(run).items()}


class Running:
    """A run under way on the bench, and what it says."""

    def __init__(self, bench: Bench, scenario: Path, out: Path) -> None:
        inside = ["ip", "netns", "exec", bench.space(bench.hosts[0]), *command(scenario, out, bench)]
        self._process = subprocess.Popen(
            inside,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env=dict(bench.environment),
            cwd=bench.folder,
        )
        self.said = ""

    def until(self, text: str) -> None:
        assert self._process.stderr is not None
        while text not in self.said:
            line = self._process.stderr.readline()
            assert line, self.said
            self.said += line

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(10)

    def ended(self, within_s: float) -> int:
        _, said = self._process.communicate(timeout=within_s)
        self.said += said
        return self._process.returncode

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_of: object) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait(10)


@pytest.fixture
def long_run(bench: Bench, tmp_path: Path) -> Iterator[Callable[[str], Running]]:
    """Starts one that is at its steady state, by the name of its folder."""
    running: list[Running] = []

    def start(name: str) -> Running:
        run = Running(bench, written(tmp_path, LONG, name), tmp_path / f"run-{name}")
        running.append(run)
        run.until(STEADY)
        return run

    yield start
    for run in running:
        run.__exit__()


def test_a_partition_between_hosts_is_judged_as_one_within_one(clean: Bench, tmp_path: Path):
    run = recorded(clean, tmp_path, SHORT)
    rows = read_rows(run)
    assert wrong(run) == {}
    placed = {row["source"]: row["value"].get("host") for row in rows if row["event"] == "node"}
    assert (placed["ns-0"], placed["ns-1"], placed["broker-a"], placed["producer-0"]) == ("b", "c", "a", "c")
    faults = {(row["source"], row["target"], row["phase"]) for row in rows if row["event"] == "fault"}
    assert faults == {("broker-a", "ns-0", "start"), ("broker-a", "ns-0", "end")}
    assert not any(row["event"] == "rows_missing" for row in rows)


@pytest.mark.nightly("test_a_partition_between_hosts_is_judged_as_one_within_one")
def test_a_host_is_lost_and_another_paused_and_both_come_back(clean: Bench, tmp_path: Path):
    run = recorded(clean, tmp_path, LOST)
    assert wrong(run) == {}
    faults = {(row["fault"], row["source"]) for row in read_rows(run) if row["event"] == "fault"}
    assert {("kill", "ns-1"), ("kill", "broker-b"), ("pause", "ns-2"), ("black_hole", "broker-a")} <= faults


@pytest.mark.nightly("test_a_partition_between_hosts_is_judged_as_one_within_one")
def test_two_experiments_at_once_on_one_ray_cluster(clean: Bench, tmp_path: Path, long_run: Callable[[str], Running]):
    long_run("beside")
    run = recorded(clean, tmp_path, SHORT)
    assert wrong(run) == {}


@pytest.mark.nightly("test_a_partition_between_hosts_is_judged_as_one_within_one")
def test_of_a_driver_that_is_killed_nothing_is_left_on_any_host(clean: Bench, long_run: Callable[[str], Running]):
    run = long_run("killed")
    assert all(clean.ours(host) for host in HOSTS)
    run.kill()
    assert_nothing_is_left(clean, within_s=FORGOTTEN_S + 15)


@pytest.mark.nightly("test_a_partition_between_hosts_is_judged_as_one_within_one")
def test_a_killed_raylet_ends_the_run_with_its_host(
    bench: Bench, tmp_path: Path, long_run: Callable[[str], Running]
) -> None:
    run = long_run("lost")
    bench.kill_raylet("b")
    assert run.ended(60) == 4
    assert f"the host b ({bench.address('b')}) is lost" in run.said.splitlines()[-1]
    assert_nothing_is_left(bench)
    assert any(row["node"] == "ns-0" for row in read_rows(tmp_path / "run-lost"))
    bench.kill_all("b")
    bench.start_ray("b")
    bench.await_ray(bench.hosts)


@pytest.mark.nightly("test_a_partition_between_hosts_is_judged_as_one_within_one")
def test_a_host_that_joins_late_has_no_part_in_this_run_but_in_the_next(tmp_path: Path):
    with Bench(late=("c",)) as bench:
        with Running(bench, written(tmp_path, LONG), tmp_path / "before") as run:
            run.until(STEADY)
            bench.start_ray("c")
            bench.await_ray(bench.hosts)
            assert not bench.ours("c")
            run.kill()
        assert_nothing_is_left(bench, within_s=FORGOTTEN_S + 15)
        run_dir = recorded(bench, tmp_path, SHORT)
        assert wrong(run_dir) == {}


@pytest.mark.nightly("test_a_partition_between_hosts_is_judged_as_one_within_one")
def test_when_rays_head_is_gone_the_run_says_so_and_nothing_is_left(tmp_path: Path):
    with Bench() as bench, Running(bench, written(tmp_path, LONG), tmp_path / "run") as run:
        run.until(STEADY)
        bench.kill_head()
        assert run.ended(60) == 4
        assert f"Ray's head at {bench.head} is gone" in run.said.splitlines()[-1]
        assert_nothing_is_left(bench, within_s=FORGOTTEN_S + 15)


@pytest.mark.nightly("test_a_partition_between_hosts_is_judged_as_one_within_one")
def test_on_a_host_whose_network_is_gone_nothing_is_left_and_the_run_ends_with_its_name(tmp_path: Path):
    with Bench() as bench, Running(bench, written(tmp_path, LONG), tmp_path / "run") as run:
        run.until(STEADY)
        assert bench.ours("c")
        bench.unplug("c")
        assert run.ended(90) == 4
        assert f"the host c ({bench.address('c')}) is lost" in run.said.splitlines()[-1]
        assert_nothing_is_left(bench, within_s=FORGOTTEN_S + 15)


@pytest.mark.nightly("test_a_partition_between_hosts_is_judged_as_one_within_one")
def test_a_cluster_stays_up_on_three_hosts_and_sees_what_others_do_to_it(clean: Bench, tmp_path: Path):
    out = tmp_path / "up"
    up = [sys.executable, "-m", "nemesrv.chaos", "up", "--ray", clean.head, "--json", "--out", str(out)]
    with subprocess.Popen(
        ["ip", "netns", "exec", clean.space("a"), *up, "--time-scale", "10", "--name-servers", "3"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(clean.environment),
        cwd=clean.folder,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, process.communicate(timeout=60)
        shown = json.loads(first)
        os.kill(shown["pids"]["ns-1"], signal.SIGSTOP)
        paused = clean.nemesrv("fault", "--run", str(out), "list")
        until_s = time.monotonic() + 20
        while "ns-1" not in paused.stdout and time.monotonic() < until_s:
            paused = clean.nemesrv("fault", "--run", str(out), "list")
        os.kill(shown["pids"]["ns-1"], signal.SIGCONT)
        cut = clean.nemesrv("fault", "--run", str(out), "cut", "broker-a <-> ns-1", "--for", "20")
        lost = clean.nemesrv("fault", "--run", str(out), "lose_host", "c")
        back = clean.nemesrv("fault", "--run", str(out), "return_host", "c")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert "ns-1" in paused.stdout, paused
    assert ("lose_host-1, kill-" in lost.stdout, back.returncode) == (True, 0), (lost, back)
    assert cut.returncode == 0, cut
    assert process.returncode == 0, said
    faults = {(row["fault"], row["source"], row["phase"]) for row in read_rows(out) if row["event"] == "fault"}
    assert {("pause", "ns-1", "start"), ("pause", "ns-1", "end"), ("cut", "broker-a", "start")} <= faults
    assert {("black_hole", "broker-a", "start"), ("kill", "ns-2", "start"), ("kill", "ns-2", "end")} <= faults

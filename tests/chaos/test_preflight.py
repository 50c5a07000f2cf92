"""What a machine lacks is one sentence that says how to mend it; what it has is measured."""

import dataclasses
import os
import resource
import sys
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.machine import (
    Java,
    Machine,
    ToxiproxyProgram,
    find_java,
    free_memory,
    free_tasks,
    java_version,
    measure,
    require_java,
)
from nemesrv.chaos.preflight import MB, MachineNeeds, machine_parts, require
from nemesrv.chaos.scenarios.loading import find
from nemesrv.chaos.scenarios.model import ClusterModel, Scenario, WorkloadModel
from tests.ran import ran

from .programs import NEMESRV, nemesrv

GOOD = Machine(
    java=Java(path=Path("/usr/bin/java"), home=None, version=17),
    open_files=20_000,
    address_space=None,
    tasks=None,
    memory=8_000 * MB,
    run_folder=Path("runs"),
    run_disk=10_000 * MB,
    temporary_folder=Path("/tmp"),
    temporary_disk=10_000 * MB,
    ports=1.0,
    toxiproxy=ToxiproxyProgram(path=Path("/usr/bin/toxiproxy-server")),
)
RUN = MachineNeeds.of_run(find("broker-partition"), spark=True)


def wrong(**changes: Any) -> list[tuple[str, str]]:
    """Part and mend of everything that is wrong with an otherwise good machine."""
    machine = dataclasses.replace(GOOD, **changes)
    return [(each.part, each.mend) for each in machine_parts(machine, RUN) if each.mend]


def test_a_good_machine_has_nothing_to_mend() -> None:
    assert wrong() == []
    assert [(each.part, each.found) for each in machine_parts(GOOD, RUN)] == [
        ("Java", "17, /usr/bin/java"),
        ("open files", "20000 allowed"),
        ("processes", "any number"),
        ("memory", "8000 MB free"),
        ("run folder", "10000 MB free at runs"),
        ("temporary files", "10000 MB free at /tmp"),
        ("ports", "100% of 20000 to 29999 free on 127.0.0.1"),
        ("Toxiproxy", "/usr/bin/toxiproxy-server"),
    ]


@pytest.mark.parametrize(
    ("java", "says"),
    [
        (Java(path=None, home=None, version=None), "there is no java on PATH, and Spark needs one: install a JDK 17"),
        (Java(path=None, home="/no", version=None), "JAVA_HOME is /no, and there is no bin/java in it: point it to a"),
        (Java(path=Path("/j"), home=None, version=None), "/j does not run as a Java: install a JDK 17"),
        (Java(path=Path("/j"), home=None, version=8), "/j is Java 8, and Spark needs 17 or newer: install a JDK 17"),
        (Java(path=Path("/h/bin/java"), home="/h", version=11), "JAVA_HOME is /h, and /h/bin/java is Java 11, and"),
    ],
)
def test_java(java: Java, says: str) -> None:
    ((part, mend),) = wrong(java=java)
    assert part == "Java"
    assert mend.startswith(says)


def test_every_other_part() -> None:
    assert wrong(open_files=256) == [
        (
            "open files",
            f"a process may open 256 files (ulimit -n), and this needs {RUN.open_files}: run `ulimit -n 4096` before "
            "it, as root or after raising the hard limit",
        )
    ]
    ((part, mend),) = wrong(memory=500 * MB)
    assert (part, mend.partition(":")[0]) == ("memory", f"500 MB free, and this needs {RUN.memory // MB} MB")
    ((part, mend),) = wrong(address_space=4_000 * MB)
    assert (part, "4000 MB of address space (ulimit -v)" in mend) == ("memory", True)
    ((part, mend),) = wrong(run_disk=5 * MB)
    assert (part, mend) == (
        "run folder",
        "the disk of runs has 5 MB left, and this needs 128 MB: free some of it, or name another folder with --out",
    )
    ((part, mend),) = wrong(temporary_disk=5 * MB)
    assert (part, mend.rpartition(", or ")[2]) == ("temporary files", "point TMPDIR to a larger one")
    ((part, mend),) = wrong(ports=0.0)
    assert (part, mend.partition(" ")[0]) == ("ports", "0%")
    ((part, mend),) = wrong(toxiproxy=ToxiproxyProgram(path=None, why="toxiproxy-server is missing: run `make setup`"))
    assert (part, mend) == ("Toxiproxy", "toxiproxy-server is missing: run `make setup`")
    ((part, mend),) = wrong(toxiproxy=ToxiproxyProgram(path=Path("/bin/false"), why="it ended with status 1"))
    assert mend.startswith("/bin/false is no Toxiproxy server: it ended with status 1; ")


def test_to_judge_needs_neither_ports_nor_toxiproxy_nor_rays_memory() -> None:
    machine = dataclasses.replace(
        GOOD, ports=0.0, toxiproxy=ToxiproxyProgram(path=None, why="missing"), memory=700 * MB
    )
    assert [each.mend for each in machine_parts(machine, MachineNeeds()) if each.mend] == []


def test_to_judge_without_spark_needs_neither_java_nor_its_memory_nor_address_space() -> None:
    none = Java(path=None, home=None, version=None)
    machine = dataclasses.replace(GOOD, java=none, memory=300 * MB, address_space=4_000 * MB, open_files=256)
    assert [each.mend for each in machine_parts(machine, MachineNeeds.of_judging(spark=False)) if each.mend] == []


def test_a_cluster_that_spark_does_not_judge_needs_no_java() -> None:
    needs = MachineNeeds.of_run(find("broker-partition"), spark=False)
    machine = dataclasses.replace(GOOD, java=Java(path=None, home=None, version=None), memory=needs.memory)
    assert [each.mend for each in machine_parts(machine, needs) if each.mend] == []
    assert needs.memory < RUN.memory


def test_a_larger_cluster_needs_more_files_and_memory() -> None:
    large = Scenario(
        name="large",
        cluster=ClusterModel(name_servers=5, brokers=20, profile="4.9"),
        workload=WorkloadModel(producers=20, consumers=20),
        checks=("routes_converge",),
    )
    needs = MachineNeeds.of_run(large, spark=True)
    assert needs.open_files > 4 * RUN.open_files
    assert needs.memory > RUN.memory
    assert MachineNeeds.of_all([find("smoke"), large], spark=True) == needs


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_402"\nJava(TM) SE', 8),
        ('IMPLEMENTOR="Debian"\nJAVA_VERSION="25"\n', 25),
        ("Error: could not find libjava.so", None),
    ],
)
def test_javas_version_in_its_own_words(text: str, version: int | None) -> None:
    assert java_version(text) == version


def test_the_java_of_java_home_counts_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, says in (("old", 'java version "1.8.0_402"'), ("new", 'openjdk version "21.0.1"')):
        program = tmp_path / name / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/new/bin:{os.environ['PATH']}")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert find_java().version == 21
    require_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(HarnessError, match="is Java 8, and Spark needs 17 or newer"):
        require_java()


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


MEMINFO = {"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:    4096 kB\n"}
V1, V2 = "sys/fs/cgroup/memory", "sys/fs/cgroup"


def test_memory_without_limits_is_the_kernels_figure(tmp_path: Path) -> None:
    root = write(tmp_path, {**MEMINFO, "proc/self/cgroup": "0::/\n"})
    assert free_memory(root) == 4 * MB


def test_memory_within_a_control_group_counts_its_file_cache_as_free(tmp_path: Path) -> None:
    v2 = {
        "proc/self/cgroup": "0::/box/inner\n",
        f"{V2}/box/memory.max": str(3 * MB),
        f"{V2}/box/memory.current": str(2 * MB),
        f"{V2}/box/memory.stat": f"anon 1\ninactive_file {MB}\n",
        f"{V2}/box/inner/memory.max": "max",
    }
    assert free_memory(write(tmp_path / "v2", {**MEMINFO, **v2})) == 2 * MB
    v1 = {
        "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/box\n",
        f"{V1}/box/memory.limit_in_bytes": str(3 * MB),
        f"{V1}/box/memory.usage_in_bytes": str(2 * MB),
        f"{V1}/box/memory.stat": "total_inactive_file 0\n",
    }
    assert free_memory(write(tmp_path / "v1", {**MEMINFO, **v1})) == MB


def test_too_few_processes_are_told_with_how_many_are_needed_before_any_is_started() -> None:
    ((part, mend),) = wrong(tasks=150)
    assert part == "processes"
    assert mend == (
        "150 more processes and threads allowed (ulimit -u, or pids.max of the container), and this needs 550: allow "
        "more, or end others"
    )
    assert wrong(tasks=600) == []
    assert MachineNeeds.of_judging(spark=False).tasks < MachineNeeds.of_judging(spark=True).tasks == 100


def test_processes_are_limited_by_user_and_control_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlimited = resource.RLIM_INFINITY
    root = write(tmp_path, {"proc/self/cgroup": "0::/box/inner\n", "proc/7/task/7/x": "", "proc/7/task/8/x": ""})
    monkeypatch.setattr(resource, "getrlimit", lambda _: (unlimited, unlimited))
    assert free_tasks(root, user=5) is None
    monkeypatch.setattr(resource, "getrlimit", lambda _: (400, unlimited))
    mine = (root / "proc/7").stat().st_uid
    assert free_tasks(root, user=mine + 1) == 400
    assert free_tasks(root, user=0) is None
    if mine:
        assert free_tasks(root, user=mine) == 398
    limits = {"box/pids.max": "100", "box/pids.current": "30", "box/inner/pids.max": "max"}
    write(root, {f"{V2}/{name}": text for name, text in limits.items()})
    assert free_tasks(root, user=mine + 1) == 70


def test_this_machine_is_measured(tmp_path: Path) -> None:
    machine = measure(tmp_path / "not" / "there" / "yet")
    assert machine.memory > 0
    assert machine.run_disk > 0
    assert 0 < machine.ports <= 1
    assert machine.open_files >= resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_require_raises_the_limit_of_open_files_towards_the_hard_one(tmp_path: Path) -> None:
    program = """
import resource
from pathlib import Path
from nemesrv.actors.processes import allow_open_files
allow_open_files(900)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""
    command = f"ulimit -Sn 100; exec {sys.executable} -c '{program}'"
    done = ran(["bash", "-c", command], check=True)
    assert done.stdout == "900\n"


def test_a_wrong_toxiproxy_is_told_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMESRV_TOXIPROXY", "/bin/false")
    with pytest.raises(HarnessError, match="/bin/false is no Toxiproxy server: `false -version` ended with status 1"):
        require(RUN, tmp_path)


@pytest.mark.java
def test_the_command_says_what_there_is(tmp_path: Path) -> None:
    done = nemesrv("preflight", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split("  ")[0] for line in done.stdout.splitlines()] == [
        *("Java", "open files", "processes", "memory", "run folder", "temporary files"),
        *("ports", "Toxiproxy"),
    ]


@pytest.mark.nightly_but("256-run smoke")
@pytest.mark.parametrize("command", ["run smoke", "up", "preflight"])
@pytest.mark.parametrize("limit", [64, 256])
def test_too_few_open_files_are_told_at_once_by_every_command(limit: int, command: str, tmp_path: Path) -> None:
    line = f"ulimit -n {limit}; exec {' '.join(NEMESRV)} {command}"
    done = ran(["bash", "-c", line], cwd=tmp_path, timeout=60)
    assert done.returncode == 4
    assert f"a process may open {limit} files (ulimit -n), and this needs " in done.stdout + done.stderr
    assert not (tmp_path / "runs").exists()

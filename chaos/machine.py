"""Measures what this machine has for an experiment: Java, files, processes, memory, disks, ports, Toxiproxy. The
measurement takes 0.1 s if Java's version can be read from the JDK's file `release`, without starting Java."""

import multiprocessing
import os
import re
import resource
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from .errors import HarnessError, ToxiproxyError
from .faults.ports import FIRST, LAST
from .faults.toxiproxy_binary import find_server

PROGRAM_LIMIT_S = 10
JAVA_MIN = 17
_HOW_TO_GET_JAVA = f"install a JDK {JAVA_MIN} or newer (Debian: apt-get install openjdk-17-jdk-headless)"
PORTS_TRIED = 100
_WORTH_PROCESSES = 4
"""Jobs."""
_UNLIMITED = 1 << 60

Job = TypeVar("Job")
Found = TypeVar("Found")


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_processes(work: Callable[[Job], Found], jobs: Sequence[Job], at_once: int) -> Iterator[Found]:
    """Yield the result of `work` for each job, in the order of `jobs`, as early as possible; `at_once` processes work
    in parallel. If there are only a few jobs, or `at_once` is 1, no process is started, because a start takes as long
    as a short job."""
    at_once = min(at_once, len(jobs))
    if at_once <= 1 or len(jobs) < _WORTH_PROCESSES:
        yield from map(work, jobs)
        return
    context = multiprocessing.get_context("spawn")  # a fork would take this process's threads' locks along
    with ProcessPoolExecutor(at_once, mp_context=context) as pool:
        futures = [pool.submit(work, job) for job in jobs]
        try:
            for future in futures:
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():  # nobody waits for its result
                worker.kill()
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """The `java` that Spark will start: the one in JAVA_HOME, else the first on PATH."""

    path: Path | None
    """None: none on PATH."""
    home: str | None
    """JAVA_HOME, if set."""
    version: int | None
    """None: it cannot be run, or is no Java."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToxiproxyProgram:
    path: Path | None
    why: str = ""
    """Why it cannot be used; "" if it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What this machine has for an experiment. All sizes are in bytes; a size of None means no limit."""

    java: Java
    open_files: int
    """Open files per process: the hard limit."""
    address_space: int | None
    tasks: int | None
    """Processes and threads that may still be started."""
    memory: int
    """Free memory, within the limits of our control groups."""
    run_folder: Path
    run_disk: int
    temporary_folder: Path
    temporary_disk: int
    ports: float
    """Share of our port range that is free; 0 if the loopback address cannot be used."""
    toxiproxy: ToxiproxyProgram


def measure(run_folder: Path) -> Machine:
    """Measure what the machine has now. `run_folder` need not exist."""
    there = next(each for each in (run_folder.resolve(), *run_folder.resolve().parents) if each.exists())
    temporary = Path(tempfile.gettempdir())
    address_space = resource.getrlimit(resource.RLIMIT_AS)[0]
    open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return Machine(
        java=find_java(),
        open_files=_UNLIMITED if open_files == resource.RLIM_INFINITY else open_files,
        address_space=None if address_space == resource.RLIM_INFINITY else address_space,
        tasks=free_tasks(),
        memory=free_memory(),
        run_folder=run_folder,
        run_disk=free_bytes(there),
        temporary_folder=temporary,
        temporary_disk=free_bytes(temporary),
        ports=_free_ports(),
        toxiproxy=_toxiproxy(),
    )


def find_java() -> Java:
    home = os.environ.get("JAVA_HOME") or None
    found = shutil.which("java") if home is None else shutil.which("java", path=str(Path(home, "bin")))
    if found is None:
        return Java(path=None, home=home, version=None)
    return Java(path=Path(found), home=home, version=_version_of(Path(found)))


def _version_of(java: Path) -> int | None:
    release = java.resolve().parent.parent / "release"
    with suppress(OSError):
        if (version := java_version(release.read_text(errors="replace"))) is not None:
            return version
    with suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, errors="replace", timeout=PROGRAM_LIMIT_S
        )
        return java_version(said.stderr + said.stdout)
    return None


def java_version(text: str) -> int | None:
    """Return Java's major version (8 for 1.8), from the output of `java -version` or a JDK's file `release`."""
    found = re.search(r'(?:\bversion |^JAVA_VERSION=)"(?:1\.)?(\d+)', text, re.MULTILINE)
    return None if found is None else int(found[1])


def java_found(java: Java) -> tuple[str, str]:
    """Return the Java that was found and, if Spark cannot use it, a sentence that says what to do."""
    from_home = "" if java.home is None else f"JAVA_HOME is {java.home}, and "
    mend_home = "" if java.home is None else ", or unset JAVA_HOME"
    if java.path is None and java.home is not None:
        return ("none", f"{from_home}there is no bin/java in it: point it to a JDK {JAVA_MIN} or newer{mend_home}")
    if java.path is None:
        return ("none", f"there is no java on PATH, and Spark needs one: {_HOW_TO_GET_JAVA}")
    if java.version is None:
        return (str(java.path), f"{from_home}{java.path} does not run as a Java: {_HOW_TO_GET_JAVA}{mend_home}")
    found = f"{java.version}, {java.path}"
    if java.version < JAVA_MIN:
        return (
            found,
            f"{from_home}{java.path} is Java {java.version}, and Spark needs {JAVA_MIN} or newer: {_HOW_TO_GET_JAVA} "
            "and put it first on PATH" + (mend_home and ", or point JAVA_HOME to it"),
        )
    return (found, "")


def require_java() -> None:
    if mend := java_found(find_java())[1]:
        raise HarnessError(mend)


def free_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def free_memory(root: Path = Path("/")) -> int:
    """Return the free memory in bytes: the machine's, or less if a control group (v1 or v2) allows less."""
    available = _UNLIMITED
    with suppress(OSError):
        found = re.search(r"^MemAvailable:\s+(\d+) kB", (root / "proc/meminfo").read_text(), re.MULTILINE)
        available = int(found[1]) * 1024 if found else available
    of_groups = (_left_in(group, *_MEMORY_FILES[v2]) for group, v2 in _groups(root, "memory"))
    return min(available, *of_groups, _UNLIMITED)


_MEMORY_FILES = (("memory.limit_in_bytes", "memory.usage_in_bytes"), ("memory.max", "memory.current"))


def _groups(root: Path, controller: str) -> Iterator[tuple[Path, bool]]:
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                base = root / "sys/fs/cgroup"
            elif controller in controllers.split(","):
                base = root / "sys/fs/cgroup" / controller
            else:
                continue
            group = base / path.strip("/")
            for each in (group, *group.parents):
                yield each, controllers == ""
                if each == base:
                    break


def free_tasks(root: Path = Path("/"), user: int | None = None) -> int | None:
    """Return how many processes and threads this user may still start; None: no limit. The limit on processes is
    `ulimit -u` (not for root) or a control group's `pids.max`."""
    user = os.getuid() if user is None else user
    allowed = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    left = [] if not user or allowed == resource.RLIM_INFINITY else [max(0, allowed - _tasks_of(user, root))]
    for group, _ in _groups(root, "pids"):
        with suppress(OSError, ValueError):  # "max" is no number
            left.append(max(0, int((group / "pids.max").read_text()) - int((group / "pids.current").read_text())))
    return min(left, default=None)


def _tasks_of(user: int, root: Path) -> int:
    count = 0
    for process in (root / "proc").glob("[0-9]*"):
        with suppress(OSError):
            count += len(os.listdir(process / "task")) if process.stat().st_uid == user else 0
    return count


def _left_in(group: Path, limit: str, used: str) -> int:
    try:
        allowed = (group / limit).read_text().strip()
        if allowed == "max" or int(allowed) >= _UNLIMITED:
            return _UNLIMITED
        cache = re.search(r"^(?:total_)?inactive_file (\d+)", (group / "memory.stat").read_text(), re.MULTILINE)
        return max(0, int(allowed) - int((group / used).read_text()) + (int(cache[1]) if cache else 0))
    except (OSError, ValueError):
        return _UNLIMITED


def _free_ports() -> float:
    free = 0
    for port in range(FIRST, LAST + 1, (LAST + 1 - FIRST) // PORTS_TRIED):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            free += 1
    return free / PORTS_TRIED


def _toxiproxy() -> ToxiproxyProgram:
    try:
        path = find_server()
    except ToxiproxyError as exc:
        return ToxiproxyProgram(path=None, why=str(exc))
    try:
        said = subprocess.run([str(path), "-version"], capture_output=True, timeout=PROGRAM_LIMIT_S)
    except (OSError, subprocess.SubprocessError) as exc:
        return ToxiproxyProgram(path=path, why=f"it cannot be run: {getattr(exc, 'strerror', None) or exc}")
    why = "" if said.returncode == 0 else f"`{path.name} -version` ended with status {said.returncode}"
    return ToxiproxyProgram(path=path, why=why)

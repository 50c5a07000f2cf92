"""Three hosts on this machine: network namespaces on a bridge, each with its own address and its own `ray start`.

    bridge ──┬── veth ── a  .1   ray start --head          the driver runs here
             ├── veth ── b  .2   ray start --address a
             └── veth ── c  .3   ray start --address a     in a time namespace: CLOCK_MONOTONIC 700 ms ahead

Each host has a loopback device of its own, so that 127.0.0.1 is another one on each. When the block ends, every process
in the namespaces is killed and nothing is left. Needs root and iproute2.
"""

from __future__ import annotations

import functools
import itertools
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from nemesrv.actors.host_agent import FORGOTTEN_S as FORGOTTEN_S
from tests.ran import ran

HOSTS = ("a", "b", "c")
AHEAD_MS = 700
"""How far the CLOCK_MONOTONIC of the last host is ahead."""
PORT = 6379
UP_LIMIT_S = 180.0
ROOT = Path(__file__).parents[2]
_NUMBERS = itertools.count()
"""Of the benches of this process."""


@functools.cache
def missing() -> str:
    """Why no hosts can be had here; "" when they can."""
    if os.geteuid() != 0:
        return "network namespaces joined by a bridge need root"
    if shutil.which("ip") is None:
        return "ip (iproute2) is not on PATH"
    name = f"nmsv{os.getpid() % 10_000}p"
    made = ran(["ip", "netns", "add", name])
    if made.returncode:
        return f"no network namespace can be made: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=False)
    made = ran(["ip", "link", "add", name, "type", "bridge"])
    if made.returncode:
        return f"no bridge can be made: {made.stderr.strip()}"
    subprocess.run(["ip", "link", "del", name], check=False)
    ahead = [sys.executable, str(Path(__file__).with_name("in_time_namespace.py")), "0", "true"]
    made = ran(ahead)
    if made.returncode:
        return f"no time namespace can be made: {made.stderr.strip().rpartition(': ')[2]}"
    return ""


class Bench:
    """The hosts by name, of which the first has Ray's head. Context manager."""

    def __init__(self, hosts: tuple[str, ...] = HOSTS, *, ahead_ms: int = AHEAD_MS, late: tuple[str, ...] = ()) -> None:
        """`late`: the hosts whose Ray somebody starts later."""
        self._late = late
        tag, number = os.getpid() % 10_000, next(_NUMBERS)
        self.hosts, self._ahead_ms = hosts, ahead_ms
        self._bridge, self._net = f"nm{number}h{tag}", (tag + 83 * number) % 250
        self._stack = ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="nmsh-", dir="/tmp"))
        self.temporary = self.folder / "t"
        self.temporary.mkdir()
        self.token = secrets.token_hex(16)

    # -- coming up

    def __enter__(self) -> Bench:
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self._ip("link", "add", self._bridge, "type", "bridge")
            stack.callback(self._ip, "link", "del", self._bridge)
            self._ip("link", "set", self._bridge, "up")
            for host in self.hosts:
                self._make(host, stack)
            self._stack = stack.pop_all()
        try:
            self.start_ray(self.hosts[0])
            there = tuple(host for host in self.hosts if host not in self._late)
            for host in there[1:]:
                self.start_ray(host)
            self.await_ray(there)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_of: object) -> None:
        self._stack.close()

    def _make(self, host: str, stack: ExitStack) -> None:
        space, port = self.space(host), f"{self._bridge}{host}"
        self._ip("netns", "add", space)
        stack.callback(self._end, host)
        self._ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
        self._ip("link", "set", port, "master", self._bridge, "up")
        self._ip("-n", space, "link", "set", "lo", "up")
        self._ip("-n", space, "link", "set", "eth0", "up")
        self._ip("-n", space, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")

    def _end(self, host: str) -> None:
        self.kill_all(host)
        self._ip("netns", "del", self.space(host))

    def space(self, host: str) -> str:
        return f"{self._bridge}-{host}"

    def address(self, host: str) -> str:
        return f"10.78.{self._net}.{self.hosts.index(host) + 1}"

    @property
    def head(self) -> str:
        """What `--ray` is given."""
        return f"{self.address(self.hosts[0])}:{PORT}"

    def start_ray(self, host: str) -> None:
        """`ray start` there, in the background: `await_ray`."""
        about = (
            ["--head", "--port", str(PORT), "--include-dashboard", "false", "--temp-dir", str(self.folder / "ray")]
            if host == self.hosts[0]
            else ["--address", self.head]
        )
        ray = Path(sys.executable).with_name("ray")
        command = [str(ray), "start", "--block", *about, "--node-ip-address", self.address(host)]
        command += ["--num-cpus", "4", "--object-store-memory", "100000000", "--labels", f"nemesrv-host={host}"]
        command += ["--resources", f'{{"on-{host}": 1}}', "--no-monitor", "--include-log-monitor", "false"]
        if host == self.hosts[-1] and self._ahead_ms:
            command = [
                sys.executable,
                str(Path(__file__).with_name("in_time_namespace.py")),
                str(self._ahead_ms),
                *command,
            ]
        if host != self.hosts[0]:  # two Rays that start at once in one folder take one name for their sockets
            own = self.folder / f"ray-of-{host}"
            own.mkdir(exist_ok=True)
            (self.folder / "ray").mkdir(exist_ok=True)
            mount = 'mount --bind "$0" "$1" && shift && exec "$@"'  # seen by this one only: `ip netns exec` unshares
            command = ["sh", "-c", mount, str(own), str(self.folder / "ray"), *command]
        self.start(host, command, f"ray-{host}.log")

    @property
    def environment(self) -> Mapping[str, str]:
        """Of Ray, and of a driver."""
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "TMPDIR": str(self.temporary),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self.token,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_memory_monitor_refresh_ms": "0",
            "RAY_enable_metrics_collection": "false",
            "RAY_event_stats": "false",
            "RAY_worker_niceness": "0",
            "RAY_worker_maximum_startup_concurrency": "8",
        }

    def await_ray(self, hosts: tuple[str, ...]) -> None:
        """The Ray nodes of these hosts have joined the head. AssertionError after UP_LIMIT_S."""
        until_s = time.monotonic() + UP_LIMIT_S
        script = (
            "import logging, sys, time, ray\n"
            "ray.init(address=sys.argv[1], log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)\n"
            "while not set(sys.argv[2:]) <= {n['NodeManagerAddress'] for n in ray.nodes() if n['Alive']}:\n"
            "    time.sleep(0.1)\n"
        )
        wanted = [self.address(host) for host in hosts]
        while True:
            asked = self.run([sys.executable, "-c", script, self.head, *wanted], limit_s=UP_LIMIT_S)
            if asked.returncode == 0:
                return
            if time.monotonic() > until_s:
                logs = "\n".join(log.read_text()[-2000:] for log in self.folder.glob("ray-*.log"))
                raise AssertionError(f"Ray did not come up: {asked.stderr[-2000:]}\n{logs}")

    # -- programs there

    def start(self, host: str, command: list[str], log: str) -> subprocess.Popen[bytes]:
        """Started on that host; it ends with the bench."""
        with (self.folder / log).open("ab") as said:
            return subprocess.Popen(
                ["ip", "netns", "exec", self.space(host), *command],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=dict(self.environment),
                start_new_session=True,
                cwd=self.folder,
            )

    def run(
        self, command: list[str], *, limit_s: float = 300.0, folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run to its end where the driver is, in that folder."""
        return ran(
            ["ip", "netns", "exec", self.space(self.hosts[0]), *command],
            stdin=subprocess.DEVNULL,
            env=dict(self.environment),
            timeout=limit_s,
            cwd=folder or self.folder,
        )

    def nemesrv(
        self, *arguments: str, limit_s: float = 300.0, folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The command, where the driver is."""
        return self.run([sys.executable, "-m", "nemesrv.chaos", *arguments], limit_s=limit_s, folder=folder)

    def started(self, *arguments: str) -> subprocess.Popen[str]:
        """The command, where the driver is, under way: its stdout and stderr are pipes."""
        return subprocess.Popen(
            ["ip", "netns", "exec", self.space(self.hosts[0]), sys.executable, "-m", "nemesrv.chaos", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(self.environment),
            cwd=self.folder,
        )

    def pids(self, host: str) -> dict[int, str]:
        """What runs there, with its command line."""
        found = {}
        shown = ran(["ip", "netns", "pids", self.space(host)], check=True)
        for pid in map(int, shown.stdout.split()):
            with suppress(OSError):
                found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return found

    def ours(self, host: str) -> list[str]:
        """Of what runs there, what nemesrv has started: actors, agents, guardians, Toxiproxy."""
        marks = ("ray::NodeActor", "ray::HostAgent", "toxiproxy", "pidfd_open")
        return [command for command in self.pids(host).values() if any(mark in command for mark in marks)]

    # -- what befalls them

    def kill_all(self, host: str) -> None:
        """SIGKILL to every process there."""
        until_s = time.monotonic() + 10
        while (pids := self.pids(host)) and time.monotonic() < until_s:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def unplug(self, host: str) -> None:
        """No packet comes to it or from it any more, and nobody is told."""
        self._ip("link", "set", f"{self._bridge}{host}", "down")

    def kill_raylet(self, host: str) -> None:
        """SIGKILL to the raylet there, and to nothing else."""
        (raylet,) = (pid for pid, command in self.pids(host).items() if "raylet/raylet" in command.split(" ", 1)[0])
        os.kill(raylet, signal.SIGKILL)

    def kill_head(self) -> None:
        """SIGKILL to Ray's control server."""
        (gcs,) = (
            pid for pid, command in self.pids(self.hosts[0]).items() if "gcs/gcs_server" in command.split(" ", 1)[0]
        )
        os.kill(gcs, signal.SIGKILL)

    @staticmethod
    def _ip(*arguments: str) -> None:
        done = ran(["ip", *arguments])
        if done.returncode:
            raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")

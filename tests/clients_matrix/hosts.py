"""Hosts of a real network on this machine: network namespaces joined by a bridge, each with one server of ours.

    this namespace ── bridge .254 ──┬── veth ── ns-0     .1      kill    SIGKILL of the server's process
      (the clients)                 ├── veth ── ns-1     .2      cut     its port of the bridge is down: what is sent is
                                    ├── veth ── broker-a .3              lost, and nobody says so (neighbours are fixed)
                                    └── veth ── broker-b .4      reset   `ss --kill` of its connections under way

Nothing stands between a client and a server: what clients meet here is what the faults of an experiment stand for.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

from nemesrv.chaos.apache.properties import write
from tests.interop.programs import Program

NET = "10.77.{}.{}"
NAME_SERVER_PORT, BROKER_PORT = 9876, 10911
STANDS_STILL_S = 0.45


def missing() -> str:
    """Why no hosts can be had here; "" when they can."""
    if os.geteuid() != 0:
        return "network namespaces joined by a bridge need root"
    if absent := [name for name in ("ip", "ss") if shutil.which(name) is None]:
        return f"{' and '.join(absent)} (iproute2) not on PATH"
    name = f"nmsv{os.getpid() % 10_000}p"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"no network namespace can be made: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=False)
    return ""


class Hosts:
    """One host a server, by name. Gone, with what runs there, when its `with` block ends."""

    def __init__(self, names: tuple[str, ...]) -> None:
        tag = os.getpid() % 10_000
        self._bridge, self._net = f"nmsv{tag}", tag % 250
        self._names = names
        self._stack = ExitStack()
        self.programs: dict[str, Program] = {}

    def __enter__(self) -> Hosts:
        with ExitStack() as stack:
            # a bridge without an address of its own takes the lowest of its ports', which changes with them
            self._ip("link", "add", self._bridge, "address", f"02:00:00:00:00:{self._net:02x}", "type", "bridge")
            stack.callback(self._ip, "link", "del", self._bridge)
            self._ip("addr", "add", f"{self._address(254)}/24", "dev", self._bridge)
            self._ip("link", "set", self._bridge, "up")
            for name in self._names:
                self._make(name, stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for program in self.programs.values():
                program.kill()
        finally:
            self._stack.close()

    def _address(self, host: int) -> str:
        return NET.format(self._net, host)

    def _space(self, name: str) -> str:
        return f"{self._bridge}-{name}"

    def _port(self, name: str) -> str:
        return f"{self._bridge}h{self._names.index(name)}"

    def address(self, name: str) -> str:
        """host:port of the server there."""
        port = NAME_SERVER_PORT if name.startswith("ns-") else BROKER_PORT
        return f"{self._address(self._names.index(name) + 1)}:{port}"

    def _make(self, name: str, stack: ExitStack) -> None:
        space, port = self._space(name), self._port(name)
        own = self.address(name).partition(":")[0]
        self._ip("netns", "add", space)
        stack.callback(self._ip, "netns", "del", space)
        self._ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
        self._ip("link", "set", port, "master", self._bridge, "up")
        for command in (("link", "set", "lo", "up"), ("link", "set", "eth0", "up")):
            self._ip("-n", space, *command)
        self._ip("-n", space, "addr", "add", f"{own}/24", "dev", "eth0")
        # a neighbour that is never asked for again: a lost host is silence then, and no "no route to host" after 3 s
        self._ip("neigh", "replace", own, "lladdr", self._mac("-n", space, dev="eth0"), "dev", self._bridge)
        here = self._mac(dev=self._bridge)
        self._ip("-n", space, "neigh", "replace", self._address(254), "lladdr", here, "dev", "eth0")

    def _mac(self, *where: str, dev: str) -> str:
        shown = subprocess.run(["ip", "-j", *where, "link", "show", dev], capture_output=True, text=True, check=True)
        return str(json.loads(shown.stdout)[0]["address"])

    @staticmethod
    def _ip(*arguments: str) -> None:
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")

    # -- servers

    def start(self, name: str, folder: Path, profile: str, *arguments: str) -> None:
        """`nemesrv namesrv` or `broker` on that host, serving."""
        folder.mkdir(parents=True)
        host, _, port = self.address(name).partition(":")
        settings: dict[str, object] = {"profile": profile, "bindAddress": host, "listenPort": port}
        if name.startswith("broker"):
            settings |= {"brokerName": name, "brokerIP1": host, "storePathRootDir": folder / "store"}
            settings |= {"mappedFileSizeCommitLog": 16 << 20}
        else:
            settings |= {"kvConfigPath": folder / "kv.json"}
        config = write(folder / "server.conf", settings)
        what = "broker" if name.startswith("broker") else "namesrv"
        command = [sys.executable, "-m", "nemesrv.chaos", what, *arguments, "-c", str(config)]
        inside = ["ip", "netns", "exec", self._space(name), *command]
        self.programs[name] = Program(name, inside, folder, env={"HOME": str(folder)})
        self.programs[name].wait_for("boot success")

    # -- what befalls them

    def kill(self, name: str) -> None:
        self.programs[name].kill()

    def cut(self, name: str) -> None:
        self._ip("link", "set", self._port(name), "down")

    def heal(self, name: str) -> None:
        self._ip("link", "set", self._port(name), "up")

    def reset(self, name: str) -> None:
        """RST to whoever is connected to the server there, while calls are under way: it stands still meanwhile, so
        that nothing is answered before."""
        with self._standing_still(name):
            self._reset(name)

    @contextmanager
    def _standing_still(self, name: str) -> Iterator[None]:
        """For a little longer than a client takes from one send to the next; the calls that have come wait."""
        pid = self.programs[name].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(STANDS_STILL_S)
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def _reset(self, name: str) -> None:
        port = self.address(name).rpartition(":")[2]
        inside = [
            "ip",
            "netns",
            "exec",
            self._space(name),
            "ss",
            "--kill",
            "state",
            "established",
            "sport",
            f"= :{port}",
        ]
        done = subprocess.run(inside, capture_output=True, text=True, check=True)
        assert len(done.stdout.splitlines()) > 1, f"nobody was connected to {name}: {done.stderr}"

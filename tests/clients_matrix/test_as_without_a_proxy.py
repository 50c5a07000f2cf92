"""A crash, a black hole and a reset of an experiment are to clients what they are where no proxy stands.

The same clients (Java, Go, ours) at the same servers, once on hosts of a real network (hosts.py), once as outsiders of
`nemesrv up`, whose links are Toxiproxy's. After each fault: how many sends failed, and the longest time without one
that was acknowledged.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from nemesrv.remoting.node.network import Address
from tests.interop.programs import Program
from tests.interop.waiting import ask, eventually

from .catalogue import CLIENTS
from .hosts import Hosts, missing
from .install import ClientMissing, command

pytestmark = [pytest.mark.nightly, pytest.mark.java, pytest.mark.ray, pytest.mark.toxiproxy]

NAMES = ("java-4.9.8", "go-2.1.2", "ours-4.9")
TOPIC = "orders"
SERVERS = ("ns-0", "ns-1", "broker-a", "broker-b")
FAULTS = ("reset", "reset", "reset", "black_hole", "kill")
"""Each with clients that have just been started; a reset is a moment, so that several tell more."""
BEHIND_S = {"reset": 5.0, "black_hole": 18.0, "kill": 18.0}
"""How long clients are watched after a fault: no poll of the routes falls into it, for the first comes after 30 s."""
NEAR_S = 1.2
"""How far the longest stalls of both may lie apart: a send's turn comes each 0.2 s, on a machine that is busy."""
A_CALL_S = 3.5
"""A call that waits for its time-out, because its connection ended with FIN while it was under way: Java and Go fail
such a call at once after an RST only. Toxiproxy closes an older connection with FIN, and for some 50 ms after a kill
it accepts dials and closes them."""
TWO_TRIES_S = 12.0
"""Go asks one at a time, 6 s a try, so that how many tries fall into the time watched, and whether a send has used up
all of its own by then, is chance."""
MORE_S = {
    ("reset", "java-4.9.8"): A_CALL_S,
    ("reset", "go-2.1.2"): A_CALL_S,
    ("kill", "go-2.1.2"): A_CALL_S,
    ("black_hole", "go-2.1.2"): TWO_TRIES_S,
}
"""Where they may lie further apart; docs/faults.md says how far."""


@dataclass
class Timed:
    """A driver, and when each of its sends ended."""

    program: Program
    ends: list[tuple[float, bool]] = field(default_factory=list)
    _read: int = 0

    def read(self) -> None:
        lines = self.program.lines
        while self._read < len(lines):
            line, self._read = lines[self._read], self._read + 1
            if line.startswith("{") and (said := json.loads(line)).get("f") == "sent":
                self.ends.append((time.monotonic(), said["type"] == "ok"))


@dataclass(frozen=True)
class Met:
    """What a client met in the time after a fault."""

    failed: int
    stalled_s: float
    sent: int


class Cluster(Protocol):
    name_servers: str

    def reset(self, name: str) -> None: ...
    def black_hole(self, name: str) -> None: ...
    def heal(self, name: str) -> None: ...
    def kill(self, name: str) -> None: ...


class WithoutProxies:
    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self.name_servers = ";".join(hosts.address(name) for name in SERVERS if name.startswith("ns-"))
        self.reset, self.black_hole, self.heal, self.kill = hosts.reset, hosts.cut, hosts.heal, hosts.kill


class BehindToxiproxy:
    """A cluster of `nemesrv up`, whose links to the outside are asked for faults."""

    def __init__(self, run: str, name_servers: str) -> None:
        self._run, self.name_servers = run, name_servers

    def _fault(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "nemesrv.chaos", "fault", "--run", self._run, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr

    def reset(self, name: str) -> None:
        self._fault("reset", f"external <-> {name}", "--for", "0.2")

    def black_hole(self, name: str) -> None:
        self._fault("black_hole", f"external <-> {name}")

    def heal(self, name: str) -> None:
        self._fault("heal", f"external <-> {name}")

    def kill(self, name: str) -> None:
        self._fault("kill", name)


@contextmanager
def without_proxies(folder: Path) -> Iterator[Cluster]:
    with Hosts(SERVERS) as hosts:
        of = [name for name in SERVERS if name.startswith("ns-")]
        for name in of:
            hosts.start(name, folder / name, "4.9")
        told = ";".join(hosts.address(name) for name in of)
        for name in SERVERS[len(of) :]:
            hosts.start(name, folder / name, "4.9", "-n", told)
        make_topic(told, [hosts.address(name) for name in SERVERS[len(of) :]])
        yield WithoutProxies(hosts)


@contextmanager
def behind_toxiproxy(folder: Path) -> Iterator[Cluster]:
    folder.mkdir()
    size = ("--name-servers", "2", "--brokers", "2", "--profile", "4.9")
    out = folder / "run"
    command = [sys.executable, "-m", "nemesrv.chaos", "up", *size, "--json", "--out", str(out)]
    with Program("up", command, folder) as up:
        up.wait_for('"name_servers"', within_s=120)
        told = json.loads(next(line for line in up.lines if line.startswith("{")))
        make_topic(";".join(told["name_servers"]), [of["0"] for of in told["brokers"].values()])
        try:
            yield BehindToxiproxy(str(out), ";".join(told["name_servers"]))
        finally:
            up.terminate(within_s=60)


def make_topic(name_servers: str, brokers: list[str]) -> None:
    first = name_servers.partition(";")[0]
    for address in brokers:
        ask(first, lambda admin, address=address: admin.create_topic(Address.parse(address), TOPIC))

    def everywhere() -> None:
        for name_server in name_servers.split(";"):
            assert len(ask(name_server, lambda admin: admin.topic_route(TOPIC)).queue_datas) == len(brokers)

    eventually(everywhere, within_s=60)


def watched(clients: Mapping[str, Timed], for_s: float) -> None:
    """Read what they say for so long."""
    until = time.monotonic() + for_s

    def read() -> bool:
        for client in clients.values():
            client.read()
        return time.monotonic() < until

    Retrying(stop=stop_after_delay(for_s + 60), wait=wait_fixed(0.02), retry=retry_if_result(bool))(read)


def after(clients: Mapping[str, Timed], fault: Callable[[], None], for_s: float) -> dict[str, Met]:
    """What each met from the fault on."""
    watched(clients, 0.0)
    from_s = time.monotonic()
    fault()
    watched(clients, for_s)
    met = {}
    for name, client in clients.items():
        ended = [(at, ok) for at, ok in client.ends if at >= from_s]
        good = [from_s, *(at for at, ok in ended if ok), time.monotonic()]
        longest = max(later - earlier for earlier, later in pairwise(good))
        met[name] = Met(sum(not ok for _, ok in ended), longest, len(ended))
    return met


def met_at(cluster: Cluster, folder: Path) -> dict[tuple[int, str], dict[str, Met]]:
    """Number and name of the fault to client to what it met."""
    found = {}
    for number, fault in enumerate(FAULTS):
        with ExitStack() as stack:
            clients = {name: stack.enter_context(started(name, cluster, folder / f"{number}-{name}")) for name in NAMES}

            def all_send(clients: Mapping[str, Timed] = clients) -> None:
                watched(clients, 0.0)
                assert all(sum(ok for _, ok in client.ends) >= 10 for client in clients.values())

            eventually(all_send, within_s=60)
            found[number, fault] = after(clients, lambda: getattr(cluster, fault)("broker-a"), BEHIND_S[fault])  # noqa: B023
        if fault == "black_hole":
            cluster.heal("broker-a")
    return found


@contextmanager
def started(name: str, cluster: Cluster, folder: Path) -> Iterator[Timed]:
    try:
        words = command(CLIENTS[name])
    except ClientMissing as exc:
        pytest.skip(str(exc))
    folder.mkdir(parents=True)
    env = {"NAMESRV_ADDR": cluster.name_servers, "NEMESRV_TOPIC": TOPIC, "NEMESRV_GROUP": f"g-{name[:2]}"}
    with Program(name, words, folder, env={**env, "NEMESRV_ROLE": "producer"}) as program:
        yield Timed(program)


@pytest.mark.timeout(900)
def test_clients_meet_behind_toxiproxy_what_they_meet_on_a_direct_connection(tmp_path: Path) -> None:
    if why := missing():
        pytest.skip(why)
    with without_proxies(tmp_path / "direct") as cluster:
        direct = met_at(cluster, tmp_path / "direct-clients")
    with behind_toxiproxy(tmp_path / "proxied") as cluster:
        proxied = met_at(cluster, tmp_path / "proxied-clients")
    apart = []
    for (number, fault), of in direct.items():
        for name, here in of.items():
            there = proxied[number, fault][name]
            print(f"{fault:10} {name:11} direct {here.failed} failed, {here.stalled_s:.2f} s; "
                  f"behind Toxiproxy {there.failed} failed, {there.stalled_s:.2f} s")  # fmt: skip
            near_s = MORE_S.get((fault, name), NEAR_S)
            differs = near_s == NEAR_S and (here.failed == 0) != (there.failed == 0)
            if differs or abs(here.stalled_s - there.stalled_s) > near_s:
                apart.append((fault, name, here, there))
    assert apart == []

"""A kill is a crash: dials to a process that is gone are refused, through Toxiproxy as on a direct connection."""

import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import pytest

from nemesrv.chaos.faults.fault import Dial, Fault
from nemesrv.chaos.faults.kinds import FAULTS
from nemesrv.chaos.faults.link_faults import Bandwidth, BlackHole, Cut, HalfOpen, Latency, LinkFault, Reset, SynDrop
from nemesrv.chaos.faults.outside import faults_of
from nemesrv.chaos.faults.ports import PortHolder
from nemesrv.chaos.faults.process_faults import Kill, Pause, PortTaken, Remove, Stop
from nemesrv.chaos.faults.toxiproxy import Toxiproxy
from nemesrv.chaos.faults.toxiproxy_links import LinkFaults
from nemesrv.chaos.topology import Link
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address

from .sockets import Rows, dial, is_closed, is_quiet, is_refused

pytestmark = pytest.mark.toxiproxy

NEAR, FAR = Link("broker-a", "ns-0"), Link("broker-b", "ns-0")

ECHO = textwrap.dedent(
    """
    import socket, struct, sys, threading
    listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
    print("listens", flush=True)
    def serve(sock):
        while sys.argv[3] == "reads" and (data := sock.recv(1000)):
            sock.sendall(data)
        if sys.argv[3] == "resets" and sock.recv(1):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
        threading.Event().wait()
    while True:
        threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()
    """
)


@dataclass
class Server:
    """A plain TCP server in a process of its own, which echoes, only accepts, or resets at the first bytes."""

    address: Address
    does: Literal["reads", "accepts", "resets"] = "reads"
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> int:
        program = [sys.executable, "-c", ECHO, self.address.host, str(self.address.port), self.does]
        self._process = subprocess.Popen(program, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"listens\n"
        return self._process.pid

    def signal(self, signum: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(signum)

    def kill(self) -> int:
        """Its pid; it is gone."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        return process.pid


@dataclass
class World:
    """One server behind two proxies."""

    links: LinkFaults
    api: Toxiproxy
    server: Server
    dials: dict[Link, Address]
    rows: Rows = field(default_factory=Rows)

    def start(self) -> None:
        self.links.make_way("ns-0")
        self.links.admit("ns-0", self.server.start())

    def crash(self) -> int:
        pid = self.server.kill()
        self.links.refuse("ns-0", pid)
        return pid


@pytest.fixture
def world(api: Toxiproxy, ports: PortHolder) -> Iterator[World]:
    for name in api.proxies():  # of the test before
        api._call("delete", f"/proxies/{name}")
    server, rows = Server(ports.take()), Rows()
    links = LinkFaults(api, RealClock.starting_now(1.0), rows)
    dials = links.open(dict.fromkeys((NEAR, FAR), server.address), ports)
    made = World(links, api, server, dials, rows)
    try:
        with links:
            made.start()
            yield made
    finally:
        made.server.kill()  # a test may have put another in its place


def answers(address: Address) -> bool:
    with dial(address) as sock:
        sock.sendall(b"?")
        return sock.recv(1) == b"?"


def is_swallowed(address: Address) -> bool:
    """Whether a dial succeeds and then nothing comes, neither an answer nor a close."""
    with dial(address) as sock:
        sock.sendall(b"?")
        return is_quiet(sock)


def test_dials_to_a_dead_process_are_refused_by_every_proxy_until_it_listens_again(world: World):
    assert all(answers(address) for address in world.dials.values())
    world.crash()
    assert is_refused(world.server.address)
    assert all(is_refused(address) for address in world.dials.values())
    world.start()
    assert all(answers(address) for address in world.dials.values())


def test_what_was_connected_closes_and_nobody_takes_the_ports_meanwhile(world: World):
    with dial(world.dials[NEAR]) as sock:
        world.crash()
        assert is_closed(sock)
    for address in (*world.dials.values(), world.server.address):
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(address)


def test_nobody_is_at_a_later_address_before_it_is_taken(world: World, ports: PortHolder) -> None:
    later = {Link(link.node, "ns-0@2"): ports.take() for link in (NEAR, FAR)}
    address = Address(*next(iter(later.values())))
    dials = world.links.open(dict.fromkeys(later, address), ports)
    assert all(map(is_refused, dials.values()))
    world.crash()
    world.links.move("ns-0")
    world.server = Server(address)
    world.start()
    assert all(map(answers, dials.values()))
    assert all(map(is_refused, world.dials.values()))
    with world.links.fault(Cut(), [NEAR]):
        assert is_refused(dials[Link(NEAR.node, "ns-0@2")])
        assert answers(dials[Link(FAR.node, "ns-0@2")])
    assert [row["target"] for row in world.rows if row["event"] == "link"] == ["ns-0", "ns-0"]


def test_a_cut_that_ends_while_the_peer_is_gone_lets_nobody_dial_and_one_that_outlasts_it_neither(world: World):
    with world.links.fault(Cut(), [NEAR]):
        world.crash()
        assert is_refused(world.dials[NEAR])
    assert is_refused(world.dials[NEAR])
    with world.links.fault(Cut(), [NEAR]):
        world.start()
        assert is_refused(world.dials[NEAR])
        assert answers(world.dials[FAR])
    assert answers(world.dials[NEAR])


def test_a_black_hole_that_was_there_before_the_crash_leaves_dials_without_an_answer(world: World):
    with world.links.fault(BlackHole(), [NEAR]):
        world.crash()
        assert is_swallowed(world.dials[NEAR])
        assert is_refused(world.dials[FAR])
    assert is_refused(world.dials[NEAR])
    assert is_refused(world.server.address)
    world.start()
    assert answers(world.dials[NEAR])


def test_a_black_hole_that_begins_after_the_crash_swallows_dials_too_and_the_process_can_come_back(world: World):
    world.crash()
    with world.links.fault(BlackHole(), [NEAR]):
        assert is_swallowed(world.dials[NEAR])
        assert is_refused(world.dials[FAR])
        world.start()
        assert is_swallowed(world.dials[NEAR])
        assert answers(world.dials[FAR])
    assert answers(world.dials[NEAR])


def test_a_latency_makes_no_difference_to_a_refusal(world: World):
    with world.links.fault(Latency(latency_ms=50), [NEAR]):
        world.crash()
        assert is_refused(world.dials[NEAR])
        world.start()
        assert answers(world.dials[NEAR])


def test_a_proxy_that_somebody_else_disabled_stays_so_through_a_crash_and_a_restart(world: World):
    name = str(NEAR)
    world.api.set_enabled(name, False)
    world.crash()
    world.start()
    assert is_refused(world.dials[NEAR])
    assert answers(world.dials[FAR])


def test_a_crash_is_no_fault_that_somebody_else_set(world: World):
    world.crash()
    shown = {name: world.links.without_ours(name, proxy) for name, proxy in world.api.proxies().items()}
    assert [faults_of(proxy, 1.0) for proxy in shown.values() if proxy is not None] == [frozenset(), frozenset()]


def test_news_of_a_process_that_has_been_replaced_changes_nothing(world: World):
    old = world.crash()
    world.start()
    world.links.refuse("ns-0", old)
    assert answers(world.dials[NEAR])


def ending_of(connect_to: Address, end: Callable[[], object], *, unread: bool) -> str:
    """FIN or RST: what a client sees when its server ends, with or without bytes that the server has not read."""
    with dial(connect_to) as sock:
        sock.sendall(b"?")
        if not unread:
            assert sock.recv(1) == b"?"
        else:
            assert is_quiet(sock)  # by now they have arrived
        end()
        try:
            return "FIN" if sock.recv(1) == b"" else "bytes"
        except ConnectionResetError:
            return "RST"


@pytest.mark.parametrize(
    ("unread", "direct", "proxied"),
    [(False, "FIN", "FIN"), (True, "RST", "FIN")],
    ids=["read all", "left bytes unread"],
)
def test_a_dead_process_says_fin_or_rst_and_a_proxy_fin(world: World, unread: bool, direct: str, proxied: str) -> None:
    world.crash()
    for address, said in ((world.server.address, direct), (world.dials[NEAR], proxied)):
        world.server.does = "accepts" if unread else "reads"
        world.start()
        assert ending_of(address, world.crash, unread=unread) == said


def test_all_proxies_to_a_node_refuse_soon(api: Toxiproxy, ports: PortHolder):
    """Of twelve links, as many as a broker of a shipped scenario has; the quickest of five, whatever else runs."""
    links = LinkFaults(api, RealClock.starting_now(1.0), Rows())
    peer = ports.take()
    dials = links.open({Link(f"client-{number}", "broker-a"): peer for number in range(12)}, ports)
    took_s = []
    for number in range(5):
        links.admit("broker-a", number)
        start_s = time.monotonic()
        links.refuse("broker-a", number)
        took_s.append(time.monotonic() - start_s)
        assert all(is_refused(address) for address in dials.values())
    assert min(took_s) < 0.1


# -- what a dial meets: the table of faults, and the things that they stand for ---------------------------------------

LATE_MS = 400.0
"""Of a round trip under the latency of these tests; no answer within SILENT_S is none."""
SILENT_S = 1.5
STOOD_FOR: list[Fault] = [Kill(), Stop(), Pause(), Reset()]
"""The faults whose things of production can be had on a direct connection here, without another network."""


def met(address: Address) -> Dial:
    """What a client meets that dials and asks; the quickest of three answers."""
    took_ms: list[float] = []
    while len(took_ms) < 3:
        try:
            sock = socket.create_connection(address, SILENT_S)
        except ConnectionRefusedError:
            return Dial.REFUSED
        except TimeoutError:
            return Dial.DROPPED
        with sock:
            if not took_ms and not is_quiet(sock):
                return Dial.CLOSED
            asked_s = time.monotonic()
            try:
                sock.sendall(b"?")
                answer = sock.recv(1)
            except TimeoutError:
                return Dial.SILENT
            except ConnectionError:
                return Dial.RESET
        assert answer == b"?"
        took_ms.append((time.monotonic() - asked_s) * 1000)
    return Dial.LATE if min(took_ms) >= LATE_MS else Dial.ANSWERED


def inject(world: World, fault: Fault) -> None:
    if isinstance(fault, LinkFault):
        world.links.begin(fault, [NEAR])
    elif isinstance(fault, Pause):
        world.server.signal(signal.SIGSTOP)
    else:
        world.crash()


REAL: list[Fault] = [
    Cut(), BlackHole(), Latency(latency_ms=LATE_MS / 2), Bandwidth(rate_kb_s=100), Reset(), HalfOpen(),
    SynDrop(), Kill(), PortTaken(), Stop(), Pause(), Remove(),
]  # fmt: skip


@pytest.mark.parametrize("fault", REAL, ids=[fault.do for fault in REAL])
def test_a_dial_meets_what_the_table_of_faults_says(world: World, fault: Fault):
    inject(world, fault)
    (dialled,) = world.links.dials_of(NEAR.node).values()
    assert met(dialled) is fault.dial


def test_every_fault_but_the_one_that_no_proxy_can_inject_is_dialled_here():
    assert {fault.do for fault in REAL} == set(FAULTS) - {"packet_loss"}


@pytest.mark.parametrize("fault", STOOD_FOR, ids=[fault.do for fault in STOOD_FOR])
def test_a_dial_through_a_proxy_meets_what_a_direct_one_meets(world: World, fault: Fault):
    inject(world, fault)
    proxied = met(world.dials[NEAR])
    if isinstance(fault, Reset):
        world.server.kill()
        world.server.does = "resets"
        world.server.start()
    assert met(world.server.address) is proxied is fault.dial

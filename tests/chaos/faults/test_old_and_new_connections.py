"""Faults that part what is connected from what is new, on real sockets: half-open links, SYNs without an answer."""

import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.faults.link_faults import BlackHole, Cut, HalfOpen, SynDrop
from nemesrv.chaos.faults.ports import FullAcceptQueue, PortHolder
from nemesrv.chaos.faults.toxiproxy import Toxiproxy
from nemesrv.chaos.faults.toxiproxy_links import LinkFaults
from nemesrv.chaos.topology import EXTERNAL, Link
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address

from .sockets import Peer, Rows, connected, dial, is_closed, is_quiet

pytestmark = pytest.mark.toxiproxy

LINK, OUTSIDE = Link("broker-a", "ns-0"), Link(EXTERNAL, "ns-0")


@dataclass
class World:
    """A link to one peer, and where its node was told to dial."""

    links: LinkFaults
    peer: Peer
    told: dict[str, Mapping[Address, Address]] = field(default_factory=dict)

    @property
    def dials(self) -> Address:
        told: Mapping[Address, Address] = self.told.get("broker-a") or self.links.dials_of("broker-a")
        (address,) = told.values()
        return address


@pytest.fixture
def world(api: Toxiproxy, ports: PortHolder) -> Iterator[World]:
    for name in api.proxies():  # of the test before
        api._call("delete", f"/proxies/{name}")
    peer = Peer()
    links = LinkFaults(api, RealClock.starting_now(1.0), Rows())
    links.open({LINK: peer.address, OUTSIDE: peer.address}, ports)
    made = World(links, peer)
    links.tell = made.told.__setitem__
    with links:
        yield made
    peer.close()


def until_a_syn_waits(at: Address) -> None:
    """Returns when somebody dials `at` whose SYN has had no answer yet (SYN_SENT of /proc/net/tcp)."""
    remote = f":{at.port:04X}"

    def waits() -> bool:
        sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return any(fields[2].endswith(remote) and fields[3] == "02" for fields in sockets)

    Retrying(retry=retry_if_result(lambda seen: not seen), stop=stop_after_delay(10), wait=wait_fixed(0.01))(waits)


def works(world: World) -> bool:
    with connected(world.peer, world.dials):
        return True


def times_out(address: Address) -> bool:
    try:
        socket.create_connection(address, 0.3).close()
    except TimeoutError:
        return True
    return False


def test_what_was_connected_is_dead_and_what_is_new_works_until_the_heal_lets_everything_through(world: World) -> None:
    before = world.dials
    with connected(world.peer, before) as (near, far):
        fault_id = world.links.begin(HalfOpen(), [LINK])
        assert world.dials != before
        near.sendall(b"a")
        far.sendall(b"b")
        assert is_quiet(near)
        assert is_quiet(far)
        with connected(world.peer, world.dials) as (newer, its_peer):
            newer.sendall(b"c")
            assert its_peer.recv(1) == b"c"
            world.links.end(fault_id)
            assert (far.recv(1), near.recv(1)) == (b"a", b"b")
            newer.sendall(b"d")
            assert its_peer.recv(1) == b"d"


def test_faults_that_come_after_a_half_open_link_hit_old_connections_as_new_ones(world: World) -> None:
    with connected(world.peer, world.dials) as (near, far):
        world.links.end(world.links.begin(HalfOpen(), [LINK]))
        with connected(world.peer, world.dials) as (newer, its_peer):
            held = world.links.begin(BlackHole(), [LINK])
            near.sendall(b"a")
            newer.sendall(b"b")
            assert is_quiet(far)
            assert is_quiet(its_peer)
            world.links.end(held)
            assert (far.recv(1), its_peer.recv(1)) == (b"a", b"b")
            with world.links.fault(Cut(), [LINK]):
                assert is_closed(near)
                assert is_closed(newer)
        assert works(world)


def test_no_dial_is_answered_while_what_is_connected_goes_on(world: World) -> None:
    with connected(world.peer, world.dials) as (near, far):
        with world.links.fault(SynDrop(), [LINK]):
            assert times_out(world.dials)
            near.sendall(b"a")
            assert far.recv(1) == b"a"
        assert works(world)


def test_a_dial_under_way_at_the_heal_is_let_in_at_its_next_syn(world: World) -> None:
    fault_id = world.links.begin(SynDrop(), [LINK])
    front, met = world.dials, []

    def dials() -> None:
        with dial(front) as sock:
            sock.sendall(b"late")
            met.append(sock.recv(4))

    dialling = threading.Thread(target=dials)
    dialling.start()
    until_a_syn_waits(front)
    world.links.end(fault_id)
    far = world.peer.accept()
    assert far.recv(4) == b"late"
    far.sendall(b"seen")
    dialling.join(10)
    far.close()
    assert met == [b"seen"]


def test_an_outside_dialler_cannot_be_told_where_to_dial(world: World) -> None:
    with pytest.raises(HarnessError, match="nobody can tell an outside dialler"):
        world.links.begin(HalfOpen(), [OUTSIDE])
    assert world.links.active == {}


def test_a_full_accept_queue_needs_no_root_and_is_gone_when_it_is_closed() -> None:
    front = FullAcceptQueue()
    assert times_out(front.address)
    front.close()
    with pytest.raises(ConnectionRefusedError):
        dial(front.address)

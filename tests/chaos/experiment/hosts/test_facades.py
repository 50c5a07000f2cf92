"""Faults of links between two hosts: each has a Toxiproxy and ports of its own at its agent, here without Ray."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nemesrv.actors.host_agent import HostAgent
from nemesrv.actors.hosts import RemoteHost
from nemesrv.chaos.experiment.hosts.parts import (
    PORTS,
    TOXIPROXY,
    HostPorts,
    HostsPorts,
    HostsToxiproxy,
    HostToxiproxy,
    RemoteFront,
)
from nemesrv.chaos.faults.link_faults import BlackHole, Cut, HalfOpen, SynDrop
from nemesrv.chaos.faults.toxiproxy_links import LinkFaults
from nemesrv.chaos.topology import Link
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address

from ...faults.sockets import Rows, dial, is_quiet, is_refused, read_exactly

pytestmark = pytest.mark.toxiproxy

NS, BROKER = "ns-0", "broker-a"
LINK, BACK = Link(BROKER, NS), Link("producer-0", BROKER)


class Beside(RemoteHost):
    """A host whose agent is in this process; it has a loopback address of its own."""

    def __init__(self, name: str, address: str) -> None:
        self.agent = HostAgent(own_process=False)
        super().__init__(name=name, address=address, node_id=name, agent=self.agent, labels={}, resources={})

    def asking(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.agent, method)(*args, **kwargs)

    def answer(self, ref: Any, timeout_s: float = 0.0) -> Any:
        return ref


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[dict[str, Beside]]:
    found = {NS: Beside("a", "127.0.0.2"), BROKER: Beside("b", "127.0.0.3")}
    for host in found.values():
        folder = host.ask("begin_run", RealClock.starting_now())
        host.ask("open", PORTS, HostPorts, host.address)
        host.ask("open", TOXIPROXY, HostToxiproxy, Path(folder) / "logs/toxiproxy.log")
    yield found
    for host in found.values():
        host.agent.end_run()
        host.agent._guardian.close()


class Links:
    """The links of the two, and a server at each end."""

    def __init__(self, hosts: dict[str, Beside]) -> None:
        def host_of(node: str) -> Beside:
            return hosts.get(node, hosts[NS])

        ports = HostsPorts(host_of)
        self.at = ports.take_servers((NS, BROKER))
        self.told: dict[str, dict[Address, Address]] = {}
        api, self.rows = HostsToxiproxy(hosts.values(), host_of), Rows()
        clock = RealClock.starting_now()
        self.faults = LinkFaults(api, clock, self.rows, front_for=lambda node: RemoteFront(host_of(node)))
        self.faults.tell = lambda node, dials: self.told.update({node: dict(dials)})
        self.faults.open({LINK: self.at[NS], BACK: self.at[BROKER]}, ports)
        self.servers = {name: self.listening(name) for name in (NS, BROKER)}

    def listening(self, name: str) -> socket.socket:
        return socket.create_server(tuple(self.at[name]), backlog=128)

    def dialled(self, link: Link) -> tuple[socket.socket, socket.socket]:
        """Both ends of a new connection."""
        near = dial(self.faults.dials_of(link.node)[self.at[link.peer]])
        far, _ = self.servers[link.peer].accept()
        far.settimeout(5)
        return near, far


@pytest.fixture
def links(hosts: dict[str, Beside]) -> Iterator[Links]:
    made = Links(hosts)
    yield made
    for server in made.servers.values():
        server.close()


def test_a_server_is_at_its_hosts_own_address_and_a_proxy_on_the_loopback_of_who_dials(links: Links):
    assert (links.at[NS].host, links.at[BROKER].host) == ("127.0.0.2", "127.0.0.3")
    assert links.faults.dials_of(BROKER)[links.at[NS]].host == "127.0.0.1"
    near, far = links.dialled(LINK)
    near.sendall(b"register")
    assert read_exactly(far, 8) == b"register"


def test_a_link_is_held_alone_and_both_hosts_proxies_are_one_api(links: Links):
    near, far = links.dialled(LINK)
    beside, beyond = links.dialled(BACK)
    links.faults.begin(BlackHole(), [LINK], fault_id="hole")
    near.sendall(b"lost")
    beside.sendall(b"sent")
    assert read_exactly(beyond, 4) == b"sent"
    assert is_quiet(far)
    links.faults.end("hole")
    assert read_exactly(far, 4) == b"lost"


def test_a_link_is_cut_and_healed(links: Links):
    links.dialled(LINK)
    with_cut = links.faults.begin(Cut(), [LINK])
    assert is_refused(links.faults.dials_of(BROKER)[links.at[NS]])
    links.faults.end(with_cut)
    links.dialled(LINK)


def test_a_dial_without_an_answer_to_its_syn_is_on_the_host_of_who_dials(links: Links):
    fault = links.faults.begin(SynDrop(), [LINK])
    front = links.told[BROKER][links.at[NS]]
    with pytest.raises(TimeoutError):
        socket.create_connection(front, timeout=0.3)
    links.faults.end(fault)
    assert links.told[BROKER][links.at[NS]] != front


def test_what_was_connected_before_is_half_open_and_what_is_new_passes(links: Links):
    near, far = links.dialled(LINK)
    links.faults.begin(HalfOpen(), [LINK])
    near.sendall(b"lost")
    new, arrived = links.dialled(LINK)
    new.sendall(b"sent")
    assert read_exactly(arrived, 4) == b"sent"
    assert is_quiet(far)


def test_dials_to_a_dead_process_are_refused_but_where_a_black_hole_takes_them(links: Links):
    links.faults.begin(BlackHole(), [LINK], fault_id="hole")
    links.servers[NS].close()
    links.faults.refuse(NS, 1)
    near = dial(links.faults.dials_of(BROKER)[links.at[NS]])
    assert is_quiet(near)
    links.faults.end("hole")
    assert is_refused(links.faults.dials_of(BROKER)[links.at[NS]])
    links.faults.make_way(NS)
    links.servers[NS] = links.listening(NS)
    links.faults.admit(NS, 2)
    links.dialled(LINK)

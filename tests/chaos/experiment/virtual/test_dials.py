"""What a dial meets in the network in memory, by each fault: the table of faults, dialled."""

import pytest

from nemesrv.chaos.experiment.virtual.network import MAX_TRIP_S, NodeNetwork
from nemesrv.chaos.faults.fault import Dial, Fault
from nemesrv.chaos.faults.kinds import FAULTS
from nemesrv.chaos.faults.link_faults import (
    Bandwidth,
    BlackHole,
    Cut,
    HalfOpen,
    Latency,
    LinkFault,
    PacketLoss,
    Reset,
    SynDrop,
)
from nemesrv.chaos.faults.process_faults import Kill, Pause, PortTaken, Remove, Stop
from nemesrv.remoting.errors import ConnectError

from .two_clients import LINK, SERVER, End, World


@pytest.fixture
def world() -> World:
    return World()


def test_a_node_without_a_link_cannot_dial(world: World) -> None:
    stranger = NodeNetwork(world.network, world.processes["client"], "stranger")
    dialling = world.processes["client"].create_task(stranger.connect(SERVER, lambda: End(world.clock)))
    world.pass_s(1)
    with pytest.raises(ConnectError, match="no link"):
        dialling.result()


def test_a_dial_to_a_dead_peer_is_refused_within_a_round_trip_until_it_listens_again(world: World) -> None:
    world.processes["server"].kill()
    world.network.vanish(world.processes["server"])
    dialling = world.dial(for_s=2 * MAX_TRIP_S)
    with pytest.raises(ConnectError, match="refused"):
        dialling.result()
    world.network.listen(world.scheduler.process("server again"), SERVER, world._accept)
    near, _ = world.connected()
    assert not near.lost


def test_in_a_black_hole_a_dial_to_a_dead_peer_has_no_answer_and_is_closed_at_the_heal(world: World) -> None:
    world.processes["server"].kill()
    world.network.vanish(world.processes["server"])
    with world.faults.fault(BlackHole(stream="downstream"), [LINK]):
        dialling = world.dial(for_s=60)
        near = dialling.result()
        near.transport.write(b"anybody there?")
        world.pass_s(60)
        assert (near.data, near.lost) == (b"", [])
    world.pass_s(1)
    assert [exc for _, exc in near.lost] == [None]
    refused = world.dial(for_s=1)
    with pytest.raises(ConnectError, match="refused"):
        refused.result()


def test_a_peer_that_comes_back_behind_a_black_hole_knows_nothing_of_what_was_dialled_before(world: World) -> None:
    world.processes["server"].kill()
    world.network.vanish(world.processes["server"])
    with world.faults.fault(BlackHole(), [LINK]):
        dialling = world.dial(for_s=1)
        world.network.listen(world.scheduler.process("server again"), SERVER, world._accept)
        world.pass_s(1)
        assert dialling.result().lost
    assert world.accepted == []


def test_a_dial_whose_packets_are_lost_is_not_answered_until_a_later_one_gets_through(world: World) -> None:
    with world.faults.fault(PacketLoss(stream="downstream"), [LINK]):
        dialling = world.dial(for_s=5)
        assert not dialling.done()
        assert world.accepted == []
    world.pass_s(3)
    assert dialling.done()
    assert len(world.accepted) == 1


def test_while_syns_are_dropped_what_is_connected_goes_on(world: World) -> None:
    near, far = world.connected()
    with world.faults.fault(SynDrop(), [LINK]):
        dialling = world.dial()
        near.transport.write(b"x")
        assert world.data_after(5, far) == b"x"
        assert not dialling.done()
    world.pass_s(5)
    assert dialling.done()


ALL: list[Fault] = [
    Cut(), BlackHole(), Latency(latency_ms=200), Bandwidth(rate_kb_s=100), Reset(), PacketLoss(),
    HalfOpen(), SynDrop(), Kill(), PortTaken(), Stop(), Pause(), Remove(),
]  # fmt: skip


def met(world: World) -> Dial:
    """What a client meets that dials, and asks a server that answers."""
    world.answers = True
    dialling = world.dial(for_s=5)
    if not dialling.done():
        dialling.cancel()
        return Dial.DROPPED
    if dialling.exception() is not None:
        return Dial.REFUSED
    near = dialling.result()
    began_s = world.clock.monotonic_s()
    near.transport.write(b"?")
    world.pass_s(5)
    if near.data:
        return Dial.LATE if near.times[0] - began_s >= 0.4 else Dial.ANSWERED
    if not near.lost:
        return Dial.SILENT
    return Dial.CLOSED if near.lost[0][1] is None else Dial.RESET


@pytest.mark.parametrize("fault", ALL, ids=[fault.do for fault in ALL])
def test_a_dial_meets_what_the_table_of_faults_says(world: World, fault: Fault) -> None:
    server = world.processes["server"]
    if isinstance(fault, LinkFault):
        world.faults.begin(fault, [LINK])
    elif isinstance(fault, Pause):
        server.pause()
    else:
        server.kill()
        world.network.vanish(server)
    assert met(world) is fault.dial


def test_every_fault_is_dialled_here() -> None:
    assert {fault.do for fault in ALL} == set(FAULTS)

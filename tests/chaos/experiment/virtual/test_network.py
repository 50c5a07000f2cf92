"""The network in memory: what each fault of a link or a process looks like to both ends, as through Toxiproxy."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from nemesrv.chaos.experiment.virtual.links import MemoryLinkFaults
from nemesrv.chaos.experiment.virtual.loop import ProcessLoop, Scheduler, VirtualClock
from nemesrv.chaos.experiment.virtual.network import MAX_TRIP_S, MemoryNetwork, NodeNetwork
from nemesrv.chaos.faults.fault import Fault
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
    combine,
)
from nemesrv.chaos.faults.losses import Dial
from nemesrv.chaos.faults.process_faults import Kill, Pause, Remove, Stop
from nemesrv.chaos.topology import Link
from nemesrv.remoting.errors import ConnectError
from nemesrv.remoting.node.network import Address

SERVER = Address("10.0.1.1", 9876)
LINK, OTHER = Link("client", "server"), Link("other", "server")


class End(asyncio.Protocol):
    """What one side saw, with times."""

    def __init__(self, clock: VirtualClock, *, answers: bool = False) -> None:
        self._clock, self._answers = clock, answers
        self.transport: Any = None
        self.data = b""
        self.times: list[float] = []
        self.lost: list[tuple[float, Exception | None]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.times.append(self._clock.monotonic_s())
        if self._answers:
            self.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append((self._clock.monotonic_s(), exc))


class World:
    """A server that listens, a client and another client, each in a process of its own."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.clock = VirtualClock(self.scheduler)
        self.network = MemoryNetwork(self.scheduler, random.Random(1))
        self.rows: list[tuple[str, dict[str, object]]] = []
        self.faults = MemoryLinkFaults(
            self.network, self.clock, lambda event, /, **fields: self.rows.append((event, fields))
        )
        self.faults.open({LINK: SERVER, OTHER: SERVER})
        self.processes = {name: self.scheduler.process(name) for name in ("server", "client", "other")}
        self.accepted: list[End] = []
        self.answers = False
        self.network.listen(self.processes["server"], SERVER, self._accept)

    def _accept(self) -> End:
        self.accepted.append(End(self.clock, answers=self.answers))
        return self.accepted[-1]

    def dial(self, node: str = "client") -> asyncio.Task[End]:
        process: ProcessLoop = self.processes[node]
        network = NodeNetwork(self.network, process, node)
        return process.create_task(network.connect(SERVER, lambda: End(self.clock)))  # type: ignore[arg-type]

    def connected(self, node: str = "client") -> tuple[End, End]:
        """Both ends of a new connection."""
        dialling = self.dial(node)
        self.pass_s(0.1)
        return dialling.result(), self.accepted[-1]

    def pass_s(self, seconds: float) -> None:
        self.scheduler.run(self.clock.monotonic_s() + seconds)


@pytest.fixture
def world() -> World:
    return World()


def test_bytes_arrive_whole_in_order_and_soon(world: World) -> None:
    near, far = world.connected()
    at_s = world.clock.monotonic_s()
    for n in range(50):
        near.transport.write(b"%03d" % n)
    far.transport.write(b"answer")
    world.pass_s(1)
    assert far.data == b"".join(b"%03d" % n for n in range(50))
    assert near.data == b"answer"
    assert max(far.times) - at_s <= MAX_TRIP_S


def test_a_close_arrives_after_what_was_written_before_it(world: World) -> None:
    near, far = world.connected()
    near.transport.write(b"last words")
    near.transport.close()
    world.pass_s(1)
    assert far.data == b"last words"
    assert [exc for _, exc in far.lost] == [None]
    assert [exc for _, exc in near.lost] == [None]


def test_a_node_without_a_link_cannot_dial(world: World) -> None:
    stranger = NodeNetwork(world.network, world.processes["client"], "stranger")
    dialling = world.processes["client"].create_task(stranger.connect(SERVER, lambda: End(world.clock)))
    world.pass_s(1)
    with pytest.raises(ConnectError, match="no link"):
        dialling.result()


def test_a_dial_to_a_dead_peer_is_refused_within_a_round_trip_until_it_listens_again(world: World) -> None:
    world.processes["server"].kill()
    world.network.vanish(world.processes["server"])
    dialling = world.dial()
    world.pass_s(2 * MAX_TRIP_S)
    with pytest.raises(ConnectError, match="refused"):
        dialling.result()
    world.network.listen(world.scheduler.process("server again"), SERVER, world._accept)
    near, _ = world.connected()
    assert not near.lost


def test_in_a_black_hole_a_dial_to_a_dead_peer_has_no_answer_and_is_closed_at_the_heal(world: World) -> None:
    world.processes["server"].kill()
    world.network.vanish(world.processes["server"])
    with world.faults.fault(BlackHole(stream="downstream"), [LINK]):
        dialling = world.dial()
        world.pass_s(60)
        near = dialling.result()
        near.transport.write(b"anybody there?")
        world.pass_s(60)
        assert (near.data, near.lost) == (b"", [])
    world.pass_s(1)
    assert [exc for _, exc in near.lost] == [None]
    refused = world.dial()
    world.pass_s(1)
    with pytest.raises(ConnectError, match="refused"):
        refused.result()


def test_a_peer_that_comes_back_behind_a_black_hole_knows_nothing_of_what_was_dialled_before(world: World) -> None:
    world.processes["server"].kill()
    world.network.vanish(world.processes["server"])
    with world.faults.fault(BlackHole(), [LINK]):
        dialling = world.dial()
        world.pass_s(1)
        world.network.listen(world.scheduler.process("server again"), SERVER, world._accept)
        world.pass_s(1)
        assert dialling.result().lost
    assert world.accepted == []


def test_a_cut_closes_both_ends_refuses_dials_and_spares_other_links(world: World) -> None:
    near, far = world.connected()
    other_near, other_far = world.connected("other")
    with world.faults.fault(Cut(), [LINK]):
        world.pass_s(1)
        assert near.lost
        assert far.lost
        dialling = world.dial()
        world.pass_s(1)
        with pytest.raises(ConnectError, match="refused"):
            dialling.result()
    assert not other_near.lost
    assert not other_far.lost
    world.connected()


def test_a_black_hole_holds_bytes_and_the_close_behind_them_and_lets_all_out_at_the_heal(world: World) -> None:
    near, far = world.connected()
    with world.faults.fault(BlackHole(), [LINK]):
        near.transport.write(b"held")
        near.transport.close()
        far.transport.write(b"held too")
        world.pass_s(100)
        assert (far.data, far.lost, near.data) == (b"", [], b"")
    healed_s = world.clock.monotonic_s()
    world.pass_s(1)
    assert far.data == b"held"
    assert [exc for _, exc in far.lost] == [None]
    assert far.lost[0][0] - healed_s <= MAX_TRIP_S


def test_a_close_with_nothing_held_before_it_passes_a_black_hole_as_it_does_toxiproxys(world: World) -> None:
    near, far = world.connected()
    with world.faults.fault(BlackHole(), [LINK]):
        near.transport.close()
        world.pass_s(1)
        assert far.lost


def test_a_black_hole_of_one_direction_leaves_the_other(world: World) -> None:
    near, far = world.connected()
    with world.faults.fault(BlackHole(stream="upstream"), [LINK]):
        near.transport.write(b"up")
        far.transport.write(b"down")
        world.pass_s(10)
        assert (far.data, near.data) == (b"", b"down")
    world.pass_s(1)
    assert far.data == b"up"


def test_a_dial_into_a_black_hole_succeeds_and_nothing_follows(world: World) -> None:
    with world.faults.fault(BlackHole(), [LINK]):
        near, far = world.connected()
        near.transport.write(b"hello")
        world.pass_s(10)
        assert far.data == b""
    world.pass_s(1)
    assert far.data == b"hello"


def test_latency_delays_each_chunk_by_itself_and_never_reorders(world: World) -> None:
    near, far = world.connected()
    with world.faults.fault(Latency(stream="upstream", latency_ms=200, jitter_ms=100), [LINK]):
        begin_s = world.clock.monotonic_s()
        for n in range(20):
            near.transport.write(b"%02d" % n)
            world.pass_s(0.01)
        far.transport.write(b"at once")
        asked_s = world.clock.monotonic_s()
        world.pass_s(2)
    assert far.data == b"".join(b"%02d" % n for n in range(20))
    assert 0.1 <= far.times[0] - begin_s <= 0.3 + MAX_TRIP_S
    assert far.times[-1] - begin_s <= 0.2 + 0.3 + MAX_TRIP_S
    assert near.times[0] - asked_s <= MAX_TRIP_S


def test_latency_is_over_for_what_is_on_its_way_when_it_ends(world: World) -> None:
    near, far = world.connected()
    with world.faults.fault(Latency(latency_ms=60_000), [LINK]):
        near.transport.write(b"slow")
        world.pass_s(1)
        assert far.data == b""
    world.pass_s(0.001)
    assert far.data == b"slow"


def test_bandwidth_hands_on_so_many_bytes_a_second(world: World) -> None:
    near, far = world.connected()
    with world.faults.fault(Bandwidth(rate_kb_s=10), [LINK]):
        begin_s = world.clock.monotonic_s()
        near.transport.write(b"x" * 20_000)
        near.transport.write(b"y" * 10_000)
        world.pass_s(1.05)
        assert 9_000 <= len(far.data) <= 11_000
        world.pass_s(5)
    assert far.data == b"x" * 20_000 + b"y" * 10_000
    assert far.times[-1] - begin_s == pytest.approx(3, abs=0.01)


def test_a_reset_closes_an_older_connection_at_its_next_bytes_and_resets_a_newer_one(world: World) -> None:
    old_near, old_far = world.connected()
    with world.faults.fault(Reset(stream="upstream"), [LINK]):
        world.pass_s(10)
        assert not old_far.lost
        old_near.transport.write(b"lost")
        new_near, new_far = world.connected()
        new_near.transport.write(b"lost")
        world.pass_s(1)
    assert [exc for _, exc in old_far.lost] == [None]
    assert [exc for _, exc in old_near.lost] == [None]
    for end in (new_near, new_far):
        assert [type(exc) for _, exc in end.lost] == [ConnectionResetError]
    assert old_far.data + new_far.data == b""


def test_lost_packets_keep_bytes_and_closes_from_arriving_until_the_kernel_sends_them_again(world: World) -> None:
    near, far = world.connected()
    with world.faults.fault(PacketLoss(), [LINK]):
        near.transport.write(b"lost at first")
        near.transport.close()
        world.pass_s(10)
        assert (far.data, far.lost) == (b"", [])
    world.pass_s(2)
    assert far.data == b""
    world.pass_s(1)  # 0.2 + 0.4 + ... + 6.4 = 12.6 s after it was first sent
    assert far.data == b"lost at first"
    assert [exc for _, exc in far.lost] == [None]


def test_a_dial_whose_packets_are_lost_is_not_answered_until_a_later_one_gets_through(world: World) -> None:
    with world.faults.fault(PacketLoss(stream="downstream"), [LINK]):
        dialling = world.dial()
        world.pass_s(5)
        assert not dialling.done()
        assert world.accepted == []
    world.pass_s(3)
    assert dialling.done()
    assert len(world.accepted) == 1


def test_where_only_answers_are_lost_one_more_write_arrives_and_then_nothing(world: World) -> None:
    near, far = world.connected()
    with world.faults.fault(PacketLoss(stream="downstream"), [LINK]):
        near.transport.write(b"first")
        world.pass_s(1)
        far.transport.write(b"answer")
        near.transport.write(b" second")
        near.transport.close()
        world.pass_s(100)
        assert far.data == b"first"
        assert not far.lost
        assert near.data == b""
    world.pass_s(120)
    assert far.data == b"first second"
    assert far.lost


def test_a_killed_process_closes_what_it_had_open_and_what_it_wrote_still_arrives(world: World) -> None:
    near, far = world.connected()
    far.transport.write(b"written before")
    world.processes["server"].kill()
    world.network.vanish(world.processes["server"])
    world.pass_s(1)
    assert near.data == b"written before"
    assert [exc for _, exc in near.lost] == [None]
    assert far.lost == []


def test_a_paused_process_accepts_and_acknowledges_and_reads_it_all_when_it_resumes(world: World) -> None:
    near, far = world.connected()
    world.processes["server"].pause()
    near.transport.write(b"one")
    dialling = world.dial("other")
    world.pass_s(10)
    dialling.result().transport.write(b"two")
    world.pass_s(10)
    assert far.data == b""
    assert len(world.accepted) == 1
    world.processes["server"].resume()
    world.pass_s(0)
    assert far.data == b"one"
    assert world.accepted[1].data == b"two"


def test_a_connection_that_dies_before_the_server_took_it_never_reaches_its_program(world: World) -> None:
    world.processes["server"].pause()
    dialling = world.dial()
    world.pass_s(1)
    world.processes["server"].kill()
    world.network.vanish(world.processes["server"])
    world.pass_s(1)
    assert dialling.result().lost
    assert world.accepted == []


def test_a_peer_that_stops_reading_gets_what_came_meanwhile_afterwards(world: World) -> None:
    near, far = world.connected()
    far.transport.pause_reading()
    near.transport.write(b"a")
    near.transport.write(b"b")
    near.transport.close()
    world.pass_s(1)
    assert (far.data, far.lost) == (b"", [])
    far.transport.resume_reading()
    world.pass_s(1)
    assert far.data == b"ab"
    assert far.lost


def test_closed_connections_leave_nothing_behind_on_their_link(world: World) -> None:
    for _ in range(5):
        near, _far = world.connected()
        near.transport.close()
        world.pass_s(1)
    assert all(not wire.connections for wire in world.network.wires.values())
    assert all(not world.network.ends_of(process) for process in world.processes.values())


def test_a_fault_leaves_the_same_rows_as_through_toxiproxy(world: World) -> None:
    fault: LinkFault = BlackHole(stream="downstream")
    with world.faults.fault(fault, [LINK]):
        world.pass_s(5)
    rows = [fields for event, fields in world.rows if event == "fault"]
    assert [(row["phase"], row["injection"], row["stream"], row["source"], row["target"]) for row in rows] == [
        ("start", "toxiproxy.bandwidth.rate=0", "downstream", "client", "server"),
        ("end", "toxiproxy.bandwidth.rate=0", "downstream", "client", "server"),
    ]


def test_overlapping_faults_end_one_by_one(world: World) -> None:
    near, far = world.connected()
    first = world.faults.begin(BlackHole(), [LINK])
    second = world.faults.begin(Latency(latency_ms=1000), [LINK])
    near.transport.write(b"x")
    world.pass_s(5)
    world.faults.end(second)
    world.pass_s(5)
    assert far.data == b""
    world.faults.end(first)
    world.pass_s(1)
    assert far.data == b"x"
    assert combine([], 1.0).enabled


def test_of_a_half_open_link_only_what_was_connected_is_dead_until_the_heal(world: World) -> None:
    near, far = world.connected()
    with world.faults.fault(HalfOpen(), [LINK]):
        near.transport.write(b"x")
        newer, its_peer = world.connected()
        newer.transport.write(b"y")
        world.pass_s(5)
        assert (far.data, its_peer.data) == (b"", b"y")
    world.pass_s(1)
    assert far.data == b"x"


def test_of_several_connections_of_a_link_only_the_oldest_may_be_held_or_reset(world: World) -> None:
    first, its_peer = world.connected()
    second, others_peer = world.connected()
    with world.faults.fault(HalfOpen(connections=1), [LINK]):
        first.transport.write(b"x")
        second.transport.write(b"y")
        world.pass_s(1)
        assert (its_peer.data, others_peer.data) == (b"", b"y")
    world.pass_s(1)
    assert its_peer.data == b"x"
    with world.faults.fault(Reset(connections=1), [LINK]):
        world.pass_s(1)
        assert [isinstance(why, ConnectionResetError) for _, why in first.lost] == [True]
        second.transport.write(b"z")
        third, thirds_peer = world.connected()
        third.transport.write(b"w")
        world.pass_s(1)
        assert (others_peer.data, thirds_peer.data, second.lost) == (b"yz", b"w", [])


def test_while_syns_are_dropped_what_is_connected_goes_on(world: World) -> None:
    near, far = world.connected()
    with world.faults.fault(SynDrop(), [LINK]):
        dialling = world.dial()
        near.transport.write(b"x")
        world.pass_s(5)
        assert far.data == b"x"
        assert not dialling.done()
    world.pass_s(5)
    assert dialling.done()


ALL: list[Fault] = [
    Cut(), BlackHole(), Latency(latency_ms=200), Bandwidth(rate_kb_s=100), Reset(), PacketLoss(),
    HalfOpen(), SynDrop(), Kill(), Stop(), Pause(), Remove(),
]  # fmt: skip


def met(world: World) -> Dial:
    """What a client meets that dials, and asks a server that answers."""
    world.answers = True
    dialling = world.dial()
    world.pass_s(5)
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

"""The network in memory: what each fault of a link or a process looks like to both ends, as through Toxiproxy."""

import pytest

from nemesrv.chaos.experiment.virtual.network import MAX_TRIP_S
from nemesrv.chaos.faults.link_faults import (
    Bandwidth,
    BlackHole,
    Cut,
    HalfOpen,
    Latency,
    LinkFault,
    PacketLoss,
    Reset,
    combine,
)
from nemesrv.remoting.errors import ConnectError

from .two_clients import LINK, World


@pytest.fixture
def world() -> World:
    return World()


def test_bytes_arrive_whole_in_order_and_soon(world: World) -> None:
    near, far = world.connected()
    at_s = world.clock.monotonic_s()
    for n in range(50):
        near.transport.write(b"%03d" % n)
    far.transport.write(b"answer")
    assert world.data_after(1, far) == b"".join(b"%03d" % n for n in range(50))
    assert near.data == b"answer"
    assert max(far.times) - at_s <= MAX_TRIP_S


def test_a_close_arrives_after_what_was_written_before_it(world: World) -> None:
    near, far = world.connected()
    near.transport.write(b"last words")
    near.transport.close()
    assert world.data_after(1, far) == b"last words"
    assert [exc for _, exc in far.lost] == [None]
    assert [exc for _, exc in near.lost] == [None]


def test_a_cut_closes_both_ends_refuses_dials_and_spares_other_links(world: World) -> None:
    near, far = world.connected()
    other_near, other_far = world.connected("other")
    with world.faults.fault(Cut(), [LINK]):
        world.pass_s(1)
        assert near.lost
        assert far.lost
        dialling = world.dial(for_s=1)
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
    assert world.data_after(1, far) == b"held"
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
    assert world.data_after(1, far) == b"up"


def test_latency_delays_each_chunk_by_itself_and_never_reorders(world: World) -> None:
    near, far = world.connected()
    with world.faults.fault(Latency(stream="upstream", latency_ms=200, jitter_ms=100), [LINK]):
        begin_s = world.clock.monotonic_s()
        for n in range(20):
            near.transport.write(b"%02d" % n)
            world.pass_s(0.01)
        far.transport.write(b"at once")
        asked_s = world.clock.monotonic_s()
        assert world.data_after(2, far) == b"".join(b"%02d" % n for n in range(20))
    assert 0.1 <= far.times[0] - begin_s <= 0.3 + MAX_TRIP_S
    assert far.times[-1] - begin_s <= 0.2 + 0.3 + MAX_TRIP_S
    assert near.times[0] - asked_s <= MAX_TRIP_S


def test_latency_is_over_for_what_is_on_its_way_when_it_ends(world: World) -> None:
    near, far = world.connected()
    with world.faults.fault(Latency(latency_ms=60_000), [LINK]):
        near.transport.write(b"slow")
        assert world.data_after(1, far) == b""
    assert world.data_after(0.001, far) == b"slow"


def test_bandwidth_hands_on_so_many_bytes_a_second(world: World) -> None:
    near, far = world.connected()
    with world.faults.fault(Bandwidth(rate_kb_s=10), [LINK]):
        begin_s = world.clock.monotonic_s()
        near.transport.write(b"x" * 20_000)
        near.transport.write(b"y" * 10_000)
        world.pass_s(1.05)
        assert 9_000 <= len(far.data) <= 11_000
        assert world.data_after(5, far) == b"x" * 20_000 + b"y" * 10_000
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
    assert world.data_after(2, far) == b""
    world.pass_s(1)  # 0.2 + 0.4 + ... + 6.4 = 12.6 s after it was first sent
    assert far.data == b"lost at first"
    assert [exc for _, exc in far.lost] == [None]


def test_where_only_answers_are_lost_one_more_write_arrives_and_then_nothing(world: World) -> None:
    near, far = world.connected()
    with world.faults.fault(PacketLoss(stream="downstream"), [LINK]):
        near.transport.write(b"first")
        world.pass_s(1)
        far.transport.write(b"answer")
        near.transport.write(b" second")
        near.transport.close()
        assert world.data_after(100, far) == b"first"
        assert not far.lost
        assert near.data == b""
    assert world.data_after(120, far) == b"first second"
    assert far.lost


def test_a_killed_process_closes_what_it_had_open_and_what_it_wrote_still_arrives(world: World) -> None:
    near, far = world.connected()
    far.transport.write(b"written before")
    world.processes["server"].kill()
    world.network.vanish(world.processes["server"])
    assert world.data_after(1, near) == b"written before"
    assert [exc for _, exc in near.lost] == [None]
    assert far.lost == []


def test_a_paused_process_accepts_and_acknowledges_and_reads_it_all_when_it_resumes(world: World) -> None:
    near, far = world.connected()
    world.processes["server"].pause()
    near.transport.write(b"one")
    dialling = world.dial("other", for_s=10)
    dialling.result().transport.write(b"two")
    assert world.data_after(10, far) == b""
    assert len(world.accepted) == 1
    world.processes["server"].resume()
    assert world.data_after(0, far) == b"one"
    assert world.accepted[1].data == b"two"


def test_a_connection_that_dies_before_the_server_took_it_never_reaches_its_program(world: World) -> None:
    world.processes["server"].pause()
    dialling = world.dial(for_s=1)
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
    assert world.data_after(1, far) == b"ab"
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
    assert world.data_after(5, far) == b""
    world.faults.end(first)
    assert world.data_after(1, far) == b"x"
    assert combine([], 1.0).enabled


def test_of_a_half_open_link_only_what_was_connected_is_dead_until_the_heal(world: World) -> None:
    near, far = world.connected()
    with world.faults.fault(HalfOpen(), [LINK]):
        near.transport.write(b"x")
        newer, its_peer = world.connected()
        newer.transport.write(b"y")
        world.pass_s(5)
        assert (far.data, its_peer.data) == (b"", b"y")
    assert world.data_after(1, far) == b"x"

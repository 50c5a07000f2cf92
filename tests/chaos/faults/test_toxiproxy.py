"""Every fault of a link proves itself on real sockets through a real Toxiproxy."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from nemesrv.actors.processes import Process
from nemesrv.chaos.errors import HarnessError, ToxiproxyError
from nemesrv.chaos.faults.link_faults import Bandwidth, BlackHole, Cut, Latency, Reset, Stream
from nemesrv.chaos.faults.ports import PortHolder
from nemesrv.chaos.faults.toxiproxy import Toxiproxy, ToxiproxyServer
from nemesrv.chaos.faults.toxiproxy_binary import find_server
from nemesrv.chaos.faults.toxiproxy_links import LinkFaults
from nemesrv.chaos.topology import EXTERNAL, Link
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address

from .sockets import Peer, Rows, connected, dial, is_closed, is_quiet, is_refused, read_exactly, round_trip_ms

pytestmark = pytest.mark.toxiproxy

LINK, OTHER = Link("broker-a", "ns-0"), Link("broker-b", "ns-0")


@dataclass
class World:
    """Two links to one peer, faults on them, and what was recorded."""

    faults: LinkFaults
    peer: Peer
    rows: Rows
    dials: dict[Link, Address]
    proxy: Address


def world_of(api: Toxiproxy, ports: PortHolder, scale: float) -> Iterator[World]:
    for name in api.proxies():  # of the test before
        api._call("delete", f"/proxies/{name}")
    peer, rows = Peer(), Rows()
    faults = LinkFaults(api, RealClock.starting_now(scale), rows)
    dials = faults.open({LINK: peer.address, OTHER: peer.address}, ports)
    with faults:
        yield World(faults, peer, rows, dials, dials[LINK])
    peer.close()


@pytest.fixture
def world(api: Toxiproxy, ports: PortHolder) -> Iterator[World]:
    yield from world_of(api, ports, 1.0)


@pytest.fixture
def fast_world(api: Toxiproxy, ports: PortHolder) -> Iterator[World]:
    yield from world_of(api, ports, 10.0)


# -- no fault --------------------------------------------------------------------------------------------------------


def test_each_link_has_a_proxy_of_its_own_name_and_its_row(world: World, api: Toxiproxy):
    assert set(api.proxies()) == {"broker-a->ns-0", "broker-b->ns-0"}
    assert world.faults.dials_of("broker-a") == {world.peer.address: world.proxy}
    assert world.rows[0] == {
        "event": "link", "source": "broker-a", "target": "ns-0", "address": str(world.proxy), "injection": "toxiproxy",
    }  # fmt: skip


def test_what_is_on_a_broker_s_link_from_outside_meets_those_at_its_vip_port(api: Toxiproxy, ports: PortHolder):
    for name in api.proxies():  # of the test before
        api._call("delete", f"/proxies/{name}")
    link, peer, rows = Link(EXTERNAL, "broker-a"), Peer(), Rows()
    faults = LinkFaults(api, RealClock.starting_now(1.0), rows)
    with faults:
        vip = faults.open({link: peer.address}, ports)[link].vip_channel
        with connected(peer, vip) as (near, far):
            with faults.fault(Latency(latency_ms=80, stream="both"), [link]):
                assert 160 <= round_trip_ms(near, far) < 220
            with faults.fault(Cut(), [link]):
                assert is_closed(near)
                with dial(vip) as late:
                    assert is_closed(late)
        with connected(peer, vip):
            pass
    peer.close()


# -- latency and bandwidth -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stream", "directions"), [("both", 2), ("upstream", 1), ("downstream", 1)])
def test_latency_is_added_in_each_direction_named_and_gone_afterwards(world: World, stream: Stream, directions: int):
    with connected(world.peer, world.proxy) as (near, far):
        with world.faults.fault(Latency(latency_ms=80, stream=stream), [LINK]):
            assert 80 * directions <= round_trip_ms(near, far) < 80 * directions + 60
        assert round_trip_ms(near, far) < 50


def test_jitter_spreads_the_latency_within_its_bounds(world: World):
    fault = Latency(latency_ms=60, jitter_ms=40, stream="upstream")
    with connected(world.peer, world.proxy) as (near, far), world.faults.fault(fault, [LINK]):
        times_ms = [round_trip_ms(near, far, tries=1) for _ in range(12)]
    assert min(times_ms) >= 20
    assert max(times_ms) < 300
    assert max(times_ms) - min(times_ms) > 5


def test_latency_is_counted_in_the_experiments_time(fast_world: World):
    fault = Latency(latency_ms=1000, stream="upstream")
    with connected(fast_world.peer, fast_world.proxy) as (near, far), fast_world.faults.fault(fault, [LINK]):
        assert 100 <= round_trip_ms(near, far) < 160


def test_a_narrow_link_takes_its_time(world: World):
    fault = Bandwidth(rate_kb_s=100, stream="upstream")
    with connected(world.peer, world.proxy) as (near, far), world.faults.fault(fault, [LINK]):
        start_s = time.monotonic()
        near.sendall(bytes(40_000))
        read_exactly(far, 40_000)
        assert 0.25 < time.monotonic() - start_s < 1.5


# -- cut -------------------------------------------------------------------------------------------------------------


def test_a_cut_link_closes_its_connections_refuses_dials_and_comes_back(world: World):
    with connected(world.peer, world.proxy) as (near, far), world.faults.fault(Cut(), [LINK]):
        assert is_closed(near)
        assert is_closed(far)
        assert is_refused(world.proxy)
    with connected(world.peer, world.proxy) as (near, far):
        assert round_trip_ms(near, far) < 1000


def test_a_fault_leaves_other_links_alone(world: World):
    with connected(world.peer, world.dials[OTHER]) as (near, far):
        with world.faults.fault(Cut(), [LINK]):
            assert round_trip_ms(near, far) < 1000
        with world.faults.fault(BlackHole(), [LINK]):
            assert round_trip_ms(near, far) < 1000


# -- black hole ------------------------------------------------------------------------------------------------------


def test_a_black_hole_carries_nothing_and_delivers_after_the_heal_what_it_held(world: World):
    with connected(world.peer, world.proxy) as (near, far):
        with world.faults.fault(BlackHole(), [LINK]):
            near.sendall(b"first ")
            far.sendall(b"answer")
            near.sendall(b"second")
            assert is_quiet(far)
            assert is_quiet(near)
        assert read_exactly(far, 12) == b"first second"
        assert read_exactly(near, 6) == b"answer"
        assert round_trip_ms(near, far) < 1000  # the heal has closed nothing


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
def test_a_black_hole_of_one_direction_lets_the_other_through(world: World, stream: Stream):
    with connected(world.peer, world.proxy) as (near, far):
        held, free = (near, far) if stream == "upstream" else (far, near)
        with world.faults.fault(BlackHole(stream=stream), [LINK]):
            held.sendall(b"held")
            free.sendall(b"free")
            assert read_exactly(held, 4) == b"free"
            assert is_quiet(free)
        assert read_exactly(free, 4) == b"held"


def test_a_close_behind_held_bytes_is_held_too(world: World):
    with connected(world.peer, world.proxy) as (near, far):
        with world.faults.fault(BlackHole(), [LINK]):
            near.sendall(b"last words")
            near.close()
            assert is_quiet(far)
        assert read_exactly(far, 10) == b"last words"
        assert is_closed(far)


def test_a_dial_into_a_black_hole_succeeds_and_is_heard_after_the_heal(world: World):
    with world.faults.fault(BlackHole(), [LINK]):
        near = dial(world.proxy)
        near.sendall(b"hello")
        far = world.peer.accept()
        assert is_quiet(far)
    with near, far:
        assert read_exactly(far, 5) == b"hello"
        assert round_trip_ms(near, far) < 1000


# -- reset -----------------------------------------------------------------------------------------------------------


def test_a_connection_made_under_reset_is_reset_at_its_first_bytes(world: World):
    with world.faults.fault(Reset(), [LINK]):
        near = dial(world.proxy)
        far = world.peer.accept()
        with near, far:
            near.sendall(b"request")
            with pytest.raises(ConnectionResetError):
                near.recv(1)
            with pytest.raises(ConnectionResetError):
                far.recv(1)
    with connected(world.peer, world.proxy) as (near, far):
        assert round_trip_ms(near, far) < 1000


def test_an_older_connection_closes_at_its_next_bytes(world: World):
    with connected(world.peer, world.proxy) as (near, far), world.faults.fault(Reset(), [LINK]):
        assert is_quiet(near)
        near.sendall(b"request")
        assert is_closed(far)
        far.close()
        assert is_closed(near)


# -- faults that overlap ---------------------------------------------------------------------------------------------


def test_two_black_holes_hold_until_both_are_healed(world: World):
    with connected(world.peer, world.proxy) as (near, far):
        first = world.faults.begin(BlackHole(), [LINK])
        second = world.faults.begin(BlackHole(stream="upstream"), [LINK])
        near.sendall(b"held")
        far.sendall(b"free")
        world.faults.end(first)
        assert read_exactly(near, 4) == b"free"
        assert is_quiet(far)
        world.faults.end(second)
        assert read_exactly(far, 4) == b"held"


def test_a_fault_that_begins_under_a_black_hole_lets_nothing_out(world: World):
    with connected(world.peer, world.proxy) as (near, far):
        with world.faults.fault(BlackHole(), [LINK]):
            near.sendall(b"held")
            assert is_quiet(far)
            late = world.faults.begin(Latency(latency_ms=100), [LINK])
            narrow = world.faults.begin(Bandwidth(rate_kb_s=1000), [LINK])
            assert is_quiet(far)
        start_s = time.monotonic()
        assert read_exactly(far, 4) == b"held"
        world.faults.end(narrow)
        assert round_trip_ms(near, far) >= 200
        world.faults.end(late)
        assert round_trip_ms(near, far) < 50
        assert time.monotonic() - start_s < 3


def test_a_latency_that_ends_under_a_black_hole_neither_blocks_nor_releases(world: World):
    with connected(world.peer, world.proxy) as (near, far):
        late = world.faults.begin(Latency(latency_ms=2000), [LINK])
        hole = world.faults.begin(BlackHole(), [LINK])
        near.sendall(b"held")
        world.faults.end(late)
        assert is_quiet(far)
        start_s = time.monotonic()
        world.faults.end(hole)
        assert read_exactly(far, 4) == b"held"
        assert time.monotonic() - start_s < 1
        assert round_trip_ms(near, far) < 50


def test_a_cut_and_a_black_hole_heal_independently(world: World):
    hole = world.faults.begin(BlackHole(), [LINK])
    cut, again = world.faults.begin(Cut(), [LINK]), world.faults.begin(Cut(), [LINK])
    world.faults.end(cut)
    assert is_refused(world.proxy)
    world.faults.end(again)
    near = dial(world.proxy)
    near.sendall(b"x")
    far = world.peer.accept()
    assert is_quiet(far)
    world.faults.end(hole)
    with near, far:
        assert read_exactly(far, 1) == b"x"


# -- heal on every way out, and rows ---------------------------------------------------------------------------------


def test_an_exception_leaves_every_link_healed(world: World):
    def experiment() -> None:
        with world.faults:
            world.faults.begin(Cut(), [LINK, OTHER])
            world.faults.begin(BlackHole(), [LINK])
            world.faults.begin(Latency(latency_ms=500), [OTHER])
            raise RuntimeError("the experiment broke")

    with pytest.raises(RuntimeError, match="the experiment"):
        experiment()
    assert world.faults.active == {}
    for link in (LINK, OTHER):
        with connected(world.peer, world.dials[link]) as (near, far):
            assert round_trip_ms(near, far) < 100


def test_each_link_has_a_row_when_its_fault_begins_and_one_when_it_ends(fast_world: World):
    del fast_world.rows[:]
    before_ms = fast_world.faults._now_ms()
    with fast_world.faults.fault(BlackHole(stream="upstream"), [LINK, OTHER]) as fault_id:
        pass
    assert fast_world.rows.faults() == [
        ("black_hole", "broker-a", "ns-0", "start"),
        ("black_hole", "broker-b", "ns-0", "start"),
        ("black_hole", "broker-a", "ns-0", "end"),
        ("black_hole", "broker-b", "ns-0", "end"),
    ]
    row = dict(fast_world.rows[0])
    assert before_ms <= row.pop("value")["asked_ms"] <= fast_world.faults._now_ms()
    assert row == {
        "event": "fault", "fault_id": fault_id, "fault": "black_hole", "injection": "toxiproxy.bandwidth.rate=0",
        "source": "broker-a", "target": "ns-0", "stream": "upstream", "phase": "start",
    }  # fmt: skip


def test_numbers_of_a_fault_are_in_its_row(world: World):
    with world.faults.fault(Latency(latency_ms=10, jitter_ms=2), [LINK]):
        value = world.rows[-1]["value"]
    assert (value["latency_ms"], value["jitter_ms"]) == (10, 2)
    assert world.rows[-1]["injection"] == "toxiproxy.latency"


def test_a_fault_that_fails_on_one_link_is_taken_back_on_all(world: World, api: Toxiproxy):
    del world.rows[:]
    api._call("delete", "/proxies/broker-b->ns-0")
    with pytest.raises(ToxiproxyError, match="proxy not found"):
        world.faults.begin(Cut(), [LINK, OTHER])
    assert world.faults.active == {}
    assert world.rows.faults() == [("cut", "broker-a", "ns-0", "start"), ("cut", "broker-a", "ns-0", "end")]
    with connected(world.peer, world.proxy) as (near, far):
        assert round_trip_ms(near, far) < 1000


def test_a_link_without_a_proxy_and_an_id_used_twice_are_refused(world: World):
    with pytest.raises(HarnessError, match="producer-0->ns-0 has no proxy"):
        world.faults.begin(Cut(), [LINK, Link("producer-0", "ns-0")])
    world.faults.begin(Cut(), [LINK], fault_id="f")
    with pytest.raises(HarnessError, match="called f is already active"):
        world.faults.begin(Cut(), [OTHER], fault_id="f")
    world.faults.end("f")
    world.faults.end("f")


# -- the server ------------------------------------------------------------------------------------------------------


def test_a_server_that_was_stopped_refuses_and_may_be_stopped_again(ports: PortHolder, tmp_path: Path):
    server = ToxiproxyServer(tmp_path / "logs" / "toxiproxy.log", ports=ports)
    api = server.start()
    assert api.version()
    pid = server.pid
    assert pid is not None
    server.stop()
    server.stop()
    assert is_refused(api.address)
    with pytest.raises(ToxiproxyError, match="refused get /version"):
        api.version()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_proxy_of_the_environment_is_not_asked(api: Toxiproxy, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert api.version()


def test_a_port_in_use_is_named(api: Toxiproxy):
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ToxiproxyError, match="address already in use"):
        api.create({"x": (Address(*taken.getsockname()), Address("127.0.0.1", 9))})


def test_a_program_that_is_no_toxiproxy_is_reported_with_what_it_said(ports: PortHolder, tmp_path: Path):
    program = tmp_path / "toxiproxy-server"
    program.write_text("#!/bin/sh\necho no such option >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(ToxiproxyError, match="ended at once with status 3: no such option"):
        ToxiproxyServer(tmp_path / "log", ports=ports, binary=program).start()


def test_a_missing_server_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NEMESRV_TOXIPROXY", "/nowhere/toxiproxy-server")
    with pytest.raises(ToxiproxyError, match=r"NEMESRV_TOXIPROXY=/nowhere.*make setup"):
        find_server()
    monkeypatch.delenv("NEMESRV_TOXIPROXY")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ToxiproxyError, match=r"is missing: run `make setup`"):
        find_server()


def test_a_server_dies_with_a_harness_that_is_killed(tmp_path: Path):
    program = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from nemesrv.chaos.faults.toxiproxy import ToxiproxyServer
        from nemesrv.chaos.faults.ports import PortHolder
        server = ToxiproxyServer(Path(sys.argv[1]) / "log", ports=PortHolder())
        server.start()
        print(server.pid, flush=True)
        sys.stdin.read()
        """
    )
    harness = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert harness.stdout is not None
    assert harness.stdin is not None
    server = Process(int(harness.stdout.readline()))
    harness.send_signal(signal.SIGKILL)
    harness.wait()
    assert server.gone(5)
    server.close()
    harness.stdin.close()
    harness.stdout.close()

"""Packets lost by the kernel: which, between which hosts, for how long, and that they are refused where we may not."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.faults.fault import Dial
from nemesrv.chaos.faults.packet_drop import PacketDrop, require_packet_drop

from .packets_between_hosts import COUNTING_ECHO

PORT = 9876


def why_not() -> str:
    """Why no packet can be dropped here; "" where it can."""
    try:
        require_packet_drop()
    except HarnessError as exc:
        return str(exc)
    return ""


may_drop = pytest.mark.skipif(bool(why_not()), reason=why_not() or "it can be had")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def can_dial(listener: socket.socket) -> bool:
    try:
        socket.create_connection(listener.getsockname(), 0.4).close()
    except TimeoutError:
        return False
    return True


@may_drop
def test_a_dial_gets_no_answer_while_either_direction_is_lost_and_each_ends_by_itself(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with PacketDrop() as drop:
        assert can_dial(listener)
        drop.lose([port], ["upstream", "downstream"])
        assert not can_dial(listener)
        drop.lose([port], ["downstream"])
        assert not can_dial(listener)
        drop.lose([port], ["upstream"])
        assert not can_dial(listener)
        drop.lose([port], [])
        assert can_dial(listener)
        drop.lose([port], [])


@may_drop
def test_nothing_is_left_of_one_that_is_closed_or_killed(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with PacketDrop() as drop:
        drop.lose([port], ["upstream"])
    assert can_dial(listener)
    program = (
        "import sys; from nemesrv.chaos.faults.packet_drop import PacketDrop; drop = PacketDrop(); "
        "drop.lose([int(sys.argv[1])], ['upstream']); print('lost', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "lost\n"
            assert not can_dial(listener)
        finally:
            child.send_signal(signal.SIGKILL)
    assert can_dial(listener)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody without rights")
def test_without_the_rights_it_is_refused_in_one_sentence() -> None:
    program = (
        "import os; from nemesrv.chaos.faults.packet_drop import require_packet_drop; os.setuid(65534)\n"
        "try: require_packet_drop()\nexcept Exception as exc: print(type(exc).__name__, exc)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    needs = "needs root, or CAP_NET_ADMIN in the network namespace, which this process has not"
    assert said == f"HarnessError injection: packet {needs}\n"


@contextmanager
def two_hosts() -> Iterator[tuple[list[str], list[str], str]]:
    """Two network namespaces on a bridge: how to run a command on each, and the address of the second."""
    tag, net = f"nmsp{os.getpid() % 10_000}", os.getpid() % 250

    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    with ExitStack() as stack:
        ip("link", "add", tag, "type", "bridge")
        stack.callback(ip, "link", "del", tag)
        ip("link", "set", tag, "up")
        for number in (1, 2):
            space = f"{tag}-{number}"
            ip("netns", "add", space)
            stack.callback(ip, "netns", "del", space)
            ip("link", "add", f"{tag}h{number}", "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("link", "set", f"{tag}h{number}", "master", tag, "up")
            for device in ("lo", "eth0"):
                ip("-n", space, "link", "set", device, "up")
            ip("-n", space, "addr", "add", f"10.79.{net}.{number}/24", "dev", "eth0")
        first, second = (["ip", "netns", "exec", f"{tag}-{number}"] for number in (1, 2))
        yield first, second, f"10.79.{net}.2"


def hosts_missing() -> str:
    """Why no hosts can be had here; "" when they can."""
    if why := why_not():
        return why
    made = subprocess.run(
        ["unshare", "-n", "ip", "link", "add", "nmsp0", "type", "bridge"], capture_output=True, check=False
    )
    return made.stderr.decode().strip() if made.returncode else ""


@pytest.mark.toxiproxy
@pytest.mark.skipif(bool(hosts_missing()), reason=hosts_missing() or "they can be had")
def test_between_hosts_a_link_loses_both_streams_or_one_alone_and_what_was_lost_is_sent_again() -> None:
    with two_hosts() as (here, there, address):
        command = [*there, sys.executable, "-c", COUNTING_ECHO, address, str(PORT)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as echo:
            try:
                assert echo.stdout is not None
                assert echo.stdout.readline() == "up\n"
                harness = [*here, sys.executable, "-m", "tests.chaos.faults.packets_between_hosts", address, str(PORT)]
                done = subprocess.run(harness, capture_output=True, text=True, check=False, timeout=120)
            finally:
                echo.kill()
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    for stream, arrives in (("both", 0), ("upstream", 0), ("downstream", 1)):
        assert seen[stream] == {
            "met": str(Dial.DROPPED),
            "other": str(Dial.ANSWERED),
            "quiet": True,
            "arrived": arrives,
            "after": 7,
            "healed": str(Dial.ANSWERED),
            "lost": 1,
        }, stream

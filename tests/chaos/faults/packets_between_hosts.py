"""`python -m tests.chaos.faults.packets_between_hosts HOST PORT`, on a host of a bridge: what a link to another does
under loss of packets by the kernel, as one line of JSON.

    harness here ── dial ──► proxy (lo) ── bridge ──► counting echo on the other host ◄── bridge ── asked directly
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from nemesrv.chaos.faults.link_faults import PacketLoss, Stream
from nemesrv.chaos.faults.measuring import met_of
from nemesrv.chaos.faults.ports import PortHolder
from nemesrv.chaos.faults.toxiproxy import ToxiproxyServer
from nemesrv.chaos.faults.toxiproxy_links import LinkFaults
from nemesrv.chaos.topology import Link
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address

from .sockets import dial, is_quiet, read_exactly

LINK, OTHER = Link("broker-a", "ns-0"), Link("broker-b", "ns-0")
STREAMS: tuple[Stream, ...] = ("both", "upstream", "downstream")
COUNTING_ECHO = """
import socket, sys, threading
got = 0
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("up", flush=True)
def serve(connection):
    global got
    for data in iter(lambda: connection.recv(4096), b""):
        if data == b"how many x?":
            connection.sendall(b"%9d" % got)
        else:
            got += data.count(b"x" * 7)
            connection.sendall(data)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""


def arrived(peer: Address) -> int:
    """How many words have reached the other host, asked around every proxy."""
    with dial(peer) as sock:
        sock.sendall(b"how many x?")
        return int(read_exactly(sock, 9))


def awaited(peer: Address, count: int) -> int:
    """The same, once it is `count`, or after a second."""
    until_s = time.monotonic() + 1.0
    while (found := arrived(peer)) < count and time.monotonic() < until_s:
        pass
    return found


def seen(links: LinkFaults, peer: Address, stream: Stream) -> dict[str, Any]:
    clock = RealClock.starting_now()

    def met(link: Link) -> str:
        return str(asyncio.run(met_of(clock, links.way(link), 1.0))[0])

    with dial(links.way(LINK).over) as sock:
        sock.sendall(b"x" * 7)
        read_exactly(sock, 7)
        before = arrived(peer)
        fault_id = links.begin(PacketLoss(stream=stream), [LINK])
        sock.sendall(b"x" * 7)
        found = {
            "met": met(LINK),
            "other": met(OTHER),
            "quiet": is_quiet(sock),
            "arrived": awaited(peer, before + 1) - before,
        }
        links.end(fault_id)
        sock.settimeout(20)
        return {
            **found,
            "after": len(read_exactly(sock, 7)),
            "healed": met(LINK),
            "lost": awaited(peer, before + 1) - before,
        }


def main() -> None:
    peer = Address(sys.argv[1], int(sys.argv[2]))
    with (
        tempfile.TemporaryDirectory() as folder,
        PortHolder() as ports,
        ToxiproxyServer(Path(folder) / "toxiproxy.log", ports=ports) as api,
    ):
        links = LinkFaults(api, RealClock.starting_now(), lambda *_of, **_fields: None)
        links.open({LINK: peer, OTHER: peer}, ports)
        try:
            print(json.dumps({stream: seen(links, peer, stream) for stream in STREAMS}))
        finally:
            links.close()


if __name__ == "__main__":
    socket.setdefaulttimeout(20)
    main()

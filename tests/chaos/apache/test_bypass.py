"""Who a Java program may be connected with, and what is said of anybody else."""

import os
import socket
from pathlib import Path

import pytest

from nemesrv.chaos.apache.bypass import FILE, look, noted, refuse_bypass, strays
from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.fronts.sockets import Socket, inodes_of
from nemesrv.remoting.node.network import Address

JVM, FRONT, NODE, OTHER = (Address("127.0.0.1", port) for port in (4000, 5000, 6000, 7000))
ESTABLISHED, LISTENS, TIME_WAIT = 1, 10, 6
JAVA, OWN, THEIRS = 1, 2, 3


def _both(local: Address, remote: Address, inodes: tuple[int, int]) -> list[Socket]:
    return [Socket(local, remote, ESTABLISHED, inodes[0]), Socket(remote, local, ESTABLISHED, inodes[1])]


@pytest.mark.parametrize(
    "table",
    [
        _both(JVM, FRONT, (JAVA, OWN)),
        _both(JVM, NODE, (JAVA, OWN)),  # dialled by its node's process
        _both(JVM, OTHER, (JAVA, JAVA)),  # with itself
        _both(JVM, OTHER, (THEIRS, THEIRS)),  # of somebody else altogether
        [Socket(JVM, Address("0.0.0.0", 0), LISTENS, JAVA)],
        [Socket(JVM, OTHER, TIME_WAIT, JAVA)],
        [Socket(JVM, OTHER, ESTABLISHED, JAVA)],  # the other end is gone already
        [Socket(JVM, OTHER, ESTABLISHED, JAVA), Socket(OTHER, JVM, 4, 0)],  # nobody's any more
    ],
)
def test_what_goes_through_a_front_or_ends_is_right(table: list[Socket]) -> None:
    assert strays(table, {JAVA}, {OWN}, {FRONT}) == []


@pytest.mark.parametrize(
    ("table", "remote"),
    [
        (_both(JVM, OTHER, (JAVA, THEIRS)), OTHER),
        ([Socket(JVM, Address("10.0.0.7", 9876), ESTABLISHED, JAVA)], Address("10.0.0.7", 9876)),
    ],
)
def test_what_goes_round_is_found(table: list[Socket], remote: Address) -> None:
    assert strays(table, {JAVA}, {OWN}, {FRONT}) == [f"{JVM} with {remote}"]


def test_it_looks_at_this_machine() -> None:
    """We are both the program and its node here: all our connections have both ends in us."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as dialled:
        taken, _ = server.accept()
        with taken:
            assert os.fstat(dialled.fileno()).st_ino in inodes_of(os.getpid())
            local = str(Address(*dialled.getsockname()))
            assert not [one for one in look(os.getpid(), ()) if one.startswith(local)]


def test_nothing_is_judged_after_it(tmp_path: Path) -> None:
    (tmp_path / "broker-a").mkdir()
    refuse_bypass(tmp_path)
    noted(tmp_path / "broker-a", [f"{JVM} with {OTHER}", f"{JVM} with {NODE}"])
    lines = (tmp_path / "broker-a" / FILE).read_text().splitlines()
    assert lines == ["127.0.0.1:4000 with 127.0.0.1:7000", "127.0.0.1:4000 with 127.0.0.1:6000"]
    said = r"^broker-a's Java process went round its proxies: 127\.0\.0\.1:4000 with .*:7000 \(1 more\); no fault"
    with pytest.raises(HarnessError, match=said):
        refuse_bypass(tmp_path)

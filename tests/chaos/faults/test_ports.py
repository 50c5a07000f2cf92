"""Ports that stay ours."""

import asyncio
import socket

import pytest

from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.faults.ports import FIRST, LAST, PortHolder
from nemesrv.remoting.node.network import Address


def listens_on(address: Address) -> bool:
    async def body() -> bool:
        try:
            server = await asyncio.get_running_loop().create_server(asyncio.Protocol, *address)
        except OSError:
            return False
        server.close()
        return True

    return asyncio.run(body())


def test_a_held_port_can_be_listened_on_again_and_again():
    with PortHolder() as ports:
        address = ports.take()
        assert FIRST <= address.port <= LAST
        assert listens_on(address)
        assert listens_on(address)


def test_a_dial_to_a_held_port_that_nobody_listens_on_is_refused():
    with PortHolder() as ports, pytest.raises(ConnectionRefusedError):
        socket.create_connection(ports.take(), 1)


def test_nobody_else_is_given_a_held_port_until_it_is_released():
    with PortHolder() as ports, PortHolder() as others:
        address = ports.take()
        assert others._hold(address.port) is None
        ports.close()
        sock = others._hold(address.port)
        assert sock is not None
        sock.close()


def test_a_broker_s_port_is_taken_with_the_vip_port_below_it(monkeypatch: pytest.MonkeyPatch):
    with PortHolder() as ports, PortHolder() as others:
        held = others.take()
        drawn = iter([held.port + 2, FIRST + 5_000])
        monkeypatch.setattr("nemesrv.chaos.faults.ports.secrets.randbelow", lambda _: next(drawn) - FIRST)
        address = ports.take(vip=True)
        assert address.port == FIRST + 5_000
        assert others._hold(address.vip_channel.port) is None
        assert held.port + 2 not in ports._held


def test_a_proxy_for_programs_outside_has_the_address_that_they_dial_and_every_other_the_loopback_s():
    with PortHolder(outside="127.0.0.2") as ports:
        own, outside = ports.take_for(["ns-0", "external"])
        assert (own.host, outside.host) == ("127.0.0.1", "127.0.0.2")
        assert listens_on(outside)
        assert listens_on(outside.vip_channel)
        with PortHolder("127.0.0.2") as others:
            assert others._hold(outside.port) is None


def test_a_port_is_taken_with_those_beside_it_or_not_at_all():
    with PortHolder() as ports:
        first = ports.take(beside=(1, 2)).port
        assert set(ports._held) == {first, first + 1, first + 2}
        with PortHolder(ports=range(first - 1, first)) as others:
            with pytest.raises(HarnessError):
                others.take(beside=(1, 2))
            assert not others._held


def test_a_port_in_use_is_not_taken():
    with PortHolder() as ports, PortHolder() as others:
        address = ports.take()
        ports.close()
        with socket.create_server(address):
            assert others._hold(address.port) is None


def test_no_free_port_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch):
    with PortHolder() as ports:
        monkeypatch.setattr(ports, "_hold", lambda port: None)
        with pytest.raises(HarnessError, match="no free port was found between 20000 and 29999"):
            ports.take()

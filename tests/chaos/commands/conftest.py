"""Commands against a live cluster, over real loopback sockets."""

import functools
import signal
import socket
import sys
from collections.abc import Iterator

import pytest

from nemesrv.chaos.__main__ import main
from nemesrv.chaos.commands import ending
from nemesrv.remoting.node.network import Address

from .servers import Admin, Done, Servers, routes


@pytest.fixture(scope="package")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    running = Servers(tmp_path_factory.mktemp("servers"))
    yield running
    running.close()


@pytest.fixture
def nemesrv(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Admin]:
    """Runs `nemesrv ARGS` through `main`, as the console script does; what it makes of this process is undone."""
    monkeypatch.setattr(ending, "_from_a_shell", False)  # else a later test's command would fork this process
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def command(*args: str | Address) -> Done:
        monkeypatch.setattr(sys, "argv", ["nemesrv", *map(str, args)])
        status = 0
        try:
            main()
        except SystemExit as exc:
            status = int(exc.code or 0)
        printed = capsys.readouterr()
        return Done(status, printed.out, printed.err)

    yield command
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def admin(nemesrv: Admin) -> Admin:
    """Runs `nemesrv admin ARGS`."""
    return functools.partial(nemesrv, "admin")


@pytest.fixture
def nobody() -> Iterator[Address]:
    """An address that is taken, and at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield Address(*taken.getsockname())


@pytest.fixture
def topic(servers: Servers, admin: Admin, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic of two queues at both brokers, that both NameServers know."""
    name = request.node.originalname[:60]
    assert admin("updateTopic", "-n", servers.n, "-c", "chaos", "-t", name, "-r", "2", "-w", "2").status == 0
    routes(servers, name, brokers=2)
    yield name
    admin("deleteTopic", "-n", servers.n, "-c", "chaos", "-t", name)

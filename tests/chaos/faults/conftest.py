"""One Toxiproxy server for the tests of a file."""

from collections.abc import Iterator

import pytest

from nemesrv.chaos.faults.ports import PortHolder
from nemesrv.chaos.faults.toxiproxy import Toxiproxy, ToxiproxyServer


@pytest.fixture(scope="module")
def ports() -> Iterator[PortHolder]:
    with PortHolder() as holder:
        yield holder


@pytest.fixture(scope="module")
def api(ports: PortHolder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toxiproxy]:
    with ToxiproxyServer(tmp_path_factory.mktemp("toxiproxy") / "toxiproxy.log", ports=ports) as client:
        yield client

"""One pair of servers for each profile, for all tests of this folder.

NEMESRV_DIFFERENTIAL_OPERATIONS sets how many random operations each profile gets, NEMESRV_DIFFERENTIAL_SEED which
ones. From 10,000 on (`make differential`) the tests that wait for real time run, too.
"""

import os
from collections.abc import Iterator

import pytest

from nemesrv.remoting.node.profile import Profile

from ..interop.conftest import need
from .machine import prepare
from .pair import Pair
from .peers import JARS, Peers

OPERATIONS = int(os.environ.get("NEMESRV_DIFFERENTIAL_OPERATIONS", "300"))
LONG_FROM = 10_000

collect_ignore = [] if OPERATIONS >= LONG_FROM else ["test_slow.py"]


@pytest.fixture(scope="session", params=list(Profile))
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Both servers, empty; a test leaves them so."""
    profile: Profile = request.param
    need(JARS[profile])
    with Peers(profile) as peers:
        pair = Pair(peers)
        prepare(pair)
        yield pair

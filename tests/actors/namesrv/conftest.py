import pytest

from nemesrv.remoting.node.profile import Profile

from .helpers import World


@pytest.fixture
def world(profile: Profile) -> World:
    return World(profile)

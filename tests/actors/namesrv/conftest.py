import pytest

from nemesrv.remoting.node.profile import Profile

from .helpers import BOTH, World


@pytest.fixture(params=BOTH)
def profile(request: pytest.FixtureRequest) -> Profile:
    """A test that takes `profile` is run for each of RocketMQ's lines, but where it names them itself."""
    line: Profile = request.param
    return line


@pytest.fixture
def world(profile: Profile) -> World:
    return World(profile)

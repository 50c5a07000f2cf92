import pytest

from nemesrv.remoting.node.profile import Profile

from .producer_bench import Bench


@pytest.fixture
def profile() -> Profile:
    """But where a test is of BOTH."""
    return Profile.V4_9


@pytest.fixture
def b(profile: Profile) -> Bench:
    return Bench(profile=profile)

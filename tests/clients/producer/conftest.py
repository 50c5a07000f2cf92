import pytest

from .producer_bench import Bench


@pytest.fixture
def b() -> Bench:
    return Bench()

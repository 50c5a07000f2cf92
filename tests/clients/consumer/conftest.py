import pytest

from .consumer_world import World


@pytest.fixture
def world() -> World:
    """With one queue."""
    return World(queues=1)


@pytest.fixture
def wide() -> World:
    """With four queues."""
    return World(queues=4)

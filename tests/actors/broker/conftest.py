from pathlib import Path

import pytest

from .world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def up(tmp_path: Path) -> World:
    """Its broker runs."""
    return World(tmp_path, is_up=True)


@pytest.fixture
def ready(tmp_path: Path) -> World:
    """Its broker runs, and has the topic `orders`."""
    return World(tmp_path, is_up=True, has_orders=True)

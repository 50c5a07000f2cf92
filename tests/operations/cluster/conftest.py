"""A test has a World of its own where it wants one."""

from pathlib import Path

import pytest

from nemesrv.remoting.node.profile import Profile

from .world import World


@pytest.fixture
def profile() -> Profile:
    """Of a test that names none (world.PROFILES names both)."""
    return Profile.V4_9


@pytest.fixture
def world(tmp_path: Path, profile: Profile) -> World:
    return World(tmp_path, profile)

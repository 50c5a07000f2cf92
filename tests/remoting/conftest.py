"""Hypothesis here without a deadline (a busy machine is no defect of a pure function), and a server to talk to."""

import pytest
from hypothesis import settings

from .transport_world import World

settings.register_profile("nemesrv", deadline=None)
settings.load_profile("nemesrv")


@pytest.fixture
def world() -> World:
    return World()

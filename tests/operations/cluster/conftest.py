"""A test that is a coroutine is played on virtual time, on a World of its own where it wants one."""

import inspect
from pathlib import Path

import pytest

from nemesrv.remoting.node.profile import Profile
from tests.virtual import run

from .world import World


@pytest.fixture
def profile() -> Profile:
    """Of a test that names none (world.PROFILES names both)."""
    return Profile.V4_9


@pytest.fixture
def world(tmp_path: Path, profile: Profile) -> World:
    return World(tmp_path, profile)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asked = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}

    async def played() -> None:
        try:
            await pyfuncitem.obj(**asked)
        finally:
            if "world" in asked:
                await asked["world"].end()

    run(played)
    return True

"""How a test that is a coroutine is played, and one Spark session for all tests.

pyspark is imported only when a test asks for it, and the virtual clock only when a coroutine is played.
"""

import inspect
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from nemesrv.chaos.checks.spark.session import session, stop
    from nemesrv.chaos.errors import HarnessError

    try:
        running = session()
    except HarnessError as exc:
        pytest.skip(str(exc))
    yield running
    stop(running)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine is played on virtual time, inside each of its fixtures that is an async context."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    from tests.virtual import run

    asked = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}

    async def played() -> None:
        async with AsyncExitStack() as contexts:
            for fixture in asked.values():
                if hasattr(fixture, "__aexit__"):
                    await contexts.enter_async_context(fixture)
            await pyfuncitem.obj(**asked)

    run(played)
    return True

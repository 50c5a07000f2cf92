"""One Spark session for all tests; pyspark is imported only when a test asks for it."""

from collections.abc import Iterator
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

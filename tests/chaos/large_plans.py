"""Plans of a large history for a small one, and only as long as they are asked for."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from nemesrv.chaos.checks.spark import settings


@contextmanager
def planned_as_large(spark: SparkSession) -> Iterator[None]:
    """Within the block every history is planned as a large one; the tests that follow get small plans again, which
    generate no code."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(settings, "SMALL_BYTES", 0)
        try:
            yield
        finally:
            settings.use(spark, settings.SMALL_PLANS)

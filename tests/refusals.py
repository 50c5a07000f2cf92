"""What a user is told of a scenario that cannot be."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from nemesrv.chaos.errors import ScenarioError


@contextmanager
def refusal(said: str, *, by: type[Exception] = ScenarioError) -> Iterator[None]:
    """One line, which has `said` in it."""
    with pytest.raises(by) as refused:
        yield
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)

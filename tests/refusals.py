"""What a user is told of a scenario or a command that cannot be."""

import re
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


def is_told(sentence: str, told: str) -> bool:
    """Whether this is the sentence: in ours `→` stands for "is not allowed; expected", and `…` for any words."""
    words = sentence.replace("→", "is not allowed; expected").split("…")
    return re.fullmatch(".*".join(map(re.escape, words)), told) is not None

"""Every verdict that a test of a check gets, of anomalies and clean twins alike, agrees with its own figures."""

from collections.abc import Iterator
from typing import Any

import pytest

from nemesrv.chaos.verdict import Verdict
from tests.chaos.checks.consistency import contradictions


@pytest.fixture(autouse=True)
def _verdicts_agree_with_their_figures(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made: list[Verdict] = []
    make = Verdict.__init__

    def noted(self: Verdict, *args: Any, **values: Any) -> None:
        make(self, *args, **values)
        made.append(self)

    monkeypatch.setattr(Verdict, "__init__", noted)
    yield
    assert [text for verdict in made for text in contradictions(verdict)] == []

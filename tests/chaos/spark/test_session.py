"""What a session says when it cannot start."""

from __future__ import annotations

import pytest

from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.spark.session import require_java


def test_without_java_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(HarnessError) as caught:
        require_java()
    assert "\n" not in str(caught.value)
    assert "JDK 17" in str(caught.value)

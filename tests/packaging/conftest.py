"""One wheel for all tests of this folder."""

from pathlib import Path

import pytest

from tests.packaging.wheels import built_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel"))

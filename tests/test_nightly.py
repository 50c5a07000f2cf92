"""Whatever runs nightly only is a test that there is, and what stands for it runs every time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.nightly import NIGHTLY, Nightly

ROOT = Path(__file__).parents[1]


def collected(*arguments: str) -> set[str]:
    """Pytest's ids of the tests in the files that the table names."""
    named = {test.partition("::")[0] for one in NIGHTLY for test in (one.test, *one.instead)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", *arguments]
    done = subprocess.run(
        [*command, *(file for file in sorted(named) if file.endswith(".py"))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {line for line in done.stdout.splitlines() if "::" in line}


@pytest.fixture(scope="module")
def nightly() -> set[str]:
    return collected("-m", "nightly")


@pytest.fixture(scope="module")
def every_time() -> set[str]:
    return collected("-m", "not nightly")


@pytest.mark.parametrize("one", NIGHTLY, ids=lambda one: one.test.rpartition("::")[2])
def test_what_stands_in_the_table_is_so(one: Nightly, nightly: set[str], every_time: set[str]) -> None:
    assert {test for test in nightly if test.partition("[")[0] == one.test}
    kept = {test.partition("[")[2].rstrip("]") for test in every_time if test.partition("[")[0] == one.test}
    assert kept == set(one.every_time)
    for test in one.instead:
        assert (ROOT / test).exists() or test in {each.partition("[")[0] for each in every_time}, test


def test_nothing_else_is_nightly(nightly: set[str]) -> None:
    assert {test.partition("[")[0] for test in nightly} == {one.test for one in NIGHTLY}

"""Whatever runs nightly only is a test that there is, and what stands for it runs every time."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.nightly import COLLECTED, NIGHTLY, Nightly

ROOT = Path(__file__).parents[1]


COLLECT = """
import sys
import pytest

class Told:
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        for item in items:
            print("nightly" if item.get_closest_marker("nightly") else "every-time", item.nodeid, sep="\\t")

sys.exit(pytest.main(["-p", "no:cacheprovider", "--collect-only", "-qq", *sys.argv[1:]], plugins=[Told()]))
"""


@pytest.fixture(scope="module")
def collected(request: pytest.FixtureRequest) -> dict[str, set[str]]:
    """Pytest's ids of the tests in the files that the table names: those that are nightly, and those of every time.

    Of a whole suite's own collection, where these tests run in one; else these files are collected for it.
    """
    named = named_files(test for one in NIGHTLY for test in (one.test, *one.instead))
    here = request.config.stash[COLLECTED]
    if named_files(here) >= {file for file in named if file.endswith(".py")}:
        return {
            "nightly": {test for test, is_nightly in here.items() if is_nightly},
            "every-time": {test for test, is_nightly in here.items() if not is_nightly},
        }
    done = subprocess.run(
        [sys.executable, "-c", COLLECT, *(file for file in sorted(named) if file.endswith(".py"))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, set[str]] = {"nightly": set(), "every-time": set()}
    for line in done.stdout.splitlines():
        when, _, test = line.partition("\t")
        if test:
            found[when].add(test)
    return found


def named_files(tests: Iterable[str]) -> set[str]:
    return {test.partition("::")[0] for test in tests}


@pytest.fixture(scope="module")
def nightly(collected: dict[str, set[str]]) -> set[str]:
    return collected["nightly"]


@pytest.fixture(scope="module")
def every_time(collected: dict[str, set[str]]) -> set[str]:
    return collected["every-time"]


@pytest.mark.parametrize("one", NIGHTLY, ids=lambda one: one.test.rpartition("::")[2])
def test_what_stands_in_the_table_is_so(one: Nightly, nightly: set[str], every_time: set[str]) -> None:
    assert {test for test in nightly if test.partition("[")[0] == one.test}
    kept = {test.partition("[")[2].rstrip("]") for test in every_time if test.partition("[")[0] == one.test}
    assert kept == set(one.every_time)
    for test in one.instead:
        assert (ROOT / test).exists() or test in {each.partition("[")[0] for each in every_time}, test


def test_nothing_else_is_nightly(nightly: set[str]) -> None:
    assert {test.partition("[")[0] for test in nightly} == {one.test for one in NIGHTLY}

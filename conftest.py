"""Markers and skips of this repository's own tests; fixtures live in tests/.

A machine without an optional part skips what needs it, with the reason. CI has every part, so there an unexpected
skip is a failure: `CI=true` turns each skip whose reason is not listed here into one.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sys
from collections.abc import Generator, Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

collect_ignore = ["tests/example"]
"""A user's project, which tests/packaging runs in an environment of its own."""

EXPECTED_SKIPS_IN_CI: tuple[str, ...] = (
    "systemd-analyze is missing",
    "Chromium is missing",
    "need root",
    "iproute2",
    "no network namespace can be made",
    "no bridge can be made",
    "no time namespace can be made",
    "neither kubectl nor kustomize is there",
    "docker compose is not there",
    "libfaketime is not installed",
)
"""Reasons that CI accepts. CI has all parts of nemesrv; whether its machine boots by systemd is not ours to say, where
set-up may not install packages (deploy/setup.sh does, in CI, as root, with apt-get) neither is a browser, nor is
libfaketime; not every container may make hosts of its own, and Kubernetes and Docker have their tools."""


STARTS_SOMETHING = ("ray", "toxiproxy", "e2e", "java", "spark", "browser")
ONLY = os.environ.get("NEMESRV_TESTS_WITH", "").split()
"""Marks of which every test that is wanted has one (tests/run_suite.py): importing all files costs seconds a part."""

STAND_IN = pytest.StashKey[str]()
"""Of a nightly test: what runs each time in its place."""

GARBAGE_THRESHOLDS = 20_000, 20, 20
"""A recording makes objects by the ten thousand and hardly a circle: looked for at every 700th, they cost a twentieth
and more of its time."""


@cache
def _says(file: Path, mark: str) -> bool:
    return f"mark.{mark}" in file.read_text(encoding="utf-8")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    if ONLY and collection_path.match("test_*.py") and not any(_says(collection_path, mark) for mark in ONLY):
        return True
    return None


def _refuse(why: str) -> NoReturn:
    print(why, file=sys.stderr)  # of a worker pytest-xdist tells no more than that it ended
    raise pytest.UsageError(why)


def _mark_nightly(items: Sequence[pytest.Item], *, whole: bool) -> None:
    """Of `nightly_but`; and STAND_IN of all. Whole tests were collected unless some were chosen by their parameters."""
    ids = {item.nodeid for item in items}
    for item in items:
        for mark in item.iter_markers("nightly_but"):
            test = _test_of(item)
            every_time = [f"{test}[{parameters}]" for parameters in mark.args]
            if whole and not ids.issuperset(every_time):
                _refuse(f"nightly_but: no such test: {', '.join(sorted({*every_time} - ids))}")
            if item.nodeid not in every_time:
                item.add_marker(pytest.mark.nightly)
                item.stash[STAND_IN] = " ".join(every_time)
    quick = {_test_of(item) for item in items if item.get_closest_marker("nightly") is None}
    slow = {_test_of(item) for item in items} - quick
    for item in items:
        mark = item.get_closest_marker("nightly")
        if mark is not None and STAND_IN not in item.stash:
            named = mark.args[0] if len(mark.args) == 1 else ""
            item.stash[STAND_IN] = stand_in = _stand_in(named, item.path, item.config.rootpath)
            if not stand_in or (whole and stand_in in slow):
                _refuse(
                    f"{_test_of(item)}: nightly({named!r}) names no test that runs each time: write "
                    'nightly("TEST"), nightly("FILE::TEST"), FILE below tests/, or nightly("none: WHY")'
                )


def _test_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


@cache
def _stand_in(named: str, path: Path, root: Path) -> str:
    """The test that `nightly(named)` in the file means, or `none: WHY`; empty if there is none such."""
    if named.startswith("none: "):
        return "" if named == "none: " else named
    file, _, test = named.rpartition("::")
    path = root / "tests" / file if file else path
    there = path.is_file() and re.search(rf"^(async )?def {test}\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    return f"{path.relative_to(root)}::{test}" if test and there else ""


def pytest_report_collectionfinish(config: pytest.Config, items: Sequence[pytest.Item]) -> list[str]:
    """Of `pytest -m nightly --collect-only`: each test and what `make test` runs in its place."""
    if not config.option.collectonly or config.option.markexpr != "nightly":
        return []
    return sorted({f"{_test_of(item)}  {item.stash[STAND_IN]}" for item in items})


_PROCESS = os.getpid()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A test whose command forked this process and came back twice would have every later test run twice."""
    if os.getpid() != _PROCESS:
        os.write(2, b"a test before this one has forked the process that runs the tests\n")
        os._exit(70)


def _toxiproxy() -> str | None:
    beside = Path(sys.executable).with_name("toxiproxy-server")
    return (
        os.environ.get("NEMESRV_TOXIPROXY")
        or shutil.which("toxiproxy-server")
        or (str(beside) if beside.exists() else None)
    )


def _missing(marker: str) -> str | None:
    if marker in ("spark", "e2e") and shutil.which("java") is None:
        return "Java is missing: install a JDK 17 (Spark needs it)"
    if marker in ("toxiproxy", "e2e") and _toxiproxy() is None:
        return "toxiproxy-server is missing: run make setup, or put one on PATH"
    if marker == "browser":
        from tests.chaos.reports.chromium import find_chromium

        if find_chromium() is None:
            return "Chromium is missing: put one on PATH (Debian: apt-get install chromium) or set NEMESRV_CHROMIUM"
    return None


def pytest_configure() -> None:
    os.environ.pop("COLUMNS", None)  # pytest-xdist tells its processes how wide the terminal is; commands' tests say it
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background job; programs would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before -m looks at the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _mark_nightly(items, whole="[" not in "".join(config.args))
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        unsaid = [m for m in STARTS_SOMETHING if m in marks and not _says(item.path, m)]
        if unsaid:
            _refuse(f"{item.path}: say pytest.mark.{unsaid[0]} in the file itself, or its part never looks there")
        for marker in ("spark", "toxiproxy", "e2e", "browser"):
            if marker in marks and (reason := _missing(marker)):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """What was imported and collected, half a million objects that stay, is not looked through at each collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(expected in reason for expected in EXPECTED_SKIPS_IN_CI):
            report.outcome = "failed"
            report.longrepr = f"unexpected skip in CI: {reason}"
    return report

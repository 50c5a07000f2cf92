"""Every command of README and docs/ is run by a test as written, most of them here.

    ```yaml NAME   ```python NAME   a file      ```sh [WORD]   commands      ```text   what they print

A line of a text block must come in the output, in that order; `…` stands for anything. WORD says how the commands are
run (HERE), or which other tests run them (ELSEWHERE) with a cluster or addresses of their own in place of the reader's.
Pages that start no Ray are judged without Spark (commands_here.py); logs are read by Spark, which a page that imports
some starts.
"""

import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from nemesrv.chaos.apache.maven import cache
from tests.apache_matrix.test_runs import need_apaches
from tests.clients_matrix.catalogue import CLIENTS
from tests.clients_matrix.install import ClientMissing, install
from tests.commands_here import run

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs" / "tutorial").glob("*.md"))
LONG_S = 3_600
REAL = [pytest.mark.ray, pytest.mark.toxiproxy]
HERE = {"": [], "nightly": REAL, "apache": [*REAL, pytest.mark.java], "client": [pytest.mark.java]}
"""How the commands of a word are run: as they are; on the real clock; by Apache's programs; with a client of ours for
the reader's, and Apache's for Java's."""
ELSEWHERE = {
    "cluster": "tests/operations/cluster/test_pages.py",
    "demo": "tests/packaging/test_install.py",
    "gate": "tests/deploy/test_workflows.py",
    "hosts": "tests/hosts/test_readme_lines.py",
    "install": "tests/packaging/test_install.py",
    "recipe": "tests/test_readme_recipes.py",
}


class Block(NamedTuple):
    kind: str
    about: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Its code blocks, in order."""
    found = re.findall(r"^```(\w*) ?(\S*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [Block(*block) for block in found]


def words_of(page: Path) -> set[str]:
    """Those of its commands."""
    return {block.about for block in blocks(page) if block.kind == "sh"}


def pages() -> list[Path]:
    """README and every page of docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def cases() -> Iterator[object]:
    for page in pages():
        if words := words_of(page) & HERE.keys():
            marks = max((HERE[word] for word in words), key=len)
            if not marks and any("nemesrv import" in block.text for block in blocks(page) if block.kind == "sh"):
                marks = [pytest.mark.spark]
            yield pytest.param(page, marks=marks, id=page.stem)


def assert_shows(output: str, expected: str) -> None:
    """Each expected line, in order."""
    rest = output.splitlines()
    for line in expected.splitlines():
        pattern = re.compile(".*".join(map(re.escape, line.split("…"))))
        at = next((index for index, one in enumerate(rest) if pattern.search(one)), None)
        assert at is not None, f"nothing like {line!r} in\n{output}"
        rest = rest[at + 1 :]


def put_servers(folder: Path) -> None:
    """Apache's servers lie where a build of the reader's checkout would put its own."""
    built = folder / "rocketmq" / "distribution" / "target" / "rocketmq-5.3.3" / "rocketmq-5.3.3"
    built.mkdir(parents=True)
    (built / "lib").symlink_to(cache("apache") / "servers-5.3.3")


def put_clients(folder: Path) -> None:
    """`./my-client` and `node` are our client, `classes` and `jars` those of Apache's."""
    try:
        java = install(CLIENTS["java-5.3.3"])
    except ClientMissing as exc:
        pytest.skip(str(exc))
    for part in ("classes", "jars"):
        (folder / part).symlink_to(java / part)
    for name in ("my-client", "node"):
        client = folder / name
        client.write_text(f"#!/bin/sh\nexec {sys.executable} {ROOT}/tests/clients_matrix/drivers/ours.py 5.x\n")
        client.chmod(0o755)


@pytest.mark.nightly_but("2-your-scenario")
@pytest.mark.timeout(LONG_S)
@pytest.mark.parametrize("page", cases())
def test_a_page_of_the_tutorial_does_what_it_says(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "170")
    spark = any(map(request.node.get_closest_marker, ("ray", "spark")))
    folder = tmp_path / "mine"
    output: str | None = None
    folder.mkdir()
    (folder / "docs").symlink_to(ROOT / "docs")
    words = words_of(page)
    if "apache" in words:
        need_apaches()
        put_servers(folder)
    if "client" in words:
        put_clients(folder)
        monkeypatch.setenv("PATH", str(folder), prepend=":")
    for block in blocks(page):
        if block.kind in ("yaml", "python") and block.about:
            (folder / block.about).write_text(block.text, encoding="utf-8")
        elif block.kind == "sh":
            output = run(block.text, folder, spark=spark, timeout_s=LONG_S) if block.about in HERE else None
        elif block.kind == "text" and output is not None:
            assert_shows(output, block.text)


_COMMAND = re.compile(r"^(?:\$ )?(nemesrv|make|python|pip|go|ray|jq|docker|\.venv/bin/\w+) \S", re.MULTILINE)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_is_run_by_a_test(page: Path) -> None:
    for block in blocks(page):
        if block.kind == "sh" or (block.kind in ("", "bash", "console", "shell") and _COMMAND.search(block.text)):
            assert block.kind == "sh", f"say how this is run, ```sh WORD:\n{block.text}"
            assert block.about in {*HERE, *ELSEWHERE}, block.about


@pytest.mark.parametrize(("word", "file"), ELSEWHERE.items())
def test_commands_that_are_run_elsewhere_are_run_there(word: str, file: str) -> None:
    """The file reads what it runs off the page, by its word."""
    text = (ROOT / file).read_text(encoding="utf-8")
    assert f'"{word}"' in text or f"sh {word}" in text
    assert any(word in words_of(page) for page in pages())


def test_every_page_leads_to_the_next() -> None:
    for page, following in pairwise(PAGES):
        assert f"({following.name})" in page.read_text(encoding="utf-8")

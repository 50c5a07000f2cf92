"""The tutorial does what it says: a page's files are written, its commands run, and they print what it shows.

    ```yaml NAME   ```python NAME   a file      ```sh   commands (`nightly`: only there)      ```text   what they print

A line of a text block must come in the output, in that order; `…` stands for anything. Pages
that start no Ray are judged without Spark (commands_here.py); logs are read by Spark, which a page that imports some
starts.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.commands_here import run

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs" / "tutorial").glob("*.md"))


class Block(NamedTuple):
    kind: str
    about: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Its code blocks, in order."""
    found = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [Block(*block) for block in found]


def run_too() -> list[Path]:
    """README and the pages of docs/ with commands that are run as written; those of hosts.md run in tests/hosts."""
    pages = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name != "hosts.md"]
    return [ROOT / "README.md", *(page for page in pages if any(block.kind == "sh" for block in blocks(page)))]


def cases() -> Iterator[object]:
    for page in (*PAGES, *run_too()):
        marks = []
        if any(block.about == "nightly" for block in blocks(page)):
            marks = [pytest.mark.nightly, pytest.mark.ray, pytest.mark.toxiproxy]
        elif any("nemesrv import" in block.text for block in blocks(page) if block.kind == "sh"):
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


@pytest.mark.nightly_but("2-your-scenario")
@pytest.mark.parametrize("page", cases())
def test_a_page_of_the_tutorial_does_what_it_says(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "170")
    spark = any(map(request.node.get_closest_marker, ("ray", "spark")))
    folder, output = tmp_path / "mine", ""
    folder.mkdir()
    (folder / "docs").symlink_to(ROOT / "docs")
    for block in blocks(page):
        if block.kind in ("yaml", "python") and block.about:
            (folder / block.about).write_text(block.text, encoding="utf-8")
        elif block.kind == "sh":
            output = run(block.text, folder, spark=spark)
        elif block.kind == "text":
            assert_shows(output, block.text)


def test_every_page_leads_to_the_next() -> None:
    for page, following in pairwise(PAGES):
        assert f"({following.name})" in page.read_text(encoding="utf-8")

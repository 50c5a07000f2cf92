"""How large nemesrv is, in numbers that anyone can count again.

    python -m tests.structure            prints them
    python -m tests.structure TREE       those of another checkout
    python -m tests.structure --write    puts them into the last column of the table in docs/architecture.md

A room is what stands directly in a top-level folder of the product: a folder, or a file beside folders. A decision is
an if, a conditional expression, an `and` or `or`, a condition of a comprehension, or a case of a match.
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import grimp

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PRODUCT = ("remoting", "actors", "clients", "chaos", "conformance", "operations")
LARGEST = 5
_DEPTH = 2
"""Dots in the name of what stands in one of the product's folders."""


class Size(NamedTuple):
    files: int
    lines: int
    decisions: int


def size_of(*folders: Path) -> Size:
    texts = [path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py")]
    return Size(len(texts), sum(text.count("\n") for text in texts), sum(map(decisions, texts)))


def decisions(source: str) -> int:
    return sum(map(_decisions_at, ast.walk(ast.parse(source))))


def _decisions_at(node: ast.AST) -> int:
    match node:
        case ast.If() | ast.IfExp() | ast.match_case():
            return 1
        case ast.comprehension():
            return len(node.ifs)
        case ast.BoolOp():
            return len(node.values) - 1
    return 0


def rooms_of_chaos(root: Path = ROOT) -> list[str]:
    """The folders of chaos/ that hold modules."""
    return sorted({path.parent.name for path in (root / "chaos").glob("*/*.py")})


def files_of_folders(root: Path = ROOT) -> Counter[str]:
    """Folder of the product → how many modules stand directly in it."""
    paths = (path for top in PRODUCT for path in (root / top).rglob("*.py"))
    return Counter(str(path.parent.relative_to(root)) for path in paths)


def imports_of_rooms() -> dict[str, set[str]]:
    """Room → the rooms that its modules import from, types included."""
    graph = grimp.build_graph("nemesrv", cache_dir=None)
    rooms: dict[str, set[str]] = defaultdict(set)
    for module in graph.modules:
        if module.count(".") >= _DEPTH:
            others = {_room(other) for other in graph.find_modules_directly_imported_by(module)}
            rooms[_room(module)] |= others - {_room(module)}
    return rooms


def _room(module: str) -> str:
    return ".".join(module.split(".")[: _DEPTH + 1])


def rows_of(root: Path) -> dict[str, str]:
    """The rows of the table in docs/architecture.md, of the product."""
    of_product, imports = size_of(*(root / name for name in PRODUCT)), imports_of_rooms()
    ((folder, most),) = files_of_folders(root).most_common(1)
    return {
        **{name: f"{count:,}" for name, count in of_product._asdict().items()},
        "rooms in chaos/": str(len(rooms_of_chaos(root))),
        "rooms in all": str(len(imports)),
        "imports between rooms": str(sum(map(len, imports.values()))),
        "pairs of rooms that import each other": str(
            sum(a in imports[b] for a, others in imports.items() for b in others if a < b)
        ),
        "most files in one folder": f"{most} ({folder})",
    }


def filled_in(page: str, rows: Mapping[str, str]) -> str:
    """The page with these numbers in the last column of its table. KeyError for a row that it has not."""
    for name, number in rows.items():
        page, count = re.subn(rf"(?m)^(\| {re.escape(name)} \|[^|\n]*\|)[^|\n]*\|$", rf"\g<1> {number} |", page)
        if not count:
            raise KeyError(name)
    return page


def main(*words: str) -> int:
    root = next((Path(word).resolve() for word in words if word != "--write"), ROOT)
    sys.path.insert(0, str(root / "src"))
    for name in (*PRODUCT, "tests"):
        of = size_of(root / name)
        print(f"{name:11} {of.files:5,} files {of.lines:8,} lines {of.decisions:7,} decisions")
    rows = rows_of(root)
    print("\nof the product:", *(f"  {name}: {number}" for name, number in rows.items()), sep="\n")
    print("\nrooms in chaos/:", ", ".join(rooms_of_chaos(root)))
    largest = files_of_folders(root).most_common(LARGEST)
    print("folders with most files:", ", ".join(f"{folder} {count}" for folder, count in largest))
    if "--write" in words:
        PAGE.write_text(filled_in(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""`python -m tests.structure`: how many files, rooms and import arrows between rooms there are.

A room is what stands directly in `actors/`, `chaos/`, `clients/` or `remoting/`: a folder, or a file beside folders.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import grimp


def rooms_of(package: str) -> dict[str, set[str]]:
    """Room → the rooms that its modules import from, types included."""
    graph = grimp.build_graph(package, cache_dir=None)
    rooms: dict[str, set[str]] = defaultdict(set)
    for module in graph.modules:
        if module.count(".") >= _DEPTH:
            others = {_room(other) for other in graph.find_modules_directly_imported_by(module)}
            rooms[_room(module)] |= others - {_room(module)}
    return rooms


_DEPTH = 2
"""Dots in the name of what stands in one of the four folders."""


def _room(module: str) -> str:
    return ".".join(module.split(".")[: _DEPTH + 1])


def main() -> int:
    root = Path(__file__).parents[1]
    files = [path for folder in ("actors", "chaos", "clients", "remoting") for path in (root / folder).rglob("*.py")]
    of_chaos = [path for path in files if path.relative_to(root).parts[0] == "chaos"]
    at_top = [path for path in of_chaos if path.parent == root / "chaos"]
    rooms = rooms_of("nemesrv")
    print(f"{len(files)} files, {len(of_chaos)} of them in chaos/, {len(at_top)} at its top level")
    print(f"{len(rooms)} rooms, {sum(map(len, rooms.values()))} import arrows between them")
    both = sorted((a, b) for a in rooms for b in rooms[a] if a in rooms[b] and a < b)
    print(f"{len(both)} pairs of rooms import from each other", *(f"  {a} and {b}" for a, b in both), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

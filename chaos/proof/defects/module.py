"""A defect of the user's own: a Python file that says how one node is to be wrong, for `nemesrv run --defect FILE.py`.

    NODES = ["ns-0"]            the nodes to plant it in, or
    KINDS = ["name_server"]     every node of these kinds: name_server, broker, producer, consumer, prober
    def plant(node): ...        changes the finished node, before it listens

The first line of the file's docstring says what is wrong. A node's process reads the file's text, so that the file need
not be there, and runs it once for each life of a node.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from traceback import extract_tb
from typing import Any

from ...topology import NodeKind
from .model import Defect


class DefectModuleError(ValueError):
    """The file is no defect; the text says what is allowed."""


def of_file(path: Path) -> Defect:
    """The defect of the file, which is run once to see what it says. DefectModuleError when it is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise DefectModuleError(f"a readable Python file ({getattr(exc, 'strerror', None) or exc})") from exc
    space = _run(text, str(path))
    _plant_of(space)
    nodes, kinds = _names(space, "NODES"), _names(space, "KINDS")
    if not nodes and not kinds:
        raise DefectModuleError('a file that says NODES = ["ns-0"] or KINDS = ["name_server"]')
    known = [str(kind) for kind in NodeKind if kind is not NodeKind.EXTERNAL]
    for kind in kinds:
        if kind not in known:
            raise DefectModuleError(f"a file whose KINDS are some of {', '.join(known)}; {kind!r} is none")
    return Defect(
        name=path.stem,
        what=str(space.get("__doc__") or path.name).strip().splitlines()[0],
        kinds=tuple(map(NodeKind, kinds)) or tuple(NodeKind),
        nodes=nodes,
        plant=Source(text, str(path)),
        source=path.resolve(),
    )


class Source:
    """What plants a user's defect: the text of its file, which is run in the node's own process. Can be pickled."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name

    def __call__(self, node: Any) -> None:
        plant = _plant_of(_run(self.text, self.name))
        try:
            plant(node)
        except Exception as exc:
            line = next((f.lineno for f in reversed(extract_tb(exc.__traceback__)) if f.filename == self.name), None)
            where = f"{self.name}, line {line}" if line else self.name
            raise DefectModuleError(f"plant(node) of {where}: {type(exc).__name__}: {exc}") from exc


def _run(text: str, name: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "nemesrv_defect", "__file__": name}
    try:
        exec(compile(text, name, "exec"), space)
    except (Exception, SystemExit) as exc:
        raise DefectModuleError(f"a file that Python can run: {type(exc).__name__}: {exc}") from exc
    return space


def _plant_of(space: dict[str, Any]) -> Callable[[Any], None]:
    plant: Any = space.get("plant")
    try:
        inspect.signature(plant).bind(None)
    except (TypeError, ValueError):
        raise DefectModuleError("a file with a function plant(node)") from None
    if inspect.iscoroutinefunction(plant):
        raise DefectModuleError("a file whose plant(node) is no async function: nobody awaits it")
    found: Callable[[Any], None] = plant
    return found


def _names(space: dict[str, Any], name: str) -> tuple[str, ...]:
    said = space.get(name, ())
    if not isinstance(said, list | tuple) or not all(isinstance(one, str) for one in said):
        raise DefectModuleError(f"a file whose {name} is a list of names")
    return tuple(said)

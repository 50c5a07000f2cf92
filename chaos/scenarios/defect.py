"""Planted defects: their data, how they get into nodes, and a user's own defects (`nemesrv run --defect FILE.py`).

    NODES = ["ns-0"]            the nodes to plant it in, or
    KINDS = ["name_server"]     every node of these kinds: name_server, broker (masters), slave, producer, consumer,
                                prober; a kind that the scenario has no node of is an error
    def plant(node): ...        changes the finished node, before it listens

The first line of the file's docstring says what is wrong. Each process of a node gets the file's text and runs that
text once. A defect replaces a small method of one built node. The self-test's defects are in proof/defects/.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from traceback import extract_tb
from typing import Any

from ..topology import NodeKind

CLIENTS = (NodeKind.PRODUCER, NodeKind.CONSUMER, NodeKind.PROBER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """A planted defect. The defect is planted in `nodes`; if `nodes` is empty, in every node of `kinds`. A defect is
    found if every check of `caught_by` says INVALID, and no check outside `caught_by` and `also` says INVALID."""

    name: str
    what: str
    kinds: tuple[NodeKind, ...]
    nodes: tuple[str, ...] = ()
    scenario: str = ""
    caught_by: frozenset[str] = frozenset()
    also: frozenset[str] = frozenset()
    plant: Callable[[Any], None]
    of_apache: bool = False
    """Whether it is planted in Apache's servers, by settings or from outside."""
    source: Path | None = None
    """The user's file; None: one of the self-test's."""

    @property
    def where(self) -> str:
        """Return the nodes in which the defect is planted: `ns-0`, `every broker`."""
        return ", ".join(self.nodes) or f"every {', '.join(self.kinds)}"

    @property
    def command(self) -> str:
        """Return the command with which checks find the defect; "" for a user's own defect."""
        if not self.scenario:
            return ""
        how = "--implementation apache-4.9.7" if self.of_apache else "--clock virtual --seed 1"
        return f"nemesrv run {self.scenario} {how} --set checks=all --defect {self.name}"

    def is_for(self, name: str, kind: NodeKind) -> bool:
        return kind in self.kinds and (not self.nodes or name in self.nodes)


def shipped_defects() -> Mapping[str, Defect]:
    """Return nemesrv's own defects by name. Defects are loaded on demand, because they import every node's program."""
    return import_module("...proof.defects", __name__).EVERY


class DefectModuleError(ValueError):
    """The file does not define a defect. The error's text says what a defect's file must contain."""


def of_file(path: Path) -> Defect:
    """Return the defect that the Python file defines; the file is run once. Raises DefectModuleError if the file
    defines no defect."""
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
        plant=DefectSource(text, str(path)),
        source=path.resolve(),
    )


class DefectSource:
    """Plants a user's defect in a node, in the node's own process, from the text of the user's file. Can be pickled."""

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
    return plant


def _names(space: dict[str, Any], name: str) -> tuple[str, ...]:
    said = space.get(name, ())
    if not isinstance(said, list | tuple) or not all(isinstance(one, str) for one in said):
        raise DefectModuleError(f"a file whose {name} is a list of names")
    return tuple(said)

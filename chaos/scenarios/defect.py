"""What a planted defect is, how it gets into a node, and a defect of the user's own: `nemesrv run --defect FILE.py`.

    NODES = ["ns-0"]            the nodes to plant it in, or
    KINDS = ["name_server"]     every node of these kinds: name_server, broker (masters), slave, producer, consumer,
                                prober; a kind that the scenario has no node of is an error
    def plant(node): ...        changes the finished node, before it listens

The first line of such a file's docstring says what is wrong. A node's process reads the file's text, so that the file
need not be there, and runs it once for each life of a node. The programs themselves know nothing of defects: a small
method of one finished node is replaced. Which defects the self-test plants, proof/defects/ says.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from traceback import extract_tb
from typing import Any, Concatenate, ParamSpec

from ...actors.broker.server import Broker
from ..topology import NodeKind

P = ParamSpec("P")
CLIENTS = (NodeKind.PRODUCER, NodeKind.CONSUMER, NodeKind.PROBER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """One way to be wrong. `nodes`: the names it is planted in; none means every node of `kinds`.

    It is killed when every check of `caught_by` says INVALID, and no check does but those and the ones in `also`,
    which may see the same wrong from another side.
    """

    name: str
    what: str
    kinds: tuple[NodeKind, ...]
    nodes: tuple[str, ...] = ()
    scenario: str = ""
    caught_by: frozenset[str] = frozenset()
    also: frozenset[str] = frozenset()
    plant: Callable[[Any], None]
    of_apache: bool = False
    """Whether it is planted in Apache's own servers, by settings or from outside."""
    source: Path | None = None
    """The user's file that says it; None: one of the self-test's."""

    def is_for(self, name: str, kind: NodeKind) -> bool:
        return kind in self.kinds and (not self.nodes or name in self.nodes)


def replace_part(target: object, name: str, with_what: object) -> None:
    """Replace a method or setting of this one object; AttributeError when it has none, so that none plants nothing."""
    getattr(target, name)
    setattr(target, name, with_what)


def in_its_parts(change: Callable[Concatenate[Broker, P], None]) -> Callable[Concatenate[Broker, P], None]:
    """A plant for parts that a broker makes only when it listens: its tables, its stored messages, its registration."""

    @wraps(change)
    def plant(broker: Broker, /, *args: P.args, **kwargs: P.kwargs) -> None:
        assemble = broker._assemble

        def assemble_and_change() -> None:
            assemble()
            change(broker, *args, **kwargs)

        replace_part(broker, "_assemble", assemble_and_change)

    return plant


def shipped_defects() -> Mapping[str, Defect]:
    """Name → defect, of all that the wheel has; loaded when asked for, because they patch every node's program."""
    found: Mapping[str, Defect] = import_module("...proof.defects", __name__).EVERY
    return found


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
        plant=DefectSource(text, str(path)),
        source=path.resolve(),
    )


class DefectSource:
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


_BEFORE = ("nemesrv.chaos.defects", "nemesrv.chaos.defects.model")
"""Where users' files that were written for 0.1.0 find `replace_part` and `in_its_parts`."""


def _run(text: str, name: str) -> dict[str, Any]:
    for module in _BEFORE:
        sys.modules.setdefault(module, sys.modules[__name__])
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

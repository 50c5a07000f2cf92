"""What a planted defect is, and how it gets into a node: a small method of one finished node is replaced.

The programs themselves know nothing of defects. Nothing here says which defects there are: that is name_server.py,
broker.py, client.py, producer.py and consumer.py. Whether a defect is found is judged in selftest.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....actors.broker.server import Broker
from ...topology import NodeKind

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
    source: Path | None = None
    """The user's file that says it; None: one of the self-test's."""

    def is_for(self, name: str, kind: NodeKind) -> bool:
        return kind in self.kinds and (not self.nodes or name in self.nodes)


def checks(*names: str) -> frozenset[str]:
    return frozenset(names)


def replace_part(target: object, name: str, with_what: object) -> None:
    """Replace a method or setting of this one object; AttributeError when it has none, so that none plants nothing."""
    getattr(target, name)
    setattr(target, name, with_what)


def in_its_parts(change: Callable[[Broker], None]) -> Callable[[Broker], None]:
    """A plant for what a broker makes only when it listens: its tables, its store's contents, its registration."""

    def plant(broker: Broker) -> None:
        assemble = broker._assemble

        def assemble_and_change() -> None:
            assemble()
            change(broker)

        replace_part(broker, "_assemble", assemble_and_change)

    return plant

"""What runs nightly only (`make test-all`), and what stands for it in every `make test`: a table in four parts.

conftest.py marks these tests; `python -m tests.nightly` prints the table.
"""

from collections import defaultdict

import pytest

from . import again, apache, experiments, machines
from .record import Nightly

__all__ = ["COLLECTED", "NIGHTLY", "Nightly", "is_nightly", "table"]

COLLECTED = pytest.StashKey[dict[str, bool]]()
"""Of pytest's configuration: the id of each test that was collected, before -m chose among them, to whether it is
nightly (conftest.py)."""

NIGHTLY = (*experiments.NIGHTLY, *again.NIGHTLY, *apache.NIGHTLY, *machines.NIGHTLY)


_NIGHTLY_OF = defaultdict[str, list[Nightly]](list)
for _one in NIGHTLY:
    _NIGHTLY_OF[_one.test].append(_one)


def is_nightly(node_id: str) -> bool:
    """Whether the test with pytest's id runs nightly only."""
    test, _, parameters = node_id.partition("[")
    return any(parameters.rstrip("]") not in one.every_time for one in _NIGHTLY_OF.get(test, ()))


def table() -> str:
    """The table in Markdown: what runs nightly, and what stands for it every time."""
    rows = ["| nightly | every time instead |", "|---|---|"]
    for one in NIGHTLY:
        instead = [_named(test, one.every_time if test == one.test else ()) for test in one.instead]
        rows.append(f"| {one.says}: {_named(one.test)} | {'; '.join(instead)} |")
    return "\n".join(rows)


def _named(test: str, parameters: tuple[str, ...] = ()) -> str:
    """The test as a link to its file; of one with parameters, those that run."""
    file, _, name = test.partition("::")
    shown = f"[`{name or file.removeprefix('tests/')}`]({file})"
    return f"{shown} of {', '.join(f'`{each}`' for each in parameters)}" if parameters else shown

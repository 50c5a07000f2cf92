"""docs/defects.md, from the planted defects themselves."""

from itertools import groupby

from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.scenarios.defect import Defect

_HEAD = """# Planted defects

`nemesrv selftest` plants these defects, one at a time, in nodes without another defect. Every check in the **bold**
row above a defect must say INVALID; `nemesrv defects --json` also names the checks that may say INVALID. If any other
check says INVALID, the self-test fails. `nemesrv defects` prints for each defect the nodes that get the defect, and the
command of a run in which checks find it.

| defect | what is wrong |
|---|---|
"""


def render() -> str:
    """The whole of docs/defects.md."""
    rows = []
    for finders, defects in groupby(sorted(DEFECTS.values(), key=_finders), _finders):
        rows.append(f"| **{', '.join(f'`{check}`' for check in finders)}** | |\n")
        rows += [f"| `{defect.name}` | {defect.what} |\n" for defect in defects]
    return _HEAD + "".join(rows)


def _finders(defect: Defect) -> list[str]:
    return sorted(defect.caught_by)

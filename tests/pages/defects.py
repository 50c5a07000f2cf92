"""docs/defects.md, from the planted defects themselves."""

from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.scenarios.defect import Defect

_HEAD = """# Planted defects

`nemesrv selftest` plants these defects, one at a time, in nodes without another defect. Every check in the column
"found by" must say INVALID; `nemesrv defects --json` also names the checks that may say INVALID. If any other check
says INVALID, the self-test fails. `nemesrv defects` prints for each defect the nodes that get the defect, and the
command of a run in which checks find it.

| defect | what is wrong | found by |
|---|---|---|
"""


def render() -> str:
    """The whole of docs/defects.md."""
    return _HEAD + "".join(f"{_row(defect)}\n" for defect in DEFECTS.values())


def _row(defect: Defect) -> str:
    killers = ", ".join(f"`{name}`" for name in sorted(defect.caught_by))
    return f"| `{defect.name}` | {defect.what} | {killers} |"

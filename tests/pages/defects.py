"""docs/defects.md, from the planted defects themselves."""

from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.scenarios.defect import Defect

_HEAD = """# Planted defects

`nemesrv selftest` plants these defects, one at a time, in nodes without another defect. Every check in the column
"found by" without brackets must say INVALID, and a check in brackets may say INVALID. If any other check says INVALID,
the self-test fails. `python -m tests.generated` writes this page from `chaos/proof/defects/`. `nemesrv defects` prints
for each defect the command of a run in which checks find the defect.

| defect | what is wrong | found by | scenario | planted in |
|---|---|---|---|---|
"""


def render() -> str:
    """The whole of docs/defects.md."""
    return _HEAD + "".join(f"{_row(defect)}\n" for defect in DEFECTS.values())


def _row(defect: Defect) -> str:
    killers = ", ".join(
        [*(f"`{name}`" for name in sorted(defect.caught_by)), *(f"(`{name}`)" for name in sorted(defect.also))]
    )
    where = ", ".join(defect.nodes) or "every " + ", ".join(f"{kind}" for kind in defect.kinds)
    return f"| `{defect.name}` | {defect.what} | {killers} | `{defect.scenario}` | {where} |"

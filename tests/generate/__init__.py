"""Made-up histories of any size with known verdicts, to try and to time the checks; see writing.py."""

from __future__ import annotations

from .plan import Plan, plan_of, random_plan
from .planted import DEFECTS, Planted
from .writing import Written, random_rows, rows_of, write

__all__ = ["DEFECTS", "Plan", "Planted", "Written", "plan_of", "random_plan", "random_rows", "rows_of", "write"]

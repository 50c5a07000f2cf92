"""Histories of any size with known verdicts, to try and to time the checks: a recorded virtual run, multiplied.

recorded.py ─ a run of ours on the virtual clock ─► defects.py ─ one row changed ─► multiplied.py ─► Parquet
"""

from .defects import DEFECTS, Planted
from .multiplied import Written, rows_of, write

__all__ = ["DEFECTS", "Planted", "Written", "rows_of", "write"]

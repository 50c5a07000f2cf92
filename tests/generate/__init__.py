"""Histories of any size with known verdicts, to try and to time the checks: a recorded virtual run, multiplied.

recorded.py ─ a run of ours on the virtual clock ─► multiplied.py ─► Parquet
"""

from .multiplied import Written, rows_of, write

__all__ = ["Written", "rows_of", "write"]

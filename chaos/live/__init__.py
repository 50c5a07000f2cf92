"""A cluster that stays up (`nemesrv up`), and its history while it grows: kept in parts, judged by Spark's streaming.

    up.py: an experiment without a workload ◄── control.py ◄── nemesrv fault
    <run>/history/_raw/*.jsonl ─► segments.py: what all have written up to one moment ─► _parts, thinned at rest
        ─► growing.py, when changes.py says so ─► judge.py: the checks over carried and new rows

The checks are those of a finished run, unchanged; carry.py says which rows they still need, and the facts of all others
are sealed and added up (checks/check.py). `python -m tests.chaos.live.differential` holds the result against that of
the whole history at once.
"""

from __future__ import annotations

from pathlib import Path

UPS = Path("runs/up")
"""Where `nemesrv up` leaves its run folders, unless --out names another."""
DOOR = "up.json"
"""In the run folder of a cluster while it is up: where it listens for what is asked of it."""

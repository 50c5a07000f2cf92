"""A cluster that stays up (`nemesrv up`), and its history while it grows: kept in parts, and judged.

up.py: an experiment without a workload ◄── fault_door.py ◄── nemesrv fault
<run>/history/_raw/*.jsonl ─► segments.py: what all have written up to one moment ─► _parts, thinned at rest
    ─► growing.py, when changes.py says so: the checks of a finished run over all of it
"""

from __future__ import annotations

from pathlib import Path

UPS = Path("runs/up")
"""Where `nemesrv up` leaves its run folders, unless --out names another."""
DOOR = "up.json"
"""In the run folder of a cluster while it is up: where it listens for what is asked of it."""

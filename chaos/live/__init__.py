"""A cluster that runs until it is ended (`nemesrv up`). The cluster's history is written in parts and judged while it
grows.

up.py: an experiment without a workload ◄── fault_door.py ◄── nemesrv fault
<run>/history/_raw/*.jsonl ─► segments.py: what all have written up to one moment ─► _parts, thinned at rest
    ─► growing.py, when changes.py says so: the checks of a finished run over all of it
"""

from pathlib import Path

UPS = Path("runs/up")
"""Folder in which `nemesrv up` makes its run folders, unless --out names another."""
DOOR = "up.json"
"""File in the run folder that says where `nemesrv fault` reaches the cluster; it exists while the cluster is up."""

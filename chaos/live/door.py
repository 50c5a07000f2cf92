"""Where a cluster that is up is asked for faults: control.py opens it, `nemesrv fault` knocks."""

from __future__ import annotations

from pathlib import Path

UPS = Path("runs/up")
"""Where `nemesrv up` leaves its run folders, unless --out names another."""
DOOR = "up.json"
"""In the run folder of a cluster while it is up: where it listens for what is asked of it."""

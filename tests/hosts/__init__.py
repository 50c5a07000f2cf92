"""Three hosts on this machine, and what nemesrv does on them (bench.py)."""

"""`nemesrv predict`: how long clients take to recover from a fault, and what share of sends fails, before it happens.

faults.py (a scenario's faults, or the scenario of `--fault`) ─► virtual runs ─► recovery.py (one run's) ─┐
page.py (a table, and what other settings change) ◄─ prediction.py (all runs' as distributions) ◄─────────┘
"""

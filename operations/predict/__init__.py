"""`nemesrv predict` computes how long clients would take to recover from a fault, and which share of sends would fail.

faults.py (a scenario's faults, or the scenario of `--fault`) ─► virtual runs ─► recovery_times.py (of one run) ─┐
                          as distributions, as tables, and what other settings change: prediction.py ◄───────────┘
"""

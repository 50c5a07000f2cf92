"""`nemesrv replay` runs a recorded or imported run again as a scenario. It says how similar both runs are, and what
other settings would change.

original.py, imported.py (a run folder ─► a scenario) ─► running.py (run, compare, print) ─► replay.json
similarity.py   similarity of both runs' transitions (chaos/history/transitions.py, matching.py)
"""

"""`nemesrv replay`: a recorded or imported run as a scenario again, how alike the two are, and what a fix changes.

original.py, imported.py (a run folder ─► a scenario) ─► running.py (run, compared, told) ─► replay.json
similarity.py   how alike the transitions of both are (chaos/history/transitions.py, matching.py)
"""

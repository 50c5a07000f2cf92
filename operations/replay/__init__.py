"""`nemesrv replay`: a recorded or imported run as a scenario again, how alike the two are, and what a fix changes.

scenarios.py (a run folder ─► a scenario) ─► run ─► transitions.py ─► matching.py ─► similarity.py ─► replay.json
varied.py: the same with one thing changed, and what would have been different
"""

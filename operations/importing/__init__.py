"""Reconstructs an incident from logs: the logs' writers, a common clock, rows of a history, and the faults that explain
the rows.

logs/ ─► Line ─► sources (writers) ─► clocks (zones, offsets) ─► rows, topology, timers ─► episodes (faults)
"""

"""Reconstructs an incident from logs: their writers, a common clock, rows of a history, and the faults that explain
them.

logs/ ─► Line ─► sources (writers) ─► clocks (zones, offsets) ─► rows, topology, timers ─► episodes (faults)
"""

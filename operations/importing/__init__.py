"""Reconstructs an incident from logs: which nodes wrote the logs, their clocks, the rows of a history, and the faults.

logs/ ─► Line ─► sources (writers) ─► clocks (zones, offsets) ─► rows, topology, timers ─► episodes (faults)
"""

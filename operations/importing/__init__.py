"""What happened in production, from logs: who wrote them, when by one clock, rows of a history, and what explains them.

logs/ ─► Line ─► sources (who wrote what) ─► clocks (zones, offsets) ─► rows, topology, timers ─► episodes (faults)
"""

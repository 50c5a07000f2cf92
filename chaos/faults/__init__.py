"""Faults: what can be done to a link (Toxiproxy) and to a process (signals)."""

"""Recorded: what happened in a run, from a process's lines to Parquet.

schema (the one catalogue of columns and events) ─► recorder (a writer a process) ─► rows ─► merge (clustered, parts)
"""

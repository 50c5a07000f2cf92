"""The history of a run: from a process's lines to Parquet.

schema (catalogue of columns and events) ─► recorder (a writer per process) ─► rows ─► merge (clustered, parts)
"""

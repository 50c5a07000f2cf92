"""Recorded: the schema and the events of a run, the writer of each process, and their merge into Parquet."""

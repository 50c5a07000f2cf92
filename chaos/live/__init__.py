"""Judging a history while it grows: `nemesrv up --check`, by Spark Structured Streaming.

    <run>/history/_raw/*.jsonl ─► segments.py: what all have written up to one moment ─► _live/segments/*.parquet
        ─► stream.py: a streaming query, one micro-batch a trigger ─► judge.py: the checks over carried and new rows
        ─► watch.py prints what changed and writes verdicts.json

The checks are those of a finished run, unchanged; carry.py says which rows they still need, merge.py how their verdicts
add up. `python -m tests.chaos.live.differential` holds the result against that of the whole history at once.
"""

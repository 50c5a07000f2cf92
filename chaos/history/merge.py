"""What the processes of a run recorded, merged into its Parquet file or files: small, large, or kept in parts."""

from __future__ import annotations

import logging
from pathlib import Path

from ..errors import HarnessError
from . import clustered, parts
from .files import part_files
from .one_axis import axis_of
from .rows import Merged, read_raw, write_parquet
from .schema import Row, raw_dir

log = logging.getLogger("nemesrv.history")

IN_MEMORY_BYTES = 256 * 1024 * 1024
"""Raw recordings up to this size (a million events) are merged in memory, into one file in order of time."""


def to_parquet(run_dir: Path | str) -> Merged:
    """Merge what every process recorded into the run's Parquet file, or files. HarnessError when nothing was recorded.

    More than IN_MEMORY_BYTES are merged slice by slice, into files whose row groups are of one event each. A run that
    was kept in parts is merged from those and what is not in them yet. Rows of many hosts come on one time axis.
    """
    axis = axis_of(run_dir)
    if part_files(run_dir):
        return parts.merge(run_dir, axis=axis)
    files = sorted(raw_dir(run_dir).glob("*.jsonl"))
    if not files:
        raise HarnessError(f"{raw_dir(run_dir)} holds no recorded events")
    if sum(file.stat().st_size for file in files) > IN_MEMORY_BYTES:
        return clustered.merge(run_dir, axis=axis)
    rows: list[Row] = []
    torn = 0
    for path in files:
        before = torn
        for row in read_raw(path) if axis is None else axis.corrected(path):
            if row is None:
                torn += 1
            else:
                rows.append(row)
        if torn > before:
            log.info("%s: %d torn line(s) skipped", path.name, torn - before)
    return Merged(write_parquet(rows, run_dir), len(rows), torn)

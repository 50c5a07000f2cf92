"""Columns of a million rows as numpy arrays, without a Python object a row: texts as small numbers, slices of time.

Every batch of a Parquet file brings its own dictionary; `Codes` gives a text the same number in all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Array = npt.NDArray[Any]

NONE = -1
"""The code of a null."""


class Codes:
    """Numbers for the texts of one column, in the order in which they were first seen."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def encode(self, column: pa.Array) -> Array:
        """The column's codes as int32, nulls as NONE."""
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        known = self._codes
        table = np.array([known.setdefault(text, len(known)) for text in column.dictionary.to_pylist()] or [NONE], "i4")
        indices: Array = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.where(indices < 0, NONE, table[indices]).astype("i4")

    def of(self, *texts: str) -> list[int]:
        """The codes of those texts that were seen."""
        return [self._codes[text] for text in texts if text in self._codes]

    def names(self) -> tuple[str, ...]:
        """The text of each code."""
        return tuple(self._codes)


def numbers(column: pa.Array, dtype: str) -> Array:
    """A column of numbers as an array; nulls are NaN, or -1 where `dtype` is of integers."""
    filler = -1 if np.dtype(dtype).kind == "i" else float("nan")
    found: Array = column.fill_null(filler).to_numpy(zero_copy_only=False)
    return found.astype(dtype)


def spread(time_ms: Array, most: int) -> Array:
    """Indices of at most `most` of these times: the first and the last of each of most / 2 slices of time."""
    slices = max(most // 2, 1)
    span_ms = max(float(time_ms.max() - time_ms.min()), 1e-9)
    slice_of = np.minimum(((time_ms - time_ms.min()) / span_ms * slices).astype("i8"), slices - 1)
    order = np.lexsort((np.arange(len(time_ms)), time_ms, slice_of))
    sorted_slices = slice_of[order]
    first = np.flatnonzero(np.diff(sorted_slices, prepend=-1))
    last = np.append(first[1:], len(order)) - 1
    picked: Array = np.unique(order[np.concatenate((first, last))])
    return picked


def translate(codes: Array, known: Codes, names: tuple[str, ...]) -> Array:
    """Codes of `known` as positions in `names`; -1 for others."""
    table = np.full(len(known.names()) + 1, -1, "i4")  # its last element answers NONE
    for position, name in enumerate(names):
        for code in known.of(name):
            table[code] = position
    translated: Array = table[codes]
    return translated


def joined(parts: list[tuple[Array, ...]], dtypes: str) -> list[Array]:
    """The parts one behind the other, in order of their first column; empty columns when there are none."""
    if not parts:
        return [np.empty(0, dtype) for dtype in dtypes.split()]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    if (np.diff(columns[0]) < 0).any():
        order = np.argsort(columns[0], kind="stable")
        columns = [column[order] for column in columns]
    return columns

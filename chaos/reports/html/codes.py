"""Texts as small numbers: the columns of a million rows as numpy arrays, without a Python object a row.

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

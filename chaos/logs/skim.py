"""Skips unneeded lines, which are most of a large log, a block at a time with Arrow.

    block of bytes ─► Skim.over ─► stretches: (begin, end, None)      lines to read, one by one
                                              (begin, end, Stamps)    lines that are only counted
    connections of hosts ─► Aside: a file by host ─► taken(file, hosts), once the needed hosts are known

A line is skipped only if its text begins like an unneeded event and like no other (`NOISE`), its layout is one of
RocketMQ's own two, and nothing stands before its time stamp. All other lines are read one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..arrow import np, pa, pc, pq
from .layouts import JAVA_CLIENT_49, JAVA_SERVER, second_of
from .shapes import SHAPES, Shape

if TYPE_CHECKING:
    import numpy.typing as npt
_HOSTS_OWN = ("channel_active", "channel_inactive")
_PASSED = (*_HOSTS_OWN, "channel_registered", "channel_unregistered", "statistics", "housekeeping", "watermark")
NOISE: tuple[Shape, ...] = tuple(
    one for one in SHAPES if one.event in _PASSED and not one.text.startswith("doRebalance")
)
"""Event and text of lines that may be skipped."""
SILENT = frozenset(
    one
    for one in NOISE
    if one.event.startswith(("channel_", "watermark")) or re.search("Stats In|updateConsumeOffsetToBroker", one.text)
)
"""Of these texts those that state no cause of trouble, whatever they name."""

_LEVEL = r"(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)"
_THREAD = r"(?:[A-QS-Za-z]\w*|R(?:[a-np-z]\w*)?)"  # a thread called Rocketmq… would be a logger
_SECOND = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
_HEADS = {
    JAVA_SERVER: rf"^{_SECOND} {_LEVEL} {_THREAD} - ",
    JAVA_CLIENT_49: rf"^{_SECOND},\d{{3}} {_LEVEL} Rocketmq(?:Client|Remoting|Common) - ",
}
_NAMED = re.compile(r"\(\?P<\w+>")
_SECOND_LENGTH, _DIGITS = 19, 4
_ABOUT_A_HOST = "tive, the channel"
"""In lines about channels that open and close, and in hardly any other."""
_ANY_HOST = b""
_WORTH_IT = 0.3
"""Least share of noise in a block that is skimmed."""


class Stamps(NamedTuple):
    """The number of skipped lines, and each of their time stamps that differs from the previous line's."""

    lines: int
    writer: str
    seen: list[tuple[int | None, int]]
    """The stamp in milliseconds (None: no valid time), and its number of lines."""


Stretch = tuple[int, int, Stamps | None]
Silent: TypeAlias = "npt.NDArray[np.bool_]"
"""Which lines of a block state no cause of trouble."""


@dataclass(slots=True)
class Aside:
    """Stores a log's lines about hosts' connections in a separate file, because few of these lines are needed."""

    path: Path
    lines: int = 0
    _writer: Any = field(default=None, repr=False)

    def put(self, lines: pa.Array, numbers: npt.NDArray[np.int64]) -> None:
        # anchored, and with no choice of where the host ends: RE2 is three times as fast then
        said = pc.extract_regex(lines, r"^[^\[]*\[/?(?P<host>[0-9A-Za-z.-]*):[0-9]+\]")
        host = pc.fill_null(pc.struct_field(said, "host"), _ANY_HOST)
        batch = pa.RecordBatch.from_arrays([host, pa.array(numbers), lines], ["host", "number", "line"])
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self.path, batch.schema, compression="lz4", use_dictionary=["host"], write_statistics=False
            )
        self._writer.write_batch(batch)
        self.lines += len(lines)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def taken(path: Path, hosts: Collection[str]) -> Iterator[tuple[int, str]]:
    """Return number and text of each stored line that is about one of these hosts, or whose host is unclear."""
    asked = [_ANY_HOST, *(host.encode() for host in sorted(hosts))]
    for row in pq.read_table(path, filters=[("host", "in", asked)]).to_pylist():
        yield row["number"], row["line"].decode("utf-8", "replace").rstrip("\r\n")


@dataclass(slots=True)
class Skim:
    """Skips lines of events that do not become rows; skipped lines are only counted."""

    events: frozenset[str] | None
    """Including those put aside, which may have other layouts; None: all, and no line is skipped."""
    aside: Aside | None = None
    """Where connections of hosts go; None: they are read like any line."""
    heard: Callable[[bytes, Silent | None], None] | None = None
    """Gets each block, and which of its lines are silent."""

    def over(self, block: bytes, first_number: int, *, must_read: bool = False) -> list[Stretch] | None:
        """Divide the block into stretches of lines to read and lines to skip; None if the whole block must be read."""
        is_whole = must_read or self.events is None
        stretches, silent = (None, None) if is_whole else self._over(block, first_number)
        if self.heard is not None:
            self.heard(block, silent)
        return stretches

    def _over(self, block: bytes, first_number: int) -> tuple[list[Stretch] | None, Silent | None]:
        if len(block) >= 1 << 31 or not block.endswith(b"\n"):
            return None, None
        text = np.frombuffer(block, np.uint8)
        begins = np.concatenate(([0], np.flatnonzero(text == ord("\n")) + 1)).astype(np.int32)
        lines = pa.Array.from_buffers(
            pa.binary(), len(begins) - 1, [None, pa.py_buffer(begins.tobytes()), pa.py_buffer(block)]
        )
        passed = silent = np.zeros(len(lines), dtype=bool)
        writer = JAVA_SERVER
        for writer in _HEADS:
            silent = _match(lines, _pattern(writer, self._noise(), True))
            passed = silent.copy()
            passed[~silent] = _match(lines.filter(pa.array(~silent)), _pattern(writer, self._noise(), False))
            if passed.any():
                break
        if passed.mean() < _WORTH_IT:
            return None, None
        if self.aside is not None:
            about = pc.match_substring(lines, _ABOUT_A_HOST).to_numpy(zero_copy_only=False) & passed
            if about.any():
                self.aside.put(lines.filter(pa.array(about)), np.flatnonzero(about) + first_number)
        return list(_stretches(text, begins, passed, writer)), silent

    def _noise(self) -> frozenset[str]:
        named = frozenset(event for event, _ in NOISE) - (self.events or set())
        return named if self.aside is None else named | frozenset(_HOSTS_OWN)


def _match(lines: pa.Array, pattern: str) -> Silent:
    return pc.match_substring_regex(lines, pattern).to_numpy(zero_copy_only=False)


@cache
def _pattern(writer: str, events: frozenset[str], are_silent: bool) -> str:
    noise = [one for one in NOISE if one.event in events and (one in SILENT) == are_silent]
    texts = "|".join(_NAMED.sub("(?:", one.text) for one in noise)
    # \S of bytes is more than \S of characters
    return rf"{_HEADS[writer]}(?:{texts})\r?\n$".replace(r"\S", "[!-~]")


def _stretches(
    text: npt.NDArray[np.uint8], begins: npt.NDArray[np.int32], passed: npt.NDArray[np.bool_], writer: str
) -> Iterator[Stretch]:
    length = _SECOND_LENGTH + (_DIGITS if writer == JAVA_CLIENT_49 else 0)
    at = np.flatnonzero(passed)
    stamps = text[begins[at][:, None] + np.arange(length)]
    # where lines behind lines that are read begin, or a stamp that is not the one before
    is_first, turns = np.diff(at, prepend=-2) != 1, np.ones(len(at), dtype=bool)
    turns[1:] = is_first[1:] | (stamps[1:] != stamps[:-1]).any(axis=1)
    turn = np.flatnonzero(turns)
    counts = np.diff(np.append(turn, len(at))).tolist()
    seen = [(_stamp_ms(stamp.tobytes().decode()), count) for stamp, count in zip(stamps[turn], counts, strict=True)]
    of = np.flatnonzero(is_first[turn])
    read_to = 0
    for first, behind in pairwise([*of.tolist(), len(turn)]):
        begin, lines = int(at[turn[first]]), sum(count for _, count in seen[first:behind])
        if begin > read_to:
            yield int(begins[read_to]), int(begins[begin]), None
        read_to = begin + lines
        yield int(begins[begin]), int(begins[read_to]), Stamps(lines, writer, seen[first:behind])
    if read_to < len(passed):
        yield int(begins[read_to]), int(begins[-1]), None


def _stamp_ms(stamp: str) -> int | None:
    second = second_of(stamp[:_SECOND_LENGTH])
    return second if second is None or len(stamp) == _SECOND_LENGTH else second + int(stamp[-3:])

"""Finds log files in folders, globs and archives, and reads their lines; large files are read in ranges.

    places ─► planned() ─► Part (one file, or a range of its bytes, or a member of an archive) ─► read_part() ─► rows

A range contains the lines that begin in it. Each unreadable file is reported in a sentence; all other files are read.
"""

import bz2
import codecs
import glob
import gzip
import io
import lzma
import os
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from ..errors import HarnessError, ScenarioError
from .escapes import Form, unescape
from .skim import Skim
from .stream import FileRead, LogRow, Reader

RANGE = 32 << 20
"""Bytes of a range of a large file."""

LONGEST = 1 << 20
"""Longest line in bytes; of a longer one only the beginning is read."""

KEPT = 64 << 10
"""Bytes kept of a longer line."""

_BLOCK = 1 << 20
_BEYOND = 1 << 16
_PEEKED = 8192
"""Bytes that show a file's encoding."""
_SNIFFED = 1 << 16
"""Bytes of a file with an unknown name that are examined for log lines."""
_OPENERS: dict[str, Callable[[IO[bytes]], IO[bytes]]] = {
    ".gz": lambda file: cast(IO[bytes], gzip.GzipFile(fileobj=file)),
    ".zst": lambda file: cast(IO[bytes], zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)),
    ".bz2": lambda file: cast(IO[bytes], bz2.BZ2File(file)),
    ".xz": lambda file: cast(IO[bytes], lzma.LZMAFile(file)),  # noqa: SIM115
}
_IS_TAR = re.compile(r".*\.(?:tar(?:\.(?:gz|bz2|xz))?|tgz)")
_IS_LOG = re.compile(r".*(?:\.log\b|\.txt$|\.out$|\.err$|^stdout|^stderr).*", re.I)
_ARCHIVES = (".zip",)
_CANNOT = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, zstandard.ZstdError, tarfile.TarError,
           RuntimeError, NotImplementedError)  # fmt: skip


class LogError(ScenarioError):
    """Raised if there are no logs at a given place, if they cannot be read, or if none is RocketMQ's (exit status
    2)."""

    def __init__(self, said: str) -> None:
        HarnessError.__init__(self, said)
        self.file, self.key, self.value, self.allowed = "", "", "", said


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a log file that one task reads."""

    file: str
    """As in rows."""
    path: str
    member: str = ""
    """The member of an archive."""
    start: int = 0
    end: int | None = None
    """The first byte after the range; None: to the end."""
    size: int = 0
    """Size of the file when it was examined."""


@dataclass(slots=True)
class Plan:
    parts: list[Part] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


# --- which


@contextmanager
def with_standard_input(places: Sequence[str], standard_input: IO[bytes]) -> Iterator[list[str]]:
    """Return the places of logs, with `-` replaced by a temporary file of standard input. Raises LogError if standard
    input is empty."""
    if "-" not in places:
        yield list(places)
        return
    with tempfile.TemporaryDirectory(prefix="nemesrv-stdin-") as folder:
        path = Path(folder, "stdin.log")
        with path.open("wb") as file:
            shutil.copyfileobj(standard_input, file)
        with path.open("rb") as file:
            is_empty = not file.read(_BLOCK).strip()
        if is_empty:
            raise LogError("standard input (-) is empty: paste or pipe lines of a log into it")
        try:
            yield [str(path) if place == "-" else place for place in dict.fromkeys(places)]
        except LogError as exc:
            raise LogError(str(exc).replace(str(path), "standard input (-)")) from exc


def planned(places: Iterable[str | Path]) -> Plan:
    """Return the parts of all logs at these places. If several places have files of the same name, the place's name is
    put before the file's name. Raises LogError if a place does not exist, or if no log exists at all."""
    plan = Plan()
    found = dict[str, Path]()
    places = list(places)
    listed = [(str(place), name, path) for place in dict.fromkeys(places) for name, path in _files(str(place), plan)]
    once = [*{path.resolve(): (place, name, path) for place, name, path in reversed(listed)}.values()][::-1]
    times = Counter(name for _, name, _ in once)
    shared = {place for place, name, _ in once if times[name] > 1 and Path(place).is_dir()}
    for place, name, path in once:
        if place in shared:
            name = str(Path(Path(place).name, name))
        elif name in found:
            name = str(Path(*path.parts[-len(Path(name).parts) - 1 :]))
        found[name if name not in found else str(path)] = path
    for name, path in sorted(found.items()):
        plan.parts += _parts(name, path, plan)
    if not plan.parts and not plan.notes:
        asked = ", ".join(map(str, places))
        raise LogError(
            f"{asked}: no log is there: in folders, files that begin with lines of RocketMQ's, whatever their "
            "names, and those with .log, .txt, .out or .err in their names"
        )
    return plan


def _files(place: str, plan: Plan) -> Iterator[tuple[str, Path]]:
    path = Path(place.removeprefix("file://"))
    if path.is_dir():
        others = []
        for each in sorted(path.rglob("*")):
            name = str(each.relative_to(path))
            if not each.is_file():
                if each.is_symlink() and not each.exists() and _is_log(each.name):
                    plan.notes.append(f"{name} is a link to nowhere")
                continue
            if _is_log(each.name) or _has_record(each):
                yield name, each
            else:
                others.append(name)
        if others:
            some = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
            plan.notes.append(f"{place}: {len(others)} files begin with no line of RocketMQ's and are not used: {some}")
    elif path.exists() or path.is_symlink():
        yield path.name, path
    elif glob.has_magic(str(path)):
        root = Path(*takewhile(lambda part: not glob.has_magic(part), path.parts))
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)))
        if not matches:
            raise LogError(f"{place}: no file is called like that")
        for each in matches:
            if each.is_dir():
                yield from ((f"{each.name}/{name}", file) for name, file in _files(str(each), plan))
            else:
                yield str(each.relative_to(root)), each
    else:
        raise LogError(
            f"{place} is not there: logs are read from files, folders, archives and patterns like logs/*.log"
        )


def _is_log(name: str) -> bool:
    return _IS_LOG.match(name) is not None or _IS_TAR.fullmatch(name) is not None or name.endswith(_ARCHIVES)


_PACKAGE = re.compile(rb"(?:apache|alibaba)[./]rocketmq[./]")


def _has_record(path: Path) -> bool:
    """Whether the file's first part has a line of RocketMQ's or one of its exceptions, whatever the file's name."""
    try:
        with ExitStack() as stack:
            first = _opened(Part(path.name, str(path)), stack).read(_SNIFFED)
    except _CANNOT:
        return False
    if _is_binary(first):
        return False
    if _PACKAGE.search(first) and b"xception" in first:
        return True
    return _understood(first.removeprefix(codecs.BOM_UTF8)) > 0 or _escapes_in(first) is not None


def _understood(data: bytes) -> int:
    reader = Reader("")
    for _ in (*reader.block(data), *reader.finished()):
        pass
    return reader.counts.understood


def _escapes_in(first: bytes) -> Form | None:
    return unescape(first[: first.rfind(b"\n") + 1] or first, _understood)


def _parts(name: str, path: Path, plan: Plan) -> Iterator[Part]:
    try:
        size = path.stat().st_size
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                members = [(info.filename, info.file_size) for info in archive.infolist() if not info.is_dir()]
        elif _IS_TAR.fullmatch(path.name):
            with tarfile.open(path) as tar:
                members = [(info.name, info.size) for info in tar if info.isfile()]
        else:
            yield from _ranges(name, path, size)
            return
    except _CANNOT as exc:
        plan.notes.append(f"{name}: it cannot be read: {_why(exc)}")
        return
    for member, length in sorted(members):
        yield Part(f"{name}/{member}", str(path.absolute()), member, 0, None, length)


def _ranges(name: str, path: Path, size: int) -> Iterator[Part]:
    if path.suffix in _OPENERS or size <= RANGE * 3 // 2:
        end = None if path.suffix in _OPENERS else size
        yield Part(name, str(path.absolute()), "", 0, end, size)
        return
    with path.open("rb") as file:
        first = file.read(_PEEKED)
        if first.startswith(_UTF_16) or _escapes_in(first) is not None:
            yield Part(name, str(path.absolute()), "", 0, None, size)
            return
    for start in range(0, size, RANGE):
        yield Part(name, str(path.absolute()), "", start, min(start + RANGE, size), size)


# --- what stands in them


def read_part(part: Part, skim: Skim | None = None) -> tuple[Iterator[LogRow], FileRead]:
    """Return the rows of one part of a log, and its line counts, which are complete once all rows are taken."""
    read = FileRead(part.file)
    return _rows(part, read, skim), read


def _rows(part: Part, read: FileRead, skim: Skim | None) -> Iterator[LogRow]:
    reader = Reader(part.file, read, skim=skim)
    try:
        with ExitStack() as stack:
            file = _opened(part, stack)
            if part.size == 0 and not file.peek(1):
                read.notes.append(f"{part.file} is empty")
                return
            for block, cut in _blocks_in(part, file, read.notes):
                if cut:
                    most = f"{LONGEST // 1000:,} kB; its first {KEPT // 1000} kB were read"
                    read.notes.append(f"{part.file}: a line is longer than {most}")
                yield from reader.block(block)
            if part.end is not None and part.end < part.size:
                reader.beyond(file.read(_BEYOND).decode("utf-8", "replace").split("\n")[:-1])
            elif part.end is not None and os.stat(part.path).st_size > part.size:
                read.notes.append(f"{part.file} grew while it was read: its first {part.size:,} bytes were read")
    except _CANNOT as exc:
        before = f" after line {read.lines:,}; what came before was read" if read.lines else ""
        read.notes.append(f"{part.file}: it cannot be read{before}: {_why(exc)}")
    yield from reader.finished()


def _opened(part: Part, stack: ExitStack) -> io.BufferedReader:
    """Return the part's file or member, unpacked."""
    suffix = Path(part.member or part.path).suffix
    if part.member and part.path.endswith(".zip"):
        archive = stack.enter_context(zipfile.ZipFile(part.path))
        file = stack.enter_context(archive.open(part.member))
    elif part.member:
        tar = stack.enter_context(tarfile.open(part.path))  # noqa: SIM115
        file = cast(IO[bytes], tar.extractfile(part.member))
    else:
        file = stack.enter_context(Path(part.path).open("rb"))  # noqa: SIM115
    unpacked = _OPENERS[suffix](file) if suffix in _OPENERS else file
    return stack.enter_context(io.BufferedReader(cast(Any, unpacked), _PEEKED))


def blocks_of(part: Part) -> Iterator[bytes]:
    """Yield one part of a log in blocks of whole lines, decompressed, up to the first unreadable data."""
    with suppress(*_CANNOT), ExitStack() as stack:
        yield from (block for block, _ in _blocks_in(part, _opened(part, stack), []))


def _blocks_in(part: Part, file: io.BufferedReader, notes: list[str]) -> Iterator[tuple[bytes, bool]]:
    """Return the part's lines, in UTF-8 or GBK, and for each block whether it is a line that was cut."""
    first = file.peek(_PEEKED)
    if part.start:
        file.seek(part.start - 1)
        _over(file)  # the part before has the line over which its end lies
    elif (encoding := "utf-16" if first.startswith(_UTF_16) else _wide(first)) is not None:
        yield from _blocks(cast(IO[bytes], codecs.EncodedFile(cast(Any, file), "utf-8", encoding, "replace")), None)
        return
    elif _is_binary(first):
        notes.append(f"{part.file} is not text and was not read")
        return
    elif first.startswith(codecs.BOM_UTF8):
        file.read(len(codecs.BOM_UTF8))
    elif _FRAME.match(first) is not None and b"\n" not in first:
        yield from ((lines, False) for lines in _framed(file))
        return
    undone = _escapes_in(first.removeprefix(codecs.BOM_UTF8)) or bytes
    of_file = _blocks(file, None if part.end is None else part.end - file.tell())
    yield from ((undone(block), is_cut) for block, is_cut in of_file)


_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _wide(first: bytes) -> str | None:
    """Return the UTF-16 encoding of text without a byte order mark, by its zeros; None for another encoding."""
    half = len(first) // 2
    for encoding, low in (("utf-16-le", 1), ("utf-16-be", 0)):
        if half and first[low::2].count(0) > 0.6 * half and first[1 - low :: 2].count(0) < 0.1 * half:
            return encoding
    return None


def _is_binary(first: bytes) -> bool:
    """Whether the bytes are no text. A run of zeros does not count, because a log cut while being written ends so."""
    return b"\0" in _HOLE.sub(b"", first)


_HOLE = re.compile(rb"\0{16,}")
_FRAME = re.compile(rb"(\d{1,6}) (?=<\d{1,3}>\d )")


def _framed(file: IO[bytes]) -> Iterator[bytes]:
    """Return syslog records of RFC 6587, each after its length, as lines."""
    rest = b""
    while piece := file.read(_BLOCK):
        rest += piece
        lines = list[bytes]()
        while (found := _FRAME.match(rest)) is not None and len(rest) >= (end := found.end() + int(found[1])):
            lines.append(rest[found.end() : end].rstrip(b"\n") + b"\n")
            rest = rest[end:].lstrip(b"\n")
        if lines:
            yield b"".join(lines)
    if rest:  # the last one was cut off
        yield rest + b"\n"


def _blocks(file: IO[bytes], left: int | None) -> Iterator[tuple[bytes, bool]]:
    """Return the lines that begin in the next `left` bytes, in blocks, each with whether it is a line that was cut."""
    read = file.read1 if isinstance(file, io.BufferedReader) else file.read  # of what breaks off, the first bytes
    while block := read(_BLOCK if left is None else max(0, min(_BLOCK, left))):
        begin = block.rfind(b"\n") + 1
        line = rest = block[begin:]
        while line and rest and not line.endswith(b"\n") and len(line) <= LONGEST:
            rest = file.readline(LONGEST)
            line += rest
        left = None if left is None else left - begin - len(line)
        if is_cut := len(line) > LONGEST and not line.endswith(b"\n"):
            left = _over(file, left)
            line = line[:KEPT] + b"\n"
        if is_cut and begin:
            yield block[:begin], False
        yield (line, True) if is_cut else (block[:begin] + line, False)


def _over(file: IO[bytes], left: int | None = None) -> int | None:
    """Skip the rest of a line, without reading all of a long line into memory. Returns the rest of the range."""
    while (piece := file.readline(_BLOCK)) and not piece.endswith(b"\n"):
        left = None if left is None else left - len(piece)
    return None if left is None else left - len(piece)


def _why(exc: BaseException) -> str:
    if isinstance(exc, PermissionError):
        return "no permission"
    if isinstance(exc, EOFError):
        return "it ends in the middle of what is compressed"
    return (exc.strerror or str(exc)) if isinstance(exc, OSError) else str(exc) or type(exc).__name__

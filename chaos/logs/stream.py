"""Turns the lines of a log into rows: one row per record that is a known event. No I/O.

    2026-11-22 12:18:51,122 WARN RocketmqClient - updateTopicRouteInfoFromNameServer Exception      ┐
    org.apache.rocketmq.client.exception.MQClientException: CODE: 17  DESC: No topic route info …   ├─► one LogRow
    See http://rocketmq.apache.org/docs/faq/ for further details.                                   ┘

Every line is counted once: as understood, as not understood, or as a continuation of the previous record. A prefix that
a tool put before each line (`ns1: `, `broker-a | `, docker's time stamp) is removed and kept separately.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from .layouts import (
    GO,
    JAVA_HOST,
    JAVA_SERVER,
    SCREEN_CODES,
    STRICT,
    UNKNOWN,
    Head,
    as_json,
    as_usual,
    head_of,
    server,
    without_stamp,
)
from .shapes import COUNTED, QUIET, edited_event_of, event_of, go_event_of, setting_of
from .wrappings import (
    OUTER,
    TYPED,
    Heads,
    fields_of,
    holds_record,
    json_object,
    records_in,
    stream_of,
    utc_ms,
)

if TYPE_CHECKING:
    from .skim import Skim, Stamps

MORE_MAX = 2_000
"""Most characters kept of a record's continuation."""

RUN_MS = 60_000
"""Length of a run of similar lines that one row stands for."""

_REMEMBERED, _REMEMBERED_MAX = 20_000, 500
"""How many texts are remembered with their events, and of which length."""

_EXCEPTION = "client_exception"
_NEEDS_HEAD = QUIET | {_EXCEPTION}
"""Events that a line without a stamp does not show, because other texts may begin like them."""

DOCKERS_PIECE = 16_000
"""Docker writes longer lines in pieces of 16 KiB, all but the last without a line end."""
_DOCKERS_FIELDS = 3

PIECES_MAX = 1 << 20
"""Most characters of a line in pieces."""

RELATIVE_MS = 946_684_800_000
"""2000-01-01: where times without a date begin; before RocketMQ existed, so they are recognizable."""
DAY_MS = 86_400_000
_CLOCK = re.compile(r"(?P<hours>\d\d):(?P<minutes>\d\d):(?P<seconds>\d\d)(?:[.,:](?P<digits>\d{1,9}))?")

OWN_LOGGER = "nemesrv."
"""How the loggers of nemesrv's own nodes begin, and so the lines of a run."""
SHAPES_MAX = 2_000
"""Most different unknown texts counted per file."""


class LogRow(NamedTuple):
    """An event and its place (file, line) in the logs."""

    file: str
    line: int
    """Line number from 1."""
    prefix: str | None
    """Text before the stamp, in a log with several prefixes."""
    stamp_ms: int | None
    """The stamp's digits read as UTC."""
    resolution_ms: int
    zone: str | None
    """The stamp's zone by the layout or the stamp: `+08:00`."""
    outer_ms: int | None
    """The container runtime's stamp before the line, in UTC."""
    thread: str | None
    writer: str
    event: str
    fields: Mapping[str, str]


@dataclass(slots=True)
class FileRead:
    """What was read of a log file, or of a part of it. `lines` is the sum of `understood`, `not_understood` and
    `continued`."""

    file: str = ""
    lines: int = 0
    understood: int = 0
    not_understood: int = 0
    """Records of no known shape."""
    continued: int = 0
    """Continuation lines and empty lines."""
    shapes: Counter[str] = field(default_factory=Counter)
    """Unknown texts with digits blanked."""
    writers: Counter[str] = field(default_factory=Counter)
    """The layouts of the records."""
    first_ms: int | None = None
    last_ms: int | None = None
    relative: int = 0
    """Records without a date in streams without any; their times count from `RELATIVE_MS`."""
    undated: int = 0
    """Records with an invalid stamp."""
    backwards: int = 0
    """Records whose stamp is more than a minute before the previous one."""
    notes: list[str] = field(default_factory=list)
    """What could not be read, or is odd, one sentence each."""

    @property
    def writer(self) -> str | None:
        """The layout of most of the records."""
        return next((writer for writer, _ in self.writers.most_common(1)), None)

    def add(self, part: FileRead) -> None:
        """Add what was read of a further part of the file."""
        for name in ("lines", "understood", "not_understood", "continued", "relative", "undated", "backwards"):
            setattr(self, name, getattr(self, name) + getattr(part, name))
        self.shapes += part.shapes
        self.writers += part.writers
        stamps = [ms for ms in (self.first_ms, self.last_ms, part.first_ms, part.last_ms) if ms is not None]
        self.first_ms, self.last_ms = min(stamps, default=None), max(stamps, default=None)
        self.notes += [note for note in part.notes if note not in self.notes]


class _Open(NamedTuple):
    """A record that no shape fits yet; the next lines may still show its event."""

    head: Head
    line: int
    outer_ms: int | None


_BEGINS = r"(?=\d{4}-\d\d-\d\d[ T]\d\d:|\[\d{4}-|time=\"|\{\")"
_PREFIX = re.compile(
    r"(?P<prefix>\[[^\]]{1,80}\]|[\w./@\[\]-]{1,100}?)?"
    r"(?P<number>\A\d+(?=[:-])|:\d+(?=:)|-\d+(?=-))?(?:\s*[|:]\s*|-|\s+)" + _BEGINS
)
"""`ns1: `, `ns-0: `, `ns-0 | `, `[pod/ns-0/main] `, grep's `namesrv.log:12:` and `namesrv.log-12-`."""
_SEVERAL = ("},", "}]", "]}", "'),", "\\n", "#012", "<br", "</")
"""Each line with several records has one of these."""
_IS_NUMBER = re.compile(r"\d+[.)]?")
_MARKS = ("{", "}", "[", "]", '"', "'", "`")
"""Marks with which no line of a stack trace or message begins; they belong to JSON or a page around the log."""
_STAMPED = re.compile(r"[ \t]+(?:\d{1,7}[.:|)]?[ \t]+)?(?=(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d[ ,.])")
"""A prefix before a record, for layouts whose lines begin with a stamp."""
_DIGITS = re.compile(r"\d+")
_NAMES = re.compile(r"\b[0-9a-fA-F]{8,}\b")


def _in_json(line: str) -> Head | None:
    """Return the head of a line as servers write it; None for JSON."""
    return None if line[:1] == "{" else server(line)


class Reader:
    """Turns the lines of one log file into rows, and counts the lines."""

    def __init__(
        self,
        file: str,
        counts: FileRead | None = None,
        *,
        first_line: int = 1,
        skim: Skim | None = None,
    ) -> None:
        self.counts = FileRead(file) if counts is None else counts
        self._skim, self._events = skim, None if skim is None else skim.events
        self._file, self._number = file, first_line - 1
        self._pending: dict[str | None, LogRow | _Open | None] = {}
        """Of each stream its last record: None for one that is only counted."""
        self._more: dict[str | None, list[str]] = {}
        self._room: dict[str | None, int] = {}
        """How many characters more of what goes on there are kept."""
        self._runs_ms: dict[tuple[str | None, str], int] = {}
        self._layout: Callable[[str], Head | None] = server
        self._prefixes: dict[str, str] = {}
        self._stamped_ms: dict[str | None, int] = {}
        self._heads = Heads()
        self._outer_digits: int | None = None
        """Of the stamps that stand before others in this file."""
        self._relative_ms: dict[str | None, int] = {}
        """Of streams without a date, when their last record was."""
        self._year = datetime.now(UTC).year
        """Of stamps that name none."""
        self._text_field: str | None = None
        """Where in JSON the records stand."""
        self._behind: list[str] = []
        """The lines after the first line of a record, if the record is one text in JSON."""
        self._pieces: dict[tuple[str | None, str], str] = {}
        """Of each stream the line of which only pieces were read."""

    def block(self, data: bytes) -> Iterator[LogRow]:
        """Take bytes of whole lines, and return the rows that are now complete. Lines that `skim` skips are counted."""
        # lines that end as on old Macs, and what a screen overwrote
        if (ends := data.count(b"\r")) and ends > data.count(b"\r\n"):
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        is_prefixed, first = bool(self._prefixes), self._number + 1
        stretches = None if self._skim is None else self._skim.over(data, first, must_read=is_prefixed)
        for begin, end, passed in stretches or ((0, len(data), None),):
            if passed is None:
                try:
                    lines = data[begin:end].decode().split("\n")
                except UnicodeDecodeError:
                    lines = [_text(line) for line in data[begin:end].split(b"\n")]
                if lines[-1] == "":
                    lines.pop()
                yield from self.rows(lines)
            else:
                yield from self._passed_over(passed)

    def _passed_over(self, passed: Stamps) -> Iterator[LogRow]:
        """Count skipped lines as understood: each began a record that makes no row."""
        counts, last = self.counts, self._pending.get(None)
        self._number += passed.lines
        counts.lines += passed.lines
        counts.understood += passed.lines
        counts.writers[passed.writer] += passed.lines
        for stamp_ms, count in passed.seen:
            if stamp_ms is None:
                counts.undated += count if passed.writer == JAVA_SERVER else 0
            elif stamp_ms != self._stamped_ms.get(None):
                self._stamped(stamp_ms, None)
        self._pending[None], more = None, self._more.pop(None, None)
        if last is not None and (row := self._closed(None, last, more)) is not None:
            yield row

    def rows(self, lines: Iterable[str]) -> Iterator[LogRow]:
        """Take further lines, and return the rows that are now complete."""
        counts, pending, more, opened, closed = self.counts, self._pending, self._more, self._opened, self._closed
        for line in lines:
            self._number += 1
            counts.lines += 1
            if line[-1:] == "\r":
                line = line[:-1]
            prefix, outer_ms = None, None
            if line[:1] in " \t" and (line[:4] == "\tat " or not (line := _not_indented(line))[:1].isdigit()):
                if self._heads.are_indented or holds_record(line):
                    self._heads.are_indented, line = True, line.lstrip(" \t")
                elif not self._prefixes:
                    counts.continued += 1
                    if line:
                        self._went_on(None, line)
                    continue
                head = None
            else:
                head = self._layout(line)
            if head is None:
                if any(sign in line for sign in _SEVERAL) and (texts := records_in(line)):
                    yield from self._several(texts)
                    continue
                head, prefix, outer_ms, line = self._slowly(line)
                if head is None:
                    counts.continued += 1
                    if line:
                        self._went_on(prefix, line)
                    self._behind_went_on(prefix)
                    continue
            last = pending.get(prefix)
            said = more.pop(prefix, None) if more else None
            pending[prefix] = opened(head, outer_ms, prefix)
            if self._behind:
                self._behind_went_on(prefix)
            if last is not None and (row := closed(prefix, last, said)) is not None:
                yield row

    def _several(self, texts: Sequence[str]) -> Iterator[LogRow]:
        """Read a line with several records, each of which counts as a line."""
        number = self._number
        self.counts.lines -= 1
        for text in texts:
            first, *self._behind = text.splitlines()
            self._number = number - 1
            yield from self.rows([first])

    def _behind_went_on(self, prefix: str | None) -> None:
        for line in self._behind:
            if line:
                self._went_on(prefix, line)
        self._behind = []

    def _went_on(self, prefix: str | None, line: str) -> bool:
        if self._pending.get(prefix) is None:
            return False
        if (kept := self._more.get(prefix)) is None:
            kept = self._more[prefix] = []
            self._room[prefix] = MORE_MAX
        if (room := self._room[prefix]) < 0:
            return False
        if (text := line.strip(" \t"))[:1] not in _MARKS and not text.isdigit():
            kept.append(line)
            self._room[prefix] = room - len(line)
        return True

    def beyond(self, lines: Iterable[str]) -> None:
        """Take lines after the end of this part of the log, because they may continue the last record."""
        for line in lines:
            head, prefix, _outer, rest = self._slowly(line.rstrip("\r"))
            if head is not None or (rest and not self._went_on(prefix, rest)):
                return

    def finished(self) -> Iterator[LogRow]:
        for prefix, last in self._pending.items():
            if last is not None and (row := self._closed(prefix, last, self._more.get(prefix))) is not None:
                yield row
        self._pending.clear()

    # --- a line -------------------------------------------------------------------------------------------------------

    def _slowly(self, line: str) -> tuple[Head | None, str | None, int | None, str]:
        """Return head, prefix, outer stamp and line without prefix, by trying each layout and each tool's prefix."""
        prefix, outer_ms = None, None
        if line[:1] == "{" and not self._prefixes and (told := json_object(line)) is not None:
            self._layout = _in_json  # as all lines of a file are of which one is
            if (found_ := self._of_object(told, line, prefix, outer_ms)) is not None:
                return found_
        if "\x1b" in line or line[:1] == "\ufeff":
            line = SCREEN_CODES.sub("", line.removeprefix("\ufeff"))
        if not line.isascii():
            line = line.translate(TYPED)
        if "\0" in line:
            line = line.replace("\0", "")
        if line[:2] == "| " and line.rstrip()[-2:] == " |":
            line = line.rstrip()[2:-2].strip()
        for before, name in self._prefixes.items():
            if line.startswith(before):
                prefix, line = name or None, line[len(before) :]
                break
        line = _not_indented(line)
        if not line or line[0] in " \t" or line.startswith(("Caused by: ", "at ", "... ", "```")):
            return None, prefix, outer_ms, line
        if line[0].isdigit() and (found := OUTER.match(line)) is not None and self._is_outer(found):
            outer_ms = utc_ms(found)
            if (whole := self._whole(prefix, found)) is None:
                return None, prefix, outer_ms, ""
            line = whole
        if (
            line[:1] in ("{", "[")
            and (told := json_object(line)) is not None
            and (found_ := self._of_object(told, line, prefix, outer_ms)) is not None
        ):
            return found_
        if not line[:1].islower() or line.startswith('time="'):  # no layout begins with a small letter but Go's
            for layout in STRICT:
                if line and line[0] not in " \t" and (narrow := layout(line)) is not None:
                    if outer_ms is None and prefix is None:
                        self._layout = layout
                    return narrow, prefix, outer_ms, line
            if (head_ := head_of(line)) is not None:
                taken = None if head_.level else self._heads.taken_off(line)
                return (head_, prefix, outer_ms, line) if taken is None else self._behind_head(taken, prefix, outer_ms)
        if prefix is None and (found := _PREFIX.match(line)) is not None:
            before, name = found[0], found["prefix"] or ""
            if _IS_NUMBER.fullmatch(name):  # of a list
                return self._behind_head((None, None, line[len(before) :]), None, outer_ms)
            if found["number"] is None and len(self._prefixes) < 1_000:
                self._prefixes[before] = name
            return self._behind_head((name or None, None, line[len(before) :]), None, outer_ms)
        if (taken := self._heads.taken_off(line)) is not None:
            return self._behind_head(taken, prefix, outer_ms)
        if (head_ := without_stamp(line) or self._of_another_format(line)) is not None:
            return head_, prefix, outer_ms, line
        if (event := event_of(line.strip())) is not None and event[0] not in _NEEDS_HEAD:
            return Head(line.strip(), UNKNOWN), prefix, outer_ms, line
        return None, prefix, outer_ms, line

    def _of_another_format(self, line: str) -> Head | None:
        if (usual := as_usual(line, self._year)) is None:
            return None
        text, zone = usual
        return None if (head := head_of(text)) is None else head._replace(zone=zone)

    def _behind_head(
        self, taken: tuple[str | None, int | None, str], prefix: str | None, outer_ms: int | None
    ) -> tuple[Head | None, str | None, int | None, str]:
        """Do as `_slowly` for a line whose wrapping was removed. If the inner line has a stamp, the inner stamp
        counts."""
        name, stamp_ms, line = taken
        outer_ms = stamp_ms if outer_ms is None else outer_ms
        if (plainly := server(line)) is not None:  # as most are
            return plainly, prefix or name, outer_ms, line
        head, inner, inner_ms, rest = self._slowly(line)
        return head, prefix or name or inner, outer_ms if inner_ms is None else inner_ms, rest

    def _whole(self, prefix: str | None, found: re.Match[str]) -> str | None:
        """Return the line after a runtime's stamp, its pieces joined; None while pieces are missing."""
        line: str = found["rest"]
        if found["piece"] is None:
            return line
        line = self._pieces.pop((prefix, found["stream"]), "") + line
        if found["piece"] == "F":
            return line
        self._pieces[prefix, found["stream"]] = line[:PIECES_MAX]
        return None

    def _of_object(
        self, told: Mapping[str, Any], line: str, prefix: str | None, outer_ms: int | None
    ) -> tuple[Head | None, str | None, int | None, str] | None:
        """Do as `_slowly` for a JSON object, which is a record or has one in its fields; None: it has none."""
        stamp_ms, text = None, None
        if isinstance(piece := told.get("log"), str):
            if self._pieces or len(piece) >= DOCKERS_PIECE:
                piece = self._pieces.pop((None, "log"), "") + piece
                if not piece.endswith("\n") and len(told) <= _DOCKERS_FIELDS:
                    self._pieces[None, "log"] = piece[:PIECES_MAX]
                    return self._behind_head((None, None, ""), prefix, outer_ms)
                told = {**told, "log": piece}
        else:
            fields = dict(fields_of(told))
            text = fields.get(self._text_field or "")
            if text is None:
                self._text_field = next(
                    (path for path, said in fields.items() if holds_record(SCREEN_CODES.sub("", said))), None
                )
                text = None if self._text_field is None else fields[self._text_field]
        if text is None:
            if (found := as_json(told)) is None:
                return None
            said, stamp = found
            if isinstance(said, Head):
                return said, prefix, None, line
            text = said
            outer = None if stamp is None else OUTER.match(f"{stamp} ")
            stamp_ms = None if outer is None else utc_ms(outer)
        text = text.rstrip("\r\n")
        if "\n" in text:
            text, *self._behind = text.splitlines()
        return self._behind_head((stream_of(told), stamp_ms, text), prefix, outer_ms)

    def _is_outer(self, found: re.Match[str]) -> bool:
        """Whether a container runtime wrote this stamp: it is as fine as theirs, or another stamp follows."""
        digits = len(found["digits"] or "")
        if digits > 7 or found["piece"] is not None:
            return True
        if head_of(found["rest"]) is not None:
            self._outer_digits = digits
            return True
        return digits == self._outer_digits and ((own := head_of(found[0])) is None or not own.level)

    # --- a record -----------------------------------------------------------------------------------------------------

    def _opened(self, head: Head, outer_ms: int | None, prefix: str | None) -> LogRow | _Open | None:
        counts, writer, stamp_ms = self.counts, head.writer, head.stamp_ms
        counts.writers[writer] += 1
        if stamp_ms is None:
            counts.undated += head.stamp != "" and head.resolution_ms == 1000 and writer != GO
        elif stamp_ms != self._stamped_ms.get(prefix):
            self._stamped(stamp_ms, prefix)
        event, fields = _known(head.text) if writer != GO else go_event_of(head.text) or _NONE
        if event is None:
            event, fields = _otherwise(head)
        # what goes on behind it may be the rest of its line
        if event is None or (writer == JAVA_HOST and _is_anothers(event, head.logger)):
            return _Open(head, self._number, outer_ms)
        return self._understood(head, self._number, prefix, outer_ms, event, fields)

    def _understood(
        self, head: Head, line: int, prefix: str | None, outer_ms: int | None, event: str, fields: Mapping[str, str]
    ) -> LogRow | None:
        self.counts.understood += 1
        if event in QUIET or (self._events is not None and event not in self._events):
            return None
        _, writer, _, stamp_ms, resolution_ms, zone, _, thread, _ = head
        if stamp_ms is None:
            stamp_ms, zone = self._relative(head, prefix)
        return LogRow(self._file, line, prefix, stamp_ms, resolution_ms, zone, outer_ms, thread, writer, event, fields)

    def _relative(self, head: Head, prefix: str | None) -> tuple[int | None, str | None]:
        """Return time and zone of a record without a date, by its time of day or the records before; None, None if
        invalid."""
        before_ms = self._stamped_ms.get(prefix)
        last_ms = self._relative_ms.get(prefix, RELATIVE_MS) if before_ms is None else before_ms
        if (clock := _CLOCK.fullmatch(head.stamp)) is not None:
            hours, minutes, seconds = (int(clock[name]) for name in ("hours", "minutes", "seconds"))
            of_day = ((hours * 60 + minutes) * 60 + seconds) * 1000 + int((clock["digits"] or "0")[:3].ljust(3, "0"))
            at_ms = last_ms - last_ms % DAY_MS + of_day
            at_ms += DAY_MS if at_ms < last_ms - DAY_MS // 2 else 0
        elif head.stamp.isdigit():  # seconds since the program began
            at_ms = RELATIVE_MS + int(head.stamp) * 1000
        elif not head.stamp:
            at_ms = last_ms if before_ms is not None else last_ms + 1000
        else:
            return None, None
        if before_ms is not None:
            return at_ms, None
        self.counts.relative += 1
        self._relative_ms[prefix] = at_ms
        return at_ms, "+00:00"

    def _stamped(self, stamp_ms: int, prefix: str | None) -> None:
        counts = self.counts
        if counts.first_ms is None or stamp_ms < counts.first_ms:
            counts.first_ms = stamp_ms
        if counts.last_ms is None or stamp_ms > counts.last_ms:
            counts.last_ms = stamp_ms
        counts.backwards += stamp_ms < self._stamped_ms.get(prefix, 0) - RUN_MS
        self._stamped_ms[prefix] = stamp_ms

    def _closed(self, prefix: str | None, last: LogRow | _Open, more: list[str] | None) -> LogRow | None:
        exception = exception_of(more) if more else None
        if isinstance(last, _Open):
            head = last.head
            event, fields = _joined(head.text, more) if more and exception is None else _NONE
            if event is not None:
                more = None
            elif (cut := edited_event_of(head.text)) is not None:
                event, fields = cut
            elif exception is not None and "rocketmq" in exception["class"]:
                event, fields = _EXCEPTION, {"text": head.text[:200]}
            if event is None or (head.writer == JAVA_HOST and _is_anothers(event, head.logger)):
                self.counts.not_understood += 1
                self._count_shape(head)
                return None
            row = self._understood(head, last.line, prefix, last.outer_ms, event, fields)
        else:
            row = last
        if row is None:
            return None
        if more:
            told = {key: said for key, said in (exception or {}).items() if key != "class"}
            row = row._replace(fields={**told, **row.fields, "more": "\n".join(more)[:MORE_MAX]})
        is_alike = row.event in COUNTED and row.fields.get("row", "null") == "null"
        return None if is_alike and self._is_of_a_run(prefix, row) else row

    def _is_of_a_run(self, prefix: str | None, row: LogRow) -> bool:
        """Whether the line continues a run of similar lines, of which only the first is kept."""
        began_ms, stamp_ms = self._runs_ms.get((prefix, row.event)), row.stamp_ms or 0
        if began_ms is not None and 0 <= stamp_ms - began_ms <= RUN_MS:
            return True
        self._runs_ms[prefix, row.event] = stamp_ms
        return False

    def _count_shape(self, head: Head) -> None:
        text = f"{head.logger}: {head.text}" if (head.logger or "").startswith(OWN_LOGGER) else head.text
        shape = _DIGITS.sub("#", _NAMES.sub("#", text[:160]))
        shapes = self.counts.shapes
        if shape in shapes or len(shapes) < SHAPES_MAX:
            shapes[shape] += 1


_NONE: tuple[None, Mapping[str, str]] = (None, {})
_remembered = lru_cache(_REMEMBERED)(event_of)
"""A cache, because logs mostly repeat themselves."""


def _known(text: str) -> tuple[str | None, Mapping[str, str]]:
    return (_remembered(text) if len(text) < _REMEMBERED_MAX else event_of(text)) or _NONE


def _otherwise(head: Head) -> tuple[str | None, Mapping[str, str]]:
    """Return the event of a text that no shape fits: a setting, or a text of Netty's."""
    if head.logger is not None and head.logger.startswith("io.netty"):
        return "housekeeping", {}
    found = setting_of(head.text) if head.thread == "main" and head.writer == JAVA_SERVER else None
    return found or _NONE


_PIECES_OF_A_LINE = 8


def _joined(text: str, more: Sequence[str]) -> tuple[str | None, Mapping[str, str]]:
    """Return the event of a line that a window or a mail wrapped: joined with the next lines, or its first part."""
    for between in ("", " "):
        whole = text
        for piece in more[:_PIECES_OF_A_LINE]:
            whole = whole.rstrip() + between + piece.strip() if between else whole + piece
            if (found := event_of(whole)) is not None:
                return found
    return _NONE


def _text(line: bytes) -> str:
    """Return the bytes as text, by UTF-8 or else GB18030, which includes GBK."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        with suppress(UnicodeDecodeError):
            return line.decode("gb18030")
        return line.decode("utf-8", "replace")


def _is_anothers(event: str, logger: str | None) -> bool:
    """Whether the line is another program's line that begins like a line of RocketMQ's."""
    is_own = logger is None or "ocketmq" in logger or logger.startswith(("o.a.r.", "c.a.r."))
    return event in QUIET and not is_own


def _not_indented(line: str) -> str:
    """Return the line without spaces before its stamp. Without a stamp after them it continues the record before."""
    first = line.lstrip(" \t")[:1]
    if first.isdigit() and (found := _STAMPED.match(line)) is not None:
        return line[found.end() :]
    return line


_EXCEPTION_LINE = re.compile(
    r"(?:Caused by: )?(?P<exception>(?:[a-z_]\w*\.)+(?P<name>\w*(?:Exception|Error)))(?:: (?P<said>.*))?"
)
_CODE = re.compile(r"CODE: ?(?P<code>-?\d+) +DESC: ?(?P<remark>.*?)(?: +BROKER: ?(?P<broker_address>\S+))?$", re.S)
_TOPIC = re.compile(r"(?:for the topic|route info of this topic|[Tt]opic)(?:, ?|: ?|\[)(?P<topic>[\w%|.-]+)")


def exception_of(lines: Sequence[str]) -> dict[str, str] | None:
    """Return the exception in a record's continuation lines: RocketMQ's own if there is one, else the first."""
    matches = [
        (at, found) for at, line in enumerate(lines, 1) if (found := _EXCEPTION_LINE.fullmatch(line)) is not None
    ]
    if not matches:
        return None
    behind, chosen = next((one for one in matches if "rocketmq" in one[1]["exception"]), matches[0])
    said = chosen["said"] or ""
    fields = {"class": chosen["exception"], "exception": chosen["name"], "said": said}
    told = said
    for line in lines[behind:]:  # a remark of several lines goes on
        if line[0] in " \t" or line.startswith(("See ", "For more", "Caused by")):
            break
        told += f" {line}"
    if (code := _CODE.search(told)) is not None:
        fields |= {key: value for key, value in code.groupdict().items() if value}
    if (topic := _TOPIC.search(told)) is not None:
        fields["topic"] = topic["topic"].rstrip(".,")
    return fields

"""Causes that a line says in so many words: a full disk, a port that is taken, a start that failed, who cannot be
reached. Read from the raw text, so that lines without a time, stack traces and excerpts count, too.

    texts_in(places) ─► Texts: what lines say (Said: cause, file, line, text), and from when to when each file is

A weight is in nats: how much likelier the line is where that is the cause than where it is not.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

from ...chaos.logs.files import Part, blocks_of, planned

SHOWN = 300
"""Characters of a line."""
REFUSES_AT, FILLS_AT = 0.9, 0.75
"""diskSpaceWarningLevelRatio, from which on a broker refuses messages; diskMaxUsedSpaceRatio, from which on it deletes
what is older than fileReservedTime."""


class Says(NamedTuple):
    """A shape of lines that says a cause. `has` is in each, as it stands there."""

    cause: str
    weight: float
    has: str
    pattern: re.Pattern[str]


def _says(cause: str, weight: float, has: str, pattern: str = "") -> Says:
    return Says(cause, weight, has, re.compile(pattern or re.escape(has)))


_ADDRESS = r"<?\[?/?(?P<address>null|[^\s<>\[\]]*?)\]?>?"
SAYS: Sequence[Says] = (
    _says("disk-full", 7.5, "No space left on device"),
    _says("disk-full", 5.0, "maybe disk full", r"maybe disk full(?:.*?CL: *(?P<used>[\d.]+))?"),
    _says("disk-full", 1.8, "message store is not writable"),
    _says("disk-full", 5.0, "disk maybe full", r"disk maybe full.*?, (?P<used>-?\d+\.\d+)"),
    _says("disk-full", 5.0, "physic disk of commitLog used", r"physic disk of commitLog used: *(?P<used>-?[\d.]+)"),
    _says("disk-read-only", 7.5, "Read-only file system"),
    _says("store-path-missing", 3.5, "measuring disk space usage, file doesn't exist"),
    _says("port-taken", 7.5, "Address already in use"),
    _says("port-taken", 7.5, "Failed to bind to"),
    _says("store-in-use", 7.5, "MQ already started", r"Lock failed, *MQ already started"),
    _says("start-failed", 7.5, "in broker metadata is different from"),
    _says("start-failed", 6.0, "load file ", r"load file \S+ error"),
    _says("start-failed", 5.5, "Try to shutdown service thread", r"\bmain(?:\] INFO .*)? - Try to shutdown"),
    _says("out-of-memory", 6.0, "OutOfMemoryError"),
    _says("out-of-memory", 7.0, "insufficient memory for the Java Runtime"),
    _says("out-of-memory", 7.0, "Out of memory: Kill"),
    _says("too-many-open-files", 7.0, "Too many open files"),
    _says("name-server-address-illegal", 7.5, "The Name Server Address[", r"The Name Server Address\[.*\] illegal"),
    _says("no-name-server-given", 6.5, "boot success.", r"The broker\[[^\]]*\] boot success\. serializeType=\w+ *$"),
    _says("no-name-server-given", 7.5, "No name server address", r"No name server address, please set it"),
    _says("no-name-server-given", 7.5, "item NamesrvAddr is not configured"),
    _says("no-permission", 6.5, "sending message is forbidden"),
    _says("no-permission", 6.5, "CODE: 16", r"CODE: 16\b"),
    _says("access-refused", 6.5, "AclException"),
    _says("access-refused", 6.5, "AuthenticationException"),
    _says("broker-overloaded", 6.0, "_CLEAN_QUEUE]", r"\[TIMEOUT_CLEAN_QUEUE\]"),
    _says("broker-overloaded", 6.0, "broker busy", r"\[(?:PC|PCBUSY|REJECTREQUEST|OVERLOAD)\w*\].*broker busy"),
    _says("auto-create-off", 4.0, "TBW102", r"for the topic: TBW102\b|Get topic\[TBW102\] route failed"),
    _says("no-route", 1.0, "for the topic: ", r"No topic route info.* topic: (?!TBW102\b|RMQ_SYS_)\S+"),
    _says("no-route", 1.0, "No route info of this topic"),
    _says("not-rocketmq", 4.5, "Adjusted frame length exceeds", r"exceeds \d+: (?P<address>\d+) - discarded"),
    _says("list-changed", 4.5, "Replace, key: namesrvAddr", r"value: *(?P<old>\S+) -> (?!(?P=old)\s*$)\S+"),
    _says("stopped-in-order", 5.5, "hutdown hook was invoked", r"[Ss]hutdown hook was invoked, 1"),
    _says("stopped-in-order", 4.0, " ShutdownHook - "),
    _says("process-ended", 4.5, "Connection refused", r"Connection refused: /?(?P<address>[\w.-]+:\d+)"),
    _says("name-server-not-reached", 5.0, "create name server channel exception"),
    _says("-not-reached", 4.0, "connect to ", rf"connect to {_ADDRESS} failed"),
    _says("-gives-no-answer", 4.0, "wait response on the channel", rf"wait response on the channel {_ADDRESS} timeout"),
    _says("broker-gives-no-answer", 3.0, "wait response timeout"),
    _says("broker-gives-no-answer", 2.0, "send heart beat to broker error"),
)  # fmt: skip
"""What begins with `-` is of a NameServer or of a broker, which its address or its stack trace says."""
_HAS = tuple(dict.fromkeys(one.has.encode() for one in SAYS))


@dataclass(frozen=True, slots=True)
class Said:
    """One line that says a cause."""

    cause: str
    weight: float
    file: str
    line: int
    text: str
    detail: str = ""
    """The address, or how much of the disk is used."""
    stamp_ms: float | None = None
    """Its stamp, or the last one before it, as its digits have it."""

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(slots=True)
class Texts:
    """What the raw lines say."""

    said: list[Said] = field(default_factory=list)
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)
    """File to its first and last stamp in milliseconds, as its digits have it."""

    lines: int = 0
    troubled: int = 0
    """Of these, those of level WARN or ERROR, and exceptions."""

    def lasts_ms(self, file: str) -> float:
        """From its first stamp to its last."""
        first_ms, last_ms = self.spans.get(file, (0.0, 0.0))
        return last_ms - first_ms


def texts_in(places: Iterable[str | Path]) -> Texts:
    """All that lines there say of causes, in the order of files and lines. LogError for a place that is not there."""
    texts = Texts()
    for part in planned(places).parts:
        if not part.start:
            _read(part, texts)
    return texts


def _read(part: Part, texts: Texts) -> None:
    number = 0
    before = b""
    for block in blocks_of(part):
        lines = block.split(b"\n")
        stamps = [*_stamps(lines[:_STAMP_LINES]), *_stamps(lines[-_STAMP_LINES:])]
        if stamps:
            first_ms = texts.spans.get(part.file, (stamps[0], 0.0))[0]
            texts.spans[part.file] = first_ms, stamps[-1]
        texts.lines += len(lines) - 1
        texts.troubled += sum(block.count(word) for word in _TROUBLE)
        for at in _lines_with(block, lines):
            line = lines[at]
            around = b"\n".join((lines[at - 1] if at else before, *_trace(lines, at + 1)))
            text, context = (each.decode("utf-8", "replace") for each in (line.rstrip(b"\r"), around))
            stamp_ms = next(_stamps(reversed(lines[max(0, at - _STAMP_LINES) : at + 1])), None)
            for one in of_line(text, context, part.file, number + at + 1):
                texts.said.append(replace(one, stamp_ms=stamp_ms))
        number += len(lines) - 1
        before = lines[-2] if len(lines) > 1 else lines[-1]


def _lines_with(block: bytes, lines: Sequence[bytes]) -> list[int]:
    """Which of its lines may say a cause."""
    places = [found.start() for has in _HAS if has in block for found in re.finditer(re.escape(has), block)]
    starts = [0, *accumulate(len(line) + 1 for line in lines)] if places else []
    return sorted({bisect_right(starts, place) - 1 for place in places})


_TROUBLE = (b" WARN ", b" ERROR ", b"Exception: ")
_STAMP_LINES = 40
_STAMP = re.compile(rb"(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d)")


def _stamps(lines: Iterable[bytes]) -> Iterator[float]:
    for line in lines:
        if (found := _STAMP.search(line)) is not None:
            with suppress(ValueError):
                year, month, day, hour, minute, second = map(int, found.groups())
                yield datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp() * 1000


def text_at(places: Iterable[str | Path], wheres: Collection[str]) -> dict[str, str]:
    """What stands at these `FILE:LINE`."""
    wanted: dict[str, set[int]] = defaultdict(set)
    for where in wheres:
        file, _, line = where.rpartition(":")
        wanted[file].add(int(line))
    found: dict[str, str] = {}
    for part in planned(places).parts if wanted else ():
        if part.start or part.file not in wanted:
            continue
        lines = (raw for block in blocks_of(part) for raw in block.splitlines())
        for number, raw in enumerate(islice(lines, max(wanted[part.file])), 1):
            if number in wanted[part.file]:
                found[f"{part.file}:{number}"] = raw.decode("utf-8", "replace").strip()[:SHOWN]
    return found


_TRACE = re.compile(rb"\s|Caused by|at |\.\.\. ")
_TRACE_LINES = 16


def _trace(lines: Sequence[bytes], from_: int) -> Iterator[bytes]:
    """The stack trace that begins there."""
    for line in islice(lines, from_, from_ + _TRACE_LINES):
        if _TRACE.match(line) is None:
            return
        yield line


def of_line(text: str, around: str, file: str, number: int) -> Iterator[Said]:
    """What the line says; `around` is the line before it and the stack trace behind it. Of one cause once."""
    told = set[str]()
    for says in SAYS:
        if says.has not in text or (found := says.pattern.search(text)) is None:
            continue
        fields = found.groupdict()
        cause, weight, detail = says.cause, says.weight, fields.get("address") or fields.get("used") or ""
        if fields.get("used"):
            cause, weight = _of_disk(float(fields["used"].rstrip(".")))
        elif cause.startswith("-"):
            cause, weight = _of_peer(cause, weight, detail, f"{text}\n{around}")
        if cause and cause not in told:
            told.add(cause)
            yield Said(cause, weight, file, number, text.strip()[:SHOWN], detail)


def _of_disk(used: float) -> tuple[str, float]:
    """By the share in use: refused from 90 % on; -1.0 is what RocketMQ says of a folder that is not there."""
    if used < 0:
        return "store-path-missing", 5.0
    return ("disk-full", 6.5) if used >= REFUSES_AT else ("", 0.0)


_NAME_SERVER_PORT = re.compile(r":\d*9876$")
_BROKER_PORT = re.compile(r":\d*(?:109(?:09|11|12)|[1-6]0911)$")
_ASKS_NAME_SERVER = re.compile(
    r"BrokerOuterAPI|NameserverChannel|RouteInfoFromNameServer|registerBroker|name server|getBrokerClusterInfo|namesrv"
)
_ASKS_BROKER = re.compile(r"BrokersSent|sendKernelImpl|sendMessage|pullMessage|fetchPublish|BrokerRuntime|HeartBeat")
_BEHIND_NAT = re.compile(r"127\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|192\.168\.56\.|10\.0\.2\.|10\.(?:244|42|233)\.")


def _of_peer(cause: str, weight: float, address: str, around: str) -> tuple[str, float]:
    """Whether it is a NameServer or a broker that was not reached: by its port, else by who called; else `peer`."""
    if address in ("", "null") or _NAME_SERVER_PORT.search(address):
        kind = "name-server"
    elif _BROKER_PORT.search(address) or _ASKS_BROKER.search(around):
        kind = "broker"
    elif _ASKS_NAME_SERVER.search(around):
        kind = "name-server"
    else:
        return f"peer{cause}", weight
    if kind == "broker" and cause == "-not-reached":
        return "broker-address-not-reached", weight + (0.5 if _BEHIND_NAT.match(address) else -0.5)
    return f"{kind}{cause}", weight

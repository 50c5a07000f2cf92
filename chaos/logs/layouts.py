"""Reads the head of a log line: time, level, thread, logger and text. Each kind of program has a layout, with variants
for lines that somebody edited. No I/O.

    2026-11-22 20:17:34 INFO main - …                                     servers 4.9 and 5.x: GMT+8, whole seconds
    2026-11-22 20:17:34 - …          2026-11-22 20:17:34 INFO - …         their watermark.log, protection.log, stats.log
    2026-11-22 12:18:51,122 INFO RocketmqRemoting - …                     Java client 4.9, its own log: local zone
    2016-03-06 18:40:31,431 INFO RocketmqClient(144) - …                  Java client 3.x, with the line of its source
    2026-11-22 20:18:51.123 INFO  [4711] [main] [o.a.r.r.n.N#x:540] - …   Java client 5.x: GMT+8
    2026-11-22 12:18:51.122  INFO 4711 --- [main] RocketmqClient : …      programs that log by slf4j, in many forms
    [2026-Nov-22 01:26:38.851088](warning):…[invokeSync:206]              C++
    time="2026-11-22T01:26:38Z" level=error msg="…" topic=T   ERRO[0066] …  Go
    2026-11-22 01:26:38,851 INFO 4711 [mq:client] …                       Node
    20.05.2024 14:20:00 …   May 20, 2024 …   24-05-20 …   1716186000384 …  other formats of the stamp, of any of these

`stamp_ms` is the time stamp, read as if its digits were UTC. `zone` is the time zone of the layout or of the stamp;
None if unknown.
"""

import json
import re
from calendar import month_abbr, timegm
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

SERVERS = "+08:00"
"""The zone of all stamps of servers and 5.x clients."""

JAVA_SERVER, JAVA_CLIENT_49, JAVA_CLIENT_5, JAVA_HOST = "java-server", "java-client-4.9", "java-client-5", "java-host"
CPP_1, CPP_2, GO, NODE, UNKNOWN = "cpp-1", "cpp-2", "go", "node", "unknown"


class Head(NamedTuple):
    """The first line of a log record, taken apart: stamp, level, thread, logger and text."""

    text: str
    writer: str
    stamp: str = ""
    """As written, with the digits after the second."""
    stamp_ms: int | None = None
    """None: no stamp, or no valid time."""
    resolution_ms: int = 1000
    zone: str | None = None
    level: str = ""
    """As written."""
    thread: str | None = None
    logger: str | None = None


_S = r"(?P<stamp>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)"
_LEVEL = r"(?P<level>TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)"
_SERVER = re.compile(rf"{_S} +{_LEVEL} +(?P<thread>[^\s\[\]]\S*?(?: \S+?){{0,3}}) +-(?: +|$)(?P<text>.*)", re.S)
_BARE = re.compile(rf"{_S}(?: +{_LEVEL})? +-(?: +|$)(?P<text>.*)", re.S)
_CLIENT_49 = re.compile(
    rf"{_S}(?P<digits>[.,]\d{{3}}) +{_LEVEL} +(?P<logger>[\w.$#*/@-]+)(?:\(\d+\)|:\d+)? +-(?: +|$)(?P<text>.*)", re.S
)
_CLIENT_5 = re.compile(
    rf"{_S}(?P<digits>[.,]\d{{3}}) +{_LEVEL} +\[(?P<pid>\d+)\] ?\[(?P<thread>[^\]]*)\] ?\[(?P<logger>[^\]]*)\]"
    r" +-(?: +|$)(?P<text>.*)",
    re.S,
)
_CPP = re.compile(
    r"\[(?P<stamp>\d{4}-(?:\d\d|[A-Z][a-z]{2})-\d\d \d\d:\d\d:\d\d)(?P<digits>\.\d{1,9})?\] ?\((?P<level>[a-z]+)\) ?: ?"
    r"(?P<text>.*?)(?:\[\w+:\d+\])?",
    re.S,
)
_GO_TEXT = re.compile(r'time="(?P<stamp>[^"]+)" +level=(?P<level>[a-z]+) +(?P<text>msg=.*)', re.S)
_GO_SCREEN = re.compile(r"(?P<level>TRAC|DEBU|INFO|WARN|ERRO|FATA|PANI)\[(?P<stamp>[^\]]*)\] ?(?P<text>.*)", re.S)
SCREEN_CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""Colours, and codes that clear a line."""


# Programs that log by slf4j, and Node's loggers: the stamp, then what their pattern has, until the text begins.
_HOST_STAMP = re.compile(
    r"(?:(?P<level>TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b[ |:]*)?\[?"
    r"(?:(?P<stamp>\d{4}[-/.]\d\d[-/.]\d\d[ T]+\d\d:\d\d:\d\d)|(?P<clock>\d\d:\d\d:\d\d))"
    r"(?P<digits>[.,:]\d{1,9})? ?(?P<zone>Z|[+-]\d\d:?\d\d|UTC|GMT)?\]?"
)
_AT = r"(?:\((?:\w+\.java:)?\d+\)|[:-]\d+)?"
"""The source line, which a pattern with %L writes."""
_PIECE = re.compile(
    r"[ \t]*(?:"
    r"(?:\[|\{(?=[\w.-]{1,100}\}))(?P<bracket>(?!mq:|MQPush|WATERMARK|[A-Z]+_[A-Z_]+\])[^\]}]{0,200})[\]}]"
    r"|(?P<level>TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)(?=[\s|:\]-])"
    r"|(?P<number>\d+)(?=[ \t]+(?:---|\[))"
    r"|(?P<rule>---|\|)"
    r"|(?P<end>[-:])(?=[ \t])"
    rf"|(?P<word>[\w.$#/@-]+){_AT}(?=[ \t]+[-:][ \t]|[ \t]*\||[ \t]+(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)[ \t])"
    rf"|(?P<logger>(?:Rocketmq\w+|[A-Za-z]\w*(?:\.\w+)+)){_AT}(?=:?[ \t])"
    r")"
)
_WHOLE = re.compile(r"\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]")
_LEVELS = frozenset({"TRACE", "DEBUG", "INFO", "WARN", "WARNING", "ERROR", "FATAL"})
_MONTHS = dict(zip(month_abbr, range(13), strict=True))
_IS_LOGGER = re.compile(r"Rocketmq\w*|(?:\w+\.)+\w+(?:[#$].*)?")
_OWN_LOGGERS = ("Rocketmq", "io.netty", "root")


@lru_cache(maxsize=20_000)
def second_of(stamp: str) -> int | None:
    """Return the time of a stamp's digits up to the second, read as UTC, in milliseconds; None for an invalid time."""
    try:
        year, month, rest = re.split(r"[-/.]", stamp, maxsplit=2)
        date, hour, minute, second = re.split(r"[ T]+|:", rest)
        at = datetime(int(year), _MONTHS.get(month) or int(month), int(date), int(hour), int(minute), int(second))
    except ValueError:
        return None
    return timegm(at.timetuple()) * 1000


_OTHER_STAMP = re.compile(
    r"\[?(?:"
    r"(?P<first>\d{1,2})(?P<sign>[./-])(?P<second>\d{1,2})[./-](?P<year>\d{4})"  # 20.05.2024, 05/20/2024
    r"|(?P<date>\d{1,2})[ -/](?P<name>[A-Z][a-z]{2})[ -/](?P<year_>\d{4}):?"  # 20 May 2024, 20/May/2024:
    r"|(?P<name_>[A-Z][a-z]{2}) (?P<date_>[ \d]\d),? (?P<year__>\d{4}),?"  # May 20, 2024
    r"|(?P<short>\d\d)[-/](?P<month>\d\d)[-/](?P<date__>\d\d)"  # 24-05-20
    r"|(?P<month_>\d\d)[-/](?P<date___>\d\d)"  # 05-20, of a year that no line names
    r")[ T]?[ ]*(?P<clock>\d{1,2}:\d\d:\d\d)(?P<digits>[.,]\d{1,9})?(?: ?(?P<half>[AP]M))?\]?(?=[\s|])"
)
_EPOCH = re.compile(r"\[?(?P<seconds>1\d{9})[.,]?(?P<digits>\d{3})\d{0,6}\]?(?=[\s|])")


def as_usual(line: str, year: int) -> tuple[str, str | None] | None:
    """Return the line with its time stamp in the usual format, and the stamp's time zone; None if the stamp's format is
    unknown. `year` is the year for time stamps that have no year. In a date such as `05/06/2024` the month comes first,
    as Java writes dates with slashes."""
    if (found := _EPOCH.match(line)) is not None:
        at = datetime.fromtimestamp(int(found["seconds"]), UTC)
        return f"{at:%Y-%m-%d %H:%M:%S},{found['digits']}{line[found.end() :]}", "+00:00"
    if (found := _OTHER_STAMP.match(line)) is None:
        return None
    if found["first"]:
        first, second = int(found["first"]), int(found["second"])
        is_day_first = first > 12 or (found["sign"] == "." and second <= 12)
        month, date = (second, first) if is_day_first else (first, second)
        year = int(found["year"])
    elif name := found["name"] or found["name_"]:
        month, date = _MONTHS.get(name, 0), int(found["date"] or found["date_"])
        year = int(found["year_"] or found["year__"])
    else:
        month, date = int(found["month"] or found["month_"]), int(found["date__"] or found["date___"])
        year = 2000 + int(found["short"]) if found["short"] else year
    hours, _, rest = found["clock"].partition(":")
    hour = int(hours) % 12 + 12 * (found["half"] == "PM") if found["half"] else int(hours)
    stamp = f"{year:04d}-{month:02d}-{date:02d} {hour:02d}:{rest}"
    return f"{stamp}{(found['digits'] or '').replace('.', ',')}{line[found.end() :]}", None


def _with_digits(stamp: str, digits: str | None) -> tuple[int | None, int]:
    second = second_of(stamp)
    if not digits:
        return second, 1000
    return None if second is None else second + int(digits[1:4].ljust(3, "0")), 1


def _head(found: re.Match[str] | None, writer: str, zone: str | None = None) -> Head | None:
    """Return the head that a layout's pattern found."""
    if found is None:
        return None
    said = found.groupdict()
    digits = said.get("digits") or ""
    ms, resolution = _with_digits(said["stamp"], digits)
    level, thread, logger = said["level"] or "", said.get("thread"), said.get("logger")
    return Head(said["text"], writer, said["stamp"] + digits, ms, resolution, zone, level, thread, logger)


def server(line: str) -> Head | None:
    stamp = line[:19]
    if line[16:17] == ":" and line[19:20] == " " and (second := second_of(stamp)) is not None:  # 3 times as fast
        level, _, rest = line[20:].partition(" ")
        thread, dash, text = rest.partition(" - ")
        if dash and level in _LEVELS and thread and thread[0] not in " [-" and "Rocketmq" not in thread:
            return Head(text, JAVA_SERVER, stamp, second, 1000, SERVERS, level, thread)
    head = _head(_SERVER.match(line), JAVA_SERVER, SERVERS)
    if head is None or not (head.thread or "").startswith("Rocketmq"):
        return head
    # a pattern like the servers', of a program that has RocketMQ's loggers
    return head._replace(writer=JAVA_HOST, zone=None, thread=None, logger=head.thread)


def bare(line: str) -> Head | None:
    return _head(_BARE.match(line), JAVA_SERVER, SERVERS)


def client_49(line: str) -> Head | None:
    if (found := _CLIENT_49.match(line)) is None:
        return None
    is_own = found["digits"][0] == "," and found["logger"].startswith(_OWN_LOGGERS)
    return _head(found, JAVA_CLIENT_49 if is_own else JAVA_HOST)


def client_5(line: str) -> Head | None:
    return _head(_CLIENT_5.match(line), JAVA_CLIENT_5, SERVERS)


def cpp(line: str) -> Head | None:
    if line[:1] != "[" or (found := _CPP.fullmatch(line.rstrip())) is None:
        return None
    return _head(found, CPP_1 if found["stamp"][5].isalpha() else CPP_2)


def go(line: str) -> Head | None:
    if "\x1b[" in line[:12]:
        line = SCREEN_CODES.sub("", line)
    found = _GO_TEXT.match(line) or _GO_SCREEN.match(line)
    if found is None:
        return None
    stamp, level, text = found.group("stamp", "level", "text")
    dated = _HOST_STAMP.fullmatch(stamp)
    if dated is None or dated["stamp"] is None:  # seconds since the program began
        return Head(text, GO, stamp, level=level)
    ms, resolution = _with_digits(dated["stamp"], dated["digits"])
    return Head(text, GO, stamp, ms, resolution, _zone(dated["zone"]), level)


def host(line: str) -> Head | None:
    """Return the head of a line in a user's own log pattern; parts in brackets or before ` - ` or ` : ` are recognized
    by their form."""
    if (found := _HOST_STAMP.match(line)) is None:
        return None
    level, thread, logger = found["level"] or "", None, None
    at, has_more = found.end(), False
    while (piece := _PIECE.match(line, at)) is not None:
        kind, said = piece.lastgroup, (piece[piece.lastgroup or 0] or "").strip()
        if (kind == "level" and level) or (kind == "logger" and logger) or (kind == "number" and not level):
            break
        at, has_more = piece.end(), True
        if kind == "level" or (kind == "bracket" and said in _LEVELS and not level):
            level = said
        elif kind == "end":
            break
        elif kind in ("bracket", "word", "logger"):
            if logger is None and (kind == "logger" or _IS_LOGGER.fullmatch(said)):
                logger = said
            elif thread is None or kind == "bracket":
                thread = said if thread is None else thread
            if kind == "logger" and line[at : at + 1] == ":":
                at += 1
                break
    text = line[at:].lstrip(" \t")
    if (whole := _WHOLE.fullmatch(text)) is not None and level:  # a pattern with [%m]
        text = whole["text"]
    writer = NODE if text.startswith(("[mq:", "[MQPush")) else JAVA_HOST
    if not has_more and found["stamp"] is None and not level:
        return None
    if found["stamp"] is None:  # a time of day, of a day that no line names
        return Head(text, writer, found["clock"] + (found["digits"] or ""), None, 1, None, level, thread, logger)
    ms, resolution = _with_digits(found["stamp"], found["digits"])
    return Head(text, writer, found[0].strip("[] "), ms, resolution, _zone(found["zone"]), level, thread, logger)


def _zone(said: str | None) -> str | None:
    if not said:
        return None
    if said in ("Z", "UTC", "GMT"):
        return "+00:00"
    return said if ":" in said else f"{said[:3]}:{said[3:]}"


_LEVEL_FIRST = re.compile(rf"{_LEVEL} +(?P<thread>[A-Za-z][\w#.-]*) +- +(?P<text>.*)", re.S)


def without_stamp(line: str) -> Head | None:
    """Return the head of a server's log line if the line begins with a level, without a time stamp."""
    if (found := _LEVEL_FIRST.match(line)) is None:
        return None
    return Head(found["text"], UNKNOWN, level=found["level"], thread=found["thread"])


def node(line: str) -> Head | None:
    return Head(line, NODE) if line.startswith(("[mq:", "[MQPushConsumer]")) else None


def as_json(found: Mapping[str, Any]) -> tuple[Head | str, str | None] | None:
    """Return the log record or log line inside a line of JSON, and the container runtime's time stamp."""
    if isinstance(inner := found.get("log"), str):  # docker's json-file
        return inner.rstrip("\n"), found.get("time")
    text = next((found[key] for key in ("message", "msg") if isinstance(found.get(key), str)), None)
    if text is None:
        return None
    stamp = str(next((found[key] for key in ("@timestamp", "timestamp", "time", "ts") if key in found), ""))
    dated = _HOST_STAMP.fullmatch(stamp)
    level = str(found.get("level") or "")
    thread, logger = (found.get(key) for key in ("thread_name", "logger_name"))
    ms, resolution = _with_digits(dated["stamp"], dated["digits"]) if dated and dated["stamp"] else (None, 1)
    writer = JAVA_HOST if logger or "message" in found else GO
    if writer == GO:
        text = " ".join([text, *(f"{key}={json.dumps(said)}" for key, said in found.items())])
    zone = _zone(dated["zone"]) if dated else None
    return Head(text, writer, stamp, ms, resolution, zone, level, thread, logger), None


STRICT = (server, client_49, client_5, bare, cpp, go)
"""Layouts of RocketMQ's own programs, in the order of trying: specific ones first."""


def head_of(line: str) -> Head | None:
    """Return the head of the line; None if the line continues the previous record."""
    first = line[:1]
    if not first or first in " \t":
        return None
    return next((found for layout in (*STRICT, host, node) if (found := layout(line)) is not None), None)

"""Finds causes of trouble that log lines state: a full disk, a taken port, a failed start, an unreachable peer. Causes
are read from the raw text, so lines without a time, stack traces and excerpts count, too.

    Hearing, one a part of a file ─► all_heard ─► Texts: statements (Said: cause, file, line, text), files' spans

A pattern's weight, in nats (units of log-likelihood), says how much likelier a matching line is with the cause than
without.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import compress, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...chaos.logs.files import blocks_of, planned
from ...chaos.logs.shapes import event_of
from ...chaos.logs.skim import Silent
from .words import TROUBLE, TROUBLED, in_words, is_of_trouble, is_ours

SHOWN = 300
"""Most characters of a line that are shown."""
KEPT = 2_000
"""Lines of one cause: more of them make it no surer, and a log may have millions."""
IN_WORDS, BY_WORDS, OF_OTHERS = 2_000, 2.4, 2.3
"""Lines of a part that are read by their words only, the weight of such a reading, and that of another program's."""
REFUSES_AT, TAKES_AGAIN_AT = 0.9, 0.85
"""diskSpaceWarningLevelRatio, above which a broker refuses messages, and diskSpaceCleanForciblyRatio, below which it
takes them again."""


class Says(NamedTuple):
    """A pattern of log lines that state a cause. A line without the text `has` cannot match."""

    weight: float
    has: str
    pattern: re.Pattern[str]


class Cause(NamedTuple):
    """A cause's entry in causes.toml."""

    sentence: str = ""
    remedy: str = ""
    says: Sequence[Says] = ()
    once_stated: str = ""
    """What to do, too, if a line states it, and not only its words suggest it."""
    faults: Sequence[str] = ()
    """By the names of episodes."""
    shows: str = ""
    """The sentence of a finder that has it from servers' answers, or from logs of all."""
    roots: Sequence[str] = ()
    """Causes of which it is an effect: with one of them it weighs less."""
    twin: str = ""
    """Another way in which the same peer fails, which often comes with it: the likelier is told."""
    is_effect: bool = False
    """Whether a fault of a process or a link makes such lines."""
    is_seen_otherwise: bool = False
    """Whether signs of links and processes show it better, or it is hardly a fault."""
    protocols: Mapping[str, str] = {}
    """A protocol by its first four bytes, plus 4, as Netty reads a frame's length."""


_ADDRESS = r"(?:<(?P<address>[^<>]*)>|\[?/?(?P<address_>[^\s\[\]]*?(?: :\d+)?)\]?)"


def _causes_read() -> Iterator[tuple[str, Cause]]:
    told = tomllib.loads(Path(__file__).with_name("causes.toml").read_text(encoding="utf-8"))
    for name, about in told.items():
        says = [
            Says(weight, has, re.compile("".join(more).replace("ADDRESS", _ADDRESS) or re.escape(has)))
            for weight, has, *more in about.pop("lines", ())
        ]
        yield name, Cause(says=says, **about)


CAUSES = dict(_causes_read())


@dataclass(frozen=True, slots=True)
class Said:
    cause: str
    weight: float
    file: str
    line: int
    text: str
    detail: str = ""
    """The address, length, share of the disk in use, or seconds."""
    stamp_ms: float | None = None
    """The digits of its stamp, or of the last one before it."""

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(slots=True)
class Texts:
    said: list[Said] = field(default_factory=list)
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)
    """File to its first and last stamp in milliseconds, by its digits."""

    lines: int = 0
    troubled: int = 0
    """Number of lines of level WARN or ERROR, and of exceptions."""
    fails: int = 0
    """Number of lines with an exception of RocketMQ's, without those that a harmless line explains."""
    are_rocketmqs: bool = False
    """Whether a line names RocketMQ, or reads like its own without a head."""

    times: Counter[str] = field(default_factory=Counter)
    """How many lines say each cause, those past the first `KEPT` of it included."""
    in_words: list[Said] = field(default_factory=list)
    """What other lines of trouble speak of, of the first `IN_WORDS` of each part."""
    looked: int = 0
    """The number of these lines, whatever they speak of."""
    frames: int = 0
    """The number of lines that are frames of stacks."""
    unread: int = 0
    """The number of the lines of trouble of which nobody knows what they speak of."""

    def add(self, one: Said) -> None:
        self.times[one.cause] += 1
        if self.times[one.cause] <= KEPT:
            self.said.append(one)

    def take(self, other: Texts, lines: int) -> None:
        """Add what was found in the next part of a file; `lines` lines of the file come before this part."""
        for one in other.said:
            self.add(replace(one, line=one.line + lines))
        self.in_words += [replace(one, line=one.line + lines) for one in other.in_words]
        self.times += Counter({cause: max(0, times - KEPT) for cause, times in other.times.items()})
        for file, (first_ms, last_ms) in other.spans.items():
            self.spans[file] = self.spans.get(file, (first_ms, 0.0))[0], last_ms
        for count in ("lines", "looked", "unread", "frames", "troubled", "fails"):
            setattr(self, count, getattr(self, count) + getattr(other, count))
        self.are_rocketmqs |= other.are_rocketmqs

    def lasts_ms(self, file: str) -> float:
        first_ms, last_ms = self.spans.get(file, (0.0, 0.0))
        return last_ms - first_ms


def all_heard(listeners: Iterable[Hearing]) -> Texts:
    """Return what the listeners of all parts of all files heard, in the order of files and parts."""
    texts = Texts()
    before: Counter[str] = Counter()
    for one in listeners:
        texts.take(one.texts, before[one.file])
        before[one.file] += one.texts.lines
    return texts


@dataclass(slots=True)
class Hearing:
    """Finds the lines that state a cause in one part of a file, block by block."""

    file: str
    texts: Texts = field(default_factory=Texts)
    _before: bytes = b""
    _waiting: list[tuple[bytes, Silent | None, bytes]] = field(default_factory=list)
    """Blocks that are not looked at, and of each the lines that may state a cause."""

    def block(self, block: bytes, silent: Silent | None) -> None:
        heard = block if silent is None else b"\n".join(compress(block.split(b"\n"), (~silent).tolist()))
        self._waiting.append((block, silent, heard))
        if len(self._waiting) == _BLOCKS_AT_ONCE:
            self.finished()

    def finished(self) -> None:
        waiting, self._waiting = self._waiting, []
        patterns = self._patterns()
        for one, is_said in zip(waiting, _says([heard for *_, heard in waiting], patterns), strict=True):
            self._look_at(*one, is_said)

    def _patterns(self) -> Sequence[str]:
        return _ANY if self.texts.looked >= IN_WORDS else [*_ANY, TROUBLE]

    def _look_at(self, block: bytes, silent: Silent | None, heard: bytes, is_said: bool) -> None:
        texts = self.texts
        first, last = block[:_HEAD_BYTES].split(b"\n"), block[-_HEAD_BYTES:].split(b"\n")
        stamps = [*_stamps(first[:_STAMP_LINES]), *_stamps(last[-_STAMP_LINES:])]
        if stamps:
            first_ms = texts.spans.get(self.file, (stamps[0], 0.0))[0]
            texts.spans[self.file] = first_ms, stamps[-1]
        texts.are_rocketmqs = (
            texts.are_rocketmqs or _NAMES_IT.search(block) is not None or any(map(_is_rocketmqs, first[:_STAMP_LINES]))
        )
        texts.troubled += sum(heard.count(word) for word in _TROUBLE)
        texts.frames += block.count(b"\tat ") + block.count(b"   at ")
        texts.fails += len(_FAILS.findall(heard)) if b"Exception" in heard else 0
        if is_said:
            lines = block.split(b"\n")
            numbers = np.arange(len(lines)) if silent is None else np.flatnonzero(~silent)
            for at in numbers[_says(heard.split(b"\n"), self._patterns())].tolist():
                head = _above(lines, at) if at else self._before
                raw = lines[at].rstrip(b"\r"), head, b"\n".join(_trace(lines, at + 1))
                text, above, trace = (each.decode("utf-8", "replace") for each in raw)
                if _FRAME.search(lines[at]) and not _is_of_an_exception(lines, at):
                    texts.looked += 1
                    texts.unread += 1
                    continue
                if at + 1 < len(lines) and _IS_WRAPPED.search(text) and not _STAMP.search(lines[at + 1]):
                    text = f"{text.rstrip()} {lines[at + 1].decode('utf-8', 'replace').strip()}"
                number, told = texts.lines + at + 1, False
                for one in of_line(text, f"{above}\n{trace}", self.file, number):
                    stamp_ms = next(_stamps(reversed(lines[max(0, at - _STAMP_LINES) : at + 1])), None)
                    texts.add(replace(one, stamp_ms=stamp_ms))
                    texts.fails -= one.cause == "nothing" and _FAILS.search(lines[at]) is not None
                    told = True
                texts.looked += not told
                if told or texts.looked > IN_WORDS:
                    continue
                if cause := in_words(text, above, trace):
                    texts.in_words.append(_in_words(cause, text, f"{text}\n{above}\n{trace}", self.file, number))
                else:
                    texts.unread += is_of_trouble(text)
        texts.lines += block.count(b"\n")
        self._before = last[-2] if len(last) > 1 else last[-1]


_AT_ONCE = 200
"""RE2 searches for so many words by a table of states; of 690 the table has no room, and RE2 is 100 times slower."""
_HAS = [*dict.fromkeys(re.escape(one.has) for cause in CAUSES.values() for one in cause.says)]
_ANY = ["|".join(_HAS[at : at + _AT_ONCE]) for at in range(0, len(_HAS), _AT_ONCE)]


_BLOCKS_AT_ONCE = 16
"""RE2 builds the patterns' tables anew for each call, which takes 5 ms."""


def _says(lines: Sequence[bytes], patterns: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Return for each text whether one of the patterns matches: the text may state a cause."""
    texts = pa.array(lines, pa.large_binary())
    found = (pc.match_substring_regex(texts, one).to_numpy(zero_copy_only=False) for one in patterns)
    return np.logical_or.reduce([*found])


_HEAD_BYTES = 8192
_FAILS = re.compile(rb"\b(?:MQ|Remoting|SubCommand)\w*Exception\b.*")
_NAMES_IT = re.compile(
    rb"[Rr]ocket(?:mq|MQ)|MQ(?:Producer|Consumer|Client|Broker|Push|Pull|Admin)|mqAdmin"
    rb"|\b(?:ConsumeMessageThread|NettyClientPublicExecutor|NettyClientWorkerThread|NettyServerCodecThread)_"
    rb"|\d (?:INFO|WARN|ERROR) [A-Z]\w+(?:Service|Thread|Thread_\d+) - "
)
"""Its name, its threads' names, or the layout of its servers' logs."""
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
    wanted: dict[str, set[int]] = defaultdict(set)
    for where in wheres:
        file, _, line = where.rpartition(":")
        wanted[file].add(int(line))
    found: dict[str, str] = {}
    before: Counter[str] = Counter()
    for part in planned(places).parts if wanted else ():
        for block in blocks_of(part) if before[part.file] < max(wanted.get(part.file, {0})) else ():
            first, count = before[part.file] + 1, block.count(b"\n")
            if any(first <= number < first + count + 1 for number in wanted[part.file]):
                for number, raw in enumerate(block.split(b"\n"), first):
                    if number in wanted[part.file]:
                        found[f"{part.file}:{number}"] = raw.decode("utf-8", "replace").strip()[:SHOWN]
            before[part.file] += count
    return found


_TRACE = re.compile(rb"\s|Caused by|at |\.\.\. |[\w.$]+(?:Exception|Error)\b")
_TRACE_WITHIN = re.compile(
    rb"(?!.*\b(?:INFO|WARN|ERROR)\b).*(?:Caused by: |(?:\s|\\t)at [\w.$/<>]+\(|\b\w+\.[\w.$]+(?:Exception|Error)\b)"
)
"""Behind what a container, a syslog or a quotation puts before each line."""
_BEFORE_FRAME = re.compile(rb"^\S.*?(?=(?:\s|\\t)at [\w.$/<>]+\()")
_TRACE_LINES = 16
_IS_WRAPPED = re.compile(r" (?:at|by|for|from|in|is|of|on|the|to|with) ?$")
"""A line that ends within a phrase: a terminal wrapped it, and the next line has the rest."""


def _above(lines: Sequence[bytes], at: int) -> bytes:
    """Return the lines before this line, up to the head of an indented block, because Python names the error last.
    Blank lines are passed over."""
    first = at - 1
    while first and at - first < _TRACE_LINES and (lines[first][:1].isspace() or not lines[first]):
        first -= 1
    return b"\n".join(lines[first:at])


_FRAME = re.compile(rb"^\s*at |\([\w$]+\.(?:java|scala|kt)(?::-?\d+)?\)")


_MESSAGE_LINES = 3
"""Most lines of an exception's message behind its first."""


def _is_of_an_exception(lines: Sequence[bytes], at: int) -> bool:
    """Whether lines of trouble stand above the stack with this frame. A dump of threads has stacks, too."""
    first = at
    while first and (_FRAME.search(lines[first]) or not lines[first].strip()):
        first -= 1
    above = (*lines[max(0, first - _MESSAGE_LINES) : first + 1], lines[at])
    return not first or any(TROUBLED.search(line.decode("utf-8", "replace")) for line in above)


def _trace(lines: Sequence[bytes], from_: int) -> Iterator[bytes]:
    written = (line for line in islice(lines, from_, from_ + 2 * _TRACE_LINES) if line.strip())
    for line in islice(written, _TRACE_LINES):
        if _TRACE.match(line) is None and _TRACE_WITHIN.match(line) is None:
            return
        yield _BEFORE_FRAME.sub(b"", line)


def of_line(text: str, around: str, file: str, number: int) -> Iterator[Said]:
    """Return each cause that the log line states. `around` has the line before and the stack trace after the line."""
    told = set[str]()
    for name, about in CAUSES.items():
        for says in about.says:
            if says.has not in text or (found := says.pattern.search(text)) is None:
                continue
            fields = {key.rstrip("_"): said for key, said in found.groupdict().items() if said is not None}
            cause, weight, detail = _looked_at(name, says.weight, fields, f"{text}\n{around}")
            if cause and cause not in told:
                told.add(cause)
                yield Said(cause, weight, file, number, text.strip()[:SHOWN], detail)


def _looked_at(cause: str, weight: float, fields: Mapping[str, str], around: str) -> tuple[str, float, str]:
    if used := [float(share) for share in _NUMBER.findall(fields.get("used", ""))]:
        return (*_of_disk(used, is_refused="CL" in fields["used"]), str(max(used)))
    if length := fields.get("length"):
        is_request = int(length) < LIKE_THE_LIMIT * int(fields["limit"])
        is_known = length in CAUSES[cause].protocols
        return ("request-too-large" if is_request else cause), weight - (not is_known and not is_request) * 1.5, length
    if "beyond" in fields:
        return cause if int(fields["beyond"]) > int(fields["last"]) else "", weight, ""
    if {"seconds", "milliseconds"} & fields.keys():
        seconds = float(fields.get("seconds", 0)) + float(fields.get("milliseconds", 0)) / 1000
        return (cause if seconds >= STOOD_S else ""), weight if seconds >= LONG_S else weight - 2.0, f"{seconds:.1f}"
    address = fields.get("address", "")
    if cause.startswith("-"):
        address = address or _address_in(around.partition("\n")[0]) or _address_in(around.partition("endpoints=")[2])
        return (*_of_peer(cause, weight, address, around), address)
    return cause, weight, address or fields.get("named", "")


def _in_words(cause: str, text: str, around: str, file: str, number: int) -> Said:
    address = _address_in(text) if cause.startswith("-") else ""
    if cause.startswith("-"):
        cause, _ = _of_peer(cause, BY_WORDS, address, around)
    return Said(cause, BY_WORDS if is_ours(around) else OF_OTHERS, file, number, text.strip()[:SHOWN], address)


def _address_in(text: str) -> str:
    return found[0] if (found := _HOST_AND_PORT.search(text)) else ""


_HOST_AND_PORT = re.compile(r"[\w.-]+:\d{4,5}\b|(?:(?<=to )|(?<=to <))null\b")
_NUMBER = re.compile(r"-?\d+\.\d+")
LIKE_THE_LIMIT = 3
"""A length of more than so many limits is no request, but the first bytes of another protocol."""
STOOD_S, LONG_S = 3.0, 10.0
"""A standstill as long as a call may take, and one that makes registrations fail."""


def _of_disk(used: Sequence[float], *, is_refused: bool) -> tuple[str, float]:
    """Return the cause, with its weight, by the used shares of the disk in a refusing answer or in a measurement. A
    share of -1.0 means that the folder is missing. A measured disk that is not yet full gives the cause `nothing`."""
    if max(used) >= (TAKES_AGAIN_AT if is_refused else REFUSES_AT):
        return "disk-full", 6.5
    return ("store-path-missing", 5.0) if min(used) < 0 else ("", 0.0) if is_refused else ("nothing", 2.5)


_LONG_ENOUGH = 12


def _is_rocketmqs(line: bytes) -> bool:
    """Whether a line without stamp and level is RocketMQ's. Short lines may be any program's."""
    text = _HEAD.sub("", line.decode("utf-8", "replace").strip())
    return len(line) >= _LONG_ENOUGH and event_of(text) is not None


_HEAD = re.compile(r"(?:ERROR|WARN|INFO) \w+ - ")


_NAME_SERVER_PORT = re.compile(r":\d*9876$")
_BROKER_PORT = re.compile(r":\d*(?:109(?:09|11|12)|[1-6]0911)$")
_ASKS_NAME_SERVER = re.compile(
    r"BrokerOuterAPI|NameserverChannel|RouteInfoFromNameServer|registerBroker|name ?server|getBrokerClusterInfo|namesrv"
    r"|topic route"
    r"|code: ?10[0-6]\b"
)
_ASKS_BROKER = re.compile(
    r"BrokersSent|sendKernelImpl|sendMessage|[Pp]ull ?[Mm]essage|fetchPublish|BrokerRuntime|[Hh]eart ?[Bb]eat"
    r"|(?:to |From)[Bb]roker|code: ?(?:1[0-5]|3\d|310)\b"
)
_IS_GRPC = re.compile(
    r"io\.grpc\.|\bendpoints=|grpc-js|grpc conn|\bsubchannel|Error: \d{1,2} [A-Z_]{5,}: |Expected the service \w+-\d"
)
_IS_ASKED = re.compile(r"NettyServer|NETTY SERVER|page ?cache|processRequest|write response", re.IGNORECASE)
_BEHIND_NAT = re.compile(r"127\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|192\.168\.56\.|10\.0\.2\.|10\.(?:244|42|233)\.")


def _of_peer(cause: str, weight: float, address: str, around: str) -> tuple[str, float]:
    """Return the kind of the unreachable peer, by its port or the caller: NameServer, broker, or `peer` if unclear; a
    server's connections are its clients'."""
    if not address and cause == "-not-reached" and _IS_ASKED.search(around):
        return "client-gone", weight
    if cause == "-not-reached" and _IS_GRPC.search(around):
        return "proxy-address-not-reached", weight
    if address == "null" or _NAME_SERVER_PORT.search(address):
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

"""Finds the cause of an error line that fits no pattern of causes.toml, by its words: a subject, and what is said of
the subject.

The last reason in a stack trace or line decides. Without a known word, the package of RocketMQ in the stack trace
decides.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

TROUBLE = r"WARN|ERROR|FATAL|SEVERE|[Ee]xception|[Ee]rror|Caused by|CODE:|[Ff]ail|panic|[Cc]rash|失败|异常|错误"
"""What each such line has, for RE2 and `re`."""


def _read(key: str, told: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, re.Pattern[str]]]:
    lines, spoken = told[key]["lines"], told["spoken"]
    assert isinstance(lines, list)
    for cause, pattern in lines:
        for word, means in [*spoken.items(), *spoken.items()]:  # twice: a word may be in another's meaning
            pattern = str(means).join(re.split(rf"\b{word}\b", pattern))
        yield cause, re.compile(pattern, re.IGNORECASE)


_TOLD = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
_WORDS: Sequence[tuple[str, re.Pattern[str]]] = [*_read("words", _TOLD)]
_PLACES: Sequence[tuple[str, re.Pattern[str]]] = [*_read("places", _TOLD)]
RANK = {cause: rank for rank, (cause, _) in enumerate(reversed([*_WORDS, *_PLACES]))}
"""The higher, the nearer to the root: effects come last in words.toml."""

_CALM = re.compile(r"\b(?:INFO|DEBUG|TRACE|info|debug)\b")
_HEAD = 120
_FRAME = re.compile(r"\s*(?:at |\.\.\. )")
_OURS = re.compile(
    r"rocket.?mq|\bMQ|Remoting\w*Exception|name ?-?srv|name ?-?server|broker|dledger|commit ?log|put ?message"
    r"|producer|consumer|\btopic|\bons\b",
    re.IGNORECASE,
)
_REASON = re.compile(r"\w+(?:Exception|Error): |\bCaused by|nested exception is |CODE: ")
_NAME = re.compile(r"\b(?!MQ|Remoting|Illegal|Runtime|NullPointer)\w+(?:Exception|Error)\b")
_TROUBLED = re.compile(TROUBLE)
_BEFORE = re.compile(r"^.*?\b(?:WARN(?:ING)?|ERROR|FATAL|SEVERE|error|warn(?:ing)?)\b[^-:]{0,60}(?:-+ | : |: )")
_NESTED, _SAYS = 3, 240
_VALUES = re.compile(r"\[[^\[\]]*\]|\{[^{}]*\}|<[^<>]*>|\"[^\"]*\"|(?:\S*[/\\]){2,}\S*")


def in_words(text: str, before: str, trace: str) -> str | None:
    """Return the cause by the line's words, else by the package in the stack trace."""
    around = f"{before}\n{text}\n{trace}"
    if _FRAME.match(text) or not _TROUBLED.search(text) or not _OURS.search(around):
        return None
    lines = trace.splitlines()
    if any(_REASON.search(line) and in_words(line, text, "\n".join(lines[at:])) for at, line in enumerate(lines, 1)):
        return None
    *_, says = _REASON.split(text)
    if says == text:
        if _CALM.search(text[:_HEAD]):
            return None
        says = _BEFORE.sub("", text)
    else:
        names = _NAME.findall(text)
        says = f"{names[-1] if names else ''}: {says}"
    for _ in range(_NESTED):
        says = _VALUES.sub("", says)
    says = says[:_SAYS]
    return next(
        (cause for cause, pattern in _WORDS if pattern.search(says)),
        next((cause for cause, pattern in _PLACES if pattern.search(f"{text}\n{trace}")), None),
    )

"""Finds the cause of an error line that no pattern of causes.toml matches, by the words in the line.

If a line or stack trace gives several reasons, the last reason decides. If no word is known, the RocketMQ package in
the stack trace decides.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

TROUBLE = (
    r"WARN|ERRO|FATA|SEVERE|[=:]\"?(?:warn|fatal)|[Ee]xception|[Ee]rror|Caused by|CODE:|[Ff]ail|panic|[Cc]rash"
    r"|[Cc](?:an|ould) ?not|[Uu]nable to|[Ii]llegal|[Ii]nvalid|[Tt]imed? ?out|[Dd]enied|[Rr]efused|[Ff]orbidden"
    r"|UNAUTH|[Ee]xceed|undefined|No enum|not (?:exist|found|match|support|allow|available|enough)"
    r"|[Oo]ut of memory|\bOOM\b|address\[\]|失败|异常|错误|无法|超时"
)
"""What each such line has, for RE2 and `re`."""


def _read(key: str, told: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, re.Pattern[str]]]:
    lines, spoken = told[key]["lines"], told["spoken"]
    assert isinstance(lines, list)
    for cause, pattern in lines:
        for word, means in [*spoken.items(), *spoken.items()]:  # twice: a word may be in another's meaning
            pattern = str(means).join(re.split(rf"\b{word}\b", pattern))
        yield cause, re.compile(pattern, re.IGNORECASE)


_TOLD = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
_CODES: Sequence[tuple[str, re.Pattern[str]]] = [*_read("codes", _TOLD)]
_WORDS: Sequence[tuple[str, re.Pattern[str]]] = [*_read("words", _TOLD)]
_PLACES: Sequence[tuple[str, re.Pattern[str]]] = [*_read("places", _TOLD)]
RANK = {cause: rank for rank, (cause, _) in enumerate(reversed([*_WORDS, *_PLACES]))}
"""The higher, the nearer to the root: effects come last in words.toml."""

ANYBODYS = frozenset(
    {"disk-fails", "disk-full", "disk-read-only", "kubernetes-refuses", "name-not-resolved", "out-of-memory"}
    | {"port-taken", "tls-mismatch", "too-many-open-files", "-gives-no-answer", "-not-reached"}
)
"""Causes that are no program's own."""
_LEVEL = re.compile(r"\b(INFO|DEBUG|TRACE)\b|[\[(](info|debug)[\])]|\b(?:WARN|ERROR|FATAL|SEVERE)|[\[(](?:warn|error)")
_CALM_LEVEL = re.compile(r"level\"?[=:] ?\"?(?:info|debu?g|trace|trce)", re.IGNORECASE)
_HEAD = 120
_FRAME = re.compile(r"\s*(?:at |\.\.\. |//)|(?!.*(?:Exception|Error): ).*(?:\s|\\t)at [\w.$/<>]+\(")
_OURS = re.compile(
    r"rocket.?mq|\bMQ|Remoting\w*Exception|name ?-?srv|name ?-?server|broker|dledger|commit ?log|put ?message"
    r"|producer|consume|message ?store|\btopic|\bons\b|\bo\.a\.r\.|CODE: *\d+ +DESC|:(?:9876|109(?:09|11))\b"
    r"|^\[\d{4}-\w{3}-\d\d [\d:.]+\]\(\w+\):"
    r"|(?-i:\b[A-Z]\w*?[A-Z][a-z]\w*(?:-\w+)*\]? - )",
    re.IGNORECASE | re.MULTILINE,
)
_REASON = re.compile(
    r"\w+(?:Exception|Error): |\bCaused by|nested exception is |\berr: |CODE: |[Cc]ode: (?=\d+, remark)"
    r"|\b\w*[Ee]rr(?:or)?=\"?|\bmsg=\"|\"(?:msg|message|err|error)\": *\""
)
_NAME = re.compile(r"\b(?!MQ|Remoting|Illegal|Runtime)\w+(?:Exception|Error)\b")
_SILENT = re.compile(rf"{_TOLD['spoken']['SILENT']}|\w*: null$")
"""Exceptions whose words say nothing of the cause: their place does."""
TROUBLED = re.compile(TROUBLE)
_BEFORE = re.compile(r"^.*?\b(?:WARN(?:ING)?|ERROR|FATAL|SEVERE|error|warn(?:ing)?)\b[^-:]{0,60}(?:-+ | : |: |:msg: ?)")
_CLASS = re.compile(r"\b(?:[a-z][\w-]*\.){2,}[A-Z][\w$]*(?:[.#]\w+)?")
_STATUS = re.compile(r"\b(?:[A-Z][a-z]+){2,}(?=:|Exception\b)")
"""`TopicNotFound: …`, as clients of 5.x name what a server answered."""
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NESTED, _SAYS = 3, 240
_VALUES = re.compile(r"\[[^\[\]]*\]|\{[^{}]*\}|<[^<>]*>|\"[^\"]*\"|(?:\S*[/\\]){2,}\S*")


def in_words(text: str, before: str, trace: str) -> str | None:
    """Return the cause by the line's words, else by the RocketMQ package in the stack trace, else by the logging
    thread. A line of another program gives only a cause that any program can have."""
    if not is_of_trouble(text):
        return None
    cause = _spoken(text, trace)
    is_told = cause in ANYBODYS or (cause and is_ours(f"{before}\n{text}\n{trace}"))
    return cause if is_told else None


def is_of_trouble(text: str) -> bool:
    """Whether a line has words of trouble, and is neither a frame of a stack nor of a level below a warning."""
    if _FRAME.match(text) or _CALM_LEVEL.search(text) or not TROUBLED.search(text):
        return False
    level = None if _REASON.search(text) else _LEVEL.search(text[:_HEAD])
    return level is None or not any(level.groups())


def is_ours(around: str) -> bool:
    """Whether the text, a log line with its neighbouring lines, mentions RocketMQ."""
    return _OURS.search(around) is not None


def _spoken(text: str, trace: str) -> str | None:
    lines = trace.splitlines()
    if any(_REASON.search(line) and in_words(line, text, "\n".join(lines[at:])) for at, line in enumerate(lines, 1)):
        return None
    *_, says = _REASON.split(text)
    if says == text:
        says = _CLASS.sub("", _BEFORE.sub("", text))
    else:
        names = _NAME.findall(text)
        says = f"{names[-1] if names else ''}: {says}"
    for _ in range(_NESTED):
        says = _VALUES.sub("", says)
    says = says[:_SAYS]
    readings = () if _SILENT.match(says) else (says, _STATUS.sub(lambda name: _CAMEL.sub(" ", name[0]), says))
    told = (cause for spoken in readings for cause, pattern in [*_CODES, *_WORDS] if pattern.search(spoken))
    return next(told, next((cause for cause, pattern in _PLACES if pattern.search(f"{text}\n{trace}")), None))

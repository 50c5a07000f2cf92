"""How the lines of RocketMQ's programs begin that tell of no registration, connection or route, by their sources.

    python -m tests.chaos.logs.shapes.openings REPOSITORY...

writes the second part of chaos/logs/shapes/openings.txt from git repositories of rocketmq, dledger, rocketmq-client-cpp
and rocketmq-client-go: of each call of a logger in each tag the text up to its first value, in few words. What a shape
reads is left out.
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from nemesrv.chaos.logs.shapes import GO, OPENINGS, SHAPES, _begins, _shape_of

CALLS = {
    ".java": re.compile(r"\b\w*(?:log|Log|LOG|LOGGER)(?:ger)?\s*\.\s*(?:trace|debug|info|warn|error)\s*\("),
    ".cpp": re.compile(r"\bLOG_(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)(?:_NEW)?\s*\("),
    ".go": re.compile(r"\brlog\.(?:Debug|Info|Warning|Error|Fatal)\s*\("),
}
NOT_READ = ("example", "test", "tools", "openmessaging", "dev", "benchmark", "demos")
SHORT, LONG = 4, 40
"""Of how many letters the beginnings of shapes are with which no opening may be confused."""
FROM_SOURCES = "# From their sources (tests/chaos/logs/shapes/openings.py):\n"
VALUE = "\0"
_VALUES = re.compile(r"\{[^{}]*\}|%[-\d.*lhz]*[a-zA-Z@]|\0|\$\{[^}]*\}")
WORDS, LETTERS = 3, 10
"""An opening has no more words, and of one word no fewer letters."""
FILLS = ("a-1", "10.0.0.1:10911", "3", "OK", "QueueData [x=1]", "[10.0.0.1:9876]", "DataVersion[x=1]")


def argument(source: str, at: int) -> str:
    """The text that a call says first: its strings joined, \\0 for each value between them."""
    said, depth = "", 0
    while at < len(source):
        sign = source[at]
        if sign == '"':
            end = at + 1
            while source[end] != '"':
                end += 2 if source[end] == "\\" else 1
            if depth == 0 or said.endswith(VALUE):  # String.format("…", …) says it inside
                said = said.rstrip(VALUE) if depth else said
                said += source[at + 1 : end]
            at = end
        elif sign in "([{":
            depth += 1
        elif sign in ")]}" or (sign == "," and depth == 0):
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and sign not in " \t\n\r+" and not said.endswith(VALUE):
            said += VALUE
        at += 1
    return said.replace('\\"', '"').replace("\\\\", "\\").partition("\\n")[0]


def texts_of(repository: str) -> set[str]:
    """All that its programs say, in any tag."""
    git = ["git", "-C", repository]
    tags = [*subprocess.run([*git, "tag"], text=True, capture_output=True, check=True).stdout.split(), "HEAD"]
    blobs = {}
    for tag in tags:
        listed = subprocess.run([*git, "ls-tree", "-r", tag], text=True, capture_output=True, check=True).stdout
        for line in listed.splitlines():
            about, path = line.split("\t")
            if Path(path).suffix in CALLS and not {*NOT_READ} & {*path.split("/")} and "_test." not in path:
                blobs[about.split()[2]] = path
    told = set()
    with subprocess.Popen([*git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        for blob, path in blobs.items():
            process.stdin.write(f"{blob}\n".encode())
            process.stdin.flush()
            size = int(process.stdout.readline().split()[2])
            source = process.stdout.read(size + 1).decode("utf-8", "replace")
            source = re.sub(r"^\s*//.*$", "", source, flags=re.M)
            told |= {argument(source, found.end()) for found in CALLS[Path(path).suffix].finditer(source)}
        process.stdin.close()
    return told


def openings_of(texts: Iterable[str]) -> list[str]:
    """One for all texts that begin alike; `*` stands for a name at the beginning."""
    begins = {begin for shape in SHAPES for begin, _ in _begins(shape.text, LONG) if len(begin) >= SHORT}
    found = set()
    for text in sorted(texts):
        if text in GO or any(_shape_of(_VALUES.sub(lambda _, fill=fill: fill, text)) for fill in FILLS):
            continue
        opening = _opening(text)
        if len(re.findall(r"[A-Za-z]+", opening)) < 2 and len(opening) < LETTERS:
            continue
        if not any(opening.startswith(known) or known.startswith(opening) for known in begins):
            found.add(opening)
    return [*_shortest(sorted(found))]


def _opening(text: str) -> str:
    first, *others = _VALUES.split(text.lstrip())
    star = "" if first.strip() else "* "
    words = (first if first.strip() else (others or [""])[0]).strip().split(" ")
    return star + " ".join(words[:WORDS]).rstrip("[(<:=,")


def _shortest(ordered: Sequence[str]) -> Iterator[str]:
    last = "\0"
    for one in ordered:
        if not one.startswith(last):
            last = one
            yield one


if __name__ == "__main__":
    every = {text for repository in sys.argv[1:] for text in texts_of(repository)}
    written = openings_of(every)
    by_hand, mark, _ = OPENINGS.read_text(encoding="utf-8").partition(FROM_SOURCES)
    OPENINGS.write_text(by_hand + mark + "".join(f"{one}\n" for one in written), encoding="utf-8")
    print(f"{len(every):,} texts, {len(written):,} openings")

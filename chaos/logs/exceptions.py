"""What the lines behind a record say of the exception that it is about. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

_EXCEPTION = re.compile(
    r"(?:Caused by: )?(?P<exception>(?:[a-z_]\w*\.)+(?P<name>\w*(?:Exception|Error)))(?:: (?P<said>.*))?"
)
_CODE = re.compile(r"CODE: ?(?P<code>-?\d+) +DESC: ?(?P<remark>.*?)(?: +BROKER: ?(?P<broker_address>\S+))?$", re.S)
_TOPIC = re.compile(r"(?:for the topic|route info of this topic|[Tt]opic)(?:, ?|: ?|\[)(?P<topic>[\w%|.-]+)")


def exception_of(lines: Sequence[str]) -> dict[str, str] | None:
    """The exception that a record's next lines tell of: RocketMQ's own where there is one, else the first."""
    chosen: re.Match[str] | None = None
    at = 0
    for number, line in enumerate(lines):
        if line[0] in " \t" or (found := _EXCEPTION.fullmatch(line)) is None:
            continue
        if chosen is None or ("rocketmq" in found["exception"] and "rocketmq" not in chosen["exception"]):
            chosen, at = found, number
    if chosen is None:
        return None
    said = chosen["said"] or ""
    fields = {"class": chosen["exception"], "exception": chosen["name"], "said": said}
    told = said
    for line in lines[at + 1 :]:  # a remark of several lines goes on
        if line[0] in " \t" or line.startswith(("See ", "For more", "Caused by")):
            break
        told += f" {line}"
    if (code := _CODE.search(told)) is not None:
        fields |= {key: value for key, value in code.groupdict().items() if value}
    if (topic := _TOPIC.search(told)) is not None:
        fields["topic"] = topic["topic"].rstrip(".,")
    return fields

"""Measured figures as JSON: down to `levels` deep a line an entry, each deeper value on one line."""

import json
from typing import Any


def rows_of_json(value: Any, levels: int) -> str:
    return "\n".join(_lines(value, levels)) + "\n"


def _lines(value: Any, levels: int) -> list[str]:
    if not levels or not value or not isinstance(value, dict | list):
        return [json.dumps(value, ensure_ascii=False)]
    named = isinstance(value, dict)
    entries = value.items() if isinstance(value, dict) else (("", each) for each in value)
    lines = ["{" if named else "["]
    for number, (key, each) in enumerate(entries, 1):
        first, *more = _lines(each, levels - 1)
        lines.append(f"{json.dumps(key, ensure_ascii=False)}: {first}" if named else first)
        lines += more
        lines[-1] += "," if number < len(value) else ""
    return [lines[0], *(f" {line}" for line in lines[1:]), "}" if named else "]"]

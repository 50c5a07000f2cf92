"""`nemesrv doctor LOGS…`: reads logs, finds why clients found no route, tells it.

Exit status: 0 no log tells of a look-up that failed, nor of anything wrong with a route; 1 a certain cause; 3 likely
ones only, or none for a look-up that failed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...chaos.logs.files import LogError
from ..logs_to_rows.gather import plain_logs
from ..logs_to_rows.reconstruct import reconstruct
from .log_causes import causes_in
from .log_words import LoggedCause, spoken
from .told import Told, told_by

HEALTHY, CERTAIN, LIKELY = 0, 1, 3
FAILURES_SHOWN = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Diagnosis:
    told: Told
    causes: Sequence[LoggedCause]
    unknown: Sequence[str]
    """Failures that these logs do not explain."""
    notes: Sequence[str]
    """What could not be read."""
    topic: str | None

    @property
    def status(self) -> int:
        if any(cause.certain for cause in self.causes):
            return CERTAIN
        return LIKELY if self.causes or self.unknown else HEALTHY


def diagnosed(
    places: Sequence[str | Path],
    topic: str | None = None,
    *,
    zones: Mapping[str, int] | None = None,
    offsets: Mapping[str, float] | None = None,
) -> Diagnosis:
    """What these logs say; zones and offsets as of `import`. LogError where no log is, and where none is RocketMQ's."""
    lines, files, notes = plain_logs(places)
    if not lines:
        said = "; ".join(notes[:3]) or "no line with a time was understood"
        raise LogError(f"nothing to go by in {', '.join(map(str, places))}: {said}")
    found = reconstruct(lines, files, zones=zones, offsets=offsets)
    told = told_by(found)
    causes, unknown = causes_in(told, topic)
    return Diagnosis(told, causes, unknown, [*notes, *found.notes], topic)


def lines_of(one: Diagnosis) -> list[str]:
    """For a person: which look-ups failed, then the causes in their order, then what logs do not show."""
    failures = [each for each in one.told.failures if one.topic in (None, each.topic) or not each.topic]
    lines = [spoken(one.told, each) for each in failures[:FAILURES_SHOWN]]
    if len(failures) > FAILURES_SHOWN:
        lines.append(f"and {len(failures) - FAILURES_SHOWN} more")
    if not failures:
        about = "" if one.topic is None else f" of {one.topic}"
        lines.append(f"no client's log here tells of a look-up{about} that failed")
    for number, cause in enumerate(one.causes, 1):
        sure = "" if cause.certain else "likely: "
        lines += [
            f"{number}. {sure}{cause.sentence}",
            f"   {cause.then}  [{cause.name}]",
            f"   {' '.join(cause.lines)}",
        ]
    lines += [f"not shown by these logs: {said}" for said in one.unknown]
    return [*lines, *(f"note: {note}" for note in one.notes)]


def as_json(one: Diagnosis) -> str:
    """One object: the failures, the causes in order, what is not shown, what was not read."""
    failures = [
        {
            "client": each.client,
            "kind": each.kind,
            "topic": each.topic,
            "name_server": each.name_server,
            "times": each.times,
            "from_ms": each.first.ms,
            "to_ms": each.last.ms,
            "file": each.first.file,
            "line": each.first.line,
        }
        for each in one.told.failures
        if one.topic in (None, each.topic) or not each.topic
    ]
    document = {
        "topic": one.topic,
        "failures": failures,
        "causes": [dataclasses.asdict(cause) for cause in one.causes],
        "not_shown": list(one.unknown),
        "notes": list(one.notes),
    }
    return json.dumps(document, ensure_ascii=False)

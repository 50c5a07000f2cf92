"""Writes verdicts for a CI server, as JUnit XML with one test case per check, and as Markdown. In JUnit XML, an INVALID
check is a failure, an UNKNOWN check an error, and a check with nothing to examine is skipped."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from ..verdict import Validity, Verdict
from .answers import Answers
from .groups import CheckGroup, exercised_line, groups
from .sentences import example_sentence, wrong_sentence
from .terminal import allowed, left_out_line, legend_line, measured

_NONE: Mapping[str, str] = {}
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(
    scenario: str,
    seed: int,
    verdicts: Sequence[Verdict],
    left_out: Mapping[str, str] = _NONE,
    *,
    whole: bool = False,
) -> bytes:
    """Return the JUnit XML document, in UTF-8. The names of suite and class have the seed, so that two seeds are two
    suites. With `whole`, a failure's message is the verdict's `why`, without a count of violations."""
    name_of_suite = f"nemesrv.{scenario}.seed-{seed}"
    suite = ET.Element(
        "testsuite",
        name=name_of_suite,
        tests=str(len(verdicts) + len(left_out)),
        failures=str(sum(v.verdict is Validity.INVALID for v in verdicts)),
        errors=str(sum(v.verdict is Validity.UNKNOWN for v in verdicts)),
        skipped=str(len(left_out)),
    )
    properties = ET.SubElement(suite, "properties")
    ET.SubElement(properties, "property", name="seed", value=str(seed))
    for verdict in verdicts:
        case = ET.SubElement(suite, "testcase", classname=name_of_suite, name=verdict.name)
        detail = _clean(json.dumps(verdict.to_json(), indent=1, default=str, ensure_ascii=False))
        if verdict.verdict is Validity.INVALID:
            of = f"{verdict.examined}" if whole else f"{verdict.violations} of {verdict.examined}"
            said = verdict.why if whole else wrong_sentence(verdict) or verdict.why
            message = f"{said} ({of} examined)"
            ET.SubElement(case, "failure", message=_clean(message), type="INVALID").text = detail
        elif verdict.verdict is Validity.UNKNOWN:
            ET.SubElement(case, "error", message=_clean(verdict.why), type="UNKNOWN").text = detail
        else:
            ET.SubElement(case, "system-out").text = detail
    for name, why in left_out.items():
        case = ET.SubElement(suite, "testcase", classname=name_of_suite, name=name)
        ET.SubElement(case, "skipped", message=_clean(why))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True)


def _clean(text: str) -> str:
    return _NOT_XML.sub("�", text)


INCIDENT = "incident.json"
"""File beside the history of an import."""

SIGN = {Validity.VALID: "✅", Validity.INVALID: "❌", Validity.UNKNOWN: "❔"}


def read_incident(run_dir: Path) -> dict[str, Any] | None:
    """Return incident.json of the run folder; None if the run is no import."""
    return read_document(run_dir / INCIDENT, "episodes")


def read_document(file: Path, key: str) -> dict[str, Any] | None:
    """Return the JSON object in the file; None if the file has no JSON object with a list under this key."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) and isinstance(document.get(key), list) else None


def replay_line(scenario_file: Path | str, seed: int, *, virtual: bool = False) -> str:
    """Return the shell command that repeats a run, or that replays an import."""
    if (folder := Path(scenario_file).parent).joinpath(INCIDENT).is_file():
        return f"nemesrv replay {folder}"
    return f"nemesrv run {scenario_file} --seed {seed}" + (" --clock virtual" if virtual else "")


def summary(told: Answers, verdicts: Sequence[Verdict], replay: str, left_out: Mapping[str, str] = _NONE) -> str:
    """Return the text for a CI job's page (`$GITHUB_STEP_SUMMARY`): the answers, the command that repeats the run, and
    the groups of checks. A group is one line, followed by the group's checks that are not VALID, with examples."""
    lines = [f"### {SIGN[told.verdict]} {cell(told.name)}: {told.verdict}", ""]
    headline = ". ".join(filter(None, (told.outside, told.first)))
    lines += [f"**{cell(headline)}**", ""] if headline else []
    about = f"{told.about[:1].upper()}{told.about[1:]}." if told.about else ""
    lines += [" ".join(filter(None, (cell(about), cell(told.injected), f"Repeat it: `{replay}`"))), ""]
    said = (*told.rest, left_out_line(left_out), exercised_line(verdicts))
    lines += [f"- {cell(line)}" for line in said if line]
    found = groups(verdicts)
    lines += ["", "| group | verdict | checks |", "|---|---|---|"] if found else []
    lines += [f"| {group.label} | {SIGN[group.verdict]} {group.verdict} | {group.counted} |" for group in found]
    for group in found:
        lines += _wrong(group)
    return "\n".join(lines) + "\n\n"


def _wrong(group: CheckGroup) -> list[str]:
    """Return the group's checks that are not VALID, the letters that they use, and their examples."""
    if not group.told:
        return ["", cell(f"{group.label}: {group.again_line}")] if group.again else []
    lines = ["", "| check | verdict | examined | violations | measured | allowed |", "|---|---|---:|---:|---|---|"]
    for v in group.told:
        cells = (f"`{v.name}`", f"{SIGN[v.verdict]} {v.verdict}", f"{v.examined:,}", f"{v.violations:,}")
        lines.append(f"| {' | '.join(map(cell, (*cells, measured(v), allowed(v))))} |")
    lines += ["", cell(legend)] if (legend := legend_line(group.told)) else []
    for v in group.told:
        why = v.why if v.verdict is Validity.UNKNOWN or not wrong_sentence(v) else wrong_sentence(v)
        lines += ["", f"**`{v.name}`** {cell(why)}"]
        lines += [f"- {cell(example_sentence(example, v.timeline_ms))}" for example in v.examples]
    return [*lines, "", cell(group.again_line)] if group.again else lines


def cell(text: str) -> str:
    """Return `text` in one line that cannot end its cell or begin a tag."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def append(file: Path, text: str) -> None:
    """Append `text` to `file`, which several steps of a CI job share. Raises OSError if that fails."""
    with file.open("a", encoding="utf-8") as out:
        out.write(text)

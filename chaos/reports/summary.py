"""A run's verdicts as Markdown, for the page of a CI job (GitHub's `$GITHUB_STEP_SUMMARY`) or a merge request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..verdict import Validity, Verdict, worst
from .sentences import example_sentence
from .table import allowed, left_out_line, measured

INCIDENT = "incident.json"
"""Beside the history of an import."""
_NONE: Mapping[str, str] = {}
_SIGN = {Validity.VALID: "✅", Validity.INVALID: "❌", Validity.UNKNOWN: "❔"}


def replay_line(scenario_file: Path | str, seed: int, *, virtual: bool = False) -> str:
    """The command that repeats a run, or an import's incident."""
    if (folder := Path(scenario_file).parent).joinpath(INCIDENT).is_file():
        return f"nemesrv replay {folder}"
    return f"nemesrv run {scenario_file} --seed {seed}" + (" --clock virtual" if virtual else "")


def summary(
    scenario: str,
    seed: int,
    profile: str,
    verdicts: Sequence[Verdict],
    replay: str,
    left_out: Mapping[str, str] = _NONE,
) -> str:
    """A heading, a table with one row a check, the first counterexamples, and how to repeat the run."""
    verdict = worst(v.verdict for v in verdicts)
    lines = [
        f"### {_SIGN[verdict]} {scenario}: {verdict}",
        "",
        f"Seed {seed}, profile {profile}. Repeat it: `{replay}`",
        "",
        "| check | verdict | examined | violations | measured | allowed |",
        "|---|---|---:|---:|---|---|",
    ]
    for v in verdicts:
        cells = (f"`{v.name}`", f"{_SIGN[v.verdict]} {v.verdict}", f"{v.examined:,}", f"{v.violations:,}")
        lines.append(f"| {' | '.join(map(_cell, (*cells, measured(v), allowed(v))))} |")
    if left_out:
        lines += ["", _cell(left_out_line(left_out))]
    for v in verdicts:
        if v.verdict is not Validity.VALID:
            lines += ["", f"**`{v.name}`** {_cell(v.why)}"]
            lines += [f"- {_cell(example_sentence(example, v.timeline_ms))}" for example in v.examples]
    return "\n".join(lines) + "\n\n"


def _cell(text: str) -> str:
    """`text` in one line that cannot end its cell, nor begin a tag."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def append(file: Path, text: str) -> None:
    """Add `text` to the end of `file`, which several steps of a job share. OSError."""
    with file.open("a", encoding="utf-8") as out:
        out.write(text)

"""Reports the result of `nemesrv conform` on the terminal, in files of the run folder, and as exit status.

conform.json     every rule {"rule", "measured", "count", "expected", "verdict", …}, what was left out, and why
verdicts.json    as in any run folder: one check per rule
junit.xml        one test case per rule
logs/            each process's output, the warnings of its servers, and its observations, as the evidence for
                 every value: refused.seen.jsonl {"seen": "Asked", "after_ms": 5012.3, "front": "ns-1", …}, times in
                 milliseconds since the process began, bodies as their length. After the first ALIKE_MAX observations of
                 a kind in a step, all others share one line, with `times` and `until_ms`
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..chaos.experiment.run_folder import RunFolder
from ..chaos.fronts.behaviour import Behaviour
from ..chaos.fronts.observed import Asked, Behaved, Happened, Observation
from ..chaos.judging import EXIT_STATUS
from ..chaos.oracle.intervals import grouped
from ..chaos.reports.ci import SIGN, cell, junit
from ..chaos.reports.terminal import STYLE, print_fitting, standard_output
from ..chaos.verdict import Example, Validity, Verdict, worst
from ..remoting.node.network import Address
from .rule_verdicts import RuleVerdict
from .rules import RULES, LeftOut, Measured
from .rules.rule import plain, said
from .situations import Watched
from .stand import ConformPlan
from .trial import Trial

PIPE_COLUMNS = 120
MEASURED = "measured"
"""Instead of a verdict where there was no profile."""
PROGRAM = "program"
"""The column of rules that judge a program with several clients as a whole."""
NAME = "conform"
ALIKE_MAX = 1_000
"""A client at work has fewer (700 sends within 180 s); one that redials without a pause has 275,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformResult:
    """The result for one client, compared with a profile or only measured."""

    plan: ConformPlan
    trial: Trial
    rules: Sequence[RuleVerdict]
    profile: str | None
    """None: there is no profile."""
    expected: Sequence[str] = ()
    """The rules that the profile says."""

    @property
    def decided(self) -> list[RuleVerdict]:
        return [each for each in self.rules if not isinstance(each.measured, LeftOut)]

    @property
    def measured(self) -> list[tuple[str, Measured]]:
        return [(each.rule.name, each.measured) for each in self.decided]

    @property
    def left_out(self) -> dict[str, str]:
        """Why each rule was left out: the program does not do what the rule measures, or the situation was not run."""
        return {each.rule.name: each.measured.why for each in self.rules if isinstance(each.measured, LeftOut)}

    @property
    def verdict(self) -> Validity | None:
        """UNKNOWN if the program could not be examined, or no rule was measured, or the profile expects nothing of the
        measured rules. Else the worst verdict of the rules; None if no rule has a verdict."""
        verdicts = [each.verdict for each in self.decided if each.verdict is not None]
        if self.trial.hindered or not self.decided or (self.profile is not None and not verdicts):
            return Validity.UNKNOWN
        return worst(verdicts) if verdicts else None

    @property
    def said(self) -> str:
        """The client's verdict as a word; `measured` without a profile."""
        return MEASURED if self.verdict is None else str(self.verdict)

    @property
    def exit_status(self) -> int:
        """The exit status of `nemesrv conform`: 0 for VALID, 1 for INVALID, 3 for UNKNOWN; 0 if the verdict is None."""
        return 0 if self.verdict is None else EXIT_STATUS[self.verdict]

    @property
    def client(self) -> str:
        """The program, with the language and version that its requests name."""
        cmd, asked = Path(self.plan.program.words[0]).name, self._asked
        return cmd if asked is None else f"{cmd} ({asked.language or 'no language'}, MQVersion {asked.version})"

    @property
    def _asked(self) -> Asked | None:
        return next((seen for each in self.trial.watched for seen in each.of(Asked)), None)

    def to_json(self) -> dict[str, Any]:
        asked = self._asked
        return {
            "client": self.client,
            "profile": self.profile,
            "command": list(self.plan.program.words),
            "verdict": self.said,
            "rules": [each.to_json() for each in self.decided],
            "left_out": self.left_out,
            "hindered": self.trial.hindered,
            "notes": list(self.trial.notes),
            "versions": {
                "nemesrv": version("nemesrv"),
                "python": python_version(),
                "client_language": None if asked is None else asked.language,
                "client_version": None if asked is None else asked.version,
            },
            "seed": self.plan.seed,
            "starts": self.plan.starts,
            "repeats": self.plan.repeats,
            "name_servers": self.plan.name_servers,
            "brokers": self.plan.brokers,
            "profile_rocketmq": str(self.plan.profile),
            "dials_unseen": next((each.dials_unseen for each in self.trial.watched if each.dials_unseen), None),
            "late_ms": round(max((each.late_ms for each in self.trial.watched), default=0.0), 1),
        }


def hindered(rules: Sequence[RuleVerdict], why: str) -> list[RuleVerdict]:
    """Return a result in which every rule is UNKNOWN, because nothing could be examined."""
    return [replace(each, measured=Measured.undecided(why), verdict=Validity.UNKNOWN) for each in rules]


# --- the run folder ---------------------------------------------------------------------------------------------------


def write(result: ConformResult, folder: RunFolder) -> None:
    """Write conform.json, verdicts.json, junit.xml, and each process's observations beside the process's output."""
    document = result.to_json()
    (folder.path / "conform.json").write_text(_json(document), encoding="utf-8")
    verdicts = _verdicts(result)
    told = {
        "scenario": NAME,
        "seed": result.plan.seed,
        "verdict": str(result.verdict or Validity.VALID),
        "checks": [each.to_json() for each in verdicts],
        "left_out": result.left_out,
    }
    folder.verdicts_file.write_text(_json(told), encoding="utf-8")
    folder.junit_file.write_bytes(junit(NAME, result.plan.seed, verdicts, result.left_out, whole=True))
    for each in result.trial.watched:
        (folder.logs / f"{each.log}.seen.jsonl").write_text("".join(lines(each)), encoding="utf-8")


def _json(document: object) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, default=str) + "\n"


def _verdicts(result: ConformResult) -> list[Verdict]:
    """Return one check per rule that has a profile's value; the other rules together are one check, `measured`."""
    held = [_verdict(each, result.profile) for each in result.decided if each.verdict is not None]
    only = [each for each in result.decided if each.verdict is None]
    if not only:
        return held
    values = {each.rule.name: each.measured.value for each in only}
    return [*held, Verdict(name=MEASURED, verdict=Validity.VALID, examined=len(only), measured=values)]


def _verdict(found: RuleVerdict, profile: str | None) -> Verdict:
    measured = found.measured
    assert found.verdict is not None
    wrong = found.verdict is Validity.INVALID
    expected = None if found.expected is None else plain(found.expected)
    details = {"value": measured.value, "unit": found.rule.unit, "p": measured.p, "power": measured.power}
    why = measured.why
    if found.verdict is not Validity.VALID and None not in (measured.value, expected):
        both = f"measured: {measured_text(found)}; {profile} expects: {expected_text(found)}"
        why = "; ".join(filter(None, (why, both)))
    return Verdict(
        name=found.rule.name,
        verdict=found.verdict,
        examined=measured.count,
        violations=int(wrong),
        measured={name: value for name, value in details.items() if value not in (None, "")},
        allowed={} if expected is None else {"value": expected, "profile": profile},
        examples=tuple(Example(more=dict(example)) for example in measured.examples),
        why=why,
    )


def lines(watched: Watched) -> Iterable[str]:
    """Return the lines of a process's observations file: how the process ended, then each observation. Similar
    observations after the first ALIKE_MAX share one line."""
    head = {
        "situation": watched.situation,
        "process": watched.process,
        "at_work_ms": None if watched.at_work_ms is None else round(watched.at_work_ms - watched.began_ms, 1),
        "stopping_ms": round(watched.stopping_ms - watched.began_ms, 1),
        "ended": watched.ended,
        "late_ms": round(watched.late_ms, 1),
    }
    yield json.dumps(head, ensure_ascii=False) + "\n"
    for line in _told(watched):
        yield json.dumps(line, ensure_ascii=False) + "\n"


def _told(watched: Watched) -> Iterator[dict[str, Any]]:
    times: Counter[tuple[object, ...]] = Counter()
    more: dict[tuple[object, ...], dict[str, Any]] = {}
    for seen in watched.seen:
        if isinstance(seen, Behaved | Happened):
            yield from more.values()
            times.clear()
            more.clear()
        alike = (type(seen), *(getattr(seen, name, None) for name in _KIND))
        times[alike] += 1
        if times[alike] <= ALIKE_MAX:
            yield _line(seen, watched.began_ms)
            continue
        if alike not in more:
            more[alike] = _line(seen, watched.began_ms)
        until_ms = round(seen.at_ms - watched.began_ms, 1)
        more[alike] |= {"times": times[alike] - ALIKE_MAX, "until_ms": until_ms}
    yield from more.values()


_KIND = ("front", "address", "code", "by", "how", "f")


def _line(seen: Observation, began_ms: float) -> dict[str, Any]:
    line: dict[str, Any] = {"seen": type(seen).__name__, "after_ms": round(seen.at_ms - began_ms, 1)}
    for name in type(seen).__annotations__:
        value = getattr(seen, name)
        if name != "at_ms" and value not in (None, b"", {}, False):
            line[name] = _plain(value)
    return line


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return f"{len(value)} B"
    if isinstance(value, Enum | Address | Behaviour):
        return str(value)
    return dict(value) if isinstance(value, Mapping) else value


def summary(result: ConformResult) -> str:
    """Return the text for a CI job's page (`$GITHUB_STEP_SUMMARY`): the client's verdict, and a row per rule that is
    not VALID; the names of the VALID rules are one line."""
    sign = "" if result.verdict is None else f"{SIGN[result.verdict]} "
    against = f" compared with {result.profile}" if result.profile else ""
    lines = [f"### {sign}{cell(result.client + against)}: {result.said}", ""]
    told = [each for each in result.decided if each.verdict is not Validity.VALID]
    if told:
        lines += ["| rule | measured | n | expected | verdict |", "|---|---|---:|---|---|"]
    for each in told:
        cells = (f"`{each.rule.name}`", _with_why(each), f"{each.measured.count:,}", expected_text(each))
        verdict = MEASURED if each.verdict is None else f"{SIGN[each.verdict]} {each.verdict}"
        lines.append(f"| {' | '.join(map(cell, cells))} | {verdict} |")
    kept = [f"`{each.rule.name}`" for each in result.decided if each.verdict is Validity.VALID]
    said_ = (f"{len(kept)} VALID: {', '.join(kept)}." if kept else "", *map(str, _below(result)))
    return "\n".join([*lines, "", *(f"- {cell(line)}" for line in said_ if line)]) + "\n\n"


# --- the terminal -----------------------------------------------------------------------------------------------------


def measured_text(found: RuleVerdict) -> str:
    """Return the measured value in words, `3.0 s (2.9 to 3.1)` or `random (p = 0.42)`, or why the rule is undecided."""
    measured = found.measured
    if isinstance(measured, LeftOut):
        return f"left out: {measured.why}"
    if measured.value is None:
        return measured.why
    value = measured.value
    unit = f" {found.rule.unit}" if found.rule.unit else ""
    text = value if isinstance(value, str) else f"{value:.3g}{unit}"
    more = []
    if measured.interval is not None:
        low, high = (f"{end:.3g}" for end in measured.interval)
        more += [f"{low} to {high}"] if low != high else []
    if measured.p is not None:
        more.append(f"p = {measured.p:.2g}")
    if measured.power is not None:
        more.append(f"power {measured.power:.2g}")
    return f"{text} ({', '.join(more)})" if more else text


def expected_text(found: RuleVerdict) -> str:
    if found.expected is None:
        return ""
    unit = f" {found.rule.unit}" if found.rule.unit and not isinstance(found.expected, str) else ""
    return f"{said(found.expected)}{unit}"


def verdict_text(found: RuleVerdict) -> Text:
    if found.verdict is None:
        return Text(MEASURED, style="dim")
    return Text(str(found.verdict), style=STYLE[found.verdict])


def table(result: ConformResult) -> Table:
    against = f" compared with {result.profile}" if result.profile else ""
    against += f", at servers of RocketMQ {result.plan.profile}"
    nothing = result.profile and not any(found.verdict for found in result.decided)
    said_ = f"{result.said} (the profile expects nothing of these rules)" if nothing else result.said
    rows = Table(title=Text(f"{result.client}{against}: {said_}"), title_justify="left", pad_edge=False)
    rows.add_column("rule", no_wrap=True)
    several = any(found.clients for found in result.decided)
    of = [found.clients or {PROGRAM if several else MEASURED: found} for found in result.decided]
    columns = dict.fromkeys(name for told in of for name in told)
    for name in columns:
        rows.add_column(name)
    rows.add_column("n", justify="right", no_wrap=True)
    rows.add_column("expected")
    rows.add_column("verdict", no_wrap=True)
    for found, told in zip(result.decided, of, strict=True):
        style = "bold" if found.verdict is Validity.INVALID else ""
        measured = [Text(_with_why(told[name]) if name in told else "", style=style) for name in columns]
        expected = Text(expected_text(found))
        rows.add_row(found.rule.name, *measured, f"{found.measured.count:,}", expected, verdict_text(found))
    return rows


_SAY_MORE = ("start", "sticky", "leaves_within_s", "silent_broker_s", "refusing_broker_s", "unreachable_broker_s")
"""Rules whose reason is shown though they are VALID: how small a deviation so many starts or look-ups would have shown,
the time for each way in which a NameServer died, or for how long a broker was seen to be used."""


def _with_why(found: RuleVerdict) -> str:
    text, why = measured_text(found), found.measured.why
    is_plain = found.verdict is Validity.VALID and found.rule.name not in _SAY_MORE
    is_told = isinstance(found.measured, LeftOut) or why in ("", text) or is_plain
    return text if is_told else f"{text}; {why}"


def _below(result: ConformResult) -> list[Text]:
    lines = [Text(note, style="yellow") for note in result.trial.notes]
    if wrong := [each.rule.name for each in result.decided if each.verdict is Validity.INVALID]:
        rules = "rule" if len(wrong) == 1 else "rules"
        lines.append(Text(f"differs from {result.profile} in {len(wrong)} {rules}: {', '.join(wrong)}"))
    if result.left_out:
        by_reason = grouped((why, name) for name, why in result.left_out.items())
        told = "; ".join(f"{', '.join(names)} ({why})" for why, names in by_reason.items())
        lines.append(Text(f"left out: {told}", style="dim"))
    measured = {each.rule.name for each in result.rules}
    if unmeasured := [name for name in result.expected if name not in measured]:
        why = "not measured, because --rules does not name them"
        lines.append(Text(f"rules of {result.profile} that were {why}: {len(unmeasured)}", style="dim"))
    counts = Counter(str(each.verdict or "without an expected value") for each in result.decided)
    said_ = ", ".join(f"{count} {what}" for what, count in counts.items())
    lines.append(Text(f"measured: {len(result.decided)} of the {len(RULES)} rules of conform: {said_}"))
    if result.profile is None:
        lines.append(Text("nothing was compared: --profile NAME or FILE says what is expected (docs/conform.md)"))
    return lines


def show(result: ConformResult, console: Console | None = None) -> None:
    """Print the table of rules and the notes in the terminal's width; a pipe gets the width in COLUMNS, or 120
    columns."""
    console = console or standard_output(PIPE_COLUMNS, highlight=False)
    print_fitting(console, table(result))
    console.print(*_below(result), sep="\n")

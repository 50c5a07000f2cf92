"""What is written from the code itself, into pages of docs/, between `<!-- NAME -->` and `<!-- end NAME -->`.

`python -m tests.generated` writes it anew, a test compares.
"""

import re
import sys
from collections import Counter
from itertools import groupby
from pathlib import Path

from nemesrv.actors.namesrv.config import known_keys
from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.check import Group
from nemesrv.chaos.faults.kinds import FAULTS
from nemesrv.chaos.history.schema import EVENTS, SCHEMA
from nemesrv.chaos.oracle.windows import SYMBOLS
from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.scenarios.defect import Defect
from nemesrv.chaos.scenarios.loading import load, shipped
from nemesrv.chaos.settings.catalogue import CATALOGUE, NOT_OBEYED, SAID_ELSEWHERE, group_of, settings_for
from nemesrv.chaos.settings.setting import CLIENTS, GROUPS, NAME_SERVERS, Setting, Value
from nemesrv.conformance.rules import RULES
from nemesrv.conformance.situations import SITUATIONS
from nemesrv.remoting.node.profile import Profile
from tests.apache_matrix.table import kept
from tests.apache_matrix.table import matrix as apache_matrix
from tests.chaos.deviations import table as edges
from tests.clients_matrix import page as clients
from tests.clients_matrix.upstream import concerns
from tests.drills import page as drills

ROOT = Path(__file__).parents[1]


QUESTIONS = {
    Group.ROUTES: "are the NameServers' routes and answers true?",
    Group.CLIENT_ROUTES: "do clients follow the NameServers' routes?",
    Group.NAME_SERVERS: "which NameServers do clients ask?",
    Group.MESSAGES: "are messages lost, late or out of order?",
    Group.CONSUMING: "who consumes what, how far, how often?",
    Group.SERVICE: "does the cluster answer, and how soon after a fault?",
    Group.TIMERS: "does each timer run at its configured period?",
    Group.BY_HAND: "do an operator's commands take effect?",
    Group.EXERCISED: "did the faults happen, and did the clients work?",
}


def checks() -> str:
    """The table of checks in docs/checks.md, group by group, from their records and the planted defects."""
    lines = ["| check | says | defects |", "|---|---|---:|"]
    found = Counter(name for defect in DEFECTS.values() for name in defect.caught_by)
    for group, question in QUESTIONS.items():
        lines.append(f"| **`{group}`** | **{question}** | |")
        of_group = (one for one in CHECKS.values() if one.group == group)
        lines += [f"| `{one.name}` | {one.says} | {found[one.name]} |" for one in of_group]
    return "\n".join(lines).replace("](docs/", "](")


def faults() -> str:
    """The table of faults in docs/faults.md, from their classes."""
    rows = [f"| `{do}` | {kind.injected} | {kind.dial} | {kind.equals} |" for do, kind in FAULTS.items()]
    head = (
        "| fault | how it is injected | a new connection during the fault gets | what it equals in production |",
        "|---|---|---|---|",
    )
    return "\n".join((*head, *rows))


def legend() -> str:
    """The legend of the symbols in verdicts in docs/checks.md."""
    rows = [f"| {symbol} | {meaning} |" for symbol, meaning in SYMBOLS.items()]
    return "\n".join(["| symbol | stands for |", "|---|---|", *rows])


def rules() -> str:
    """The table of rules in docs/conform.md, from their records."""
    rows = [f"| `{rule.name}` | {rule.says} | {rule.unit or ', '.join(rule.words)} |" for rule in RULES.values()]
    return "\n".join(["| rule | says | value |", "|---|---|---|", *rows])


def situations() -> str:
    """Its table of situations."""
    rows = [f"| `{each.name}` | {each.says} | {each.for_s:g} |" for each in SITUATIONS.values()]
    return "\n".join(["| situation | what happens | seconds |", "|---|---|---:|", *rows])


def worked_incidents() -> str:
    """The table of worked incidents in docs/incidents.md, from their files; that each is so a test runs."""
    rows = []
    for name, path in shipped("incidents").items():
        one = load(path).incident
        assert one is not None
        where = ", ".join(map(_linked, one.upstream))
        by = ", ".join(f"`{check}`" for check in one.found_by)
        rows.append(f"| `{name}` | {where} | {one.reported} | {one.breaks} | {by} | {one.fixed.by} |")
    head = "| incident | upstream | what was reported | what breaks | found by | VALID with |"
    return "\n".join([head, "|---|---|---|---|---|---|", *rows])


def _linked(upstream: str) -> str:
    """`apache/rocketmq#7056` as a link to it, by its number alone; an address as one by its host."""
    repository, number = upstream.partition("#")[::2]
    if not number:
        return f"[{upstream.split('/')[2]}]({upstream})"
    said = f"#{number}" if repository == "apache/rocketmq" else upstream
    return f"[{said}](https://github.com/{repository}/issues/{number})"


def columns() -> str:
    """The columns of a history in docs/history.md."""
    rows = [f"| `{c.name}` | {c.type} | {'yes' if c.nullable else 'no'} | {c.doc} |" for c in SCHEMA]
    return "\n".join(["| column | type | null | meaning |", "|---|---|---|---|", *rows])


def events() -> str:
    """Its events."""
    rows = []
    for event in EVENTS.values():
        filled = ", ".join(f"`{column}`" for column in event.columns) or "–"
        rows.append(f"| `{event.name}` | {event.by} | {filled} | {event.doc} |")
    return "\n".join(["| event | recorded by | columns | meaning |", "|---|---|---|---|", *rows])


def defects() -> str:
    """The planted defects in docs/defects.md, by the checks that find them."""
    lines = ["| defect | what is wrong |", "|---|---|"]
    for finders, found in groupby(sorted(DEFECTS.values(), key=_finders), _finders):
        lines.append(f"| **{', '.join(f'`{check}`' for check in finders)}** | |")
        lines += [f"| `{defect.name}` | {defect.what} |" for defect in found]
    return "\n".join(lines)


def _finders(defect: Defect) -> list[str]:
    return sorted(defect.caught_by)


def settings() -> str:
    """The tables of settings in docs/settings.md, a section for each group of nodes."""
    sections = []
    for group, kinds in GROUPS.items():
        rows = [one for one in CATALOGUE if group_of(one) == kinds]
        title = "producers, consumers and the prober" if kinds == CLIENTS else group.replace("name_s", "NameS")
        usual = Counter(one.upstream for one in rows).most_common(1)[0][0]
        lines = [
            f"## Settings of {title}\n\nRocketMQ has them in {usual}, or in the class of the column `class`.\n",
            "| setting | class | 4.9 | 5.x | allowed | symbol | what it says |",
            "|---|---|---|---|---|---|---|",
            *(_row(one, usual) for one in rows),
        ]
        sections.append("\n".join(lines))
    return "\n\n".join(sections)


def refused_settings() -> str:
    """RocketMQ's settings that a scenario may not set, and why, in docs/settings.md."""
    lines = [f"* `{name}`: {why}" for name, why in sorted(SAID_ELSEWHERE.items())]
    nothing = ", ".join(f"`{name}`" for name in sorted(not_obeyed()))
    return "\n".join([*lines, f"* nodes of nemesrv do nothing with {nothing}"])


def not_obeyed() -> frozenset[str]:
    """Settings that our nodes do nothing with."""
    ours = {one.name for one in CATALOGUE}
    of_name_servers = known_keys(Profile.V5_X) - settings_for(*NAME_SERVERS).keys()
    return (NOT_OBEYED | of_name_servers) - ours - SAID_ELSEWHERE.keys()


def _row(one: Setting, usual: str) -> str:
    defaults = " | ".join(_default(one, profile) for profile in Profile)
    allowed = "" if one.allowed.words == "true or false" else one.allowed.words.removeprefix("a whole number from ")
    upstream = "" if one.upstream == usual else one.upstream
    return f"| `{one.name}` | {upstream} | {defaults} | {allowed} | {one.symbol or ''} | {one.says} |"


def _default(one: Setting, profile: Profile) -> str:
    if profile not in one.profiles:
        return "–"
    return _text(one.default(profile)) + (" (constant)" if profile in one.constant else "")


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


BLOCKS = {
    "docs/apache.md": {"matrix": lambda: apache_matrix(kept())},
    "docs/checks.md": {"checks": checks, "legend": legend},
    "docs/clients.md": {
        "clients": lambda: clients.sources(clients.measured()),
        "results": lambda: clients.results(clients.measured()),
        "upstream": lambda: "\n".join(f"* {each}" for each in concerns(clients.measured())),
    },
    "docs/conform.md": {"situations": situations, "rules": rules},
    "docs/defects.md": {"defects": defects},
    "docs/drills.md": {"drills": lambda: drills.table(drills.measured())},
    "docs/faults.md": {"faults": faults},
    "docs/history.md": {"columns": columns, "events": events},
    "docs/incidents.md": {"worked incidents": worked_incidents},
    "docs/oracle.md": {"edges": edges},
    "docs/settings.md": {"settings": settings, "refused": refused_settings},
}


def filled(file: str) -> str:
    """The file with its generated blocks as they are now."""
    text = (ROOT / file).read_text(encoding="utf-8")
    for name, make in BLOCKS[file].items():
        block = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        assert block.search(text), f"{file} has no block <!-- {name} -->"
        made = make()
        text = block.sub(lambda found, made=made: f"{found[1]}\n{made}\n{found[2]}", text)  # type: ignore[misc]
    return text


def files() -> dict[Path, str]:
    """Every page with generated blocks and what it should be."""
    return {ROOT / file: filled(file) for file in BLOCKS}


def main() -> int:
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

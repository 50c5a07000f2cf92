"""What is written from the code itself: `python -m tests.generated` writes it anew, a test compares.

In docs/apache.md, docs/checks.md, docs/conform.md, docs/faults.md, docs/incidents.md and docs/oracle.md the text
between `<!-- NAME -->` and `<!-- end NAME -->`; docs/clients.md, docs/drills.md, docs/history.md, docs/defects.md and
docs/settings.md as whole files.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.check import Group
from nemesrv.chaos.faults.kinds import FAULTS
from nemesrv.chaos.oracle.windows import SYMBOLS
from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.scenarios.loading import load, shipped
from nemesrv.conformance.rules import RULES
from nemesrv.conformance.situations import SITUATIONS
from tests.apache_matrix.table import kept
from tests.apache_matrix.table import matrix as apache_matrix
from tests.chaos.oracle.window_edges import table as edges
from tests.clients_matrix.page import measured
from tests.clients_matrix.page import render as clients
from tests.drills.page import measured as drills_measured
from tests.drills.page import render as drills
from tests.pages.defects import render as defects
from tests.pages.history import render as history
from tests.pages.settings import render as settings

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
        lines += [f"| `{one.name}` | {_in_docs(one.says)} | {found[one.name]} |" for one in of_group]
    return "\n".join(lines)


def _in_docs(text: str) -> str:
    """The text, with its links to docs/ as a page of docs/ has them."""
    return text.replace("](docs/", "](")


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


BLOCKS = {
    "docs/apache.md": {"matrix": lambda: apache_matrix(kept())},
    "docs/checks.md": {"checks": checks, "legend": legend},
    "docs/conform.md": {"situations": situations, "rules": rules},
    "docs/faults.md": {"faults": faults},
    "docs/incidents.md": {"worked incidents": worked_incidents},
    "docs/oracle.md": {"edges": edges},
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
    """Every generated file and what it should be."""
    return {
        **{ROOT / file: filled(file) for file in BLOCKS},
        ROOT / "docs" / "clients.md": clients(measured()),
        ROOT / "docs" / "drills.md": drills(drills_measured()),
        ROOT / "docs" / "history.md": history(),
        ROOT / "docs" / "defects.md": defects(),
        ROOT / "docs" / "settings.md": settings(),
    }


def main() -> int:
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

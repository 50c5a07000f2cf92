"""One of each kind of thing that people add, as small as can be: by the letter of a recipe in docs/architecture.md.

ADDED has them by the heading of their recipe, file by file. `house` makes a copy of the tree that has them all. There
`python -m tests.recipes` prints, by recipe, each place that must know the new thing, and whether it does.
"""

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
COPIED = (
    *("remoting", "actors", "clients", "chaos", "conformance", "operations", "src", "tests", "docs", "README.md"),
    *("CONTRIBUTING.md", "Makefile", "pyproject.toml", "conftest.py"),
)


class Counted(NamedTuple):
    """Where a page counts the planted defects, or the scenarios that they are in, each of which has a clean twin."""

    page: str
    words: str
    twins: bool = False


NUMBER = r"(\d+)"
COUNTED = (
    Counted("README.md", r"Each of (\d+) planted defects"),
    Counted("README.md", r"(\d+) runs without a defect are clean", twins=True),
    Counted("docs/checks.md", r"each of (\d+) defects is found"),
    Counted("docs/checks.md", r"each of (\d+) twins is clean", twins=True),
)


def how_many(counted: Counted) -> int:
    defects = of("chaos.proof.defects").DEFECTS
    return len({defect.scenario for defect in defects.values()} if counted.twins else defects)


def said(counted: Counted) -> list[str]:
    """What the page says, each time that it does."""
    return re.findall(counted.words, (ROOT / counted.page).read_text(encoding="utf-8"))


class Edit(NamedTuple):
    file: str
    new: str
    old: str = ""
    """What the new text is in place of; empty: the file is new."""


_CHECK = '''"""No NameServer answers a look-up with an error of its own (code 1)."""

from ....remoting.codes import ResponseCode
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Group, Needs, Section, check
from ..findings import Rule, finding, verdict_of
from ..record.control import Control, Row


@check(
    says="no NameServer answers a look-up with an error of its own",
    group=Group.ROUTES,
    section=Section.ROUTES,
    needs=(Needs.WIRE,),
)
def judge(control: Control, world: World) -> Verdict:
    """Examined: answered look-ups. Violations: those answered with code 1."""
    rows = [row for row in control.rows("name_server_call") if row.f == "route" and row.code is not None]
    return verdict_of(
        [_finding(row) for row in rows if row.time_ms < world.end_ms],
        measured={"answers": len(rows)},
        nothing="no look-up was answered",
        noun="look-ups answered with an error",
    )


def _finding(row: Row) -> Finding:
    rule = Rule("a look-up is answered with a route, or code 17")
    wrong = int(row.code == ResponseCode.SYSTEM_ERROR)
    about, at = (row.node, row.name_server or ""), (row.time_ms, row.time_ms)
    return finding(about, "answered with an error", at, rule, wrong=wrong)
'''
_DEFECT = '''@planted(NS_0, "look-ups-fail", caught_by="look_ups_served")
@may_find(f"{_OF_ROUTES} answers_are_true availability")
def name_server_fails_look_ups(server: NameServer) -> None:
    """a NameServer answers every look-up with an error"""
    _with_code(server, ResponseCode.SYSTEM_ERROR)


# -- as before, or twice
'''
_FAULT = """class Thin(Bandwidth):
    do: Literal["thin"] = "thin"
    title = "thin link"
    injection = "toxiproxy.thin"
    injected = "nobody injects it"
    equals = "a thin link"


class Reset(LinkFault):
"""
_FACT = """class Rack(NamedTuple):
    node: str
    from_ms: float
    name: str


def racks_in(rows: Iterable[Mapping[str, Any]]) -> tuple[Rack, ...]:
    told = (row for row in rows if row["event"] == "rack")
    return tuple(Rack(row["source"], row["time_ms"], object_of(row["value"])["rack"]) for row in told)


class Move(NamedTuple):
"""
_SHAPE = """def _beside(expression: str, words: Sequence[str], members: Members) -> Separates:
    _no_words(expression, words)
    return lambda _node, peer: "both" if peer == "ns-0" else None


SHAPES: dict[str, Callable[[str, Sequence[str], Members], Separates]] = {
    "beside": _beside,
"""
_COMMAND = """import click


@click.command()
def gossip() -> None:
    click.echo("nothing was heard")
"""
_THIN = """# A link may be thin.
description: A thin link.
settle_s: 20
checks: [look_ups_served, exercised]
timeline:
  - {at_s: 5, do: thin, links: ["broker-a <-> ns-0"], rate_kb_s: 9}
  - {at_s: 20, do: heal}
"""
_SELF_TEST = """# Look-ups alone.
description: No fault.
steady_s: 40
settle_s: 20
checks: [look_ups_served]
"""


def _one_more(counted: Counted) -> Edit:
    """The page counts one more than it does now."""
    (number,) = said(counted)
    old = counted.words.replace(NUMBER, number)
    return Edit(counted.page, old.replace(number, str(int(number) + 1)), old)


_SETTING = """[brokers.gossipInterval]
class = "BrokerConfig"
allowed = {from = 1, to = 600_000, unit = "ms"}
says = "how often it gossips"

"""

ADDED: Mapping[str, tuple[Edit, ...]] = {
    "A check": (Edit("chaos/checks/routes/look_ups_served.py", _CHECK),),
    "A planted defect": (
        Edit("chaos/proof/defects/answers.py", _DEFECT, "# -- as before, or twice\n"),
        Edit("chaos/scenarios/selftest/look-ups-fail.yaml", _SELF_TEST),
        *map(_one_more, COUNTED),
    ),
    "A scenario": (Edit("chaos/scenarios/thin-link.yaml", _THIN),),
    "A fault": (
        Edit("chaos/faults/link_faults.py", _FAULT, "class Reset(LinkFault):\n"),
        Edit("chaos/faults/link_faults.py", "AnyLinkFault = Thin | ", "AnyLinkFault = "),
        Edit("tests/chaos/faults/test_kinds.py", "    Thin(rate_kb_s=9),\n    Cut(),\n", "    Cut(),\n"),
        Edit("tests/chaos/faults/test_kinds.py", "    Thin,\n    Timeout,\n", "    Timeout,\n"),
    ),
    "An event": (
        Edit(
            "chaos/history/events.toml",
            '[gossip]\ngroup = "control"\nby = "NameServer"\ncolumns = ["value"]\nsays = "heard a topic"\n\n[route]\n',
            "[route]\n",
        ),
        Edit(
            "actors/namesrv/server.py",
            'self._context.record("gossip", value=topic)\n            self._context.record("route"',
            'self._context.record("route"',
        ),
    ),
    "A fact about brokers": (
        Edit(
            "chaos/history/events.toml",
            '[rack]\ngroup = "environment"\nby = "harness"\ncolumns = ["source", "value"]\nsays = "a rack"\n\n[boot]\n',
            "[boot]\n",
        ),
        Edit("chaos/oracle/recorded.py", _FACT, "class Move(NamedTuple):\n"),
        Edit("chaos/oracle/world.py", "    racks: tuple[Rack, ...] = ()\n    resets: tuple[", "    resets: tuple["),
        Edit("chaos/oracle/world.py", "racks=racks_in(picked),\n            resets=resets_in(", "resets=resets_in("),
        Edit(
            "chaos/oracle/world.py", "from .recorded import (\n    Rack,\n    racks_in,\n", "from .recorded import (\n"
        ),
    ),
    "A client profile": (
        Edit("chaos/oracle/profiles/zig.yaml", (ROOT / "chaos/oracle/profiles/go.yaml").read_text(encoding="utf-8")),
        Edit("chaos/scenarios/model.py", 'ClientProfileName = Literal["zig", ', "ClientProfileName = Literal["),
    ),
    "A setting": (
        Edit("chaos/settings/settings.toml", f"{_SETTING}[brokers.forceRegister]", "[brokers.forceRegister]"),
        Edit("actors/broker/config.py", "    gossip_interval: int = 5_000\n    broker_id: int", "    broker_id: int"),
    ),
    "A shape": (
        Edit(
            "chaos/shapes.py",
            _SHAPE,
            "SHAPES: dict[str, Callable[[str, Sequence[str], Members], Separates]] = {\n",
        ),
    ),
    "A command": (
        Edit("chaos/commands/gossip.py", _COMMAND),
        Edit("chaos/__main__.py", "from .commands.gossip import gossip\nfrom .commands.check", "from .commands.check"),
        Edit("chaos/__main__.py", "    gossip,\n    run,\n", "    run,\n"),
        Edit(
            "docs/commands.md",
            "| `nemesrv gossip` | what was heard |\n| `nemesrv museum`",
            "| `nemesrv museum`",
        ),
    ),
}
"""By the heading of the recipe."""


def house(folder: Path) -> None:
    """A copy of the tree with all that is ADDED. AssertionError where a place that a recipe names is not there."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    for recipe, edits in ADDED.items():
        for edit in edits:
            file = folder / edit.file
            text = file.read_text(encoding="utf-8") if edit.old else ""
            assert edit.old in text, f"{recipe}: {edit.file} has no {edit.old!r}"
            assert edit.old or not file.exists(), f"{recipe}: {edit.file} is there already"
            file.write_text(text.replace(edit.old, edit.new, 1) if edit.old else edit.new, encoding="utf-8")


def known() -> dict[str, dict[str, bool | str]]:
    """Recipe → place that must know what was added → whether it does, or why not; of the house in which this runs."""
    found: dict[str, dict[str, bool | str]] = {}
    for recipe, asks in asks_of_recipes().items():
        found[recipe] = {}
        for place, ask in asks.items():
            try:
                found[recipe][place] = bool(ask())
            except Exception as exc:
                found[recipe][place] = f"{type(exc).__name__}: {exc}"
    return found


def asks_of_recipes() -> Mapping[str, Mapping[str, Callable[[], object]]]:
    from nemesrv.chaos.runner import record_virtual
    from nemesrv.chaos.scenarios import loading, model
    from tests import generated
    from tests.chaos.builder import cluster

    @cache
    def run() -> Path:
        folder = Path(tempfile.mkdtemp()) / "run"
        record_virtual(loading.find("thin-link"), 1, folder)
        return folder

    def ran(event: str, **fields: object) -> bool:
        rows = of("chaos.history.rows").read_rows(run())
        return any(row["event"] == event and all(row[key] == value for key, value in fields.items()) for row in rows)

    @cache
    def pages() -> Mapping[Path, str]:
        return generated.files()

    def has(page: str, name: str) -> bool:
        return f"| `{name}` |" in pages()[ROOT / page]

    def counts(counted: Counted) -> bool:
        return said(counted) == [str(how_many(counted))]

    def parsed(**document: object) -> object:
        return loading.parse({"name": "x", "checks": ["exercised"], **document}, file="x.yaml")

    told = cluster()
    told.at(2).event("harness", "rack", source="broker-a", value={"rack": "r1"}).end(60)
    check, defect = "look_ups_served", "name-server-fails-look-ups"
    thin = {"at_s": 1, "do": "thin", "rate_kb_s": 9}
    return {
        "A check": {
            "chaos/checks/__init__.py": lambda: check in of("chaos.checks").CHECKS,
            "chaos/scenarios/model.py": lambda: check in model.CHECK_NAMES,
            "chaos/checks/plain/verdicts.py": lambda: (
                {one.name: one.verdict for one in of("chaos.checks.plain.verdicts").verdicts(run())}[check] == "VALID"
            ),
            "operations/importing/printing.py": lambda: of("operations.importing.printing").needs(check),
            "chaos/reports/html/found.py": lambda: of("chaos.reports.html.found").section_of(check) == "routes",
            "chaos/commands/options.py": lambda: of("chaos.commands.options").check_names(None, None, check),
            "docs/checks.md": lambda: has("docs/checks.md", check),
        },
        "A planted defect": {
            "chaos/proof/defects/__init__.py": lambda: defect in of("chaos.proof.defects").DEFECTS,
            "docs/defects.md": lambda: has("docs/defects.md", defect),
            **{f"{counted.page}: {counted.words}": partial(counts, counted) for counted in COUNTED},
        },
        "A scenario": {
            "chaos/scenarios/loading.py": lambda: "thin-link" in loading.shipped(),
            "chaos/commands/options.py": lambda: of("chaos.commands.options").scenario_names(None, None, "thin"),
            "chaos/explain.py": lambda: of("chaos.explain").explanation(loading.find("thin-link")),
        },
        "A fault": {
            "chaos/faults/kinds.py: a timeline's `do`": lambda: parsed(
                timeline=[{**thin, "links": ["ns-0 <-> broker-a"]}]
            ),
            "chaos/faults/kinds.py: a recorded fault": lambda: (
                of("chaos.faults.kinds").recorded("thin", "toxiproxy.thin", "both", {"rate_kb_s": 9}).do == "thin"
            ),
            "docs/faults.md": lambda: has("docs/faults.md", "thin"),
            "chaos/experiment/virtual/": lambda: ran("fault", fault="thin"),
        },
        "An event": {
            "chaos/history/events.toml": lambda: "gossip" in of("chaos.history.schema").EVENTS,
            "docs/history.md": lambda: has("docs/history.md", "gossip"),
            "chaos/history/recorder.py": lambda: ran("gossip"),
        },
        "A fact about brokers": {
            "chaos/oracle/world.py": lambda: (
                of("chaos.oracle.world").World.of_rows(told.in_order()).racks[0].name == "r1"
            ),
        },
        "A client profile": {
            "chaos/oracle/client_profiles.py": lambda: "zig" in of("chaos.oracle.client_profiles").PROFILES,
            "chaos/scenarios/model.py: `workload`": lambda: parsed(workload={"client_profile": "zig"}),
            "chaos/scenarios/model.py: `nodes`": lambda: parsed(nodes={"producer-0": {"client_profile": "zig"}}),
            "conformance/rule_verdicts.py": lambda: of("conformance.rule_verdicts").profile_of("zig"),
        },
        "A setting": {
            "chaos/settings/catalogue.py": lambda: (
                "gossipInterval" in [one.name for one in of("chaos.settings.catalogue").CATALOGUE]
            ),
            "docs/settings.md": lambda: has("docs/settings.md", "gossipInterval"),
            "chaos/scenarios/: `config`": lambda: parsed(config={"brokers": {"gossipInterval": 9}}),
        },
        "A shape": {"chaos/scenarios/: `links`": lambda: parsed(timeline=[{**thin, "links": ["beside"]}])},
        "A command": {"chaos/__main__.py": lambda: "gossip" in of("chaos.__main__").cli.commands},
    }


def of(module: str) -> Any:
    return import_module(f"nemesrv.{module}")


def main() -> int:
    sys.stdout.write(json.dumps(known()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""One of each kind of thing that people add, as small as can be: by the letter of a recipe in docs/architecture.md.

recipes.yaml has them by the heading of their recipe. `house` makes a copy of the tree that has them all. There
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

import yaml

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


def _one_more(counted: Counted) -> Edit:
    """The page counts one more than it does now."""
    (number,) = said(counted)
    old = counted.words.replace(NUMBER, number)
    return Edit(counted.page, old.replace(number, str(int(number) + 1)), old)


def _edit(file: str, *, add: str = "", before: str = "", behind: str = "", like: str = "") -> Edit:
    """As recipes.yaml says it."""
    added = add or (ROOT / like).read_text(encoding="utf-8")
    return Edit(file, f"{behind}{added}{before}", behind or before)


_SAID = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
ADDED: Mapping[str, list[Edit]] = {recipe: [_edit(**one) for one in edits] for recipe, edits in _SAID.items()}
ADDED["A planted defect"].extend(map(_one_more, COUNTED))
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
            )
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

"""What README says can be done, can be done; what it links to is there; and it stays short.

The commands of its `sh` blocks run in tests/test_tutorial.py.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.faults import kinds
from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import CHECK_NAMES
from nemesrv.conformance.rules import RULES
from tests.generated import files

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCENARIOS = (DOCS / "scenarios.md").read_text(encoding="utf-8")
COMMANDS = (DOCS / "commands.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("**/*.md"))]


@pytest.mark.parametrize(("page", "lines"), [("README.md", 150), ("CONTRIBUTING.md", 120)])
def test_what_a_stranger_reads_first_is_short(page: str, lines: int) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= lines


def test_the_scenario_that_says_what_a_scenario_is_is_one() -> None:
    block = re.findall(r"```yaml\n(.*?)```", SCENARIOS, re.DOTALL)[0]
    scenario = parse(yaml.safe_load(block), file="mine.yaml")
    assert scenario.name == "mine"
    assert [action.do for action in scenario.timeline] == ["black_hole", "heal"]


def test_every_do_is_named_with_its_numbers() -> None:
    (words,) = re.findall(r"`do` is one of(.*?)\n\nA link is", SCENARIOS, re.DOTALL)
    named = re.findall(r"`(\w+)`", words)
    numbers = [number for kind in kinds.FAULTS.values() for number in kind.parameters()]
    assert set(named) == {
        *(*kinds.ACTIONS, *numbers, "links", "nodes", "faults", "name"),
        *("stream", "upstream", "downstream", "both"),
    }


def test_every_command_stands_in_the_page_of_commands_and_every_one_there_exists() -> None:
    named = set(re.findall(r"`nemesrv ([a-z]+)", COMMANDS))
    assert named == set(cli.commands)
    for name in named:
        assert CliRunner().invoke(cli, [name, "--help"]).exit_code == 0


def test_the_program_takes_every_command_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(DOCS)
    (tmp_path / "incident").mkdir()
    blocks = re.findall(r"^```(\w*)[^\n]*\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    lines = re.findall(r"^nemesrv (.*)$", "\n".join(text for kind, text in blocks if kind in ("", "sh")), re.MULTILINE)
    lines += [line for line in re.findall(r"`nemesrv ([^`]+ [^`]+)`", README) if "SCENARIO" not in line]
    for line in lines:
        name, *words = shlex.split(line.partition("||")[0], comments=True)
        cli.commands[name].make_context(name, words)
    assert len(lines) >= 12


def test_every_make_target_that_a_page_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")):
        for target in set(re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page.name}: {target}"


def test_the_page_of_checks_names_every_check_once() -> None:
    text = (DOCS / "checks.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"<!-- checks -->(.*?)<!-- end checks -->", text, re.DOTALL)
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == sorted(CHECK_NAMES)


def test_the_readme_counts_defects_and_rules_as_they_are() -> None:
    assert re.findall(r"Each of (\d+) planted defects", README) == [str(len(DEFECTS))]
    assert re.findall(r"(\d+) rules", README) == [str(len(RULES))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "code", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_every_page_of_docs_is_listed_by_a_question() -> None:
    listed = (DOCS / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in DOCS.glob("*.md")} - {"README.md"}
    assert {page for page in pages if f"({page})" not in listed} == set()


def test_what_is_written_from_the_code_is_what_the_code_says() -> None:
    for path, text in files().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is old: make docs"

"""What README says can be done, can be done; what it links to is there; and it stays short.

Which test runs which of its commands: tests/test_tutorial.py.
"""

import importlib.util
import itertools
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.faults import kinds
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import CHECK_NAMES
from nemesrv.conformance.rules import RULES
from tests.generated import files
from tests.recipes import COUNTED, NUMBER, Counted, how_many, said

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCENARIOS = (DOCS / "scenarios.md").read_text(encoding="utf-8")
COMMANDS = (DOCS / "commands.md").read_text(encoding="utf-8")
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *sorted(DOCS.glob("**/*.md"))]


@pytest.mark.parametrize(("page", "lines"), [("README.md", 150), ("CONTRIBUTING.md", 120)])
def test_what_a_stranger_reads_first_is_short(page: str, lines: int) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= lines


def test_the_scenario_that_says_what_a_scenario_is_is_one() -> None:
    name, block = re.findall(r"```yaml (\S+)\n(.*?)```", SCENARIOS, re.DOTALL)[0]
    scenario = parse(yaml.safe_load(block), file=name)
    assert scenario.name == "lost-broker"
    assert [action.do for action in scenario.timeline] == ["black_hole", "heal"]


@pytest.mark.parametrize("block", re.findall(r"```yaml\n(timeline.*?|zones.*?)```", SCENARIOS, re.DOTALL))
def test_a_part_of_a_scenario_is_right_in_a_scenario_of_three_and_three(block: str) -> None:
    part = yaml.safe_load(block)
    rest = {"description": "A part.", "cluster": {"name_servers": 3, "brokers": 3}, "checks": ["routes_are_true"]}
    scenario = parse({**rest, **part}, file="part.yaml")
    assert [action.do for action in scenario.timeline] == [entry["do"] for entry in part["timeline"]]


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


_COMMAND = re.compile(r"(nemesrv|(?:\.venv/bin/)?python -m) (.+)")
_STANDS_FOR = {"…": "127.0.0.1:9876", "host:port;host:port": "127.0.0.1:9876", "ADDRESS": "auto", "N": "1"}
"""What a page writes for a value of the reader's, and a value that the program takes."""


def commands(page: Path) -> tuple[list[str], list[str]]:
    """The commands of the page's blocks, whole, and those that its prose names, maybe without their arguments."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w*[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    whole = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    prose = re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    named = [" ".join(each.split()) for each in prose]
    return [line for line in whole if _COMMAND.match(line)], [line for line in named if _COMMAND.match(line)]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_there_is_what_every_command_names(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`nemesrv` takes its options; the module of `python -m` is there, and knows them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(DOCS)
    (tmp_path / "incident").mkdir()
    whole, named = commands(page)
    for line in (*whole, *named):
        program, rest = re.fullmatch(_COMMAND, line).groups()  # type: ignore[union-attr]
        name, *words = _words(rest)
        if program != "nemesrv":
            _is_a_module_with(name, words, line)
        elif name != "COMMAND":
            try:
                cli.commands[name].make_context(name, [_STANDS_FOR.get(word, word) for word in words])
            except (click.MissingParameter, click.BadOptionUsage):
                assert line in named, line


def _words(text: str) -> list[str]:
    """The words of the first command, without the brackets around what may be left out."""
    shell = shlex.shlex(text, posix=True, punctuation_chars=True)
    shell.whitespace_split = True
    words = itertools.takewhile(lambda word: word not in ("||", "|", ">", "&", ";"), shell)
    return [word.strip("[]") if "--" in word else word for word in words]


def _is_a_module_with(name: str, words: list[str], line: str) -> None:
    spec = importlib.util.find_spec(name)
    assert spec is not None, line
    if name == "pytest":
        assert all((ROOT / word).exists() for word in words if word.startswith("tests/")), line
    elif name != "pip":
        folder = Path(spec.origin or "").parent
        source = [
            file.read_text(encoding="utf-8")
            for file in (folder.glob("*.py") if spec.submodule_search_locations else [Path(spec.origin or "")])
        ]
        for option in re.findall(r"--[a-z-]+", " ".join(words)):
            assert any(option in text for text in source) or option in ("--check",), line


def test_every_make_target_that_a_page_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")):
        for target in set(re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page.name}: {target}"


def test_the_page_of_checks_names_every_check_once() -> None:
    text = (DOCS / "checks.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"<!-- checks -->(.*?)<!-- end checks -->", text, re.DOTALL)
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == sorted(CHECK_NAMES)


@pytest.mark.parametrize("counted", COUNTED, ids=lambda counted: counted.words)
def test_pages_count_planted_defects_and_their_twins_as_they_are(counted: Counted) -> None:
    count = str(how_many(counted))
    right = counted.words.replace(NUMBER, count)
    shown = "once `nemesrv selftest --clock virtual` has shown it"
    assert said(counted) == [count], f"{counted.page}: write {right!r} there, {shown}"


def test_the_readme_counts_rules_as_they_are() -> None:
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

"""What the README says can be done, can be done."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from click.testing import CliRunner

from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.faults import kinds
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import CHECK_NAMES
from tests.generated import files

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_scenario_of_the_readme_is_a_scenario() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    scenario = parse(yaml.safe_load(block), file="mine.yaml")
    assert scenario.name == "mine"
    assert [action.do for action in scenario.timeline] == ["black_hole", "heal"]


def test_every_do_is_named_with_its_numbers() -> None:
    (words,) = re.findall(r"`do` is one of (.*?) A link is", README, re.DOTALL)
    named = re.findall(r"`(\w+)`", words)
    numbers = [number for kind in kinds.FAULTS.values() for number in kind.parameters()]
    assert set(named) == {
        *(*kinds.ACTIONS, *numbers, "links", "nodes", "faults", "name"),
        *("stream", "upstream", "downstream", "both"),
    }


def test_every_command_that_the_readme_names_exists_and_every_command_is_named() -> None:
    named = set(re.findall(r"`(?:\.venv/bin/)?nemesrv ([a-z]+)", README))
    assert named == set(cli.commands)
    for name in named:
        assert CliRunner().invoke(cli, [name, "--help"]).exit_code == 0


def test_every_make_target_that_the_readme_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make ([a-z-]+)`", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_readme_names_every_check_and_the_list_of_planted_defects() -> None:
    for name in (*CHECK_NAMES, "docs/defects.md"):
        assert name in README


def test_links_of_the_readme_lead_to_files() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("http") or (ROOT / target).exists(), target


def test_what_is_written_from_the_code_is_what_the_code_says() -> None:
    for path, text in files().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is old: make docs"

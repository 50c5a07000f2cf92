"""What a recipe of docs/architecture.md names is all that a new thing touches, and all that must know it does."""

import ast
import json
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.commands import __path__ as commands
from nemesrv.chaos.faults.kinds import FAULTS
from nemesrv.chaos.history.schema import EVENTS
from nemesrv.chaos.oracle.client_profiles import PROFILES
from nemesrv.chaos.settings.catalogue import CATALOGUE
from nemesrv.chaos.shapes import SHAPES
from tests.ran import ran
from tests.recipes import ADDED, ROOT, house
from tests.structure import PAGE, PRODUCT

RECIPES = dict(re.findall(r"^### (.*?)\n(.*?)(?=^##)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
BY_LETTER_ONLY = {"A rule of the oracle", "A NameServer request", "A rule of outside clients"}
"""Recipes of which none is added here."""
MOST = 0.6
"""A list by hand has so many of the names of a kind."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("house")
    house(folder)
    return folder


def in_copy(folder: Path, *words: str) -> str:
    """What Python says there."""
    path = os.pathsep.join((str(folder / "src"), str(folder)))
    done = ran([sys.executable, *words], cwd=folder, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def known(copy: Path) -> Mapping[str, Mapping[str, bool | str]]:
    found: Mapping[str, Mapping[str, bool | str]] = json.loads(in_copy(copy, "-m", "tests.recipes"))
    return found


def named(recipe: str) -> list[str]:
    """The files of the recipe's numbered list; capital letters stand for a name."""
    return re.findall(r"^\d+\. `([^`]+)`", RECIPES[recipe], re.MULTILINE)


def is_named(file: str, recipe: str) -> bool:
    patterns = (re.sub(r"[A-Z]{4,}", "[^/]+", re.escape(name)) for name in named(recipe) if name != "FILE.py")
    return any(re.fullmatch(pattern, file) for pattern in patterns) or "FILE.py" in named(recipe)


def test_there_is_a_recipe_for_each_kind_and_one_of_each_is_added() -> None:
    assert RECIPES.keys() == ADDED.keys() | BY_LETTER_ONLY


@pytest.mark.parametrize("recipe", ADDED)
def test_what_is_added_is_in_the_files_that_its_recipe_names(recipe: str) -> None:
    assert [edit.file for edit in ADDED[recipe] if not is_named(edit.file, recipe)] == []


@pytest.mark.parametrize("recipe", ADDED)
def test_every_place_that_must_know_it_does(recipe: str, known: Mapping[str, Mapping[str, bool | str]]) -> None:
    assert {place: said for place, said in known[recipe].items() if said is not True} == {}


def test_the_added_defect_is_found_by_the_added_check_and_the_clean_twin_is_clean(copy: Path) -> None:
    words = ("selftest", "--clock", "virtual", "--only", "name-server-fails-look-ups", "--json")
    said = json.loads(in_copy(copy, "-m", "nemesrv.chaos", *words))
    assert [(one["defect"], one["result"]) for one in said] == [
        (None, "clean"),
        ("name-server-fails-look-ups", "killed"),
    ]


NAMES: Mapping[str, tuple[Collection[str], Collection[str]]] = {
    "checks": (CHECKS, ()),
    "faults": (FAULTS, ()),
    "events": (EVENTS, ()),
    "client profiles": (PROFILES, ("chaos/scenarios/model.py", "tests/chaos/oracle/test_client_profiles.py")),
    "settings": ({setting.name for setting in CATALOGUE}, ()),
    "shapes": (SHAPES, ("chaos/shapes.py",)),
    "commands": ({path.stem for path in Path(commands[0]).glob("*.py")}, ()),
}
"""Kind → its names, and the files in which its recipe has them listed."""


@pytest.mark.parametrize("kind", NAMES)
def test_no_list_by_hand_has_most_names_of_a_kind_but_those_that_its_recipe_names(kind: str) -> None:
    names, allowed = NAMES[kind]
    assert [place for place in lists_by_hand(frozenset(names)) if place.partition(":")[0] not in allowed] == []


@cache
def sources() -> dict[Path, str]:
    paths = (path for top in (*PRODUCT, "tests") for path in (ROOT / top).rglob("*.py"))
    return {path: path.read_text(encoding="utf-8") for path in paths}


def lists_by_hand(names: frozenset[str]) -> Iterator[str]:
    """Where, as FILE:LINE, a literal has most of these names."""
    least = MOST * len(names)
    for path, text in sources().items():
        if sum(f'"{name}"' in text or f"{name} " in text for name in names) < least:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict) and len(names & {*_texts(node)}) >= least:
                yield f"{path.relative_to(ROOT)}:{node.lineno}"


def _texts(literal: ast.Tuple | ast.List | ast.Set | ast.Dict) -> Iterator[str]:
    elements = literal.elts if not isinstance(literal, ast.Dict) else [*literal.keys, *literal.values]
    for element in elements:
        if isinstance(element, ast.Constant) and isinstance(element.value, str):
            yield from element.value.split()

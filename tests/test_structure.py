"""The rooms are few and none is large, and docs/architecture.md names what there is."""

import re

import pytest

from tests.structure import PAGE, PRODUCT, ROOT, decisions, files_of_folders, filled_in, rooms_of_chaos

DOC = PAGE.read_text(encoding="utf-8")
ROOMS_MAX = 14
FILES_MAX = 25


def block(heading: str) -> str:
    """The first block of code below a heading of docs/architecture.md."""
    found = re.search(rf"## {re.escape(heading)}\n.*?```\n(.*?)```", DOC, re.DOTALL)
    assert found is not None, heading
    return found[1]


def test_chaos_has_few_rooms() -> None:
    assert len(rooms_of_chaos()) <= ROOMS_MAX, rooms_of_chaos()


def test_no_folder_of_the_product_has_many_files() -> None:
    assert {folder: count for folder, count in files_of_folders().items() if count > FILES_MAX} == {}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("if a:\n    pass\nelif b:\n    pass", 2),
        ("x = 1 if a and b or c else 2", 3),
        ("[x for x in y if x if z]", 2),
        ("match x:\n    case 1:\n        pass\n    case _:\n        pass", 2),
        ("for x in y:\n    print(x)", 0),
    ],
)
def test_a_decision_is_where_a_program_goes_one_way_or_another(source: str, count: int) -> None:
    assert decisions(source) == count


def test_the_map_names_every_top_level_folder_and_every_room_of_chaos() -> None:
    assert set(re.findall(r"^(\w+)/", block("Six folders"), re.MULTILINE)) == {*PRODUCT, "tests", "deploy"}
    assert set(re.findall(r"^\w* +(\w+)/", block("The rooms of chaos/"), re.MULTILINE)) == set(rooms_of_chaos())


def test_the_map_names_every_other_folder_of_the_product() -> None:
    named = set(re.findall(r"(\w+)/", block("The other rooms") + block("The rooms of chaos/") + block("Six folders")))
    assert {folder for folder in files_of_folders() if not set(folder.split("/")) <= named} == set()


def test_every_path_that_the_map_names_is_there() -> None:
    tops = "|".join((*PRODUCT, "tests", "docs", "deploy", "src"))
    paths = {path for path in re.findall(rf"`((?:{tops})/[\w./-]*)`", DOC) if not re.search("[A-Z]{4}", path)}
    assert paths
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


def test_the_numbers_go_into_the_last_column() -> None:
    page = "| | before | after |\n|---|---:|---:|\n| lines | 111,596 | |\n| files | 712 | 9 |\n"
    assert filled_in(page, {"lines": "95,000", "files": "600"}).splitlines()[2:] == [
        "| lines | 111,596 | 95,000 |",
        "| files | 712 | 600 |",
    ]
    with pytest.raises(KeyError, match="rooms"):
        filled_in(page, {"rooms": "14"})

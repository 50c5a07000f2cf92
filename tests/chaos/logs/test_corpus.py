"""The logs in wild/: each is cited, there, and read without an error, with every line counted."""

import pytest

from nemesrv.chaos.logs.reading import read_plain

from .corpus import WILD, Case, cases


def test_every_folder_is_in_the_index_and_cited() -> None:
    found = cases()
    assert sorted(one.name for one in found) == sorted(path.name for path in WILD.iterdir() if path.is_dir())
    assert all(one.source and one.says for one in found)
    assert len(found) >= 30


def test_a_coin_sets_about_half_aside() -> None:
    assert 0.35 < len(cases(set_aside=True)) / len(cases()) < 0.65


@pytest.mark.parametrize("case", cases(set_aside=False), ids=lambda one: one.name)
def test_every_line_is_counted(case: Case) -> None:
    read = read_plain(sorted(case.folder.iterdir()))
    written = sum(path.read_text(encoding="utf-8").count("\n") for path in case.folder.iterdir())
    assert sum(one.lines for one in read.files) == written
    assert all(one.lines == one.understood + one.not_understood + one.continued for one in read.files)

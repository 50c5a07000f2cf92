"""SQL92 filters: Apache's own compiler and ours say the same of the same filters."""

from pathlib import Path

import pytest

from tests.actors.broker.test_sql_filter import FILTERS, NO_FILTERS, PROPERTIES

from .conftest import need
from .jars import Jars
from .programs import java

pytestmark = pytest.mark.java


def test_apaches_filters_take_and_refuse_the_same(tmp_path: Path) -> None:
    need(Jars.SERVERS_5_X)
    source = Path(__file__).with_name("Filters.java")
    given = [f"{name}={value}" for name, value in PROPERTIES.items()]
    texts = [text for text, _ in FILTERS if "\n" not in text] + NO_FILTERS
    with java("filters", tmp_path, Jars.SERVERS_5_X, str(source), *given) as program:
        for text in texts:
            program.say(text)
        program.close_input()
        end = program.wait_for("END")
        said = dict(zip(texts, program.lines[:end], strict=True))
    ours = {text: str(matches).lower() for text, matches in FILTERS} | dict.fromkeys(NO_FILTERS, "refused")
    assert said == {text: ours[text] for text in texts}

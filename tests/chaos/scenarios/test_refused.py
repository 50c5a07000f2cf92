"""Scenarios that cannot be: each is refused in one sentence, which has the key, the value and what is allowed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.scenarios.loading import parse
from tests.refusals import is_told

REFUSED = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text(encoding="utf-8"))
CASES = [pytest.param(case, id=f"{about}-{case['says']}") for about, cases in REFUSED.items() for case in cases]


@pytest.mark.parametrize("case", CASES)
def test_it_is_refused_in_this_sentence(case: Mapping[str, Any]) -> None:
    scenario = {key: value for key, value in case.items() if key != "says"}
    with pytest.raises(ScenarioError) as refused:
        parse({"checks": ["routes_converge"], **scenario}, file="mine.yaml")
    assert is_told(f"mine.yaml: {case['says']}", str(refused.value)), refused.value

"""A history that is cut into parts gives the facts of the whole one."""

import random
from itertools import product

import pyarrow as pa

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.check import Found
from nemesrv.chaos.checks.findings import at_a_moment
from nemesrv.chaos.checks.finishing import seen_by
from nemesrv.chaos.checks.plain.part import Part, Together, codes, least_of
from nemesrv.chaos.checks.plain.verdicts import in_memory, verdicts_of
from nemesrv.chaos.history.rows import to_table
from nemesrv.chaos.history.schema import arrow_schema
from nemesrv.chaos.verdict import FINDINGS_MAX, Finding
from tests import generate
from tests.chaos.builder import said
from tests.chaos.parts import InParts


def test_a_generated_history_is_judged_alike_whole_and_in_parts() -> None:
    history, world = in_memory(to_table(generate.rows_of(6_000, 4)), is_whole=True)
    whole = {verdict.name: said(verdict) for verdict in verdicts_of(history, world)}
    cut = verdicts_of(InParts(history, random.Random(1)), world)
    assert {verdict.name: said(verdict) for verdict in cut} == whole


def test_no_rows_give_facts_that_add_nothing() -> None:
    history, world = in_memory(to_table(generate.rows_of(2_000, 1)), is_whole=True)
    nothing = Part(arrow_schema().empty_table(), history.control)
    readings = {reading: seen_by(check, world) for check in CHECKS.values() for reading in check.readings}
    assert {reading.together for reading in readings} == {*Together}
    for reading, seen in readings.items():
        facts = history.counted(reading, seen)
        assert reading.of(nothing, seen).plus(facts) == facts.plus(reading.of(nothing, seen)) == facts


def test_rows_have_one_number_where_they_agree_in_every_column() -> None:
    values = [*product(("a", "b", None), (0, 1, None), ("x", None))] * 2
    random.Random(1).shuffle(values)
    columns = dict(zip(("name", "number", "other"), zip(*values, strict=True), strict=True))
    found = codes(pa.table({name: list(column) for name, column in columns.items()}), *columns)
    assert {*found.tolist()} == {*range(18)}
    assert len({(code, value) for code, value in zip(found.tolist(), values, strict=True)}) == 18


def test_the_least_of_each_code_is_not_a_number_where_there_is_none() -> None:
    least = least_of(codes(pa.table({"n": ["a", "b", "a"]}), "n"), pa.array([3.0, 5.0, 2.0]).to_numpy(), 3)
    assert least.tolist()[:2] == [2.0, 5.0]
    assert least[2] != least[2]


def test_of_many_findings_the_first_of_each_kind_stay_whatever_the_order_of_the_parts() -> None:
    def at(second: int, kind: str = "lost") -> Finding:
        return at_a_moment("broker-a", "", kind, float(second), "", {})

    lost = [tuple(at(second) for second in range(start, 2 * FINDINGS_MAX, 4)) for start in range(4)]
    parts = [Found({"lost": len(of)}, of) for of in lost] + [Found({"unread": 1}, (at(5000, "unread"),))]
    first = *(at(second) for second in range(FINDINGS_MAX)), at(5000, "unread")
    whole = Found({"lost": 2 * FINDINGS_MAX, "unread": 1}, first)
    assert Found.total(parts) == Found.total(parts[::-1]) == whole

"""SQL92 filters over properties; tests/interop/test_filters.py gives the same filters to Apache's own."""

import pytest

from nemesrv.actors.broker.sql_filter import MAX_DEPTH, SqlError, compile_filter

PROPERTIES = {"a": "5", "b": "-2.5", "TAGS": "TagA", "word": "it's", "yes": "true", "$x_1": "1"}


FILTERS = [
    ("a = 5 b ? c", True),  # nothing behind a whole filter is looked at but one token
    ("a = 5)", True),
    ("a LIKE '5'", False),
    ("a = 5", True),
    ("a = '5'", True),
    ("a <> 5", False),
    ("a > 4 AND a < 6", True),
    ("a >= 5 and a <= 5", True),
    ("a > 5 OR b < 0.0001", True),
    ("a BETWEEN 0 AND 5", True),
    ("a NOT BETWEEN 0 AND 5", False),
    ("b between -3 and -2", False),  # a text with a point is no whole number
    ("b between -3.0 and -2.0", True),
    ("(TAGS is not null and TAGS in ('TagA', 'TagB'))", True),
    ("TAGS NOT IN ('TagA')", False),
    ("missing NOT IN ('TagA')", False),
    ("missing IS NULL", True),
    ("missing IS NOT NULL", False),
    ("missing = 5", False),
    ("missing <> 5", False),
    ("NOT (missing = 5)", False),
    ("missing = 5 OR a = 5", True),
    ("missing = other", True),  # null and null
    ("word = 'it''s'", True),
    ("yes = TRUE", True),
    ("yes", False),  # a property is a text, and no truth
    ("TRUE", True),
    ("NOT FALSE", True),
    ("NULL", False),
    ("a = 5 AND NOT (TAGS = 'TagB' OR a = 4)", True),
    ("a = 5 OR a = 6 AND a = 7", True),  # AND binds tighter
    ("a > b", True),
    ("TAGS > a", False),  # no numbers, and no message for it
    ("TAGS > 4 OR a = 5", False),  # whatever else it says
    ("a = 5 OR TAGS > 4", True),  # unless it is not looked at
    ("$x_1 = 1L", True),
    ("a=5--comment\n AND/* another */b<0.1", True),
    ("a = +5 AND - a IS NULL", True),  # only a number has a negative
    ("a = 5 = TRUE", True),
    ("word CONTAINS 't''s'", True),
    ("word NOT CONTAINS 'x'", True),
    ("missing NOT CONTAINS 'x'", False),
    ("TAGS STARTSWITH 'Tag' AND TAGS ENDSWITH 'A'", True),
    ("TAGS NOT STARTSWITH ''", False),
]


@pytest.mark.parametrize(("text", "matches"), FILTERS)
def test_a_filter_takes_or_leaves_a_message(text: str, matches: bool) -> None:
    assert compile_filter(text)(PROPERTIES) is matches


NO_FILTERS = [
    *("", "a =", "a = NULL", "a > 'text'", "a > TRUE", "(a = 5) > 3", "5", "'text'"),
    *("a BETWEEN 6 AND 5", "a BETWEEN NULL AND 5", "a IN (5)", "5 IN ('5')", "a IN ()", "a = 5 ?"),
    *("a == 5", "a = 9223372036854775808", "a = 1e999", "a = 'open", "a IS 5", "ä = 5"),
]
TOO_MUCH = [
    "(" * (MAX_DEPTH + 1) + "a = 5" + ")" * (MAX_DEPTH + 1),
    "- " * 30_000 + "a = 5",
    "a" + " = a" * 1000,
    "/**/" * 10_000 + "?",
    "a = 5 OR " * 10_000 + "a = 5",
]
"""For our limits: Java's parser goes on until its stack is full."""


@pytest.mark.parametrize("text", NO_FILTERS + TOO_MUCH)
def test_what_is_no_filter_is_refused_with_its_reason(text: str) -> None:
    with pytest.raises(SqlError, match=r"\w"):
        compile_filter(text)


def test_a_long_filter_is_no_deep_one() -> None:
    assert compile_filter("a = 4 OR " * 5000 + "a = 5 AND a <> 4")(PROPERTIES)


def test_4_9_has_no_contains() -> None:
    assert not compile_filter("a CONTAINS '5'", with_contains=False)(PROPERTIES)  # it is `a`
    assert compile_filter("CONTAINS = 5 OR a = 5", with_contains=False)(PROPERTIES)

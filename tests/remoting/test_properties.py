"""Java's properties text, read and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesrv.remoting.properties import format_properties, parse_properties


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("listenPort=9876\n", {"listenPort": "9876"}),
        ("a = b\nc:d\ne f\ng\n", {"a": "b", "c": "d", "e": "f", "g": ""}),
        ("# no\n  ! no\n\n  a=#1\n", {"a": "#1"}),
        ("a=one,\\\n   two\\\r\n\tthree\rb=2", {"a": "one,twothree", "b": "2"}),
        ("a=C:\\\\temp\\tx\\n\\u00e9\\q", {"a": "C:\\temp\tx\n\u00e9q"}),
        ("a=\\ud83d\\ude00 \\ud800\\n\\udc00", {"a": "\U0001f600 ?\n?"}),
        ("a\\ b\\:c\\=d=1", {"a b:c=d": "1"}),
        ("a==b=c", {"a": "=b=c"}),
        ("a= b ", {"a": "b "}),
        ("a=1\na=2", {"a": "2"}),
        ("a=\\", {"a": ""}),
        ("a=x\\\\\nb=1", {"a": "x\\", "b": "1"}),
        ("", {}),
        ("=x", {"": "x"}),
    ],
)
def test_properties_are_read_as_java_does(text: str, properties: dict[str, str]) -> None:
    assert parse_properties(text) == properties
    assert parse_properties(text.encode()) == properties


def test_a_bad_unicode_escape_names_its_line() -> None:
    with pytest.raises(ValueError, match=r"line 3: .*\\u12"):
        parse_properties("a=1\nb=2\nc=\\u12g4")


def test_properties_are_written_one_a_line_in_the_order_given() -> None:
    assert format_properties({"b": 1, "a": True, "n": None, "c": " x\ny"}) == "b=1\na=true\nc=\\ x\\ny\n"


@given(st.dictionaries(st.text(max_size=9), st.text(max_size=9)))
def test_what_is_written_is_read_back_equal(properties: dict[str, str]) -> None:
    assert parse_properties(format_properties(properties)) == properties

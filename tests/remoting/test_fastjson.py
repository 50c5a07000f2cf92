"""fastjson's dialects: what Java writes is read, what we write Java reads, and nothing grows without bound."""

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesrv.remoting import fastjson
from nemesrv.remoting.errors import LocalProtocolError, RemoteProtocolError
from nemesrv.remoting.fastjson import MAX_DEPTH, ObjectKey, dumps, loads

QUEUE = ObjectKey.of({"topic": "T", "queueId": 0, "brokerName": "a"})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{0:"a:1",1:"b:2"}', {"0": "a:1", "1": "b:2"}),
        ('{-1:"x"}', {"-1": "x"}),
        ('{{"brokerName":"a","queueId":0,"topic":"T"}:{"maxOffset":5}}', {QUEUE: {"maxOffset": 5}}),
        ('{"t":{{"topic":"T","queueId":0,"brokerName":"a"}:1,{"x":[1]}:2}}', {"t": {QUEUE: 1, (("x", (1,)),): 2}}),
        ("{'single':'it''s'}", None),
        ("{'single':'a\"b'}", {"single": 'a"b'}),
        ("{name:1,$a_1:2}", {"name": 1, "$a_1": 2}),
        ("[1,2,]", [1, 2]),
        ("{a:1,,b:2,}", {"a": 1, "b": 2}),
        ("[,1]", [1]),
        ("{a:1L,b:1.5F,c:-2e3D}", {"a": 1, "b": 1.5, "c": -2000.0}),
        (" { a : true , b : [ false , null ] } ", {"a": True, "b": [False, None]}),
        (r"""{a:"\u00e9\/\x41\n\'\ud83d\ude00"}""", {"a": "é/A\n'😀"}),
        (r'{a:"\ud83d"}', {"a": "\ufffd"}),
        ('{"a":1}', {"a": 1}),
        ("{}", {}),
        ("{a:[]}", {"a": []}),
    ],
)
def test_the_dialect_is_read(text: str, value: object) -> None:
    if value is None:
        with pytest.raises(RemoteProtocolError):
            loads(text)
    else:
        assert loads(text) == value
        assert loads(text.encode()) == value


def test_equal_object_keys_are_equal_whatever_their_order() -> None:
    assert ObjectKey.of({"brokerName": "a", "queueId": 0, "topic": "T"}) == QUEUE
    assert dict(QUEUE) == {"brokerName": "a", "queueId": 0, "topic": "T"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":{"x":1},"b":{"$ref":"$.a"}}', {"a": {"x": 1}, "b": {"x": 1}}),
        ('{"a":[{"x":1},{"y":2}],"b":{"$ref":"$.a[1]"}}', {"a": [{"x": 1}, {"y": 2}], "b": {"y": 2}}),
        (r'{"t":{"a.b-c":{"x":1}},"b":{"$ref":"$.t.a\\.b\\-c"}}', {"t": {"a.b-c": {"x": 1}}, "b": {"x": 1}}),
        ('{"t":{"%RETRY%g":{"x":1}},"b":{"$ref":"$.t[\'%RETRY%g\']"}}', {"t": {"%RETRY%g": {"x": 1}}, "b": {"x": 1}}),
        (
            '{t:{0:{"x":1}},"b":{"$ref":"$.t[0]"},c:{"$ref":"$.t.0"}}',
            {"t": {"0": {"x": 1}}, "b": {"x": 1}, "c": {"x": 1}},
        ),
        ('[{"x":1},{"$ref":"$[0]"}]', [{"x": 1}, {"x": 1}]),
    ],
)
def test_a_reference_is_the_object_it_names(text: str, value: object) -> None:
    assert loads(text) == value


def test_a_reference_shares_its_object() -> None:
    value = cast(dict[str, Any], loads('{"a":{"x":1},"b":{"$ref":"$.a"}}'))
    assert value["a"] is value["b"]


@pytest.mark.parametrize(
    "path",
    ["$", "..", "@", "$.missing", "$.later", "$.a[9]", "$.a[99999999999999]", "$.s.x", "$x", "", "$.a[", "$.me.b"],
)
def test_a_reference_that_leads_nowhere_or_to_its_own_surroundings_is_null(path: str) -> None:
    text = '{"a":[1],"s":"t","me":{"b":{"c":{"$ref":"PATH"}}},"later":1}'
    value = cast(dict[str, Any], loads(text.replace("PATH", path)))
    assert value["me"]["b"]["c"] is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "[",
        "{a",
        "{a:",
        "{a:1",
        "{a:1 b:2}",
        "[1 2]",
        "{a:b}",
        "{:1}",
        "{[1]:2}",
        "{a:1}}",
        "'",
        '{a:"',
        "{a:'\\",
        "nope",
        "--1",
        "1" * 5000 + "x",
        "{a:" + "1" * 5000 + "}",
        "\ufeff{}",
        "{{a:1}}",
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_json_in_any_dialect_is_refused(text: str) -> None:
    with pytest.raises(RemoteProtocolError):
        loads(text)


def test_references_to_references_do_not_get_round_the_limit_of_depth() -> None:
    """Found by the fuzzer's author: each of the chain is shallow, and the last one was a thousand levels deep."""
    links = [f'"a0":{"[" * 30}0{"]" * 30}']
    links += [f'"a{n}":{"[" * 30}{{"$ref":"$.a{n - 1}"}}{"]" * 30}' for n in range(1, 60)]
    with pytest.raises(RemoteProtocolError, match="deeper than 64 levels"):
        loads("{" + ",".join(links) + "}")


def test_an_object_in_a_key_of_a_key_is_refused() -> None:
    """Found by fuzzing: its names could not be sorted."""
    with pytest.raises(RemoteProtocolError, match="an object as a key in an object that is a key"):
        loads('{{{"a":1}:2,"b":3}:4}')


def test_a_ref_that_is_no_text_is_a_name_like_any_other() -> None:
    assert loads('{"table":{"$ref":{"k":"v"}}}') == {"table": {"$ref": {"k": "v"}}}


@pytest.mark.parametrize("opening", ["[", "{a:", "{{", '{"$ref":', "[{'a':["])
def test_depth_is_bounded(opening: str) -> None:
    with pytest.raises(RemoteProtocolError):
        loads(opening * 100_000)


def test_the_dialect_may_be_as_deep_as_the_bound() -> None:
    text = "[" * MAX_DEPTH + "1," + "]" * MAX_DEPTH
    assert loads(text) is not None
    with pytest.raises(RemoteProtocolError, match="deeper than"):
        loads(f"[{text}]")


def test_the_dialect_is_bounded_in_size_and_standard_json_is_not() -> None:
    with pytest.raises(RemoteProtocolError, match="exceeds 20 B"):
        loads("{0:'123456789012345678'}", max_bytes=20)
    assert loads('{"0":"123456789012345678"}', max_bytes=20) == {"0": "123456789012345678"}


@pytest.mark.parametrize(
    ("value", "default", "browser"),
    [
        ({1: "b", 0: "a"}, '{0:"a",1:"b"}', '{"0":"a","1":"b"}'),
        ({"b": None, "a": [None]}, '{"a":[null]}', '{"a":[null]}'),
        ({"é": "a/b"}, '{"é":"a/b"}', '{"\\u00E9":"a\\/b"}'),
        ("😀\\u00e9", '"😀\\\\u00e9"', '"\\uD83D\\uDE00\\\\u00e9"'),
        ('\x01\n"', '"\\u0001\\n\\""', '"\\u0001\\n\\""'),
        # found by tests/differential: these too are escaped, in upper-case hex
        (
            "\x1f\x7f\x9f\u2028\xa0\\u001f",
            '"\\u001F\\u007F\\u009F\\u2028\xa0\\\\u001f"',
            '"\\u001F\\u007F\\u009F\\u2028\\u00A0\\\\u001f"',
        ),
        (
            [2**53, 2**53 + 1, -(2**53) - 1],
            f"[{2**53},{2**53 + 1},{-(2**53) - 1}]",
            f'[{2**53},"{2**53 + 1}","{-(2**53) - 1}"]',
        ),
        ([True, False, 1.5, float("nan")], "[true,false,1.5,null]", "[true,false,1.5,null]"),
        ({"s": {"b", "a"}, "t": (1, 2)}, '{"s":["a","b"],"t":[1,2]}', '{"s":["a","b"],"t":[1,2]}'),
        (
            {QUEUE: {}},
            '{{"brokerName":"a","queueId":0,"topic":"T"}:{}}',
            '{{"brokerName":"a","queueId":0,"topic":"T"}:{}}',
        ),
    ],
)
def test_both_dialects_are_written(value: object, default: str, browser: str) -> None:
    assert dumps(value).decode() == default
    assert dumps(value, browser_compatible=True).decode() == browser


@pytest.mark.parametrize("value", [object(), {1.5: "a"}, {True: 1}, {"a": b"bytes"}, {("a",): 1}, {b"x"}])
def test_what_json_cannot_express_is_not_written(value: object) -> None:
    with pytest.raises(LocalProtocolError):
        dumps(value)


def test_a_value_nested_too_deep_is_not_written() -> None:
    value: list[object] = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(LocalProtocolError):
        dumps(value)


texts = st.text(st.characters(codec="utf-8"), max_size=12)
values = st.recursive(
    st.booleans() | st.integers(-(1 << 53), 1 << 53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(texts.filter(lambda key: key != "$ref"), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(values, st.booleans())
def test_what_is_written_is_read_back_by_us_and_by_any_json_reader(value: object, browser: bool) -> None:
    data = dumps(value, browser_compatible=browser)
    assert loads(data) == json.loads(data) == value


@given(st.dictionaries(st.integers(-9, 99) | texts, st.integers(0, 9), min_size=1))
def test_number_keys_are_read_back_as_text(value: dict[int | str, int]) -> None:
    expected = {str(key): item for key, item in sorted(value.items(), key=lambda item: isinstance(item[0], str))}
    assert loads(dumps(value)) == expected


@given(values)
def test_the_tolerant_reader_agrees_with_the_quick_one(value: object) -> None:
    assert fastjson._Reader(dumps(value).decode()).read() == value

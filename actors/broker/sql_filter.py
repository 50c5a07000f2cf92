"""SQL92 filters over a message's properties: `a > 5 AND (TAGS IN ('x', 'y') OR b IS NULL)`.

    or          = and {OR and}
    and         = equality {AND equality}
    equality    = comparison {(= | <>) comparison | IS [NOT] NULL}
    comparison  = unary {(> | >= | < | <=) unary | [NOT] BETWEEN unary AND unary | [NOT] IN (text, …)
                         | [NOT] (CONTAINS | STARTSWITH | ENDSWITH) text}                     the last in 5.x only
    unary       = (+ | - | NOT) unary | literal | property | ( or )

In a filter, a value is a text (as every property), a number, a truth value or null. A comparison with null gives null,
and a message matches only if the whole filter gives true. A text that is compared with a number is read as a number. A
message whose values cannot be compared does not match. Text after a complete filter is ignored: `a LIKE 'x'` means `a`.
Upstream: `SelectorParser.jj`, `ComparisonExpression`, `LogicExpression`, `UnaryExpression`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

Value = str | int | float | bool | None
Properties = Mapping[str, str]
Evaluate = Callable[[Properties], Value]

MAX_LENGTH = 65_536
MAX_DEPTH = 100
"""Parentheses, signs and comparisons inside each other; Java's parser goes on until its stack is full."""
_WORDS = frozenset({"NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS"})
_WORDS_5 = frozenset({"CONTAINS", "STARTSWITH", "ENDSWITH"})
_TOKEN = re.compile(
    r"""(?>(?:\s|--[^\r\n]*[\r\n]|/\*.*?\*/)*)(?:
      (?P<float>\d+\.\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+)
    | (?P<int>0|[1-9]\d*l?)
    | (?P<text>'(?:''|[^'])*')
    | (?P<name>[a-z_$][a-z0-9_$]*)
    | (?P<sign><>|>=|<=|[=<>()+,-])
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL | re.ASCII,
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_FLOAT = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?\s*")


class SqlError(ValueError):
    """The text is no SQL filter. The error message gives the position of the error, and the reason."""


class _Incomparable(Exception):
    """Two values that have no order."""


@lru_cache(maxsize=256)
def compile_filter(text: str, *, with_contains: bool = True) -> Callable[[Properties], bool]:
    """Return what says whether properties match. `with_contains`: allow 5.x's CONTAINS, STARTSWITH and ENDSWITH. Raises
    SqlError."""
    evaluate = _truth(_Parser(text, _WORDS | _WORDS_5 if with_contains else _WORDS).either()).evaluate

    def matches(properties: Properties) -> bool:
        try:
            return evaluate(properties) is True
        except _Incomparable:
            return False

    return matches


class _Node(NamedTuple):
    evaluate: Evaluate
    kind: str
    """What the node is: a property, a literal, a truth (comparison or logic) or a number (a negated value)."""
    literal: Value = None


class _Parser:
    def __init__(self, text: str, words: frozenset[str]) -> None:
        self._tokens = _tokens(text, words)
        self._at = 0
        self._depth = 0

    def either(self) -> _Node:
        return self._joined("OR", self._both, _any)

    def expect(self, kind: str, *texts: str) -> str:
        """Take and return the next token, which must be of this kind and, if given, one of `texts`. Raises SqlError."""
        found_kind, found, position = self._next()
        if found_kind != kind or (texts and found not in texts):
            wanted = " or ".join(texts) or "a text in quotes"
            raise SqlError(f"{found or 'the end'!r} at {position} where {wanted} is expected")
        self._at += 1
        return found

    def _both(self) -> _Node:
        return self._joined("AND", self._equality, _all)

    def _joined(self, word: str, part: Callable[[], _Node], join: Callable[..., _Node]) -> _Node:
        nodes = [part()]
        while self._take("word", word):
            nodes.append(part())
        return nodes[0] if len(nodes) == 1 else join(*map(_truth, nodes))

    def _equality(self) -> _Node:
        left = self._comparison()
        for _ in range(MAX_DEPTH):
            if sign := self._take("sign", "=", "<>"):
                right = self._comparison()
                for side in (left, right):
                    if side.kind == "literal" and side.literal is None:
                        raise SqlError("NULL cannot be compared by = or <>, only by IS")
                left = _equal(left, right) if sign == "=" else _not(_equal(left, right))
            elif self._take("word", "IS"):
                negated = self._take("word", "NOT")
                self.expect("word", "NULL")
                left = _not(_equal(left, _NULL)) if negated else _equal(left, _NULL)
            else:
                return left
        raise SqlError(f"more than {MAX_DEPTH} comparisons in a row")

    def _comparison(self) -> _Node:
        left = self._unary()
        for _ in range(MAX_DEPTH):
            if sign := self._take("sign", ">", ">=", "<", "<="):
                left = _ordered(left, sign, self._unary())
                continue
            negated = bool(self._take_before("NOT", "BETWEEN", "IN", *_WORDS_5))
            if self._take("word", "BETWEEN"):
                left = self._between(left, negated)
            elif self._take("word", "IN"):
                left = self._in(left, negated)
            elif word := self._take("word", *_WORDS_5):
                left = _part(left, word, self._text(), negated)
            else:
                return left
        raise SqlError(f"more than {MAX_DEPTH} comparisons in a row")

    def _between(self, value: _Node, negated: bool) -> _Node:
        low = self._unary()
        self.expect("word", "AND")
        high = self._unary()
        if low.kind == high.kind == "literal" and not negated and _compare(high.literal, low.literal) < 0:
            raise SqlError(f"BETWEEN {low.literal} AND {high.literal}: the first is the larger one")
        if negated:
            return _any(_ordered(value, "<", low), _ordered(value, ">", high))
        return _all(_ordered(value, ">=", low), _ordered(value, "<=", high))

    def _in(self, value: _Node, negated: bool) -> _Node:
        if value.kind != "property":
            raise SqlError("IN needs a property before it")
        self.expect("sign", "(")
        texts = {self._text()}
        while self._take("sign", ","):
            texts.add(self._text())
        self.expect("sign", ")")
        return _made_of(lambda found: None if found is None else (found in texts) is not negated, value)

    def _unary(self) -> _Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SqlError(f"more than {MAX_DEPTH} levels")
        try:
            if self._take("sign", "+"):
                return self._unary()
            if self._take("sign", "-"):
                return _negative(self._unary())
            if self._take("word", "NOT"):
                return _not(_truth(self._unary()))
            if self._take("sign", "("):
                inside = self.either()
                self.expect("sign", ")")
                return inside
            return self._primary()
        finally:
            self._depth -= 1

    def _primary(self) -> _Node:
        kind, token, position = self._next()
        if kind == "name":
            self._at += 1
            return _Node(lambda properties: properties.get(token), "property")
        literals: dict[str, Value] = {"TRUE": True, "FALSE": False, "NULL": None}
        if kind == "word" and token in literals:
            value = literals[token]
        elif kind == "text":
            return _literal(self._text())
        elif kind == "int":
            value = int(token.rstrip("lL"))
            if value >= 1 << 63:
                raise SqlError(f"{token} at {position} is no long")
        elif kind == "float":
            value = float(token)
            if value in (0.0, float("inf")):
                raise SqlError(f"{token} at {position} is no double above zero")
        else:
            raise SqlError(f"{token or 'the end'!r} at {position} where a value is expected")
        self._at += 1
        return _literal(value)

    def _text(self) -> str:
        return self.expect("text")[1:-1].replace("''", "'")

    def _take(self, kind: str, *texts: str) -> str | None:
        found_kind, found, _ = self._next()
        if found_kind != kind or found not in texts:
            return None
        self._at += 1
        return found

    def _next(self, ahead: int = 0) -> tuple[str, str, int]:
        token = self._tokens[min(self._at + ahead, len(self._tokens) - 1)]
        if token[0] == "nothing":
            raise SqlError(f"{token[1]!r} at {token[2]} is nothing of SQL92")
        return token

    def _take_before(self, word: str, *following: str) -> str | None:
        """Take the next token where it is `word`, and one of `following` comes after it."""
        if self._next()[:2] != ("word", word):
            return None
        kind, after, _ = self._next(1)
        return self._take("word", word) if kind == "word" and after in following else None


def _tokens(text: str, words: frozenset[str]) -> Sequence[tuple[str, str, int]]:
    """Return kind, text and position of each token, words in capitals; the last is of kind end, or is no token."""
    if len(text) > MAX_LENGTH:
        raise SqlError(f"a filter of {len(text)} characters, {MAX_LENGTH} are allowed")
    tokens: list[tuple[str, str, int]] = []
    position = 0
    while True:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            return [*tokens, ("nothing", text[position : position + 20], position)]
        kind, token = match.lastgroup, match[match.lastgroup]
        if kind == "name" and token.upper() in words:
            kind, token = "word", token.upper()
        tokens.append((kind, token, match.start(match.lastgroup)))
        if kind == "end":
            return tokens
        position = match.end()


# --- what each part of a filter comes to


def _made_of(result: Callable[..., Value], *nodes: _Node, kind: str = "truth") -> _Node:
    """Return the node whose value is `result` of the values of `nodes`."""
    return _Node(lambda properties: result(*(node.evaluate(properties) for node in nodes)), kind)


def _literal(value: Value) -> _Node:
    return _Node(lambda _: value, "literal", value)


_NULL = _literal(None)


def _truth(node: _Node) -> _Node:
    """The node as a truth value. A property is a text, and so never true."""
    if node.kind == "property":
        return _made_of(lambda text: None if text is None else False, node)
    if node.kind == "truth" or (node.kind == "literal" and (node.literal is None or isinstance(node.literal, bool))):
        return node
    raise SqlError("a value stands where a condition is expected")


def _any(*nodes: _Node) -> _Node:
    return _deciding(nodes, True)


def _all(*nodes: _Node) -> _Node:
    return _deciding(nodes, False)


def _deciding(nodes: Sequence[_Node], decides: bool) -> _Node:
    """AND and OR: `decides` if one of `nodes` has this value (later nodes are not looked at); else null if one is
    null."""

    def evaluate(properties: Properties) -> Value:
        unknown = False
        for node in nodes:
            value = node.evaluate(properties)
            if value is decides:
                return decides
            unknown = unknown or value is None
        return None if unknown else not decides

    return _Node(evaluate, "truth")


def _not(node: _Node) -> _Node:
    return _made_of(lambda value: None if value is None else not value, node)


def _negative(node: _Node) -> _Node:
    return _made_of(lambda value: -value if _is_number(value) else None, node, kind="number")


def _equal(left: _Node, right: _Node) -> _Node:
    def is_equal(first: Value, second: Value) -> Value:
        if first is None or second is None:
            return True if first is second else None if first is None else False
        return _compare(first, second) == 0

    return _made_of(is_equal, left, right)


def _ordered(left: _Node, sign: str, right: _Node) -> _Node:
    for side in (left, right):
        if side.kind == "truth" or (side.kind == "literal" and not _is_number(side.literal)):
            raise SqlError(f"{sign} compares numbers only")

    def is_in_order(first: Value, second: Value) -> Value:
        if first is None or second is None:
            return None
        if isinstance(first, str) and isinstance(second, str):
            first, second = _float(first), _float(second)
        order = _compare(first, second)
        return {">": order > 0, ">=": order >= 0, "<": order < 0, "<=": order <= 0}[sign]

    return _made_of(is_in_order, left, right)


def _part(node: _Node, word: str, part: str, negated: bool) -> _Node:
    """CONTAINS, STARTSWITH, ENDSWITH. False, even negated, if the property is no text or the text to look for is
    empty."""
    found_in = {"CONTAINS": str.__contains__, "STARTSWITH": str.startswith, "ENDSWITH": str.endswith}[word]
    return _made_of(lambda text: isinstance(text, str) and bool(part) and found_in(text, part) is not negated, node)


def _compare(left: Value, right: Value) -> int:
    """Compare two values: -1, 0 or 1. If their kinds have no order, the left value is smaller, as in Java."""
    if isinstance(left, bool) and isinstance(right, str):
        raise _Incomparable
    if isinstance(left, str) and isinstance(right, bool):
        left = left.lower() == "true"
    elif isinstance(left, str) and isinstance(right, int | float):
        left = _float(left) if isinstance(right, float) else _integer(left)
    elif isinstance(right, str) and isinstance(left, int | float):
        right = _float(right) if isinstance(left, float) else _integer(right)
    elif isinstance(left, bool) is not isinstance(right, bool):
        return -1
    if left is None or right is None:
        raise SqlError("NULL cannot be compared")
    return (left > right) - (left < right)  # type: ignore[operator]  # both are texts, both numbers or both truths


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _integer(text: str) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise _Incomparable
    return int(text)


def _float(text: str) -> float:
    match = _FLOAT.fullmatch(text)
    if match is None:
        raise _Incomparable
    return float(match[1])

r"""Finds what hides the lines of a file from the reader, and undoes it: escapes and line ends of forms, mails,
terminals and dumps. A form of escape is taken if more lines are understood without it. No I/O.

2024-05-20%2014:20:00%20INFO%20main%20-%20…       a sign and a code, whatever the sign: %20, \x20, \u0020, _x0020_
2024-05-20+14%3A20%3A00+INFO+main+-+…             the same where + is a space
2024-05-20 14:20:00 INFO main - registerBro=      a mail, in which = ends a line that goes on
2024-05-20 14:20:00 INFO main - new topic^M$      control characters by a letter, as `cat -A` shows them
LogEvent(line=2024-05-20 14:20:00 INFO …, n=1)    what ends every line
{"data": "MjAyNC0wNS0yMCAxNDoyMDowMCBJTkZP…"}     base64, or hex digits
"""

import base64
import html
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import takewhile

Form = Callable[[bytes], bytes]

_STAMP = re.compile(
    rb"20\d\d(?P<dash>\D\S{0,6}?)\d\d(?P=dash)\d\d"
    rb"(?P<space>\D\S{0,6}?)[012]\d(?P<colon>\D\S{0,6}?)[0-5]\d(?P=colon)[0-5]\d"
)
_CODES = {"dash": rb"2d|055", "space": rb"20|040", "colon": rb"3a|072"}
_GOES_ON = re.compile(rb"(?:[^\n]*=\r?\n)+[^\n]*")
_SHOWN = re.compile(rb"(?P<high>M-)?\^(?P<letter>[@-_?])|M-(?P<as_it_is>.)")
_HEX_CODE, _OCTAL_CODE = rb"([0-9A-F]{2})", rb"([0-3][0-7]{2})"
_MARK = re.compile(rb"\\(?=[^\w\s\\\"']| )")
_CODED = re.compile(rb"MjA[xy][A-Za-z0-9+/]{24,}={0,2}|(?:0x|\\x)?(?P<hex>32303[12](?:[0-9A-Fa-f]{2}){20,})")
"""Base64 and hex digits of texts that begin with a year: 201x, 202x."""
_TWICE = re.compile(rb".\x08")  # bold, as a printer makes it
_FEW = 3


def unescape(first: bytes, understood: Callable[[bytes], int]) -> Form | None:
    """Return what undoes the escapes of a file with these first lines; None if it has none. `understood` is the number
    of lines that are."""
    forms = list[Form]()
    for form in [*_forms(first)] * 2:  # with one undone, another may be seen
        if (tried := form(first)) != first and understood(tried) > understood(first):
            first, forms = tried, [*forms, form]
    return partial(_undone, forms) if forms else None


def _undone(forms: Sequence[Form], data: bytes) -> bytes:
    return reduce(lambda one, form: form(one), forms, data)


def _forms(first: bytes) -> Iterator[Form]:
    lines = [line for line in first.split(b"\n")[:-1] if line.strip()]
    if len(lines) >= _FEW and (end := _end_of(lines[1:-1])):  # what is around all of them may end otherwise
        yield lambda data: re.sub(re.escape(end) + rb"$", b"", data, flags=re.MULTILINE)
    if any(line.rstrip(b"\r").endswith(b"=") for line in lines):
        yield lambda data: _by_code(b"=", _HEX_CODE, b"", _GOES_ON.sub(_joined, data))
    if (stamp := _STAMP.search(first)) is not None:
        yield from _of_sign(stamp)
    yield lambda data: _SHOWN.sub(_shown, data)
    yield lambda data: _TWICE.sub(b"", data)
    yield lambda data: html.unescape(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    yield lambda data: _MARK.sub(b"", data)
    yield lambda data: _CODED.sub(_decoded, data)


def _end_of(lines: Sequence[bytes]) -> bytes:
    """Return what all of these lines end with."""
    ends = [line[::-1] for line in lines]
    alike = takewhile(lambda two: two[0] == two[1], zip(min(ends), max(ends), strict=False))
    return bytes(one for one, _ in alike)[::-1]


def _of_sign(stamp: re.Match[bytes]) -> Iterator[Form]:
    gaps = (re.fullmatch(rb"(.+?)(?:%s)([\W_]?)" % code, stamp[gap], re.IGNORECASE) for gap, code in _CODES.items())
    if (found := next(filter(None, gaps), None)) is not None:
        is_octal = len(found[0]) - len(found[1]) - len(found[2]) > 2
        code = partial(_by_code, found[1], _OCTAL_CODE if is_octal else _HEX_CODE, found[2])
        yield (lambda data: code(data.replace(b"+", b" "))) if stamp["space"] == b"+" else code


def _by_code(sign: bytes, code: bytes, tail: bytes, data: bytes) -> bytes:
    pattern = re.compile(re.escape(sign) + code + re.escape(tail), re.IGNORECASE)
    return pattern.sub(lambda found: _character(int(found[1], 16 if code == _HEX_CODE else 8)), data)


def _character(code: int) -> bytes:
    """A line end stays text, so that lines keep their numbers."""
    return {10: b"\\n", 13: b""}.get(code, bytes([code]))


def _joined(found: re.Match[bytes]) -> bytes:
    pieces = re.split(rb"=\r?\n", found[0])
    return b"".join(pieces) + b"\n" * (len(pieces) - 1)


def _shown(found: re.Match[bytes]) -> bytes:
    if found["as_it_is"]:
        return bytes([found["as_it_is"][0] | 128])
    return _character(found["letter"][0] ^ 64 | 128 * bool(found["high"]))


def _decoded(found: re.Match[bytes]) -> bytes:
    """As in JSON, in which most of it stands."""
    text = bytes.fromhex(found["hex"].decode()) if found["hex"] else base64.b64decode(found[0] + b"==")
    return json.dumps(text.decode(errors="replace").rstrip(), ensure_ascii=False)[1:-1].encode()

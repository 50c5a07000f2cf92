"""Wrong bytes made from right ones: a small deterministic mutator. The same random.Random gives the same bytes."""

from collections.abc import Sequence
from random import Random

LONGEST = 65_536
"""What a mutation may grow an input to; larger ones are hand-made."""

NUMBERS = (
    *(n.to_bytes(4, "big") for n in (0, 1, 4, 7, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 1 << 24)),
    *(n.to_bytes(4, "big") for n in (16_777_212, 16_777_213, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)),
    *(n.to_bytes(2, "big") for n in (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF)),
    *(n.to_bytes(8, "big") for n in (0, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)),
)
JSON_TOKENS = (
    *(b"{", b"}", b"[", b"]", b'"', b"'", b":", b",", b",,", b"\\", b"/", b" ", b"\n", b"\0", b"{{", b"}}:", b"[" * 8),
    *(b"null", b"true", b"false", b"NaN", b"undefined", b"1L", b"-", b"1e999", b"-1e-9", b"0.", b"1" * 40, b"9" * 5000),
    *(b'{"$ref":"$"}', b'{"$ref":"$.a"}', b'{"$ref":".."}', b'{"$ref":"$[0]"}', b'"$ref"', b"$[", b"\\u", b"\\ud83d"),
    *(b"\\ud83d\\ude00", b"\\x4", b'"a":', b"0:", b"{1:2}", b'{{"a":1}:2}', b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xff"),
    *(b"2147483648", b"-2147483649", b"9223372036854775808", b'"1"', b'""', b"\xc3\xa9", b"\xf0\x9f\x98\x80"),
)
TEXT_TOKENS = (
    *(b"=", b":", b"\\", b"\\\n", b"\\u12", b"\\ud800", b"#", b"!", b"\r", b"\n", b"\t", b" ", b"\x01", b"\x02"),
)


def mutated(data: bytes, rng: Random, tokens: Sequence[bytes], others: Sequence[bytes]) -> bytes:
    """`data` after one to eight small changes; `others` are what it may be spliced with."""
    random = rng.random
    made = bytearray(data)
    for _ in range(_ROUNDS[int(random() * len(_ROUNDS))]):
        size = len(made)
        kind = int(random() * 12)
        at = int(random() * (size + 1))
        if kind <= 1 and size:
            made[at - 1] ^= 1 << int(random() * 8)
        elif kind == 2 and size:
            made[at - 1] = int(random() * 256)
        elif kind <= 4:
            made[at:at] = tokens[int(random() * len(tokens))]
        elif kind == 5:
            token = tokens[int(random() * len(tokens))]
            made[at : at + len(token)] = token
        elif kind <= 7:
            number = NUMBERS[int(random() * len(NUMBERS))]
            made[at : at + len(number)] = number
        elif kind == 8:
            del made[at : at + 1 + int(random() * random() * size)]
        elif kind == 9:
            del made[at:]
        elif kind == 10:
            piece = made[at : at + 1 + int(random() * 32)]
            times = 1 + int(random() * 4) if random() < 0.98 else 2000
            made[at:at] = (piece * times)[:LONGEST]
        else:
            other = others[int(random() * len(others))]
            start = int(random() * (len(other) + 1))
            made[at : at + int(random() * 64)] = other[start : start + int(random() * 256)]
    del made[LONGEST:]
    return bytes(made)


_ROUNDS = (1, 1, 1, 1, 2, 2, 3, 4, 8)

"""A cache of encoded answers to route requests, without I/O. A client's requests for one route differ only in the
opaque.

The cache's key is the pair of the bytes before and the bytes after the opaque of a request's frame.

    JSON       | ...,"opaque": | 4711 | ,"serializeType...} |        key = (before, after), opaque = the digits
    ROCKETMQ   | type..version | 4 bytes at 13 | flag...    |        key = (before, after), opaque = the bytes

Frames with the same bytes before and after the opaque are the same request, so the cached answer is right for all of
them. A request with a cached answer is not parsed. The cache is limited in entries and bytes; entries of a topic are
deleted when the topic's route changes.
"""

from collections.abc import Mapping, Set
from typing import NamedTuple

from ...remoting.codes import RequestCode, SerializeType

MAX_FRAME = 1024
"""Longer requests are not remembered: no client sends them, and a key is as long as its frame."""

_OPAQUE = b'"opaque":'
_OPAQUE_LENGTH = len(_OPAQUE)
_DIGITS_MAX = 9  # so that every digit string of that length is a 32-bit number
_ZERO = ord("0")
_CODE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
_JSON_CODE = b'"code":%d' % _CODE
_BINARY_CODE = _CODE.to_bytes(2, "big")

_Key = tuple[bytes, bytes]


class _Answer(NamedTuple):
    head: bytes
    tail: bytes
    body: bytes  # shared by all answers with the same one
    topic: str


def may_be_route_request(frame: bytes) -> bool:
    """Return quickly whether `frame` may be a route request (105); never False for a route request of RocketMQ's own
    clients."""
    if len(frame) > MAX_FRAME:
        return False
    if frame[4] == SerializeType.ROCKETMQ:
        return frame[8:10] == _BINARY_CODE
    return _JSON_CODE in frame


class RouteCache:
    def __init__(self, *, max_answers: int = 16_384, max_body_bytes: int = 64 * 1024 * 1024) -> None:
        self._max_answers, self._max_body_bytes = max_answers, max_body_bytes
        self._answers: dict[_Key, _Answer] = {}
        self._keys_of: dict[str, set[_Key]] = {}
        self._bodies: dict[str, dict[bool, bytes]] = {}
        self._body_bytes = 0

    def __len__(self) -> int:
        return len(self._answers)

    def answer(self, frame: bytes) -> bytes | None:
        """Return the whole response frame if the cache has an answer to this request; else None."""
        if len(frame) > MAX_FRAME:  # a registration is not copied and hashed in vain
            return None
        if frame[4] == 0:
            at = frame.find(_OPAQUE) + _OPAQUE_LENGTH
            end = frame.find(b",", at)
            opaque = frame[at:end]
            found = self._answers.get((frame[:at], frame[end:]))
            if found is None or not opaque.isdigit() or opaque[0] == _ZERO:
                return None
        else:
            opaque = frame[13:17]
            found = self._answers.get((frame[:13], frame[17:]))
            if found is None:
                return None
        return b"".join((found[0], opaque, found[1], found[2]))

    def learn(self, frame: bytes, opaque: int, topic: str, response: bytes, body: bytes) -> None:
        """Remember `response`, which ends with `body`, as the answer to each frame that equals `frame` except for the
        opaque. Nothing is remembered if the frame's opaque cannot be located with certainty."""
        if len(frame) > MAX_FRAME:
            return
        if frame[4] == SerializeType.ROCKETMQ:
            key = (frame[:13], frame[17:])
            head, tail = response[:13], response[17 : len(response) - len(body)]
        else:
            split = _split_json(frame, opaque)
            answer = _split_json(response[: len(response) - len(body)], opaque)
            if split is None or answer is None:
                return
            key, (head, tail) = split, answer
        while len(self._answers) >= self._max_answers:
            oldest = next(iter(self._answers))
            keys = self._keys_of[self._answers.pop(oldest).topic]
            keys.discard(oldest)
        self._answers[key] = _Answer(head, tail, body, topic)
        self._keys_of.setdefault(topic, set()).add(key)

    def body(self, topic: str, standard_json: bool) -> bytes | None:
        bodies = self._bodies.get(topic)
        return None if bodies is None else bodies.get(standard_json)

    def keep_body(self, topic: str, standard_json: bool, body: bytes) -> None:
        if self._body_bytes + len(body) > self._max_body_bytes:
            self.clear()
        self._bodies.setdefault(topic, {})[standard_json] = body
        self._body_bytes += len(body)

    def forget(self, topics: Set[str]) -> None:
        for topic in _both(self._keys_of, topics):
            for key in self._keys_of.pop(topic):
                del self._answers[key]
        for topic in _both(self._bodies, topics):
            for body in self._bodies.pop(topic).values():
                self._body_bytes -= len(body)

    def clear(self) -> None:
        """Delete all cached answers: every answer may have changed, or the cache is full."""
        self._answers.clear()
        self._keys_of.clear()
        self._bodies.clear()
        self._body_bytes = 0


def _both(held: Mapping[str, object], topics: Set[str]) -> list[str]:
    """The topics that are in both sets; iterates over the smaller one, because a broker may change ten thousand topics
    of which clients have asked for ten."""
    return [topic for topic in held if topic in topics] if len(held) < len(topics) else [t for t in topics if t in held]


def _split_json(frame: bytes, opaque: int) -> _Key | None:
    """The bytes before and after the opaque's digits; None if the opaque could be at several places."""
    digits = b"%d" % opaque
    at = frame.find(_OPAQUE) + _OPAQUE_LENGTH
    end = at + len(digits)
    if (
        frame.count(b"opaque") != 1
        or b"\\" in frame[8:]
        or at < _OPAQUE_LENGTH
        or opaque <= 0
        or len(digits) > _DIGITS_MAX
        or frame[at:end] != digits
        or frame[end : end + 1] != b","
    ):
        return None
    return frame[:at], frame[end:]

"""Encodes a RemotingCommand as a frame, decodes a frame, and cuts a byte stream into frames. Pure; all integers
big-endian.

    0        4   5         8            8+headerLen
    | total  |type|headerLen| header ... | body ... |        total = bytes after it = 4 + headerLen + bodyLen
      4 byte   1      3       headerLen    the rest

    type 0, header = JSON object with sorted keys and without nulls
    {"code":105,"extFields":{"topic":"T"},"flag":0,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":477}

    type 1, header = ROCKETMQ binary
    | code 2 | language 1 | version 2 | opaque 4 | flag 4 | len 4, remark | len 4, map: (len 2, key | len 4, value)* |

A frame does not distinguish an absent body from an empty body. The binary header does not distinguish an absent remark
or map from an empty remark or map. An empty value in the header's map is read as "", where Java reads null. Upstream:
`NettyDecoder`, `NettyEncoder`, `RemotingCommand`, `RocketMQSerializable`.
"""

import operator
import reprlib
import struct

import orjson

from . import fastjson
from .codes import LanguageCode, SerializeType
from .command import RemotingCommand
from .errors import LocalProtocolError, RemoteProtocolError

FRAME_MAX = 16_777_216
"""The longest frame that is read or written, its first four bytes included (`NettyDecoder`)."""

NO_OPAQUE = -1
"""The opaque of a JSON header without one: nobody ever waits for it (Java takes a fresh number, to the same effect)."""

JSON_DIALECT_MAX = 65_536
"""The longest JSON header that is read when it is not standard JSON, or has objects for texts; both are slow."""

_HEADER_WORD_MAX = (1 << 24) - 1
_INT32 = range(-(1 << 31), 1 << 31)
_PREFIX = struct.Struct(">II")
_FIXED = struct.Struct(">hBhiii")
_WORD = struct.Struct(">I")
_LANGUAGES: dict[object, LanguageCode] = {key: code for code in LanguageCode for key in (code.name, int(code))}
_LANGUAGE_NAMES = {code: code.name for code in LanguageCode}
_JSON = SerializeType.JSON
_ONLY_TEXT = frozenset({str})
_WRITTEN_BY_ALL = operator.itemgetter("code", "flag", "language", "opaque", "version")


def encode_frame(command: RemotingCommand) -> bytes:
    """Encode `command` as one whole frame. Raises LocalProtocolError for a command that a frame cannot express."""
    try:
        header = _json_header(command) if command.serialize_type == _JSON else _binary_header(command)
    except (TypeError, ValueError, AttributeError, OverflowError, struct.error) as exc:
        raise LocalProtocolError(f"request or response {command.code} cannot be written: {exc}") from exc
    length = len(header)
    total = 4 + length + len(command.body)
    if total + 4 > FRAME_MAX or length > _HEADER_WORD_MAX:
        raise LocalProtocolError(f"frame of {total + 4} B exceeds {FRAME_MAX} B")
    return b"".join((_PREFIX.pack(total, command.serialize_type << 24 | length), header, command.body))


def decode_frame(frame: bytes | memoryview) -> RemotingCommand:
    """Decode one whole frame, with its four length bytes. RemoteProtocolError for other bytes."""
    size = len(frame)
    if size < 8:
        raise RemoteProtocolError(f"frame of {size} B is shorter than its 8 B prefix")
    total, word = _PREFIX.unpack_from(frame)
    if total + 4 != size:
        raise RemoteProtocolError(f"frame of {size} B says it has {total + 4} B")
    if word <= total - 4 and word <= _HEADER_WORD_MAX:  # as nearly always: JSON, and no longer than its frame
        end = 8 + word
        command = _from_json(frame[8:end])
    else:
        end = 8 + _checked_header_length(word, total)
        command = _from_binary(frame[8:end]) if frame[4] else _from_json(frame[8:end])
    if end < size:
        command.body = bytes(frame[end:])
    return command


class FrameReader:
    """Cuts incoming bytes into whole frames; the reader stores only the received bytes of one unfinished frame."""

    __slots__ = ("_buffer", "_frame_max", "_needed", "error")

    def __init__(self, frame_max: int = FRAME_MAX) -> None:
        self._frame_max = frame_max
        self._buffer = bytearray()
        self._needed = 0  # length of the unfinished frame in the buffer once its prefix is known, else 0
        self.error: RemoteProtocolError | None = None
        """Set as soon as the stream is known to be broken; from then on `feed` raises it."""

    @property
    def unfinished(self) -> int:
        """The number of bytes that were received of the unfinished frame."""
        return len(self._buffer)

    def rest(self) -> bytes:
        return bytes(self._buffer)

    def is_one_frame(self, data: bytes) -> bool:
        """Whether `data` is exactly one whole frame and no frame is unfinished; `feed` is then not needed. The header
        word is not checked here, but by decode_frame."""
        size = len(data)
        return (
            8 <= size <= self._frame_max
            and int.from_bytes(data[:4], "big") == size - 4
            and not self._buffer
            and self.error is None
        )

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that `data` completes, each with its four length bytes.

        An impossible length or header word raises RemoteProtocolError at once. If whole frames come before the
        impossible length or word, `feed` returns these frames, and the next call raises `error`.
        """
        if self.error is not None:
            raise self.error
        buffer = self._buffer
        if buffer:
            buffer += data
            if len(buffer) < self._needed:
                return []
            data = bytes(buffer)
            self._buffer = bytearray()
        self._needed = 0
        size = len(data)
        frames: list[bytes] = []
        start = 0
        while (left := size - start) >= 4:
            try:
                needed = self._frame_length(data, start, left)
            except RemoteProtocolError as exc:
                self.error = exc
                if not frames:
                    raise
                return frames
            if left < needed:
                self._needed = needed if left >= 8 else 0
                break
            end = start + needed
            frames.append(data[start:end])
            start = end
        if start < size:
            self._buffer += memoryview(data)[start:]
        return frames

    def _frame_length(self, data: bytes, start: int, left: int) -> int:
        total = _word(data, start)
        if total + 4 > self._frame_max:
            raise RemoteProtocolError(f"frame of {total + 4} B exceeds {self._frame_max} B")
        if total < 4:
            raise RemoteProtocolError(f"frame length {total} is less than 4")
        if left >= 8:
            _checked_header_length(_word(data, start + 4), total)
        return total + 4


def _word(data: bytes | memoryview, at: int) -> int:
    (value,) = _WORD.unpack_from(data, at)
    return int(value)


def _checked_header_length(word: int, total: int) -> int:
    length = word & _HEADER_WORD_MAX
    if word >> 24 > 1:
        raise RemoteProtocolError(f"serialize type {word >> 24} is neither 0 (JSON) nor 1 (ROCKETMQ)")
    if length > total - 4:
        raise RemoteProtocolError(f"header of {length} B is longer than the {total - 4} B of its frame")
    return length


# --- JSON ---------------------------------------------------------------------------------------------------------


def _json_header(command: RemotingCommand) -> bytes:
    code, flag, opaque, version = command.code, command.flag, command.opaque, command.version
    if not (
        -0x8000_0000 <= code < 0x8000_0000
        and -0x8000_0000 <= flag < 0x8000_0000
        and -0x8000_0000 <= opaque < 0x8000_0000
        and -0x8000_0000 <= version < 0x8000_0000
    ):
        raise ValueError(f"one of {code}, {flag}, {opaque} and {version} does not fit 32 bits")
    fields: dict[str, object] = {
        "code": int(code),
        "flag": int(flag),
        "opaque": opaque,
        "serializeTypeCurrentRPC": "JSON",
        "version": version,
    }
    if command.language is not None:
        fields["language"] = _LANGUAGE_NAMES[command.language]
    if command.remark is not None:
        fields["remark"] = command.remark
    if command.ext_fields is not None:
        fields["extFields"] = command.ext_fields
    return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)


def _from_json(header: bytes | memoryview) -> RemotingCommand:
    try:
        fields = orjson.loads(header)
        code, flag, language, opaque, version = _WRITTEN_BY_ALL(fields)
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return _from_unusual_json(header)
    get = fields.get
    remark, ext = get("remark"), get("extFields")
    if (
        (type(code) is type(version) is type(opaque) is type(flag) is int)
        and -0x8000_0000 <= code < 0x8000_0000
        and -0x8000_0000 <= version < 0x8000_0000
        and -0x8000_0000 <= opaque < 0x8000_0000
        and -0x8000_0000 <= flag < 0x8000_0000
        and type(language) is str
        and (remark is None or type(remark) is str)
        and (ext is None or (type(ext) is dict and _ONLY_TEXT.issuperset(map(type, ext.values()))))
    ):  # as every client writes it
        return RemotingCommand(code, _LANGUAGES.get(language), version, opaque, flag, remark, ext)
    return _from_unusual_json(header)


def _from_unusual_json(header: bytes | memoryview) -> RemotingCommand:
    try:
        fields = orjson.loads(header)
    except orjson.JSONDecodeError:
        fields = fastjson.loads(bytes(header), max_bytes=JSON_DIALECT_MAX)
    if not isinstance(fields, dict):
        raise RemoteProtocolError(f"JSON header is a {type(fields).__name__}, not an object")
    get = fields.get
    remark, ext = get("remark"), get("extFields")
    language = get("language", "JAVA")
    if ext is not None and not isinstance(ext, dict):
        raise RemoteProtocolError(f"extFields is a {type(ext).__name__}, not an object")
    return RemotingCommand(
        _json_int("code", get("code"), 0),
        _LANGUAGES.get(language) if isinstance(language, str | int) else None,
        _json_int("version", get("version"), 0),
        _json_int("opaque", get("opaque"), NO_OPAQUE),
        _json_int("flag", get("flag"), 0),
        remark if remark is None or isinstance(remark, str) else _as_text(remark),
        None if ext is None else _json_ext_fields(ext, len(header)),
    )


def _json_int(name: str, value: object, default: int) -> int:
    """The integer that Java's cast gives: numbers written as strings are numbers, null is the default."""
    if value is None:
        return default
    if type(value) is not int:
        try:
            if isinstance(value, str):
                value = int(value) if value.strip() else default
            elif isinstance(value, bool | float):
                value = int(value)
        except (ValueError, OverflowError) as exc:
            raise RemoteProtocolError(f"{name} in the JSON header is not a number: {reprlib.repr(value)}") from exc
    if not isinstance(value, int) or value not in _INT32:
        raise RemoteProtocolError(f"{name} in the JSON header is not a 32-bit number: {reprlib.repr(value)}")
    return value


def _json_ext_fields(ext: dict[object, object], length: int) -> dict[str, str]:
    for key, value in ext.items():
        if type(value) is not str or type(key) is not str:
            if length > JSON_DIALECT_MAX and any(isinstance(item, dict | list) for item in ext.values()):
                raise RemoteProtocolError(f"an object is in the extFields of a header of {length} B")
            return {_as_text(key): _as_text(item) for key, item in ext.items() if item is not None}
    return ext  # type: ignore[return-value]  # it has just been looked at


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return fastjson.dumps(value).decode()
    except LocalProtocolError as exc:
        raise RemoteProtocolError(f"a value in the JSON header cannot be read: {exc}") from exc


# --- ROCKETMQ binary ----------------------------------------------------------------------------------------------


def _binary_header(command: RemotingCommand) -> bytes:
    if command.language is None:
        raise ValueError("it names no language")
    remark = (command.remark or "").encode()
    entries: list[bytes] = []
    for key, value in (command.ext_fields or {}).items():
        key_bytes, value_bytes = key.encode(), value.encode()
        if len(key_bytes) > 32767:
            raise ValueError(f"the name {key[:40]!r}… of an ext field is longer than 32767 B")
        entries += (len(key_bytes).to_bytes(2, "big"), key_bytes, len(value_bytes).to_bytes(4, "big"), value_bytes)
    ext = b"".join(entries)
    fixed = _FIXED.pack(
        command.code, command.language, command.version, command.opaque, command.flag, len(remark)
    )  # struct.error where a number does not fit: codes above 32767 need JSON
    return b"".join((fixed, remark, len(ext).to_bytes(4, "big"), ext))


def _from_binary(header: bytes | memoryview) -> RemotingCommand:
    data = bytes(header)
    try:
        code, language, version, opaque, flag, remark_length = _FIXED.unpack_from(data)
        remark, at = _text(data, _FIXED.size, remark_length)
        ext_length = _word(data, at)
    except struct.error as exc:
        raise RemoteProtocolError(f"binary header of {len(data)} B is cut short") from exc
    ext = _binary_ext_fields(data, at + 4, ext_length)
    return RemotingCommand(
        code,
        _LANGUAGES.get(language),
        version,
        opaque,
        flag,
        remark or None,
        ext,
        serialize_type=SerializeType.ROCKETMQ,
    )


def _binary_ext_fields(data: bytes, at: int, length: int) -> dict[str, str] | None:
    if length == 0:
        return None
    end = at + length
    if end > len(data):
        raise RemoteProtocolError(f"ext fields of {length} B exceed the {len(data) - at} B left of the header")
    fields: dict[str, str] = {}
    while at < end:
        key, at = _text(data, at + 2, int.from_bytes(data[at : at + 2], "big", signed=True), end)
        value, at = _text(data, at + 4, int.from_bytes(data[at : at + 4], "big", signed=True), end)
        fields[key] = value
    return fields


def _text(data: bytes, at: int, length: int, limit: int | None = None) -> tuple[str, int]:
    """The UTF-8 text of `length` bytes at `at`, and where it ends. As in Java, bad UTF-8 is replaced, not refused."""
    end = at + length
    if length < 0 or end > (len(data) if limit is None else limit):
        raise RemoteProtocolError(f"text of {length} B at byte {at} exceeds its binary header")
    return data[at:end].decode("utf-8", "replace"), end

"""What is fuzzed: each target takes bytes, reads them as the code under test would, and holds the result to a rule.

A target raises nothing but the errors that its reader documents; those are swallowed here. Whatever else escapes, an
AssertionError included, is a finding.
"""

import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.remoting import compression, fastjson
from nemesrv.remoting.bodies import client as client_bodies
from nemesrv.remoting.bodies import register as register_body
from nemesrv.remoting.bodies import register_rows
from nemesrv.remoting.bodies import route as route_bodies
from nemesrv.remoting.bodies.fields import Body
from nemesrv.remoting.bodies.register import RegisterBrokerBody
from nemesrv.remoting.bodies.route import QueueData, TopicConfig
from nemesrv.remoting.codes import SerializeType
from nemesrv.remoting.errors import LocalProtocolError, RemoteProtocolError
from nemesrv.remoting.fastjson import ObjectKey
from nemesrv.remoting.frame import FrameReader, decode_frame, encode_frame
from nemesrv.remoting.headers import broker as broker_headers
from nemesrv.remoting.headers import namesrv as namesrv_headers
from nemesrv.remoting.headers.broker import SendMessageRequestHeader
from nemesrv.remoting.headers.fields import HeaderFields
from nemesrv.remoting.message import StoredMessage
from nemesrv.remoting.message_batch import decode_batch
from nemesrv.remoting.message_properties import format_properties, parse_properties
from nemesrv.remoting.properties import format_properties as format_file
from nemesrv.remoting.properties import parse_properties as parse_file

from . import seeds
from .mutation import JSON_TOKENS, TEXT_TOKENS
from .name_server import NameServerUnderFuzz

Wrap = Callable[[bytes, Random], bytes]


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    weight: int
    """Its share of all inputs."""
    seeds: Callable[[], list[bytes]]
    make: Callable[[], Callable[[bytes], None]]
    """The function that is given each input; made anew for each batch, so that state does not pile up."""
    tokens: Sequence[bytes] = JSON_TOKENS
    wrap: Wrap | None = None
    """What becomes of a mutated input before the target gets it, such as its lengths put right."""


# --- wraps ------------------------------------------------------------------------------------------------------------


def with_lengths(frame: bytes, rng: Random) -> bytes:
    """In three of four frames the lengths fit again, so that what is inside them is read, too."""
    if rng.random() < 0.25 or len(frame) < 8:
        return frame
    total = len(frame) - 4
    header = min(int.from_bytes(frame[5:8], "big"), total - 4)
    return b"".join((total.to_bytes(4, "big"), frame[4:5], header.to_bytes(3, "big"), frame[8:]))


def as_header(header: bytes, rng: Random) -> bytes:
    kind = rng.random() < 0.5 if header[:1] != b"{" else rng.random() < 0.05
    return b"".join(((len(header) + 4).to_bytes(4, "big"), bytes([kind]), len(header).to_bytes(3, "big"), header))


def deflated(inflated: bytes, rng: Random) -> bytes:
    chance = rng.random()
    if chance < 0.001:
        inflated += bytes(17 * 1024 * 1024)  # a bomb: it inflates to more than is allowed
    packed = zlib.compress(inflated, 1)
    if chance > 0.9:
        packed = packed[: int(rng.random() * len(packed))] + packed[int(rng.random() * len(packed)) :]
    return packed


# --- checks -----------------------------------------------------------------------------------------------------------


def _brief(error: Exception) -> None:
    """An error's text goes into logs and remarks, so it may not hold all that a peer sent."""
    assert len(str(error)) < 1000


def frame(data: bytes) -> None:
    """Decoded in one piece and cut by FrameReader, whole and in two halves, the result is the same."""
    try:
        command = decode_frame(data)
    except RemoteProtocolError:
        command = None
    whole, halves = FrameReader(), FrameReader()
    middle = len(data) // 2
    assert _fed(whole, data) == _fed(halves, data[:middle], data[middle:])
    if command is not None:
        assert _fed(FrameReader(), data) == [data]
        _again(command)


def _fed(reader: FrameReader, *pieces: bytes) -> list[bytes]:
    found: list[bytes] = []
    try:
        for piece in pieces:
            found += reader.feed(piece)
    except RemoteProtocolError:
        pass
    return found


def _again(command: object) -> None:
    """A decoded command that can be encoded is the same when decoded again."""
    assert hasattr(command, "ext_fields")
    for kind in SerializeType:
        command.serialize_type = kind  # type: ignore[attr-defined]
        try:
            encoded = encode_frame(command)  # type: ignore[arg-type]
        except LocalProtocolError:  # its language is not known, or a code does not fit a ROCKETMQ header
            continue
        again = decode_frame(encoded)
        if kind is SerializeType.ROCKETMQ:  # in which absent and empty are the same
            again.remark, again.ext_fields = again.remark or None, again.ext_fields or None
            command.remark, command.ext_fields = command.remark or None, command.ext_fields or None  # type: ignore[attr-defined]
        if command.language is None:  # type: ignore[attr-defined]
            again.language = None
        assert again == command


def header(data: bytes) -> None:
    try:
        command = decode_frame(data)
    except RemoteProtocolError:
        return
    for key, value in (command.ext_fields or {}).items():
        assert type(key) is str
        assert type(value) is str
    _again(command)


def document(data: bytes) -> None:
    """What is read and can be written reads the same again, in both dialects."""
    try:
        value = fastjson.loads(data)
    except RemoteProtocolError:
        return
    for browser in (False, True):
        try:
            text = fastjson.dumps(value, browser_compatible=browser)
        except LocalProtocolError:  # nested too deep
            return
        try:
            again = fastjson.loads(text)
        except RemoteProtocolError as exc:
            raise AssertionError(f"written and not read: {text[:200]!r}") from exc
        if not browser:
            assert _without_nulls(again) == _without_nulls(value)


def _without_nulls(value: object) -> object:
    if isinstance(value, ObjectKey):
        return _without_nulls(dict(value))
    if isinstance(value, dict):
        items = ((str(_without_nulls(key)), _without_nulls(item)) for key, item in value.items())
        return sorted((key, repr(item)) for key, item in items if item is not None)
    if isinstance(value, list | tuple):
        return [_without_nulls(item) for item in value]
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:  # in standard JSON that reads as a float
        value = float(value) if abs(value) < 1 << 1000 else None
    if isinstance(value, float):
        return value if value - value == 0 else None
    return value


BODIES: tuple[type[Body], ...] = tuple(
    body
    for module in (client_bodies, register_body, route_bodies)
    for body in vars(module).values()
    if isinstance(body, type) and issubclass(body, Body) and body.__module__ == module.__name__
)


def body(data: bytes) -> None:
    """Every body type takes or refuses the document; what it takes, it writes and takes again."""
    try:
        value = fastjson.loads(data)
    except RemoteProtocolError:
        return
    for kind in BODIES if isinstance(value, dict) else BODIES[:1]:
        try:
            made = kind.from_json(value)
        except RemoteProtocolError as exc:
            _brief(exc)
            continue
        try:
            encoded = made.encode()
        except LocalProtocolError:
            continue
        kind.decode(encoded)


def registration(data: bytes) -> None:
    """Of some sender's version; what was read is written, in one form or the other."""
    version = (0, 79, 409, 479)[len(data) % 4]
    try:
        read = RegisterBrokerBody.decode(data, version=version)
    except RemoteProtocolError as exc:
        _brief(exc)
        return
    for topic in read.topics:
        assert type(topic.topic_name) is str
    if len(data) % 8 > 5:
        read.encode(compressed=len(data) % 16 > 7)


class RowsUnderFuzz:
    """A registration read in pieces, those of last time left out, has the rows that it has when read whole."""

    def __init__(self) -> None:
        (original,) = seeds.long_registrations()
        self._last = self._read(original, register_rows.NO_PIECES)

    def __call__(self, data: bytes) -> None:
        try:
            whole = RegisterBrokerBody.decode(data)
        except RemoteProtocolError:
            whole = None
        try:
            read = self._read(data, register_rows.NO_PIECES)
            rest = self._read(data, self._last.pieces)
        except RemoteProtocolError:
            assert whole is None
            return
        assert whole is not None
        rows, expected = dict(read.rows), {topic.topic_name: _numbers(topic) for topic in whole.topics}
        if len(rows) < len(read.rows) or _has_a_key_twice(data):
            return  # a topic or a key is there twice, and either may be taken
        assert {name: _numbers(row) for name, row in rows.items()} == expected
        assert rows.items() - dict(self._last.rows).items() <= dict(rest.rows).items() <= rows.items()
        assert (read.body.data_version, read.body.filter_server_list) == (whole.data_version, whole.filter_server_list)

    @staticmethod
    def _read(data: bytes, last: register_rows.Pieces) -> register_rows.RegisteredRows:
        usual, register_rows.PIECE = register_rows.PIECE, 400  # about two topics, so that a short body has many
        try:
            return register_rows.read_rows(data, "broker-a", version=479, last=last)
        finally:
            register_rows.PIECE = usual


def _has_a_key_twice(data: bytes) -> bool:
    """Whether something that may be a topic of the long registration is a key in two places, in whatever dialect."""
    keys = re.findall(rb"(topic-\d+)['\"]?\s{0,9}:", data)
    return len(set(keys)) < len(keys)


def _numbers(row: TopicConfig | QueueData) -> tuple[int, ...]:
    return row.read_queue_nums, row.write_queue_nums, row.perm, row.topic_sys_flag


def record(data: bytes) -> None:
    """Read as a consumer does and as the store does; a record that is read is written as it was."""
    for message in StoredMessage.decode_all(data):
        _use(message)
    position = 0
    try:
        while position < len(data):
            message, end = StoredMessage.decode_at(data, position, strict=True)
            assert end - position == len(message.encode())
            position = end
            _use(message)
    except RemoteProtocolError:
        pass
    except LocalProtocolError as exc:
        raise AssertionError("a record that was read cannot be written") from exc


def _use(message: StoredMessage) -> None:
    assert message.msg_id
    for text in (message.tags, message.keys, message.topic):
        assert text is None or type(text) is str
    try:
        assert len(message.inflated_body) <= compression.INFLATED_MAX
    except RemoteProtocolError:
        pass


def batch(data: bytes) -> None:
    try:
        items = decode_batch(data)
    except RemoteProtocolError:
        return
    assert decode_batch(b"".join(map(seeds.encode_item, items))) == items


def compressed(data: bytes) -> None:
    kind = 0x001 if data[:1] == b"\x78" else 0x101 if data[:1] == b"\x04" else 0x201 if data[:1] == b"\x28" else 0x701
    try:
        assert len(compression.decompress(data, kind)) <= compression.INFLATED_MAX
    except RemoteProtocolError:
        pass


def properties_string(data: bytes) -> None:
    found = parse_properties(data.decode("utf-8", "replace"))
    try:
        text = format_properties(found)
    except LocalProtocolError:  # a value may hold the separator of names and values
        return
    assert parse_properties(text) == found


def properties_file(data: bytes) -> None:
    """A settings file is read or refused in one sentence; what is read is written and read the same."""
    try:
        found = parse_file(data)
        text = format_file(found)
        text.encode()
        assert parse_file(text) == found
        config = NamesrvConfig.from_properties(found)
    except UnicodeError:
        raise
    except ValueError as exc:  # ConfigError among them
        _brief(exc)
        return
    again = NamesrvConfig.from_properties(parse_file(format_file(config.stored_properties())))
    assert again.properties() == config.properties()


HEADERS: tuple[type[HeaderFields], ...] = tuple(
    each
    for module in (namesrv_headers, broker_headers)
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, HeaderFields) and each is not HeaderFields
)


def ext_fields(data: bytes) -> None:
    pairs = (item.partition("\x1f") for item in data.decode("utf-8", "replace").split("\0"))
    fields = {name: value for name, _, value in pairs}
    for kind in HEADERS:
        try:
            made = kind.from_ext_fields(fields)
        except RemoteProtocolError as exc:
            _brief(exc)
            continue
        assert kind.from_ext_fields(made.to_ext_fields()) == made
    try:
        sent = SendMessageRequestHeader.from_v2(fields)
    except RemoteProtocolError:
        return
    assert SendMessageRequestHeader.from_v2(sent.to_v2()) == sent


def _plain(check: Callable[[bytes], None]) -> Callable[[], Callable[[bytes], None]]:
    return lambda: check


TARGETS = (
    Target("frame", 15, seeds.frames, _plain(frame), wrap=with_lengths),
    Target("header", 18, seeds.headers, _plain(header), wrap=as_header),
    Target("json", 14, seeds.documents, _plain(document)),
    Target("bodies", 4, seeds.documents, _plain(body)),
    Target("registration", 6, lambda: [b for b in seeds.documents() if b"topicConfig" in b], _plain(registration)),
    Target("registration, compressed", 4, seeds.inflated_registrations, _plain(registration), wrap=deflated),
    Target("registration in pieces", 3, seeds.long_registrations, RowsUnderFuzz),
    Target("record", 8, seeds.records, _plain(record)),
    Target("batch", 4, seeds.batches, _plain(batch)),
    Target("compressed body", 4, seeds.compressed_bodies, _plain(compressed)),
    Target("properties string", 4, lambda: [b"KEYS\x01a b\x02TAGS\x01T\x02"], _plain(properties_string), TEXT_TOKENS),
    Target("properties file", 4, seeds.properties_files, _plain(properties_file), TEXT_TOKENS),
    Target("ext fields", 2, seeds.ext_fields, _plain(ext_fields), (*TEXT_TOKENS, b"\x1f", b"\0", b"-", b"9" * 30)),
    Target("name server 4.9", 5, seeds.frames, lambda: NameServerUnderFuzz("4.9"), wrap=with_lengths),
    Target("name server 5.x", 5, seeds.frames, lambda: NameServerUnderFuzz("5.x"), wrap=with_lengths),
)

"""Decodes the bytes of one connection into requests, answers and server requests, without socket or clock.

    client's bytes ─► Stream ─► frames ─► Conversation.of_client ─► Asked
    server's bytes ─► Stream ─► frames ─► Conversation.of_server ─► Answered, Pushed
                        └─► broken: TLS, gRPC, HTTP or garbage  ──► Foreign, and nothing more is decoded

A broken stream keeps the bytes that belong to no frame, so that the front can pass them on.
"""

from collections.abc import Mapping, Sequence

from ...remoting.codes import FLAG_ONEWAY, FLAG_RESPONSE, LanguageCode, RequestCode, SerializeType
from ...remoting.errors import RemoteProtocolError
from ...remoting.frame import FrameReader, decode_frame
from .observed import Answered, Asked, By, Foreign, Protocol, Pushed

BODIES_OF_REQUESTS = frozenset({10, 34, 35, 103, 217, 310, 320, 325})
"""Requests whose body is needed: sends (325 is a reply message), heartbeats, unregistrations, broker registrations."""
ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
BODIES_OF_ANSWERS = frozenset({ROUTE, int(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET)})
BEGAN_MAX = 32
WAITING_MAX = 65_536
"""Unanswered requests remembered per connection. A client that has sent more gave up the first long ago."""

_LANGUAGES: Mapping[LanguageCode | None, str] = {code: code.name for code in LanguageCode}
_METHODS = (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"HTTP")


class Stream:
    """Cuts the bytes of one direction into frames."""

    __slots__ = ("_head", "_reader", "began", "is_broken", "passed", "rest")

    def __init__(self) -> None:
        self._reader = FrameReader()
        self._head = b""  # the first bytes of an unfinished frame, as long as its prefix is not there
        self.passed = 0
        """How many bytes of the unfinished frame have been passed on already."""
        self.is_broken = False
        self.began = self.rest = b""
        """Once broken: what is no frame; and which bytes have come behind the last whole frame."""

    @property
    def unfinished(self) -> int:
        return self._reader.unfinished

    def feed(self, data: bytes) -> Sequence[bytes]:
        """Return the frames that `data` completes; none once the stream is broken."""
        if self.is_broken:
            return ()
        reader = self._reader
        if reader.is_one_frame(data):
            return (data,)
        head, before = self._head, reader.unfinished
        try:
            frames = reader.feed(data)
            broken = reader.error is not None
        except RemoteProtocolError:  # always in a frame's first 8 bytes
            frames, broken = [], True
        if broken:
            self.is_broken = True
            self.began = self.rest = data[sum(map(len, frames)) - before :] if frames else head + data
        else:
            size = reader.unfinished
            self._head = b"" if size >= 8 else (head + data)[-size:] if size else b""
        return frames

    def break_off(self, frame: bytes) -> None:
        """Mark the stream as broken at `frame`, which has a correct length but cannot be decoded."""
        if not self.is_broken:
            self.is_broken, self.began, self.rest = True, frame, self._reader.rest()


class Conversation:
    """One connection. A conversation remembers requests by opaque, so it knows which request an answer belongs to."""

    __slots__ = ("_connection", "_front", "_waiting")

    def __init__(self, front: str, connection: int) -> None:
        self._front, self._connection = front, connection
        self._waiting: dict[int, tuple[int, str]] = {}

    def of_client(self, frame: bytes, at_ms: float) -> Asked | None:
        """Return the client's request in the frame; None for an answer to a server's request. Raises
        RemoteProtocolError."""
        command = decode_frame(frame)
        flag, code = command.flag, command.code
        if flag & FLAG_RESPONSE:
            return None
        fields = command.ext_fields or {}
        if not flag & FLAG_ONEWAY:
            if len(self._waiting) >= WAITING_MAX:
                self._waiting.pop(next(iter(self._waiting)))
            self._waiting[command.opaque] = (code, fields.get("topic", "") if code == ROUTE else "")
        return Asked(
            at_ms,
            self._front,
            self._connection,
            command.opaque,
            code,
            fields,
            oneway=bool(flag & FLAG_ONEWAY),
            language=_LANGUAGES.get(command.language),
            version=command.version,
            binary=command.serialize_type is SerializeType.ROCKETMQ,
            size=len(frame),
            body=command.body if code in BODIES_OF_REQUESTS else b"",
        )

    def asked_for(self, opaque: int) -> tuple[int, str]:
        """Return the code (and a look-up's topic) of the unanswered request with this opaque; code -1 for an unknown
        opaque."""
        return self._waiting.get(opaque, (-1, ""))

    def of_server(self, frame: bytes, at_ms: float, by: By = By.SERVER) -> Answered | Pushed:
        """Return the server's response or request in the frame. Raises RemoteProtocolError."""
        command = decode_frame(frame)
        fields = command.ext_fields or {}
        if not command.flag & FLAG_RESPONSE:
            return Pushed(at_ms=at_ms, front=self._front, connection=self._connection, code=command.code, fields=fields)
        asked, _topic = self._waiting.pop(command.opaque, (-1, ""))
        return Answered(
            at_ms,
            self._front,
            self._connection,
            command.opaque,
            command.code,
            command.remark,
            fields,
            len(frame),
            command.body if asked in BODIES_OF_ANSWERS else b"",
            by,
        )

    def foreign(self, began: bytes, at_ms: float) -> Foreign:
        return Foreign(
            at_ms=at_ms,
            front=self._front,
            connection=self._connection,
            protocol=protocol_of(began),
            began=bytes(began[:BEGAN_MAX]),
        )


def protocol_of(began: bytes) -> Protocol:
    """Return the protocol that begins with these four or more bytes: TLS, HTTP/2 (as gRPC), HTTP, or unknown."""
    if began[:2] == b"\x16\x03":  # a handshake record of any TLS version
        return Protocol.TLS
    if began[:4] == b"PRI ":
        return Protocol.GRPC
    return Protocol.HTTP if began[:4] in _METHODS else Protocol.UNKNOWN

"""What is seen of an outside client from where it dials: connects, connections, frames, and what it says of itself.

client ──connect()──► Dialled          every attempt, also one that is refused or never answered (dials.py)
       ──SYNs stop──► GaveUp           a dial without an answer ended: the client has closed its socket
       ──TCP────────► Opened … Closed  what a front accepted, and who ended it
       ──frames─────► Asked, Answered, Pushed, or Foreign (not RocketMQ's remoting protocol)
       ──stdout─────► Reported         what the program says itself, if it speaks docs/conform-protocol.md
front  ──────────────► Behaved         from now on it does this
stand  ──────────────► Happened        what no front does: a broker died, the list changed

Plain frozen values in order of time; nothing here opens a socket. Times are milliseconds on the stand's clock. There
are two of them a request, so what is asked and answered are tuples, which are made five times as fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from ...remoting.node.network import Address
from .behaviour import Behaviour

_NONE: Mapping[str, str] = MappingProxyType({})


class By(StrEnum):
    """Who did it."""

    CLIENT = "client"
    SERVER = "server"
    FRONT = "front"


class How(StrEnum):
    """How a connection ended."""

    FIN = "fin"
    RST = "rst"


class Protocol(StrEnum):
    """What a peer spoke that is not RocketMQ's remoting protocol."""

    TLS = "TLS"
    GRPC = "gRPC"
    HTTP = "HTTP"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialled:
    """The client's process called connect()."""

    at_ms: float
    address: Address
    front: str | None
    """The front's name (ns-0, broker-a); None: somewhere else, so traffic that goes round the fronts."""
    process: int
    thread: int | None = None
    """None: not seen, or the process's first, of which all clients dial in languages without threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GaveUp:
    """A dial that had no answer is over: the socket in SYN_SENT (/proc/net/tcp) is gone. As exact as it is looked."""

    at_ms: float
    address: Address
    front: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A front accepted a connection. `connection` is unique within the stand."""

    at_ms: float
    front: str
    connection: int
    peer: Address
    """The client's end."""
    process: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    at_ms: float
    front: str
    connection: int
    by: By
    how: How = How.FIN


class Asked(NamedTuple):
    """A whole request frame has come from the client."""

    at_ms: float
    front: str
    connection: int
    opaque: int
    code: int
    fields: Mapping[str, str] = _NONE
    oneway: bool = False
    language: str | None = None
    """RocketMQ's LanguageCode by name; clients of other languages often say JAVA."""
    version: int = 0
    binary: bool = False
    """The header is RocketMQ's own serialisation, not JSON."""
    size: int = 0
    """Bytes of the whole frame."""
    body: bytes = b""
    """Of heartbeats, unregistrations, sends and registrations of brokers; else empty."""


class Answered(NamedTuple):
    """A whole response frame went to the client."""

    at_ms: float
    front: str
    connection: int
    opaque: int
    code: int
    remark: str | None = None
    fields: Mapping[str, str] = _NONE
    size: int = 0
    body: bytes = b""
    """Of look-ups of a route, and of an offset reset; else empty."""
    by: By = By.SERVER
    """FRONT: the front made this answer itself, or changed its route."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """The server asked the client something: NOTIFY_CONSUMER_IDS_CHANGED 40, CHECK_TRANSACTION_STATE 39 …"""

    at_ms: float
    front: str
    connection: int
    code: int
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """What came on this connection is not RocketMQ's remoting protocol. Its bytes are passed on all the same."""

    at_ms: float
    front: str
    connection: int
    protocol: Protocol
    began: bytes
    """Its first bytes, 32 at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaved:
    """From now on the front behaves so. Every process of a situation sees all of them, those before its start too."""

    at_ms: float
    front: str
    behaviour: Behaviour


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A JSON line of the program itself: f is started, send, sent or received."""

    at_ms: float
    f: str
    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """What the stand did that no front can."""

    at_ms: float
    what: str
    """In the words of a timeline: kill, stop, restart, name_server_list."""
    whom: str = ""
    """The front of the broker, or the number of the process; of a list the fronts of its entries from now on, by ;"""


Observation = Dialled | GaveUp | Opened | Closed | Asked | Answered | Pushed | Foreign | Behaved | Happened | Reported

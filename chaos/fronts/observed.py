"""What is observed of an outside client: connects, connections, frames, and its own reports.

client ──connect()──► Dialled          every attempt, also one that is refused or never answered (dials.py)
       ──SYNs stop──► GaveUp           a connect without an answer ended: the client closed its socket
       ──TCP────────► Opened … Closed  a front accepted it, and who closed it
       ──frames─────► Asked, Answered, Pushed, or Foreign (not RocketMQ's remoting protocol)
       ──stdout─────► Reported         what the program reports, if it speaks docs/conform-protocol.md
front  ──────────────► Behaved         its behaviour from now on
stand  ──────────────► Happened        not by a front: a broker died, the list changed

Observations are immutable values in order of time. Times are milliseconds of the observing process's clock. Asked and
Answered are tuples, because a tuple is created five times as fast as a dataclass.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from ...remoting.node.network import Address
from .behaviour import Behaviour

_NONE: Mapping[str, str] = MappingProxyType({})


class By(StrEnum):
    """Who closed the connection or sent the answer: client, server or front."""

    CLIENT = "client"
    SERVER = "server"
    FRONT = "front"


class How(StrEnum):
    FIN = "fin"
    RST = "rst"


class Protocol(StrEnum):
    """The protocol of a peer that does not speak RocketMQ's protocol."""

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
    """The front's name (ns-0, broker-a). None: the address is no front's, so this traffic goes past the fronts."""
    process: int
    thread: int | None = None
    """None: not seen, or the process's first thread, which makes all connects in languages without threads."""
    local: int | None = None
    """The port of the client's end; None: not seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GaveUp:
    """An unanswered connect has ended: its socket in SYN_SENT (/proc/net/tcp) is gone. `at_ms` is exact to the polling
    period of /proc/net/tcp."""

    at_ms: float
    address: Address
    front: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A front accepted a connection. `connection` is a number unique in the observing process."""

    at_ms: float
    front: str
    connection: int
    peer: Address
    """Address of the client's end."""
    process: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    at_ms: float
    front: str
    connection: int
    by: By
    how: How = How.FIN


class Asked(NamedTuple):
    """A whole request frame came from the client."""

    at_ms: float
    front: str
    connection: int
    opaque: int
    code: int
    fields: Mapping[str, str] = _NONE
    oneway: bool = False
    language: str | None = None
    """Name of RocketMQ's LanguageCode. Clients in other languages often say JAVA."""
    version: int = 0
    binary: bool = False
    """Whether the header is in RocketMQ's binary serialisation, not JSON."""
    size: int = 0
    """Size of the whole frame in bytes."""
    body: bytes = b""
    """Body of heartbeats, unregistrations, sends and broker registrations; else empty."""


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
    """Body of route look-ups and offset resets; else empty."""
    by: By = By.SERVER
    """FRONT if the front made this answer or changed its route."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """A request from the server to the client: NOTIFY_CONSUMER_IDS_CHANGED 40, CHECK_TRANSACTION_STATE 39 …"""

    at_ms: float
    front: str
    connection: int
    code: int
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """The bytes on this connection are not RocketMQ's remoting protocol. The front passes foreign bytes on
    unchanged."""

    at_ms: float
    front: str
    connection: int
    protocol: Protocol
    began: bytes
    """The first bytes, at most 32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaved:
    """The front's behaviour has changed. Each client process gets all Behaved observations, even observations from
    before the process's start."""

    at_ms: float
    front: str
    behaviour: Behaviour


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A JSON line that the observed program printed. The line's `f` is started, send, sent or received."""

    at_ms: float
    f: str
    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """The harness did something outside the fronts, such as changing the list of NameServers."""

    at_ms: float
    what: str
    """The action in a timeline's words: kill, stop, restart, name_server_list."""
    whom: str = ""
    """A broker's front or a process's number. For a list: the fronts of its entries, joined by ";"."""


Observation = Dialled | GaveUp | Opened | Closed | Asked | Answered | Pushed | Foreign | Behaved | Happened | Reported

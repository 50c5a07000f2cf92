"""How the clients of each language choose, keep and leave NameServers: the rules of `name_server_selection`.

    order     the list in use: shuffled once, or as it was configured (here: in the order of the NameServers' names)
    start     which entry of the list in use comes first
    advance   when the next entry's turn comes: after a failure only, or at every request; it is always index + 1 mod n
    attempts  how many entries one call may meet: one, or the whole list
    retries   after which outcome the same call goes on to the next entry; a call that may, must

An answer ends a call whatever its code, in every client. Read from the clients' sources: Java `NettyRemotingClient`
4.9.8 and 5.3.3, Go v2 `internal/namesrv.go` and `route.go`, C++ `TcpRemotingClient` master and release-2.1.0, Node
ali-ons `remoting_client.js`. Rust and the gRPC clients have no entry: the first scores its servers, the others never
ask a NameServer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ...remoting.node.profile import Profile


class Order(StrEnum):
    SHUFFLED = "shuffled"
    LISTED = "listed"


class Start(StrEnum):
    RANDOM = "random"
    FIRST = "first"
    SECOND = "second"

    def place(self, name_servers: int) -> int | None:
        """The first index; None when it is drawn."""
        return {Start.RANDOM: None, Start.FIRST: 0, Start.SECOND: 1 % name_servers}[self]


class Advance(StrEnum):
    ON_FAILURE = "on_failure"
    EVERY_REQUEST = "every_request"


class Attempts(StrEnum):
    ONE = "one"
    WHOLE_LIST = "whole_list"


class Outcome(StrEnum):
    """What came of one try of a call: `value.tried[].outcome` of a `name_server_call` row."""

    CONNECT_FAILED = "connect_failed"
    NO_ANSWER = "no_answer"
    ANSWERED = "answered"
    NOT_SENT = "not_sent"
    """Connecting took the call's whole time, or nobody could be chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProfile:
    """The rules of one client. Times in RocketMQ milliseconds."""

    name: str
    order: Order
    start: Start
    advance: Advance
    attempts: Attempts
    retries: frozenset[Outcome]
    try_timeout_ms: float
    """What one try may take, connecting included."""
    wait_ms: float = 0.0
    """What a call may wait for another call of the same client that is choosing."""

    @property
    def drawn(self) -> bool:
        """Whether chance decides the first NameServer, so that first choices must be even."""
        return self.order is Order.SHUFFLED or self.start is Start.RANDOM

    def attempts_max(self, name_servers: int) -> int:
        return 1 if self.attempts is Attempts.ONE else name_servers

    @property
    def rule(self) -> str:
        """The profile in one line, as a verdict shows it."""
        kept = "one NameServer kept until its channel is not active"
        kept = kept if self.advance is Advance.ON_FAILURE else "the next NameServer at every request"
        tries = "one try a call" if self.attempts is Attempts.ONE else "a call tries the whole list"
        return f"list {self.order}, {self.start} start, {kept}, {tries}"


_CONNECT = frozenset({Outcome.CONNECT_FAILED})
_ANY_FAILURE = frozenset({Outcome.CONNECT_FAILED, Outcome.NO_ANSWER})

PROFILES: Mapping[str, ClientProfile] = {
    profile.name: profile
    for profile in (
        ClientProfile(
            name="java-4.9",
            order=Order.SHUFFLED,
            start=Start.RANDOM,
            advance=Advance.ON_FAILURE,
            attempts=Attempts.WHOLE_LIST,
            retries=_CONNECT,
            try_timeout_ms=3_000,
            wait_ms=3_000,
        ),
        ClientProfile(
            name="java-5.3",
            order=Order.SHUFFLED,
            start=Start.RANDOM,
            advance=Advance.ON_FAILURE,
            attempts=Attempts.ONE,
            retries=frozenset(),
            try_timeout_ms=3_000,
            wait_ms=3_000,
        ),
        ClientProfile(
            name="go",
            order=Order.LISTED,
            start=Start.FIRST,
            advance=Advance.EVERY_REQUEST,
            attempts=Attempts.WHOLE_LIST,
            retries=_ANY_FAILURE,
            try_timeout_ms=6_000,
        ),
        ClientProfile(
            name="cpp",
            order=Order.SHUFFLED,
            start=Start.FIRST,
            advance=Advance.ON_FAILURE,
            attempts=Attempts.WHOLE_LIST,
            retries=_CONNECT,
            try_timeout_ms=5_000,
            wait_ms=3_000,
        ),
        ClientProfile(
            name="cpp-2.1",
            order=Order.LISTED,
            start=Start.FIRST,
            advance=Advance.ON_FAILURE,
            attempts=Attempts.WHOLE_LIST,
            retries=_CONNECT,
            try_timeout_ms=5_000,
            wait_ms=3_000,
        ),
        ClientProfile(
            name="node",
            order=Order.LISTED,
            start=Start.SECOND,
            advance=Advance.EVERY_REQUEST,
            attempts=Attempts.WHOLE_LIST,
            retries=_ANY_FAILURE,
            try_timeout_ms=3_000,
        ),
    )
}

OF_CLUSTER: Mapping[Profile, str] = {Profile.V4_9: "java-4.9", Profile.V5_X: "java-5.3"}
"""What our own clients are, for each profile of a cluster."""


def profile_of(name: str | None, cluster: Profile) -> ClientProfile:
    """The profile called `name`, or that of the cluster's own clients. KeyError for an unknown name."""
    return PROFILES[name or OF_CLUSTER[cluster]]

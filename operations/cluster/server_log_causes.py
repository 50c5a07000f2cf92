"""What a NameServer's own log shows to be wrong with routes, whoever asks."""

from __future__ import annotations

from collections.abc import Iterator

from ...chaos.reports.words import all_of
from .log_words import LoggedCause, called, clock
from .told import At, ServerTold, Told


def of_server(told: Told, server: ServerTold, topic: str | None) -> Iterator[LoggedCause]:
    """What a NameServer's log shows whoever asks."""
    address = server.addresses[0] if server.addresses else server.name
    who = called(told, address)
    holders = told.holders.get(topic, set()) if topic else set()
    for one in server.wiped:
        if not one.is_given_back and one.topics and (not holders or one.broker in holders):
            yield LoggedCause(
                name="no-permission-to-write",
                certain=True,
                about=(address, one.broker),
                sentence=f"Write permission of {one.broker} was wiped at NameServer {who} at "
                f"{clock(one.at.ms)} by {one.by}, of {one.topics} topics, and not given back in this log.",
                then="addWritePerm gives it back; the broker's next registration does so only when its dataVersion "
                "changed.",
                lines=(one.at.where,),
            )
    claims: dict[tuple[str, frozenset[str]], list[At]] = {}
    for at, broker, old, new in server.conflicts:
        claims.setdefault((broker, frozenset((old, new))), []).append(at)
    for (broker, addresses), moments in claims.items():
        ignored = [at for at, name, _, _ in server.conflicts if name == broker and at in moments]
        if len(addresses) == 2 and (len(ignored) > 1 or _is_v5(server, broker)):
            yield LoggedCause(
                name="another-broker-has-the-name",
                certain=True,
                about=(address, broker),
                sentence=f"{all_of(sorted(addresses))} both claim to be {broker} at NameServer {who}, "
                f"{len(moments)} times from {clock(moments[0].ms)} on.",
                then="Give each broker a brokerName and brokerId of its own.",
                lines=tuple(at.where for at in moments[:2]),
            )
    if server.not_ready:
        yield LoggedCause(
            name="name-server-not-ready",
            certain=True,
            about=(address,),
            sentence=f"NameServer {who} answered {len(server.not_ready)} look-ups with code 1, 'name "
            f"server not ready', from {clock(server.not_ready[0].ms)} to {clock(server.not_ready[-1].ms)}: it has "
            "needWaitForService=true.",
            then="Wait for waitSecondsForService (45 s) after its start; 5.1.0 to 5.3.1 answer so for ever after their "
            "first good answer.",
            lines=(server.not_ready[0].where,),
        )


def _is_v5(server: ServerTold, broker: str) -> bool:
    """5.x says a conflict in so many words: once is enough."""
    return any(name == broker and old for _, name, old, _ in server.conflicts) and not any(
        stay.address == new for _, name, _, new in server.conflicts if name == broker for stay in server.stays
    )

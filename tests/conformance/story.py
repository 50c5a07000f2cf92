"""What was seen of a process, written by hand: look-ups, dials and closes at given seconds after it began."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nemesrv.chaos.fronts.behaviour import REFUSES, Behaviour
from nemesrv.chaos.fronts.observed import (
    Answered,
    Asked,
    Behaved,
    By,
    Closed,
    Dialled,
    Foreign,
    GaveUp,
    Happened,
    Observation,
    Opened,
    Protocol,
    Reported,
)
from nemesrv.chaos.topology import ADDRESS_SERVER
from nemesrv.conformance.situations import Watched
from nemesrv.remoting.node.network import Address

WORK_S = 0.1
"""When a process is at work, unless its story says otherwise."""
TRIP_S = 0.001
TOPIC, GROUP = "orders", "orders-group"


class Story:
    """One process in a situation. A look-up dials when there is no connection to that front."""

    def __init__(
        self,
        situation: str,
        *,
        name_servers: int = 3,
        number: int = 0,
        for_s: float = 75.0,
        at_work_s: float | None = WORK_S,
        unseen: str | None = None,
    ) -> None:
        self._situation, self._number, self._unseen = situation, number, unseen
        self.name_servers = tuple(f"ns-{n}" for n in range(name_servers))
        self._for_s, self._at_work_s = for_s, at_work_s
        self._seen: list[Observation] = []
        self._open: dict[str, int] = {}
        self._number_of = 0

    def _next(self) -> int:
        self._number_of += 1
        return self._number_of

    def _dialled(self, front: str, at_s: float) -> None:
        if self._unseen is None:
            self._seen.append(
                Dialled(at_ms=at_s * 1000, address=Address("127.0.0.1", 1), front=front, process=self._number)
            )

    def dial(self, front: str, at_s: float, *, opens: bool = True, gave_up_after_s: float | None = None) -> Story:
        self._dialled(front, at_s)
        if opens:
            self._open[front] = self._next()
            peer = Address("127.0.0.1", 40_000)
            opened = Opened(at_ms=(at_s + TRIP_S) * 1000, front=front, connection=self._open[front], peer=peer)
            self._seen.append(opened)
        if gave_up_after_s is not None:
            at_ms = (at_s + gave_up_after_s) * 1000
            self._seen.append(GaveUp(at_ms=at_ms, address=Address("127.0.0.1", 1), front=front))
        return self

    def ask(
        self,
        front: str,
        at_s: float,
        *,
        code: int | None = 0,
        topic: str = TOPIC,
        closes_after_s: float | None = None,
        request: int = 105,
        fields: Mapping[str, str] | None = None,
        body: bytes = b"",
        after_s: float = 0.002,
        answer: Mapping[str, str] | None = None,
    ) -> Story:
        """A request, answered with that code (None: never) `after_s`; and when the client closes its connection."""
        if front not in self._open:
            self.dial(front, at_s)
            at_s += 2 * TRIP_S
        connection, opaque = self._open[front], self._next()
        asked = Asked(
            at_ms=at_s * 1000,
            front=front,
            connection=connection,
            opaque=opaque,
            code=request,
            fields={"topic": topic, **(fields or {})},
            body=body,
        )
        self._seen.append(asked)
        if code is not None:
            self._seen.append(
                Answered(
                    at_ms=(at_s + after_s) * 1000,
                    front=front,
                    connection=connection,
                    opaque=opaque,
                    code=code,
                    fields=answer or {},
                )
            )
        if closes_after_s is not None:
            self.close(front, at_s + closes_after_s)
        return self

    def close(self, front: str, at_s: float, by: By = By.CLIENT) -> Story:
        connection = self._open.pop(front, None)
        if connection is not None:
            self._seen.append(Closed(at_ms=at_s * 1000, front=front, connection=connection, by=by))
        return self

    def fetch_list(self, at_s: float, *, ended_by: By = By.SERVER, after_s: float = 0.01) -> Story:
        """A request for the list by HTTP; the address server closes what it has answered."""
        self.dial(ADDRESS_SERVER, at_s)
        connection = self._open[ADDRESS_SERVER]
        about: dict[str, Any] = {"front": ADDRESS_SERVER, "connection": connection}
        self._seen.append(Foreign(at_ms=at_s * 1000, protocol=Protocol.HTTP, began=b"GET", **about))
        return self.close(ADDRESS_SERVER, at_s + after_s, ended_by)

    def behave(self, front: str, behaviour: Behaviour, at_s: float) -> Story:
        self._seen.append(Behaved(at_ms=at_s * 1000, front=front, behaviour=behaviour))
        if behaviour.connected != "kept":
            self.close(front, at_s, By.FRONT)
        return self

    def all_refuse(self, at_s: float) -> Story:
        for front in self.name_servers:
            self.behave(front, REFUSES, at_s)
        return self

    def happened(self, what: str, whom: str, at_s: float) -> Story:
        self._seen.append(Happened(at_ms=at_s * 1000, what=what, whom=whom))
        return self

    def told(self, f: str, at_s: float, **value: Any) -> Story:
        self._seen.append(Reported(at_ms=at_s * 1000, f=f, value={"f": f, **value}))
        return self

    def watched(self) -> Watched:
        work_ms = None if self._at_work_s is None else self._at_work_s * 1000
        stopping_ms = (work_ms or 0.0) + self._for_s * 1000
        return Watched(
            situation=self._situation,
            number=self._number,
            name_servers=self.name_servers,
            brokers=("broker-a", "broker-b"),
            topic=TOPIC,
            process=self._number,
            began_ms=0.0,
            at_work_ms=work_ms,
            stopping_ms=stopping_ms,
            ended_ms=stopping_ms + 100,
            ended="stopped",
            dials_unseen=self._unseen,
            seen=tuple(sorted(self._seen, key=lambda one: one.at_ms)),
        )


def polls(story: Story, front: str, *times_s: float, code: int = 0) -> Story:
    for at_s in times_s:
        story.ask(front, at_s, code=code)
    return story


def beats(story: Story, name: str, *times_s: float) -> Story:
    """Heartbeats of a client of that name, at a broker."""
    for at_s in times_s:
        story.ask("broker-a", at_s, request=34, topic="", body=b'{"clientID":"%s"}' % name.encode())
    return story


def together(*stories: Story) -> Watched:
    """The clients of one process: what each did, on connections of its own."""
    parts = [story.watched() for story in stories]
    shared = [one for one in parts[0].seen if isinstance(one, Behaved | Happened)]
    seen: list[Observation] = [*shared]
    for number, part in enumerate(parts):
        for one in part.seen:
            if isinstance(one, Behaved | Happened):
                continue
            if isinstance(one, Asked | Answered):
                one = one._replace(connection=one.connection + 1000 * number)
            elif isinstance(one, Opened | Closed):
                one = replace(one, connection=one.connection + 1000 * number)
            seen.append(one)
    return replace(parts[0], seen=tuple(sorted(seen, key=lambda one: one.at_ms)))

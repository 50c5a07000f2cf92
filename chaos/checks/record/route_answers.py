"""What NameServers answered to look-ups of routes, and when, as the clients recorded it."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ....remoting.codes import ResponseCode
from ...oracle.world import World
from .control import Control, Row
from .known_brokers import words

_ROUNDING_MS = 0.5
"""A call's beginning is its end less its duration."""


class RouteAnswer(NamedTuple):
    """One look-up that was answered: at some moment of [from_ms, to_ms] the NameServer said this."""

    asker: str
    incarnation: int
    name_server: str
    topic: str
    from_ms: float
    to_ms: float
    code: int
    value: str | None
    """The route's JSON text."""
    route: Mapping[str, Any] | None
    """The same; None for a code without a route."""

    @property
    def came(self) -> str:
        return f"code {self.code}" if self.route is None else words(self.route)

    @property
    def is_readable(self) -> bool:
        """Whether it is a route."""
        return self.route is not None and "unreadable" not in self.route


def route_answers(control: Control, world: World) -> Iterator[RouteAnswer]:
    """Every look-up that was answered, in order of time; none of a history that does not tell what came."""
    names = {node.address: node.name for node in world.of_kind("name_server")}
    last: dict[tuple[str, int, str | None, str | None], Row] = {}
    for row in control.rows("route_answer", "name_server_call"):
        key = row.node, row.incarnation, row.name_server, row.topic
        if row.event == "route_answer":
            last[key] = row
        elif row.f == "route" and row.code is not None and row.time_ms < world.end_ms and row.name_server in names:
            came = last.get(key) if row.code == ResponseCode.SUCCESS else None
            if row.code == ResponseCode.SUCCESS and came is None:
                continue
            yield RouteAnswer(
                asker=row.node,
                incarnation=row.incarnation,
                name_server=names[row.name_server],
                topic=row.topic,
                from_ms=row.began_ms - _ROUNDING_MS,
                to_ms=row.time_ms + _ROUNDING_MS,
                code=row.code,
                value=came.value if came else None,
                route=came.decoded if came else None,
            )

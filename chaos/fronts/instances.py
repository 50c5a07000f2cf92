"""Which client an observation is of, where several share one dialler's fronts. Sans-IO.

    process   whose connection it is, as far as /proc says
    instance  a process that dials a front which it is connected to already has another client in it: each client keeps
              one connection to an address; the oldest that lacks one gets it

A client without a process that can be seen has ended when its last connection has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .observed import Answered, Asked, Behaved, Closed, Dialled, Observation, Opened, Pushed


@dataclass(slots=True)
class Instance:
    """One client of the dialler, in the order in which they came."""

    number: int
    process: int | None
    since_ms: float
    open: dict[int, str] = field(default_factory=dict)
    """Its connections: number to front."""
    ended: bool = False


class Instances:
    """`came` and `went` are told of each client, at its first observation and after its last."""

    def __init__(self, came: Callable[[Instance], None], went: Callable[[Instance, float], None]) -> None:
        self._came, self._went = came, went
        self._all: list[Instance] = []
        self._of: dict[int, Instance] = {}

    def of(self, one: Observation) -> tuple[Instance, ...]:
        """Whose it is; a change of a front's behaviour is everybody's."""
        match one:
            case Behaved():
                return tuple(self.living())
            case Dialled():
                found = next((each for each in self.living() if each.process == one.process), None)
                return () if one.front is None else (found or self._new(one.process, one.at_ms),)
            case Opened():
                instance = self._lacking(one.process, one.front) or self._new(one.process, one.at_ms)
                instance.open[one.connection] = one.front
                self._of[one.connection] = instance
                return (instance,)
            case Closed():
                closed = self._of.pop(one.connection, None)
                if closed is None:
                    return ()
                closed.open.pop(one.connection, None)
                return (closed,)
            case Asked() | Answered() | Pushed():
                found = self._of.get(one.connection)
                return () if found is None else (found,)
            case _:
                return ()

    def look(self, now_ms: float, lives: Callable[[int], bool]) -> None:
        """Tell of those that have ended: nothing is connected, and their process is gone."""
        for each in [*self.living()]:
            if not each.open and (each.process is None or not lives(each.process)):
                self._end(each, now_ms)

    def end(self, now_ms: float) -> None:
        """Nothing more is seen of anybody."""
        for each in [*self.living()]:
            self._end(each, now_ms)

    def living(self) -> Iterator[Instance]:
        return (each for each in self._all if not each.ended)

    def _end(self, instance: Instance, now_ms: float) -> None:
        instance.ended = True
        self._went(instance, now_ms)

    def _lacking(self, process: int | None, front: str) -> Instance | None:
        of = (each for each in self.living() if each.process == process)
        return next((each for each in of if front not in each.open.values()), None)

    def _new(self, process: int | None, at_ms: float) -> Instance:
        instance = Instance(len(self._all), process, at_ms)
        self._all.append(instance)
        self._came(instance)
        return instance

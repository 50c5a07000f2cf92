"""Functions to use in defect files (`nemesrv run --defect FILE.py`). The functions' names will not change.

| replace_part(part, "name", other)         | another method or value (`does_nothing`, `does_nothing_async`)    |
| @around(part, "method")                   | calls go to this function, with the method before their arguments |
| with_settings(part, "config", field=…)    | the same settings but for these fields                            |
| so_many_times(part, "config", "field", f) | the same settings, this field times a factor                      |
| every(n)                                  | says of each call whether it is the nth, or twice the nth …       |
| @in_its_parts                             | for parts that a broker only makes when it listens                |
| registers_with(broker, brokerAddr=…)      | what it registers as, field of the header to function; in those   |
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from itertools import count
from typing import Any, Concatenate, ParamSpec, TypeVar

from ..actors.broker.server import Broker
from ..remoting.codes import RequestCode

P = ParamSpec("P")
Change = TypeVar("Change", bound=Callable[..., Any])


def replace_part(target: object, name: str, with_what: object) -> None:
    """Replace a method or setting of this object. Raises AttributeError if the object has no such method or setting,
    because the defect would have no effect."""
    getattr(target, name)
    setattr(target, name, with_what)


def does_nothing(*_: object, **__: object) -> None:
    """Do nothing: a replacement for any method."""


async def does_nothing_async(*_: object, **__: object) -> None:
    """Do nothing: a replacement for any coroutine method."""


def around(part: object, name: str) -> Callable[[Change], Change]:
    """Replace this method of this object by the decorated function; its first argument is the original method."""

    def put(change: Change) -> Change:
        replace_part(part, name, partial(change, getattr(part, name)))
        return change

    return put


def with_settings(part: object, name: str, **changed: Any) -> None:
    """Change fields of the settings that the object has in its attribute `name`."""
    replace_part(part, name, replace(getattr(part, name), **changed))


def so_many_times(part: object, name: str, field: str, factor: float) -> None:
    """Multiply an integer field of the object's settings by a factor."""
    with_settings(part, name, **{field: round(getattr(getattr(part, name), field) * factor)})


def every(nth: int) -> Callable[[], bool]:
    """Return a function that returns True at every nth call, and False at all other calls."""
    calls = count(1)
    return lambda: next(calls) % nth == 0


def in_its_parts(change: Callable[Concatenate[Broker, P], None]) -> Callable[Concatenate[Broker, P], None]:
    """Apply the decorated change when the broker begins to listen, after `_assemble` has made the tables, the
    registration and the processor. The store is there from the broker's constructor on."""

    @wraps(change)
    def plant(broker: Broker, /, *args: P.args, **kwargs: P.kwargs) -> None:
        assemble = broker._assemble

        def assemble_and_change() -> None:
            assemble()
            change(broker, *args, **kwargs)

        replace_part(broker, "_assemble", assemble_and_change)

    return plant


def registers_with(broker: Broker, **changed: Callable[[str], str]) -> None:
    """Change these header fields of every REGISTER_BROKER request that the broker sends."""

    @around(broker._registration, "_request")
    def request_with(request: Any, code: RequestCode, fields: dict[str, str], body: bytes) -> Any:
        if code == RequestCode.REGISTER_BROKER:
            fields = {**fields, **{name: change(fields[name]) for name, change in changed.items()}}
        return request(code, fields, body)


def _with_header(**changed: Callable[[str], str]) -> Callable[[Broker], None]:
    """Do as `registers_with`, under the name that files for 0.1.0 use."""
    return lambda broker: registers_with(broker, **changed)


for _name in ("model", "broker"):  # where files for 0.1.0 look for these names
    sys.modules.setdefault(f"{__name__}.{_name}", sys.modules[__name__])

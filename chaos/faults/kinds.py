"""All actions of a timeline, as one pydantic union distinguished by `do`; and functions that recognize recorded
faults."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from .acts_by_hand import AnyByHand, DoneByHand, FullDisk, OldAddress, WrongClock
from .clock_changes import AnyClockAction
from .fault import Action, Fault, Loss, by_do
from .link_faults import (
    LINK_FAULTS,
    AnyLinkFault,
    Bandwidth,
    BlackHole,
    Effect,
    Heal,
    Latency,
    LinkFault,
    Reset,
    Timeout,
)
from .process_faults import (
    PROCESS_FAULTS,
    Absent,
    AnyDiskAction,
    AnyHostAction,
    AnyProcessFault,
    Restart,
    RestartStorm,
    Resume,
    RollingRestart,
    StoodStill,
)


class NameServerList(Action):
    """From now on the address server answers with another list of NameServers."""

    do: Literal["name_server_list"] = "name_server_list"
    name_servers: tuple[str, ...] = Field(min_length=1, max_length=9)

    @property
    def about(self) -> str:
        return " ".join(self.name_servers)


AnyAction = Annotated[
    AnyLinkFault
    | AnyProcessFault
    | Resume
    | Restart
    | RollingRestart
    | RestartStorm
    | Heal
    | NameServerList
    | AnyByHand
    | AnyClockAction
    | AnyDiskAction
    | AnyHostAction,
    Field(discriminator="do"),
]

FAULTS: dict[str, type[Fault]] = {**LINK_FAULTS, **PROCESS_FAULTS}
ACTIONS: dict[str, type[Action]] = by_do(*get_args(get_args(AnyAction)[0]))


class UnknownFault(LinkFault):
    """A fault that was found in a history or at a proxy, but that nemesrv does not know. `do` and `how` have the
    recorded values."""

    how: str = ""
    injection = ""
    looks_like = Loss.OTHER
    does = Effect()

    @property
    def words(self) -> str:
        return self.do.replace("_", " ")

    @property
    def recorded_injection(self) -> str:
        return self.how

    @property
    def numbers(self) -> dict[str, float]:
        return {}


_RECORDED: tuple[type[Fault], ...] = (
    *LINK_FAULTS.values(),
    Timeout,
    *PROCESS_FAULTS.values(),
    DoneByHand,
    OldAddress,
    WrongClock,
    FullDisk,
    Absent,
    StoodStill,
)
_BY_INJECTION: dict[str, type[Fault]] = {kind.injection: kind for kind in _RECORDED}


def recorded(fault: str, injection: str, stream: Any, value: Mapping[str, Any]) -> Fault:
    """Return the fault of a history row, recognized by how it was injected, or else by the fault's name. The numbers
    are not validated, because the fault has already happened. If a number is missing, return an UnknownFault."""
    kind = _BY_INJECTION.get(injection) or _BY_INJECTION.get(injection.partition("=")[0]) or FAULTS.get(fault)
    if kind is not None:
        known = {name: value[name] for name in kind.parameters() if value.get(name) is not None}
        if all(name in known or not field.is_required() for name, field in kind.model_fields.items() if name != "do"):
            if issubclass(kind, LinkFault):
                known["stream"] = stream or "both"
            if issubclass(kind, DoneByHand):
                known["do"] = fault
            return kind.model_construct(**known)
    return UnknownFault.model_construct(do=fault, how=injection, stream=stream or "both")


def of_toxic(toxic: str, attributes: Mapping[str, Any], scale: float) -> LinkFault:
    """Return the fault with the effect of a toxic that somebody else set, in RocketMQ's time, without the toxic's
    direction."""
    match toxic:
        case "bandwidth":
            rate = attributes.get("rate")
            return Bandwidth.model_construct(rate_kb_s=rate / scale) if rate else BlackHole()
        case "latency":
            latency_ms, jitter_ms = attributes["latency"] * scale, attributes.get("jitter", 0) * scale
            return Latency.model_construct(latency_ms=latency_ms, jitter_ms=jitter_ms)
        case "reset_peer":
            return Reset()
        case "timeout":
            return Timeout(timeout=attributes.get("timeout", 0))
    return UnknownFault(do=toxic, how=f"toxiproxy.{toxic}")

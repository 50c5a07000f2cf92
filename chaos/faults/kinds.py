"""All actions of a timeline, as one union on `do`, and how a recorded fault is recognized."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from . import link_faults, process_faults
from .acts_by_hand import BY_HAND, AnyByHand, DoneByHand, OldAddress, WrongClock
from .clock_changes import CLOCK_ACTIONS, AnyClockAction
from .fault import Action, Fault, Loss, by_do


class NameServerList(Action):
    """From now on the address server answers with another list of NameServers."""

    do: Literal["name_server_list"] = "name_server_list"
    name_servers: tuple[str, ...] = Field(min_length=1, max_length=9)

    @property
    def about(self) -> str:
        return " ".join(self.name_servers)


AnyAction = Annotated[
    link_faults.AnyLinkFault
    | process_faults.AnyProcessFault
    | process_faults.Resume
    | process_faults.Restart
    | process_faults.RollingRestart
    | process_faults.RestartStorm
    | link_faults.Heal
    | NameServerList
    | AnyByHand
    | AnyClockAction
    | process_faults.AnyHostAction,
    Field(discriminator="do"),
]

FAULTS: dict[str, type[Fault]] = {**link_faults.LINK_FAULTS, **process_faults.PROCESS_FAULTS}
ACTIONS: dict[str, type[Action]] = {
    **FAULTS,
    **by_do(
        process_faults.Resume,
        process_faults.Restart,
        process_faults.RollingRestart,
        process_faults.RestartStorm,
        link_faults.Heal,
        NameServerList,
    ),
    **BY_HAND,
    **CLOCK_ACTIONS,
    **process_faults.HOST_ACTIONS,
}


class UnknownFault(link_faults.LinkFault):
    """A fault in a history, or at a proxy, that nemesrv does not know. `do` and `how` are the history's words."""

    how: str = ""
    injection = ""
    looks_like = Loss.OTHER
    does = link_faults.Effect()

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
    *link_faults.LINK_FAULTS.values(),
    link_faults.Timeout,
    *process_faults.PROCESS_FAULTS.values(),
    DoneByHand,
    OldAddress,
    WrongClock,
    process_faults.Absent,
    process_faults.StoodStill,
)
_BY_INJECTION: dict[str, type[Fault]] = {kind.injection: kind for kind in _RECORDED}


def recorded(fault: str, injection: str, stream: Any, value: Mapping[str, Any]) -> Fault:
    """Return the fault of a row, recognized by its injection, or else by its name. Nothing is validated, because the
    fault has happened. A row without a number that its fault needs gives UnknownFault."""
    kind = _BY_INJECTION.get(injection) or _BY_INJECTION.get(injection.partition("=")[0]) or FAULTS.get(fault)
    if kind is not None:
        known = {name: value[name] for name in kind.parameters() if value.get(name) is not None}
        if all(name in known or not field.is_required() for name, field in kind.model_fields.items() if name != "do"):
            if issubclass(kind, link_faults.LinkFault):
                known["stream"] = stream or "both"
            if issubclass(kind, DoneByHand):
                known["do"] = fault
            return kind.model_construct(**known)
    return UnknownFault.model_construct(do=fault, how=injection, stream=stream or "both")


def of_toxic(toxic: str, attributes: Mapping[str, Any], scale: float) -> link_faults.LinkFault:
    """Return the fault that matches a toxic set by somebody else, in RocketMQ's time, for either direction."""
    match toxic:
        case "bandwidth":
            rate = attributes.get("rate")
            return link_faults.Bandwidth.model_construct(rate_kb_s=rate / scale) if rate else link_faults.BlackHole()
        case "latency":
            latency_ms, jitter_ms = attributes["latency"] * scale, attributes.get("jitter", 0) * scale
            return link_faults.Latency.model_construct(latency_ms=latency_ms, jitter_ms=jitter_ms)
        case "reset_peer":
            return link_faults.Reset()
        case "timeout":
            return link_faults.Timeout(timeout=attributes.get("timeout", 0))
    return UnknownFault(do=toxic, how=f"toxiproxy.{toxic}")

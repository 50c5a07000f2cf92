"""Base classes of timeline entries and faults, for links and for processes."""

from enum import StrEnum
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, model_validator

# -- what a fault looks like to its peers, whatever injected it: the rows of the project's failure-detection table
#
# What RocketMQ's timers make of one stands in the oracle (chaos/oracle/windows.py).


class Loss(StrEnum):
    """How a NameServer that has a broker's route sees a fault of the broker or of the link between them."""

    CRASH = "process crash, kernel closes its connections"
    GRACEFUL = "graceful shutdown"
    SILENT = "host loss, hang, two-way partition, or broker→NameServer loss only"
    BACKWARD_PACKETS = "NameServer→broker loss only, packet level"
    BACKWARD_PROXY = "NameServer→broker loss only, byte proxy"
    CLOSED = "proxy disabled: both sides closed at once, later dials refused"
    DROPPED = "timeout toxic: data dropped, closes pass"
    RESET = "reset_peer toxic"
    STALE = "half-open: what was connected is dead, what is new works"
    UNDIALLED = "SYNs dropped: what is connected works, what is new gets no answer"
    SLOW = "slow link"
    HARMLESS = "slower than before, far from every time-out"
    OTHER = "a fault without a row of its own"

    @property
    def closes(self) -> bool:
        return self in (Loss.CRASH, Loss.GRACEFUL, Loss.CLOSED)


class Dial(StrEnum):
    """What a client meets that connects and sends a request during a fault of the link or of the server's process."""

    ANSWERED = "accepted, answered"
    LATE = "accepted, answered late"
    REFUSED = "refused"
    CLOSED = "accepted, then closed"
    """Toxiproxy accepts and closes, because the process behind it is gone."""
    SILENT = "accepted, no answer"
    RESET = "accepted, reset at its first bytes"
    DROPPED = "no answer to the SYN"


class TimeLimits(Protocol):
    """RocketMQ's time limits that a slow link can exceed, by symbol (oracle/timers.py)."""

    @property
    def A_ms(self) -> float: ...

    @property
    def B_ms(self) -> float: ...

    @property
    def C_ms(self) -> float: ...


class Delay(NamedTuple):
    """The delay that a fault adds in each direction of a link, in milliseconds of RocketMQ time."""

    upstream_ms: float
    downstream_ms: float
    jitter_ms: float
    """Jitter of each delayed direction, up or down."""

    @property
    def _jitters_ms(self) -> float:
        return self.jitter_ms * ((self.upstream_ms > 0) + (self.downstream_ms > 0))

    @property
    def round_trip_min_ms(self) -> float:
        return max(0.0, self.upstream_ms + self.downstream_ms - self._jitters_ms)

    @property
    def round_trip_max_ms(self) -> float:
        return self.upstream_ms + self.downstream_ms + self._jitters_ms


class TrueOrFalse:
    """A wrong `true` or `false` in a scenario, wrapped so that pydantic refuses the value instead of reading 1 or 0."""

    def __init__(self, said: bool) -> None:
        self._said = said

    def __repr__(self) -> str:
        return str(self._said).lower()


class Strict(BaseModel):
    """A part of a scenario, read strictly: unknown keys are refused, and true and false are not read as numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _true_is_no_number(cls, document: Any) -> Any:
        if not isinstance(document, dict):
            return document
        allowed = [name for name, field in cls.model_fields.items() if field.annotation is bool]
        return {
            key: TrueOrFalse(value) if isinstance(value, bool) and key not in allowed else value
            for key, value in document.items()
        }


class Action(Strict):
    """What one entry of a timeline does. The fields of an action's class are the keys that only this action's entries
    have."""

    do: str
    acts_on: ClassVar[Literal["links", "nodes", "hosts", ""]] = ""
    needs_targets: ClassVar[bool] = True
    """Whether it needs a link or node to act on."""

    @property
    def about(self) -> str:
        """Return the name of what the action affects besides links and nodes, for example a topic; "" for nothing
        else."""
        return ""


class Fault(Action):
    """An action that lasts until it is ended. A history has a fault's name, injection, direction and numbers."""

    title: ClassVar[str]
    """Its name in words: for a link as in "black hole broker-a ↔ ns-0", for a process as in "ns-0 killed"."""
    injection: ClassVar[str]
    """Name of the injection in the history; it identifies a recorded fault."""
    injected: ClassVar[str] = ""
    """How it is injected, for docs/faults.md."""
    equals: ClassVar[str] = ""
    """What it corresponds to in production, for docs/faults.md."""
    dial: ClassVar[Dial] = Dial.ANSWERED
    """What new connections meet during the fault."""
    looks_like: ClassVar[Loss]
    """What it looks like to the peers, if that depends on nothing else."""
    ends_process: ClassVar[bool] = False
    """Whether the process is gone afterwards, not only stopped."""
    loses_packets: ClassVar[bool] = False
    """Whether packets are lost, so that the kernel resends and connecting gets no answer."""
    shows_in_rows: ClassVar[bool] = True
    """Whether the nodes' own rows can show it."""

    def loss(self, timers: TimeLimits) -> Loss:
        """How the peers of the affected node see the fault."""
        return self.looks_like

    @property
    def delay(self) -> Delay | None:
        return None

    @property
    def call_takes_ms(self) -> float:
        """The shortest time that a delayed call takes during the fault; 0 if the fault does not delay calls."""
        return 0.0

    @property
    def words(self) -> str:
        return self.title

    @property
    def recorded_injection(self) -> str:
        return self.injection

    @property
    def numbers(self) -> dict[str, float]:
        """The fault's parameters with their values, as in the fault's row of the history."""
        said = {name: getattr(self, name) for name in self.parameters()}
        return {name: number for name, number in said.items() if number is not None}

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """The names of the parameters that this fault has, in the order in which its class defines them."""
        return tuple(name for name in cls.model_fields if name not in ("do", "stream"))


Kind = TypeVar("Kind", bound=Action)


def by_do(*kinds: type[Kind]) -> dict[str, type[Kind]]:
    """Return each action's class by its name after `do:` in a timeline."""
    return {kind.model_fields["do"].default: kind for kind in kinds}

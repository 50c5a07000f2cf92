"""What every entry of a timeline and every fault has, of links and of processes alike."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

# -- what a fault looks like to its peers, whatever injected it: the rows of the project's failure-detection table
#
# What RocketMQ's timers make of one stands in the oracle (chaos/oracle/windows.py).


class Loss(StrEnum):
    """What a fault looks like to the NameServer that holds the broker's route."""

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
        """Whether peers see their connections close."""
        return self in (Loss.CRASH, Loss.GRACEFUL, Loss.CLOSED)


class Dial(StrEnum):
    """What a client meets that dials over a link, or a process, under a fault, and then asks something."""

    ANSWERED = "accepted, answered"
    LATE = "accepted, answered late"
    REFUSED = "refused"
    CLOSED = "accepted, then closed"
    """No fault of ours: a proxy that listens on for a process that is gone."""
    SILENT = "accepted, no answer"
    RESET = "accepted, reset at its first bytes"
    DROPPED = "no answer to the SYN"


class TimeLimits(Protocol):
    """RocketMQ's time limits that a slow link may reach, under the symbols of the table (oracle/timers.py)."""

    @property
    def A_ms(self) -> float: ...

    @property
    def B_ms(self) -> float: ...

    @property
    def C_ms(self) -> float: ...


class Delay(NamedTuple):
    """What a latency does to each direction of a link, in RocketMQ milliseconds."""

    upstream_ms: float
    downstream_ms: float
    jitter_ms: float
    """Of each direction that is delayed, up or down."""

    @property
    def _jitters_ms(self) -> float:
        return self.jitter_ms * ((self.upstream_ms > 0) + (self.downstream_ms > 0))

    @property
    def round_trip_min_ms(self) -> float:
        return max(0.0, self.upstream_ms + self.downstream_ms - self._jitters_ms)

    @property
    def round_trip_max_ms(self) -> float:
        return self.upstream_ms + self.downstream_ms + self._jitters_ms


class Action(BaseModel):
    """What a timeline can do; its fields, beside those of the timeline's entry, are what a scenario may say of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    do: str
    acts_on: ClassVar[Literal["links", "nodes", "hosts", ""]] = ""
    needs_targets: ClassVar[bool] = True
    """Whether it says nothing without a link, or node, to act on."""

    @property
    def about(self) -> str:
        """What it is about beside its links or nodes, in a word; "" for nothing."""
        return ""


class Fault(Action):
    """An action that lasts until it is healed. A history keeps its name, its injection, its stream and its numbers."""

    title: ClassVar[str]
    """Its name in words: of a link, as in "black hole broker-a → ns-0"; of a process, as in "ns-0 killed"."""
    injection: ClassVar[str]
    """How it is injected, in the history's word, by which a recorded fault is known again."""
    injected: ClassVar[str] = ""
    """How it is injected, for docs/faults.md."""
    equals: ClassVar[str] = ""
    """What it equals in production, for docs/faults.md."""
    dial: ClassVar[Dial] = Dial.ANSWERED
    """What who dials meanwhile meets."""
    looks_like: ClassVar[Loss]
    """What it looks like to the peers, where that depends on nothing."""
    ends_process: ClassVar[bool] = False
    """Whether the process is gone afterwards, and does not merely stand still."""
    loses_packets: ClassVar[bool] = False
    """Whether a kernel sends again what it swallowed, and a dial is not even accepted."""
    shows_in_rows: ClassVar[bool] = True
    """Whether the nodes' own rows can show it, or only a measurement (`verified`)."""

    def loss(self, timers: TimeLimits) -> Loss:
        """What it looks like to the peers."""
        return self.looks_like

    @property
    def delay(self) -> Delay | None:
        """How late it makes what passes; None where it does not."""
        return None

    @property
    def call_takes_ms(self) -> float:
        """How long a call must take at least to show it; 0 for a fault that does not delay."""
        return 0.0

    @property
    def meets(self) -> Dial:
        """What who dials meets, as this one is: another than its kind's where it is of single connections."""
        return self.dial

    @property
    def needs_memory(self) -> bool:
        """Whether no proxy can inject it, but only the network in memory."""
        return self.loses_packets

    @property
    def words(self) -> str:
        return self.title

    @property
    def recorded_injection(self) -> str:
        return self.injection

    @property
    def numbers(self) -> dict[str, float]:
        """Its parameters, as the history keeps them."""
        said = {name: getattr(self, name) for name in self.parameters()}
        return {name: number for name, number in said.items() if number is not None}

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """The names of its own numbers, in the order of the class."""
        return tuple(name for name in cls.model_fields if name not in ("do", "stream"))


Kind = TypeVar("Kind", bound=Action)


def by_do(*kinds: type[Kind]) -> dict[str, type[Kind]]:
    """Each by what a timeline calls it."""
    return {kind.model_fields["do"].default: kind for kind in kinds}

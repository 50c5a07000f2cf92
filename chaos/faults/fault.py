"""What every entry of a timeline and every fault has, of links and of processes alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from .losses import Delay, Dial, Loss, TimeLimits


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


class Fault(Action, ABC):
    """An action that lasts until it is healed. A history keeps its name, its injection, its stream and its numbers."""

    title: ClassVar[str]
    """Its name in words: of a link, as in "black hole broker-a → ns-0"; of a process, as in "ns-0 killed"."""
    injection: ClassVar[str]
    """How it is injected, in the history's word, by which a recorded fault is known again."""
    injected: ClassVar[str] = ""
    """How it is injected, for README."""
    equals: ClassVar[str] = ""
    """What it equals in production, for README."""
    dial: ClassVar[Dial] = Dial.ANSWERED
    """What who dials meanwhile meets."""
    ends_process: ClassVar[bool] = False
    """Whether the process is gone afterwards, and does not merely stand still."""
    loses_packets: ClassVar[bool] = False
    """Whether a kernel sends again what it swallowed, and a dial is not even accepted."""
    shows_in_rows: ClassVar[bool] = True
    """Whether the nodes' own rows can show it, or only a measurement (`verified`)."""

    @abstractmethod
    def loss(self, timers: TimeLimits) -> Loss:
        """What it looks like to the peers."""

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

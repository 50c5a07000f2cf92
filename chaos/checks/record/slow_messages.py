"""A message that a consumer group did not have at once: what is looked at one by one, beside counts of all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..check import Facts, joined, largest


class Slow(NamedTuple):
    """An acknowledged message and one group that did not have it within D, or not as it was sent."""

    acked_ms: float
    msg_key: str
    producer: str
    topic: str
    broker_name: str
    queue_id: int
    offset: int
    group: str
    """Which one should have it; with broadcasting a consumer."""
    received_ms: float | None = None
    receiver: str | None = None
    changed: bool = False
    """Whether what was received is not what was sent."""


@dataclass(frozen=True)
class Prompt(Facts):
    """What was had within D, once a group, and all others."""

    prompt: int = 0
    prompt_ms: float | None = largest()
    """The longest that one of the prompt ones took."""
    slow: tuple[Slow, ...] = joined()

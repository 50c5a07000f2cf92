"""A message that a consumer group did not have at once: what is looked at one by one, beside counts of all others."""

from __future__ import annotations

from typing import NamedTuple


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

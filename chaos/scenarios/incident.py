"""What a scenario says of the incident that it repeats, and of what would have prevented it.

The file as it stands is the incident; `fixed` changes it as `--set` does, into a run in which it does not happen.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field

from .action import STRICT


class PromisesModel(BaseModel):
    """What an operator promises beyond RocketMQ's windows, whatever happens; None promises nothing."""

    model_config = STRICT

    tables_agree_within_s: float | None = Field(None, gt=0, le=100_000)
    """`routes_converge`: two NameServers differ in a topic for no longer, whoever can reach them."""
    delivered_within_s: float | None = Field(None, ge=5, le=100_000)
    """`messages_delivered`: an acknowledged message is with each group by then, whoever can reach its broker."""

    masters_stay: bool = False
    """`one_master`: no name's master changes its address, but by a role change."""
    wipes_last: bool = False
    """`done_by_hand`: a broker whose write permission was wiped has none, until somebody adds it."""
    polls_within_s: float | None = Field(None, gt=0, le=100_000)
    """`timers_kept`: a client begins no route poll later after the one before, whatever holds its thread up."""


class FixedModel(BaseModel):
    """What makes the incident go away."""

    model_config = STRICT

    by: str = Field(min_length=1, max_length=500)
    """In words: the version or pull request, or what an operator does."""
    sets: dict[str, Any] = Field(min_length=1)
    """The same as `--set KEY=VALUE` has it."""


class IncidentModel(BaseModel):
    """An incident that was reported."""

    model_config = STRICT

    upstream: tuple[str, ...] = Field(min_length=1)
    """Where it was reported: apache/rocketmq#7056, or an address."""
    reported: str = Field(min_length=1, max_length=500)
    breaks: str = Field(min_length=1, max_length=500)
    """What does not hold, and what of RocketMQ's own rules, or of the scenario's promises, makes that wrong."""
    found_by: tuple[str, ...] = Field(min_length=1)
    """The checks that must say INVALID; others may besides."""
    fixed: FixedModel

    @property
    def sets(self) -> Sequence[str]:
        """What changes the scenario into the one without the incident, as `--set` takes it."""
        return [f"{key}={json.dumps(value)}" for key, value in self.fixed.sets.items()]

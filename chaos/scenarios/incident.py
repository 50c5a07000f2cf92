"""The incident that a scenario repeats, and the changes that would have prevented it. The scenario as written repeats
the incident. With the changes under `fixed` (KEY=VALUE as in `--set`), the scenario no longer has the incident."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from ..faults.fault import Strict


class PromisesModel(Strict):
    """An operator's promises beyond RocketMQ's rules; None or false: no promise."""

    tables_agree_within_s: float | None = Field(None, gt=0, le=100_000)
    """`routes_converge`: two NameServers never differ in a topic for longer, even while links are cut."""
    delivered_within_s: float | None = Field(None, ge=5, le=100_000)
    """`messages_delivered`: each group has an acknowledged message within this time, even while links are cut."""
    name_servers_left_within_s: float | None = Field(None, gt=0, le=100_000)
    """`dead_name_servers_left`: each client leaves a lost NameServer within this time, if RocketMQ allows more."""
    brokers_left_within_s: float | None = Field(None, gt=0, le=100_000)
    """`dead_brokers_avoided`: each client leaves a lost broker within this time, if RocketMQ allows more."""
    masters_stay: bool = False
    """`one_master`: no name's master changes its address without a change of roles."""
    wipes_last: bool = False
    """`done_by_hand`: wiped write permission stays wiped until somebody adds it."""
    polls_within_s: float | None = Field(None, gt=0, le=100_000)
    """`timers_kept`: a client never waits longer between two route polls, even if its thread is blocked."""

    @property
    def judged_by(self) -> tuple[str, ...]:
        """The checks that judge the promises made here. A promise is not decided if its check has no verdict."""
        return tuple(_JUDGES[name] for name, promise in self if promise)


_JUDGES = {
    "tables_agree_within_s": "routes_converge",
    "delivered_within_s": "messages_delivered",
    "name_servers_left_within_s": "dead_name_servers_left",
    "brokers_left_within_s": "dead_brokers_avoided",
    "masters_stay": "one_master",
    "wipes_last": "done_by_hand",
    "polls_within_s": "timers_kept",
}


class FixedModel(Strict):
    by: str = Field(min_length=1, max_length=500)
    """In words: the version, the pull request, or an operator's action."""
    sets: dict[str, Any] = Field(min_length=1)
    """As for `--set KEY=VALUE`."""


class IncidentModel(Strict):
    upstream: tuple[str, ...] = Field(min_length=1)
    """The report: apache/rocketmq#7056, or an address."""
    reported: str = Field(min_length=1, max_length=500)
    breaks: str = Field(min_length=1, max_length=500)
    """What fails, and which rule of RocketMQ's or promise of the scenario makes that wrong."""
    found_by: tuple[str, ...] = Field(min_length=1)
    """The checks that must say INVALID; others may, too."""
    fixed: FixedModel

    @property
    def sets(self) -> Sequence[str]:
        """Return the changes that prevent the incident, as KEY=VALUE texts of `--set`."""
        return [f"{key}={json.dumps(value)}" for key, value in self.fixed.sets.items()]

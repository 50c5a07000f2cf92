"""What can be done to a whole host: each is taken apart into the ordinary faults of its links and nodes that it
consists of (scenarios/host_actions.py), so that history, oracle and checks know no others.

What Ray itself sends between hosts is no link of the experiment and goes on.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from .fault import Action


class HostAction(Action):
    acts_on = "hosts"
    consists_of: ClassVar[str]
    """In words, for docs/scenarios.md."""


class LoseHost(HostAction):
    """Of a host: nobody answers any more, and nobody says so."""

    do: Literal["lose_host"] = "lose_host"
    consists_of = "`black_hole` of every link between a node of it and one of another host, then `kill` of its nodes"


class IsolateHost(HostAction):
    """Its nodes run on and reach one another."""

    do: Literal["isolate_host"] = "isolate_host"
    consists_of = "`black_hole` of every link between a node of it and one of another host"


class PauseHost(HostAction):
    do: Literal["pause_host"] = "pause_host"
    consists_of = "`pause` of its nodes"


class ReturnHost(HostAction):
    """Ends what was done to it by these."""

    do: Literal["return_host"] = "return_host"
    consists_of = "`heal` of that `black_hole`, then `restart` or `resume` of its nodes"


AnyHostAction = LoseHost | IsolateHost | PauseHost | ReturnHost
HOST_ACTIONS: dict[str, type[HostAction]] = {
    kind.model_fields["do"].default: kind for kind in (LoseHost, IsolateHost, PauseHost, ReturnHost)
}

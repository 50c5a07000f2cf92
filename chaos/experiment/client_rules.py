"""What the calls of a client that is seen from outside are told apart by: its profile, as its fronts' rows need it."""

from __future__ import annotations

from ..fronts.look_ups import Rules
from ..oracle.client_profiles import Advance, Attempts, ClientProfile, Order


def rules_of(profile: ClientProfile, name_servers: int) -> Rules:
    """What calls are told apart by (fronts/look_ups.py)."""
    return Rules(
        shuffled=profile.order is Order.SHUFFLED,
        start=profile.start.place(name_servers) or 0,
        every_request=profile.advance is Advance.EVERY_REQUEST,
        tries_max=1 if profile.attempts is Attempts.ONE else None,
        retries=frozenset(map(str, profile.retries)),
    )

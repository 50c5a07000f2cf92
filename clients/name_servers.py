"""Decides which NameServer a client uses next, by a shuffled list and a running index. The module opens no channel and
reads no clock.

A client shuffles its list of NameServers once and starts at a random place in the list. A client keeps its NameServer
while the channel to it is active, and otherwise moves to the next entry of the shuffled list. NameServerClient knows
whether a channel is active, and how many entries one call may try. Upstream: `NettyRemotingClient`.
"""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..remoting.node.network import Address

START_INDEX_BOUND = 999
"""The start index is uniform in 0..998 (`NettyRemotingClient.initValueIndex`)."""


class SelectionRules(NamedTuple):
    """The rules by which a client uses its list of NameServers. The defaults are Java's; other languages' clients
    differ."""

    shuffled: bool = True
    """Else the list is as configured."""
    start: int | None = None
    """The first entry's place in the list in use; None: drawn."""
    each_request: bool = False
    """Whether every request goes to the next entry, and not to the one before while its channel is active."""
    whole_list: bool | None = None
    """Whether one call goes on to the next entry when a connect fails; None: by RocketMQ's version."""
    after_silence: bool = False
    """Whether it does so too when an entry does not answer in the call's time."""


JAVA = SelectionRules()
AS_LISTED = SelectionRules(shuffled=False, start=0)
"""Java's, but for what is drawn: the list as configured, and its first entry first."""


class Choice(NamedTuple):
    """One choice of a NameServer, as Java logs it."""

    old: Address | None
    """The choice before; the same for every attempt of one 4.9 round."""
    new: Address
    position: int
    """In the shuffled list."""


class NameServerSelector:
    """A client's shuffled list of NameServers, and the client's position in the list.

    The constructor draws no random number, so that `shuffle` and `_start_index` can be replaced on a new instance.
    """

    def __init__(self, rng: random.Random, rules: SelectionRules = JAVA) -> None:
        self._rng, self._rules = rng, rules
        self._index: int | None = None
        self.addresses: tuple[Address, ...] = ()
        """In the order in use."""
        self.chosen: Address | None = None

    def shuffle(self, addresses: list[Address]) -> None:
        """Shuffle the list of NameServers in place, unless the rules keep the configured order."""
        if self._rules.shuffled:
            self._rng.shuffle(addresses)

    def _start_index(self) -> int:
        if self._rules.start is not None:
            return self._rules.start - 1
        return self._rng.randrange(START_INDEX_BOUND)

    def next_index(self) -> int:
        """Return the position in the list of the next NameServer to try; each call moves on by one. The list must not
        be empty."""
        if self._index is None:
            self._index = self._start_index()
        self._index += 1
        return abs(self._index) % len(self.addresses)

    def update(self, addresses: Sequence[Address]) -> bool:
        """Take a new list of NameServers. Returns True if the new list replaced the old.

        An empty list is ignored, and so is a list with the same addresses in another order. If the new list lacks the
        chosen NameServer, no NameServer is chosen any more.
        """
        if not addresses:
            return False
        if len(addresses) == len(self.addresses) and set(addresses) <= set(self.addresses):
            return False
        shuffled = list(addresses)
        self.shuffle(shuffled)
        self.addresses = tuple(shuffled)
        if self.chosen not in self.addresses:
            self.chosen = None
        return True

    def sticky(self, is_active: Callable[[Address], bool]) -> Address | None:
        """Return the chosen NameServer if its channel is active, else None. If the rules use the next NameServer for
        each request, return None."""
        if not self._rules.each_request and self.chosen is not None and is_active(self.chosen):
            return self.chosen
        return None

    def advance(self, old: Address | None) -> Choice:
        """Choose the next NameServer, which stays chosen even if connecting to it fails."""
        index = self.next_index()
        self.chosen = self.addresses[index]
        return Choice(old, self.chosen, index)

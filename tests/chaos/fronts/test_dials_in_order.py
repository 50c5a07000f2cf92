"""The order of a program's connects, whatever happens between two looks at a clock."""

import itertools
import time

from nemesrv.chaos.fronts.dials import DialWatch
from nemesrv.chaos.fronts.observed import Dialled, GaveUp
from nemesrv.remoting.node.clock import RealClock

LATE_S = itertools.count(0.005, 0.005)


class Jumping(RealClock):
    """Read each time 5 ms earlier than the time before, as if the machine did something else in between."""

    def monotonic_s(self) -> float:
        return RealClock.monotonic_s(self) - next(LATE_S)


def test_connects_are_seen_in_the_order_in_which_they_are_told() -> None:
    seen: list[Dialled | GaveUp] = []
    watch = DialWatch(seen.append, Jumping.starting_now(), lambda _address: None)
    for port in (1, 2, 3):
        line = {"host": "127.0.0.1", "port": port, "at_ns": time.monotonic_ns(), "process": 1, "thread": 1, "local": 0}
        watch._heard(line)
    watch.close()
    assert [one.address.port for one in sorted(seen, key=lambda one: one.at_ms)] == [1, 2, 3]

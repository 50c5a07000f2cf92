"""A node's wall clock can be changed; what is monotonic stays as it is."""

from nemesrv.remoting.node.clock import AdjustableClock
from tests.virtual import VirtualClock


class _Clock(VirtualClock):
    wall_ms = 1000

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_s(self) -> float:
        return 7.0


def test_it_shows_what_it_was_set_to_and_goes_as_fast_as_it_was_told() -> None:
    right = _Clock()
    clock = AdjustableClock(right)
    assert clock.now_ms() == 1000
    clock.adjust(500.0, 1.0)
    right.wall_ms = 1100
    assert clock.now_ms() == 1600
    clock.adjust(0.0, 2.0)
    right.wall_ms = 1200
    assert clock.now_ms() == 1800
    clock.adjust(0.0, 0.0)
    right.wall_ms = 5000
    assert clock.now_ms() == 1800
    clock.adjust(None, 1.0)
    assert (clock.now_ms(), clock.monotonic_s()) == (5000, 7.0)

"""A node's wall clock can be changed; what is monotonic stays as it is."""

from unittest.mock import Mock

from nemesrv.remoting.node.clock import AdjustableClock


def test_it_shows_what_it_was_set_to_and_goes_as_fast_as_it_was_told() -> None:
    right = Mock(scale=1.0)
    right.now_ms.return_value, right.monotonic_s.return_value = 1000, 7.0
    clock = AdjustableClock(right)
    assert clock.now_ms() == 1000
    clock.adjust(500.0, 1.0)
    right.now_ms.return_value = 1100
    assert clock.now_ms() == 1600
    clock.adjust(0.0, 2.0)
    right.now_ms.return_value = 1200
    assert clock.now_ms() == 1800
    clock.adjust(0.0, 0.0)
    right.now_ms.return_value = 5000
    assert clock.now_ms() == 1800
    clock.adjust(None, 1.0)
    assert (clock.now_ms(), clock.monotonic_s()) == (5000, 7.0)

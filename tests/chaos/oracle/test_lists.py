"""By when a node that asks an address server has taken a list."""

import pytest

from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.oracle.lists import late_ms
from nemesrv.chaos.oracle.queue_owners import quiet_for_groups
from nemesrv.chaos.scenarios.loading import parse


@pytest.mark.parametrize(("profile", "period_s", "late_s"), [("5.x", 15, 93), ("5.x", 30, 37), ("4.9", 30, 129)])
def test_a_broker_held_up_by_a_hung_name_server_asks_later(profile: str, period_s: int, late_s: int) -> None:
    """N + 3 s; while rounds follow each other without a pause, from the end of the hang on; else B later."""
    document = {
        "cluster": {"name_servers": 3, "profile": profile, "name_server_list": ["ns-0", "ns-1", "ns-2"]},
        "config": {"brokers": {"registerNameServerPeriod": period_s * 1000}},
        "timeline": [
            {"at_s": 20, "do": "pause", "nodes": ["ns-2"]},
            {"at_s": 40, "do": "name_server_list", "name_servers": ["ns-0", "ns-2"]},
            {"at_s": 120, "do": "resume", "nodes": ["ns-2"]},
        ],
        "settle_s": 300,
        "checks": ["routes_are_true"],
    }
    world = expected_world(parse(document, file="x.yaml")).world
    assert late_ms(world, "broker-a", world.served[1]) == 1000 * late_s
    assert late_ms(world, "producer-0", world.served[1]) == 123_000


@pytest.mark.parametrize(("later", "is_disturbed"), [(["ns-0"], False), (["ns-1", "ns-0"], False), (["ns-2"], True)])
def test_a_group_may_share_anew_while_a_new_name_server_lacks_brokers(later: list[str], is_disturbed: bool) -> None:
    document = {
        "cluster": {"name_servers": 3, "brokers": 2, "name_server_list": ["ns-0", "ns-1"]},
        "timeline": [{"at_s": 200, "do": "name_server_list", "name_servers": later}],
        "settle_s": 400,
        "checks": ["queue_ownership"],
    }
    world = expected_world(parse(document, file="x.yaml")).world
    changed_ms = world.served[1].from_ms
    asked_ms = changed_ms + 123_000 + 33_000  # N + 3 s, then R + C: by then ns-2 has every broker
    quiet = [(one.start_ms, one.end_ms) for one in quiet_for_groups(world)]
    assert any(start_ms < asked_ms < end_ms for start_ms, end_ms in quiet) is not is_disturbed
    assert any(start_ms < changed_ms + 300_000 < end_ms for start_ms, end_ms in quiet)

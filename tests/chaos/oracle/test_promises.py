"""What a NameServer's table must hold, and when: obligations of small worlds, without Spark."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from nemesrv.chaos.oracle.link import process_causes
from nemesrv.chaos.oracle.promises import ObligationKind, downs, flapping_routes, obligations
from nemesrv.chaos.oracle.recorded import Fault, Life, NodeInfo
from nemesrv.chaos.oracle.windows import Timers
from nemesrv.chaos.oracle.world import World
from tests.chaos.builder import cluster

LINK = ("black_hole", "toxiproxy.bandwidth.rate=0", "broker-a", "ns-0", "both")
KILL = ("kill", "sigkill", "broker-a", None, None)


def fault(kind: tuple[str, str, str, str | None, str | None], start_s: float, end_s: float = math.inf) -> Fault:
    return Fault(kind[0], *kind, start_s * 1000, end_s * 1000)


def world(*faults: Fault, lives: tuple[tuple[str, float, float], ...] = (), end_s: float = 600) -> World:
    """ns-0 and broker-a, both alive from 0 s on unless `lives` says otherwise."""
    lives = lives or (("ns-0", 0, math.inf), ("broker-a", 0, math.inf))
    numbers: dict[str, int] = {}
    made = []
    for node, start_s, stop_s in lives:
        made.append(Life(node, numbers.setdefault(node, 0), start_s * 1000, stop_s * 1000))
        numbers[node] += 1
    return World(
        timers=Timers(),
        nodes=(NodeInfo("ns-0", "name_server", "127.0.0.1:9876"), NodeInfo("broker-a", "broker", "127.0.0.1:10911")),
        lives=tuple(made),
        faults=tuple(sorted(faults, key=lambda f: f.start_ms)),
        end_ms=end_s * 1000,
    )


def demanded(world_: World) -> list[tuple[str, float, float]]:
    return [(str(o.demand), o.from_ms / 1000, o.to_ms / 1000) for o in obligations(world_)]


def test_in_peace_the_broker_is_held_from_r_plus_c_on() -> None:
    assert demanded(world()) == [("return", 33, 600)]


def test_a_crash_empties_the_table_at_once_and_a_restart_fills_it_within_r_plus_c() -> None:
    lives = (("ns-0", 0, math.inf), ("broker-a", 0, 100), ("broker-a", 190.5, math.inf))
    assert demanded(world(fault(KILL, 100, 190), lives=lives)) == [
        ("return", 33, 100),
        ("drop", 100, 190),
        ("drop", 190, 190.5),
        ("return", 223.5, 600),
    ]


def test_a_silent_broker_is_kept_for_e_minus_r_and_gone_after_e_plus_s() -> None:
    assert demanded(world(fault(LINK, 100, 300))) == [
        ("return", 33, 100),
        ("keep", 100, 190),
        ("drop", 230, 300),
        ("return", 333, 600),
    ]


LOSS = ("packet_loss", "packet_loss", "broker-a", "ns-0", "both")


def test_a_close_comes_behind_what_a_kernel_sends_again_after_a_time_of_lost_packets() -> None:
    lives = (("ns-0", 0, math.inf), ("broker-a", 0, 140), ("broker-a", 300, math.inf))
    assert demanded(world(fault(LOSS, 100, 130), fault(KILL, 140, 290), lives=lives))[2:4] == [
        ("drop", 160, 290),  # it may wait as long again as packets were lost: 30 s, of which 10 s are over
        ("drop", 290, 300),
    ]
    held = (LINK[0], LINK[1], *LOSS[2:])
    assert demanded(world(fault(held, 100, 130), fault(KILL, 140, 290), lives=lives))[2] == ("drop", 140, 290)


def test_a_broker_whose_packets_were_lost_may_be_dropped_until_its_kernel_has_sent_again() -> None:
    """Behind the registration that it gave up comes the old channel's close, and the new one's registration is gone."""
    assert demanded(world(fault(LOSS, 100, 130))) == [
        ("return", 33, 100),
        ("keep", 100, 130),
        ("return", 193, 600),  # the kernel waits for as long as packets were lost, then R + C
    ]


def test_a_short_silence_demands_nothing_but_that_the_broker_is_kept_until_the_heal() -> None:
    assert demanded(world(fault(LINK, 100, 120))) == [("return", 33, 100), ("keep", 100, 120), ("return", 153, 600)]


def test_a_second_fault_before_the_broker_is_due_back_demands_no_keeping() -> None:
    assert demanded(world(fault(LINK, 100, 120), fault(LINK, 130, 400))) == [
        ("return", 33, 100),
        ("keep", 100, 120),
        ("drop", 260, 400),
        ("return", 433, 600),
    ]


def test_the_close_of_a_broker_killed_behind_a_black_hole_cannot_be_seen() -> None:
    lives = (("ns-0", 0, math.inf), ("broker-a", 0, 150))
    assert demanded(world(fault(LINK, 100, 400), fault(KILL, 150), lives=lives)) == [
        ("return", 33, 100),
        ("keep", 100, 150),
        ("drop", 230, 400),
        ("drop", 400, 600),  # at the heal what was held arrives, and the close right behind it
    ]


def test_a_name_server_started_again_is_empty_and_owes_nothing_to_the_time_before() -> None:
    lives = (("ns-0", 0, 100), ("ns-0", 150, math.inf), ("broker-a", 0, math.inf))
    kill = ("kill", "sigkill", "ns-0", None, None)
    assert demanded(world(fault(kill, 100, 149), lives=lives)) == [("return", 33, 100), ("return", 183, 600)]


def test_nothing_is_demanded_of_a_paused_name_server_until_it_could_catch_up() -> None:
    pause = ("pause", "sigstop", "ns-0", None, None)
    assert demanded(world(fault(pause, 100, 200))) == [("return", 33, 100), ("return", 233, 600)]


def test_a_broker_killed_while_the_name_server_was_paused_is_gone_one_scan_after_the_resume() -> None:
    pause = ("pause", "sigstop", "ns-0", None, None)
    lives = (("ns-0", 0, math.inf), ("broker-a", 0, 150))
    assert demanded(world(fault(pause, 100, 200), fault(KILL, 150), lives=lives)) == [
        ("return", 33, 100),
        ("drop", 210, 600),
    ]


def test_a_clean_stop_may_have_unregistered_before_it_is_recorded() -> None:
    stop = ("stop", "sigterm", "broker-a", None, None)
    lives = (("ns-0", 0, math.inf), ("broker-a", 0, 100))
    assert demanded(world(fault(stop, 100), lives=lives)) == [("return", 33, 97), ("drop", 100, 600)]


def test_the_close_of_a_clean_stop_may_meet_a_black_hole_that_began_while_it_was_under_way() -> None:
    stop, lives = ("stop", "sigterm", "broker-a", None, None), (("ns-0", 0, math.inf), ("broker-a", 0, 100))
    for begun_s in (97, 98):  # with it, and in its course
        held = demanded(world(fault(LINK, begun_s, 400), fault(stop, 100), lives=lives))
        assert held == [("return", 33, 97), ("drop", begun_s + 130, 400), ("drop", 403, 600)]
    too_late = demanded(world(fault(LINK, 100.5, 400), fault(stop, 100), lives=lives))
    assert too_late[:3] == [("return", 33, 97), ("drop", 100, 100.5), ("drop", 100.5, 400)]


def test_a_broker_that_is_leaving_may_still_register_with_a_name_server_that_was_just_started() -> None:
    stop, kill = ("stop", "sigterm", "broker-a", None, None), ("kill", "sigkill", "ns-0", None, None)
    lives = (("ns-0", 0, 98), ("ns-0", 99, math.inf), ("broker-a", 0, 100), ("broker-a", 200, math.inf))
    leaving = world(fault(kill, 98, 99), fault(stop, 100, 200), lives=lives)
    assert demanded(leaving) == [("return", 33, 97), ("drop", 100, 200), ("return", 233, 600)]
    assert [(d.incarnation, d.from_ms / 1000, d.to_ms / 1000) for d in downs(leaving)][-1] == (1, 100, 200)
    long_gone = world(fault(stop, 80, 200), fault(kill, 98, 99), lives=(*lives[:2], ("broker-a", 0, 80), lives[3]))
    assert demanded(long_gone)[-2:] == [("drop", 99, 200), ("return", 233, 600)]


def test_a_broker_that_is_stopped_as_soon_as_it_was_started_may_have_registered_meanwhile() -> None:
    stop = ("stop", "sigterm", "broker-a", None, None)
    lives = (("ns-0", 0, math.inf), ("broker-a", 0, 100), ("broker-a", 300, 300.5), ("broker-a", 500, math.inf))
    stopped_twice = world(fault(stop, 100, 300), fault(stop, 300.5, 500), lives=lives)
    assert demanded(stopped_twice) == [("return", 33, 97), ("drop", 100, 300), ("drop", 303, 500), ("return", 533, 600)]
    assert [(d.from_ms / 1000, d.to_ms / 1000) for d in downs(stopped_twice)] == [(100, 300), (303, 500)]


def test_the_end_of_the_run_is_no_fault() -> None:
    lives = (("ns-0", 0, 601), ("broker-a", 0, 601))
    assert demanded(world(lives=lives)) == [("return", 33, 600)]


@pytest.mark.parametrize("injection", ["toxiproxy.bandwidth", "toxiproxy.latency", "the sun"])
def test_where_the_table_bounds_nothing_nothing_is_demanded(injection: str) -> None:
    kind = ("latency", injection, "broker-a", "ns-0", "both")
    assert demanded(world(fault(kind, 100, 300))) == [("return", 33, 100), ("return", 333, 600)]
    assert not flapping_routes(world(fault(kind, 100, 300)))


def test_a_link_that_resets_loses_the_broker_with_its_next_registration_and_never_lets_it_in() -> None:
    kind = ("reset", "toxiproxy.reset_peer", "broker-a", "ns-0", "both")
    assert demanded(world(fault(kind, 100, 300))) == [("return", 33, 100), ("drop", 130, 300), ("return", 333, 600)]


def test_a_link_that_resets_only_answers_lets_the_broker_in_for_a_moment_at_each_tick() -> None:
    kind = ("reset", "toxiproxy.reset_peer", "broker-a", "ns-0", "downstream")
    reset = world(fault(kind, 100, 300))
    assert demanded(reset) == [("return", 33, 100), ("return", 333, 600)]
    assert [(t.from_ms, t.to_ms, t.pulse.held_ms, t.pulse.missing_ms) for t in flapping_routes(reset)] == [
        (100_000, 300_000, 0, math.inf)
    ]


DEAF = ("black_hole", "toxiproxy.bandwidth.rate=0", "broker-a", "ns-0", "downstream")


def test_a_broker_that_gets_no_answers_through_a_proxy_is_there_b_of_every_r() -> None:
    deaf = world(fault(DEAF, 100, 300))
    assert demanded(deaf) == [("return", 33, 100), ("return", 333, 600)]
    (turns,) = flapping_routes(deaf)
    assert (turns.pulse.first_ms, turns.pulse.held_ms, turns.pulse.missing_ms) == (36_000, 6_000, 24_000)


def test_without_close_on_timeout_a_broker_that_gets_no_answers_is_never_dropped() -> None:
    deaf = replace(world(fault(DEAF, 100, 300)), timers=Timers(Z=False))
    assert demanded(deaf) == [("return", 33, 600)]
    assert not flapping_routes(deaf)


def test_turns_beside_another_fault_are_not_told() -> None:
    assert not flapping_routes(world(fault(DEAF, 100, 300), fault(LINK, 90, 110)))
    assert not flapping_routes(world(fault(DEAF, 100, 300), fault(LINK, 200, 210)))


def test_turns_right_after_the_beginning_of_a_run_are_told_and_right_after_a_restart_they_are_not() -> None:
    assert flapping_routes(world(fault(DEAF, 10, 300)))
    lives = (("ns-0", 0, math.inf), ("broker-a", 0, 50), ("broker-a", 90, math.inf))
    assert not flapping_routes(world(fault(KILL, 50, 90), fault(DEAF, 100, 300), lives=lives))
    restarted = (("ns-0", 0.0, 50.0), ("ns-0", 90.0, math.inf), ("broker-a", 0.0, math.inf))
    assert not flapping_routes(world(fault(DEAF, 100, 300), lives=restarted))


def slow(latency_ms: float, jitter_ms: float = 0, stream: str = "both") -> World:
    numbers = {"latency_ms": latency_ms, "jitter_ms": jitter_ms}
    kind = ("f", "latency", "toxiproxy.latency", "broker-a", "ns-0", stream)
    return world(Fault(*kind, 100_000, 300_000, numbers))


def test_a_round_trip_below_the_connect_time_out_changes_nothing() -> None:
    assert demanded(slow(1_200)) == demanded(slow(2_900, stream="upstream")) == [("return", 33, 600)]


def test_a_round_trip_longer_than_the_registration_waits_makes_the_broker_come_and_go() -> None:
    assert demanded(slow(4_000)) == [("return", 33, 100), ("return", 333, 600)]
    assert [(t.pulse.first_ms, t.pulse.held_ms) for t in flapping_routes(slow(4_000))] == [(40_000, 6_000)]
    assert [t.pulse.held_ms for t in flapping_routes(slow(8_000, 500))] == [7_000]


def test_a_round_trip_that_may_or_may_not_be_in_time_decides_nothing() -> None:
    between = slow(2_000, 1_500)
    assert demanded(between) == [("return", 33, 100), ("return", 333, 600)]
    assert not flapping_routes(between)


def test_a_pause_of_the_name_server_that_no_registration_outlasts_is_not_noticed() -> None:
    pause = ("pause", "sigstop", "ns-0", None, None)
    assert demanded(world(fault(pause, 100, 103))) == [("return", 33, 600)]
    assert demanded(world(fault(pause, 100, 104))) == [("return", 33, 100), ("return", 137, 600)]


def test_a_little_latency_changes_nothing() -> None:
    slow = Fault("f", "latency", "toxiproxy.latency", "broker-a", "ns-0", "both", 100_000, 300_000, {"latency_ms": 50})
    assert demanded(world(slow)) == [("return", 33, 600)]


def test_an_obligation_names_the_fault_it_comes_from() -> None:
    found = obligations(world(fault(LINK, 100, 300)))
    assert [(o.demand, str(o.label)) for o in found[1:]] == [
        (ObligationKind.KEEP, "black_hole start"),
        (ObligationKind.DROP, "black_hole start"),
        (ObligationKind.RETURN, "black_hole end"),
    ]


def gone(world_: World) -> list[tuple[float, float, float, str]]:
    return [(d.since_ms / 1000, d.from_ms / 1000, d.to_ms / 1000, str(d.label)) for d in downs(world_)]


def test_a_dead_or_cut_off_broker_is_down_until_it_or_its_link_is_back() -> None:
    lives = (("ns-0", 0, math.inf), ("broker-a", 0, 100), ("broker-a", 190.5, math.inf))
    assert gone(world(fault(KILL, 100, 190), lives=lives)) == [(100, 100, 190.5, "kill start")]
    assert gone(world(fault(LINK, 100, 300))) == [(100, 100, 300, "black_hole start")]


def test_a_heal_behind_which_the_broker_is_dead_lets_out_what_was_held_and_begins_anew() -> None:
    lives = (("ns-0", 0, math.inf), ("broker-a", 0, 150))
    assert gone(world(fault(LINK, 100, 400), fault(KILL, 150), lives=lives)) == [
        (100, 100, 400, "black_hole start"),
        (400, 400, 600, "black_hole end"),
    ]


def test_a_clean_stop_is_down_when_it_is_over() -> None:
    stop = ("stop", "sigterm", "broker-a", None, None)
    lives = (("ns-0", 0, math.inf), ("broker-a", 0, 100))
    assert gone(world(fault(stop, 100), lives=lives)) == [(97, 100, 600, "stop start")]


def test_a_broker_that_comes_and_goes_is_not_down() -> None:
    assert gone(world(fault(DEAF, 100, 300))) == []


@pytest.mark.parametrize(("asked_s", "began_s"), [(87, 87), (99.9, 94), (None, 94)])
def test_a_clean_stop_began_when_it_was_asked_for_and_at_least_as_early_as_it_may_have_unregistered(
    asked_s: float | None, began_s: float
) -> None:
    """Apache's broker 5.3.3 told two NameServers, and its process ended 13 s later."""
    value = None if asked_s is None else {"asked_ms": asked_s * 1000}
    told = cluster(name_servers=2, brokers=("broker-a",)).at(100).fault("s", "stop", "sigterm", "broker-a", value=value)
    stop, *_ = process_causes(told.end(200).facts()[1], "broker-a")
    assert stop.start_ms == began_s * 1000

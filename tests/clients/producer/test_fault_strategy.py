"""Queue choice and broker isolation, row by row of the two tables."""

import random
from collections import Counter

import pytest

from nemesrv.clients.producer.fault_strategy import MQFaultStrategy
from nemesrv.clients.producer.publish_table import QueueRing
from nemesrv.remoting.message import MessageQueue
from nemesrv.remoting.node.profile import Profile

QUEUES = tuple(MessageQueue("orders", name, queue_id) for name in ("broker-a", "broker-b") for queue_id in range(2))
WRITE = {"broker-a": 2, "broker-b": 2}


def strategy(profile: Profile, *, enabled: bool = True, detector: bool = False) -> MQFaultStrategy:
    return MQFaultStrategy(profile, random.Random(0), enabled=enabled, detector_enabled=detector)


def ring(seed: int = 0) -> QueueRing:
    return QueueRing(QUEUES, random.Random(seed))


def pick(made: MQFaultStrategy, of: QueueRing, last: str | None = None, *, now_ms: int = 0, retry: bool = False) -> str:
    return made.select(of, last, now_ms=now_ms, write_queue_nums=WRITE, retry=retry).broker_name


@pytest.mark.parametrize(
    ("latency_ms", "isolation_4_9_ms", "isolation_5_x_ms"),
    [
        (0, 0, 0),
        (49, 0, 0),
        (50, 0, 0),
        (100, 0, 0),
        (549, 0, 0),
        (550, 30_000, 2_000),
        (999, 30_000, 2_000),
        (1_000, 60_000, 2_000),
        (1_799, 60_000, 2_000),
        (1_800, 60_000, 5_000),
        (1_999, 60_000, 5_000),
        (2_000, 120_000, 5_000),
        (2_999, 120_000, 5_000),
        (3_000, 180_000, 6_000),
        (4_999, 180_000, 6_000),
        (5_000, 180_000, 10_000),
        (14_999, 180_000, 10_000),
        (15_000, 600_000, 30_000),
        (1_000_000, 600_000, 30_000),
    ],
)
def test_isolation_by_latency(latency_ms: int, isolation_4_9_ms: int, isolation_5_x_ms: int) -> None:
    assert strategy(Profile.V4_9).isolation_ms(latency_ms) == isolation_4_9_ms
    assert strategy(Profile.V5_X).isolation_ms(latency_ms) == isolation_5_x_ms


def test_a_failure_counts_as_30_s_in_4_9_and_10_s_in_5_x() -> None:
    assert strategy(Profile.V4_9).isolation_ms(1, failed=True) == 600_000
    assert strategy(Profile.V5_X).isolation_ms(1, failed=True) == 10_000


@pytest.mark.parametrize("profile", list(Profile))
def test_a_failed_broker_is_avoided_until_its_isolation_ends(profile: Profile) -> None:
    made = strategy(profile)
    made.transport_failed("broker-a", 5, now_ms=1_000)
    ends_ms = 1_000 + made.isolation_ms(5, failed=True)
    of = ring()
    assert {pick(made, of, now_ms=ends_ms - 1) for _ in range(8)} == {"broker-b"}
    assert {pick(made, of, now_ms=ends_ms) for _ in range(8)} == {"broker-a", "broker-b"}


@pytest.mark.parametrize(
    ("profile", "kind", "isolated", "reachable"),
    [
        (Profile.V4_9, "transport_failed", True, True),
        (Profile.V4_9, "client_refused", True, True),
        (Profile.V4_9, "broker_refused", True, False),
        (Profile.V4_9, "attempt_succeeded", False, True),
        (Profile.V5_X, "transport_failed", True, True),
        (Profile.V5_X, "client_refused", False, True),
        (Profile.V5_X, "broker_refused", True, False),
        (Profile.V5_X, "attempt_succeeded", False, True),
    ],
)
def test_what_each_outcome_does_to_its_broker(profile: Profile, kind: str, isolated: bool, reachable: bool) -> None:
    made = strategy(profile)
    getattr(made, kind)("broker-a", 5, now_ms=0)
    assert made.is_available("broker-a", now_ms=1) is not isolated
    assert made.is_reachable("broker-a") is reachable


def test_with_the_detector_a_transport_failure_costs_reachability_until_a_probe_succeeds() -> None:
    made = strategy(Profile.V5_X, detector=True)
    made.transport_failed("broker-a", 5, now_ms=0)
    assert not made.is_reachable("broker-a")
    assert made.due_probes(now_ms=3_000) == ("broker-a",)
    assert made.due_probes(now_ms=4_999) == ()
    assert made.due_probes(now_ms=5_000) == ("broker-a",)
    made.probe_succeeded("broker-a")
    assert made.is_reachable("broker-a")
    made.forget("broker-a")
    assert made.due_probes(now_ms=60_000) == ()
    made.probe_succeeded("broker-a")
    assert made.is_available("broker-a", now_ms=0)


def test_there_is_no_detector_unless_asked_for_and_none_in_4_9() -> None:
    for made in (strategy(Profile.V5_X), strategy(Profile.V4_9, detector=True)):
        made.transport_failed("broker-a", 5, now_ms=0)
        assert made.due_probes(now_ms=60_000) == ()


def test_a_quick_answer_ends_an_isolation_in_4_9_and_not_in_5_x() -> None:
    for profile, available in ((Profile.V4_9, True), (Profile.V5_X, False)):
        made = strategy(profile)
        made.transport_failed("broker-a", 5, now_ms=0)
        made.attempt_succeeded("broker-a", 5, now_ms=100)
        assert made.is_available("broker-a", now_ms=101) is available


@pytest.mark.parametrize("profile", list(Profile))
def test_switched_off_it_forgets_everything_and_a_retry_avoids_the_last_broker(profile: Profile) -> None:
    made = strategy(profile, enabled=False)
    made.transport_failed("broker-b", 5, now_ms=0)
    of = ring()
    assert {pick(made, of, "broker-a", retry=True) for _ in range(8)} == {"broker-b"}
    assert Counter(pick(made, of) for _ in range(8)) == {"broker-a": 4, "broker-b": 4}


def test_4_9_takes_an_available_broker_even_if_it_just_failed() -> None:
    made = strategy(Profile.V4_9)
    made.transport_failed("broker-b", 5, now_ms=0)
    assert {pick(made, ring(seed), "broker-a", now_ms=1, retry=True) for seed in range(20)} == {"broker-a"}


def test_5_x_wants_another_broker_and_prefers_a_reachable_one_to_the_same() -> None:
    made = strategy(Profile.V5_X)
    made.transport_failed("broker-b", 5, now_ms=0)  # isolated, reachable
    assert {pick(made, ring(seed), "broker-a", now_ms=1, retry=True) for seed in range(20)} == {"broker-b"}


def test_5_x_takes_the_next_in_turn_when_no_other_broker_is_reachable() -> None:
    made = strategy(Profile.V5_X)
    made.broker_refused("broker-b", 5, now_ms=0)  # isolated, not reachable
    picks = Counter(pick(made, ring(seed), "broker-a", now_ms=1, retry=True) for seed in range(40))
    assert set(picks) == {"broker-a", "broker-b"}


def test_5_x_starts_each_retry_at_a_random_place() -> None:
    made, queues = strategy(Profile.V5_X), set[int]()
    for seed in range(20):
        chosen = made.select(ring(seed), "broker-a", now_ms=0, write_queue_nums=WRITE, retry=True)
        queues.add(chosen.queue_id)
    assert queues == {0, 1}


def test_4_9_with_all_brokers_isolated_takes_the_better_half() -> None:
    made = strategy(Profile.V4_9)
    made.attempt_succeeded("broker-a", 20_000, now_ms=0)
    made.attempt_succeeded("broker-b", 600, now_ms=0)
    of = ring()
    chosen = [made.select(of, None, now_ms=1, write_queue_nums=WRITE) for _ in range(8)]
    assert {queue.broker_name for queue in chosen} == {"broker-b"}
    assert {queue.queue_id for queue in chosen} <= {0, 1}


def test_4_9_with_its_one_broker_isolated_goes_on_using_it() -> None:
    made = strategy(Profile.V4_9)
    made.transport_failed("broker-a", 5, now_ms=0)
    of = QueueRing(QUEUES[:2], random.Random(0))
    chosen = [made.select(of, None, now_ms=1, write_queue_nums={"broker-a": 2}) for _ in range(4)]
    assert {queue.broker_name for queue in chosen} == {"broker-a"}


def test_4_9_forgets_an_isolated_broker_that_has_no_row_in_this_topic() -> None:
    made = strategy(Profile.V4_9)
    made.attempt_succeeded("elsewhere", 560, now_ms=0)
    made.transport_failed("broker-a", 5_000, now_ms=0)
    made.transport_failed("broker-b", 5_000, now_ms=0)
    of = ring()
    assert pick(made, of, now_ms=1) in WRITE
    assert made.is_available("elsewhere", now_ms=1)


def test_the_ring_starts_anywhere_and_goes_round() -> None:
    firsts = Counter(ring(seed).next() for seed in range(2000))
    assert set(firsts) == set(QUEUES)
    assert sum((count - 500) ** 2 / 500 for count in firsts.values()) < 16.3  # 0.1 %, 3 degrees of freedom
    of = ring()
    first = QUEUES.index(of.next())
    assert [of.next() for _ in range(7)] == [QUEUES[(first + step) % 4] for step in range(1, 8)]


def test_a_retry_on_the_only_broker_takes_its_next_queue_after_one_full_cycle() -> None:
    of = QueueRing(QUEUES[:2], random.Random(0))
    before = of.next_number()
    assert of.next_on_another_broker("broker-a").broker_name == "broker-a"
    assert of.next_number() - before == 4  # one cycle of two, the one taken, and this look


def test_looking_ahead_moves_the_counter_by_one_only() -> None:
    of = ring()
    before = of.next_number()
    assert of.ahead_that(lambda queue: False) is None
    assert of.next_number() - before == 2

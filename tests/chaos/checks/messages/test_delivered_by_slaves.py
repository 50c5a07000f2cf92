"""What a slave has copied for certain it must hand over while its master is gone: by hand-written histories."""

from typing import Any

import pytest

from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import HistoryBuilder, cluster
from tests.chaos.checks.messages.test_messages_delivered import CLIENTS, KILL, kinds, received, sent, taken, verdict

ALONE, BOTH = ("broker-a/1", "broker-b"), ("broker-a", "broker-a/1", "broker-b")


def story(**run: Any) -> HistoryBuilder:
    builder = cluster(brokers=BOTH, clients=CLIENTS, workload={"queues": 4}, **run)
    return taken(builder.at(10).learns("consumer-0", *BOTH))


def told(acked_s: float, received_s: float, *, cut_s: float | None = None, heard_s: float | None = None) -> Verdict:
    """The master is killed at 200 s, while its message waits, and back at 500 s; its consumer knows that at 230 s.
    `heard_s`: the slave makes no groups by itself, and then the master heard of the consumer's group."""
    alone = {} if heard_s is None else {"settings": {"broker-a/1": {"autoCreateSubscriptionGroup": False}}}
    builder, pause = story(**alone), ("f2", "pause", "sigstop", "consumer-0")
    if heard_s is not None:
        builder.at(heard_s).hears("broker-a", "consumer-0")
        builder.at(245).hears("broker-a/1", "consumer-0")
    if cut_s is not None:
        builder.at(cut_s).fault("f3", "black_hole", "timeout", "broker-a/1", "broker-a", until_s=cut_s + 5)
    builder.at(160).fault(*pause)
    sent(builder, acked_s).at(200).fault(*KILL).at(210).fault(*pause, end=True)
    builder.at(230).learns("consumer-0", *ALONE).at(500).fault(*KILL, end=True).restarted("broker-a")
    return verdict(received(builder.at(520).learns("consumer-0", *BOTH), received_s), end_s=900)


def test_a_message_that_the_slave_had_the_time_to_copy_comes_while_the_master_is_gone() -> None:
    assert told(180, 290).verdict is Validity.VALID
    late = told(180, 530)
    assert (late.verdict, kinds(late), late.examples[0].more["rule"]) == (Validity.INVALID, ["late"], "copied")


@pytest.mark.parametrize(("heard_s", "verdict"), [(150, Validity.INVALID), (190, Validity.VALID)])
def test_a_slave_that_makes_no_groups_has_those_that_its_master_had_for_long(heard_s: float, verdict: Validity) -> None:
    assert told(180, 530, heard_s=heard_s).verdict is verdict


def test_the_masters_last_seconds_and_what_came_while_the_slave_was_cut_off_wait_for_the_master() -> None:
    assert told(195, 530).verdict is Validity.VALID
    assert told(180, 530, cut_s=150).verdict is Validity.VALID


def test_nothing_is_asked_of_a_slave_while_its_consumer_may_still_pull_the_master() -> None:
    assert told(180, 298).verdict is Validity.VALID  # 230 s + P + C + 31 s + D
    assert told(180, 302).verdict is Validity.INVALID


def alone(from_s: float, to_s: float, *, acked_s: float, received_s: float) -> Verdict:
    """The consumer's route names the slave alone while the master and its NameServer cannot reach each other."""
    builder, link = story(), ("f3", "cut", "proxy", "broker-a", "ns-0")
    steps = {
        from_s: lambda: builder.fault(*link).learns("consumer-0", *ALONE),
        to_s: lambda: builder.fault(*link, end=True).learns("consumer-0", *BOTH),
        acked_s: lambda: sent(builder, acked_s),
        received_s: lambda: received(builder, received_s),
    }
    for at_s in sorted(steps):
        builder.at(at_s)
        steps[at_s]()
    return verdict(builder, end_s=900)


def test_a_message_that_comes_when_the_route_has_the_master_again_is_not_asked_of_the_slave() -> None:
    assert alone(230, 330, acked_s=340, received_s=350).verdict is Validity.VALID
    assert alone(230, 330, acked_s=340, received_s=380).verdict is Validity.INVALID


def test_a_pull_that_went_to_the_slave_may_be_held_there_until_it_is_over() -> None:
    assert alone(230, 235, acked_s=228, received_s=250).verdict is Validity.VALID
    assert alone(230, 235, acked_s=228, received_s=290).verdict is Validity.INVALID

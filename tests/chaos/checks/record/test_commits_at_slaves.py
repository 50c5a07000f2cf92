"""Commits go to the master that the consumer's route has: by hand-written histories."""

import pytest

from nemesrv.chaos.oracle.time_outs import PERSIST
from nemesrv.chaos.topology import CONSUMER_GROUP
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import HistoryBuilder, address_of, cluster, route_of
from tests.chaos.checks.messages.test_commits_follow_work import AT, CLIENTS, kinds, taken, verdict, worked

BROKERS = ("broker-a", "broker-a/1", "broker-b")


def story(*brokers: str) -> HistoryBuilder:
    """Three messages are received of a name with a slave."""
    builder = cluster(brokers=BROKERS, clients=CLIENTS, workload={"queues": 4})
    return worked(taken(builder.at(10).learns("consumer-0", *brokers)), 3)


def committed(builder: HistoryBuilder, at_s: float, at: str = "broker-a/1") -> HistoryBuilder:
    value = {"group": CONSUMER_GROUP, "client": "127.0.0.1@consumer-0#1700000000000", "before": -1}
    return builder.at(at_s).event(at, "commit", f="update", offset=3, value=value, **AT)


def test_a_commit_at_a_slave_is_right_while_the_route_has_no_master_and_just_after() -> None:
    alone = ("broker-a/1", "broker-b")
    assert verdict(committed(story(*alone), 110)).verdict is Validity.VALID
    assert verdict(committed(story(*alone).at(109.5).learns("consumer-0", *BROKERS), 110)).verdict is Validity.VALID
    assert verdict(committed(story(*alone).at(105).learns("consumer-0", *BROKERS), 110)).verdict is Validity.INVALID


@pytest.mark.parametrize("has_copied", [True, False])
def test_what_was_worked_off_is_committed_at_the_slave_unless_the_slave_never_had_a_master(has_copied: bool) -> None:
    """A slave without a master has no topics, and refuses the commit (random seed 1676074)."""
    builder = cluster(brokers=BROKERS, clients=CLIENTS, workload={"queues": 4})
    for slave in ("broker-a/1",) if has_copied else ():
        builder.at(5).event(slave, "copies", address=address_of("broker-a"))
    for heard in (5, 35, 65, 95, 125):
        builder.at(heard).hears("broker-a/1", "consumer-0").hears("broker-b", "consumer-0")
    builder = worked(taken(builder.at(10).learns("consumer-0", "broker-a/1", "broker-b")), 3)
    for at_s in (105, 110, 115):
        builder.at(at_s).event("consumer-0", "scheduled_task", f=PERSIST, duration_ms=0.0)
    assert kinds(verdict(builder)) == (["consumed, and not committed"] if has_copied else [])


def test_a_slave_that_stands_in_the_route_as_master_is_told() -> None:
    route = route_of(*BROKERS)
    of = route["brokers"]["broker-a"]
    of["0"] = of.pop("1")
    assert verdict(committed(story(*BROKERS).at(105).learns("consumer-0", route=route), 110)).verdict is Validity.VALID


def test_what_was_under_way_to_a_slave_may_come_when_the_way_is_free_again() -> None:
    cut = ("f1", "black_hole", "timeout", "consumer-0", "broker-a/1")
    builder = story(*BROKERS).at(104).fault(*cut, until_s=108)
    assert verdict(committed(builder, 110)).verdict is Validity.VALID


def test_a_slave_answers_no_older_offset_than_its_master_had_thirteen_seconds_before_it_was_lost() -> None:
    kill = ("f1", "kill", "sigkill", "broker-a")

    def taken_after(committed_s: float, *, cut_s: float | None = None) -> Verdict:
        builder = story(*BROKERS)
        if cut_s is not None:
            builder.at(cut_s).fault("f2", "black_hole", "timeout", "broker-a/1", "ns-0", until_s=cut_s + 5)
        committed(builder, committed_s, at="broker-a").at(200).fault(*kill)
        return verdict(taken(builder.at(230), offset=2, node="consumer-1"))

    found = taken_after(185)
    assert (found.verdict, kinds(found)) == (Validity.INVALID, ["answered a lower offset"])
    assert taken_after(190).verdict is Validity.VALID
    assert taken_after(185, cut_s=150).verdict is Validity.VALID  # it may not know its master

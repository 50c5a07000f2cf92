"""Checks of routes where brokers have slaves: tables that follow are right. The self-test plants what is wrong."""

import pytest

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import HistoryBuilder, cluster

BROKERS = ("broker-a", "broker-b", "broker-a/1")
TABLES = ("routes_are_true", "routes_converge", "routes_as_registered", "no_resurrection")


def story(*, killed: str | None = "broker-a") -> HistoryBuilder:
    """The master is killed at 100 s and back at 300 s; both tables follow at once."""
    of = cluster(brokers=BROKERS)
    if killed is not None:
        of.at(100).fault("kill-1", "kill", "sigkill", killed)
        left = [broker for broker in BROKERS if broker != killed]
        for name_server in ("ns-0", "ns-1"):
            of.route(name_server, "orders", *left)
        of.at(300).fault("kill-1", "kill", "sigkill", killed, end=True).restarted(killed)
        if killed == "broker-a":
            of.topic(killed, "orders")
        for name_server in ("ns-0", "ns-1"):
            of.route(name_server, "orders", *BROKERS)
    return of


def verdict(check: str, of: HistoryBuilder) -> Verdict:
    return CHECKS[check].judge(*of.end(500).facts())


@pytest.mark.parametrize("check", TABLES)
@pytest.mark.parametrize("killed", [None, "broker-a", "broker-a/1"])
def test_tables_with_a_slave_that_follow_are_right(check: str, killed: str | None):
    found = verdict(check, story(killed=killed))
    expected = Validity.UNKNOWN if check == "no_resurrection" and killed is None else Validity.VALID
    assert found.verdict is expected, found.why


def test_a_slave_that_was_dropped_stays_out_while_it_is_down():
    of = story(killed="broker-a/1")
    of.at(200).route("ns-0", "orders", *BROKERS)
    assert verdict("no_resurrection", of).verdict is Validity.INVALID
    assert verdict("routes_are_true", of).verdict is Validity.INVALID


def test_a_name_server_that_began_without_the_master_need_not_name_the_slave():
    """4.9: slaves bring no topics. A table that has the master's rows, and one that never had them, may differ."""
    of = cluster(brokers=BROKERS)
    of.at(100).fault("kill-1", "kill", "sigkill", "broker-a")
    for name_server in ("ns-0", "ns-1"):
        of.route(name_server, "orders", "broker-b", "broker-a/1")
    of.at(150).fault("kill-2", "kill", "sigkill", "ns-0", until_s=151).restarted("ns-0")
    of.at(160).route("ns-0", "orders", "broker-b")
    for check in ("routes_are_true", "routes_converge"):
        assert verdict(check, of).verdict is Validity.VALID


def test_a_drop_of_a_living_slave_is_a_false_eviction():
    of = cluster(brokers=BROKERS)
    for at_s in range(5, 500, 30):
        of.at(at_s).registration("ns-0", "broker-a/1")
    clean = verdict("no_false_eviction", of)
    assert clean.verdict is Validity.VALID
    of = cluster(brokers=BROKERS).at(5).registration("ns-0", "broker-a/1").at(100).drops("ns-0", "broker-a/1")
    found = verdict("no_false_eviction", of)
    assert found.verdict is Validity.INVALID
    assert found.examples[0].what == "broker-a/1"

"""Legal but odd: what once was a false alarm is none, and what the rule was for is still found in the same scenario."""

from pathlib import Path

import pytest

from nemesrv.chaos.checks.plain.verdicts import found_wrong
from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.runner import record_virtual
from tests.chaos.experiment.virtual.odd import TOLD, Odd, scenario

ODD = TOLD | {
    "a restart of a broker that still runs": Odd(
        [{"at_s": 10, "do": "restart", "nodes": ["broker-a"]}],
        "name-server-expires-the-living",
        "routes_are_true",
    ),
    "a stop right behind such a restart": Odd(
        [
            {"at_s": 10, "do": "restart", "nodes": ["broker-a"]},
            {"at_s": 10.086, "do": "stop", "nodes": ["broker-a"], "for_s": 49.914},
        ],
        "name-server-unregisters-by-half",
        "registrations_are_kept",
    ),
    "a stop right behind a resume": Odd(
        [
            {"at_s": 5, "do": "pause", "nodes": ["broker-a"], "for_s": 145},
            {"at_s": 150.05, "do": "stop", "nodes": ["broker-a"], "for_s": 49.95},
        ],
        "name-server-unregisters-by-half",
        "registrations_are_kept",
    ),
    "a kill and its restart in one moment": Odd(
        [
            {"at_s": 3, "do": "kill", "nodes": ["broker-a"]},
            {"at_s": 3, "do": "restart", "nodes": ["broker-a"]},
        ],
        "name-server-takes-nobody-back",
        "routes_are_true",
    ),
    "a kill without a restart, among consumers": Odd(
        [{"at_s": 20, "do": "kill", "nodes": ["broker-a"]}], "consumer-never-commits", "commits_follow_work"
    ),
    "a kill without a restart, among brokers": Odd(
        [{"at_s": 20, "do": "kill", "nodes": ["broker-a"]}], "broker-forgets-offsets", "commits_follow_work"
    ),
    "a NameServer lost at the first send": Odd(
        [{"at_s": 0, "do": "black_hole", "links": ["producers <-> name_servers"], "for_s": 20}],
        "producer-gives-up-after-a-failure",
        "timers_kept",
        cluster={"name_servers": 1},
    ),
    "one of two NameServers hangs at the first send": Odd(
        [{"at_s": 0, "do": "pause", "nodes": ["ns-0"], "for_s": 50}],
        "client-never-moves-on",
        "name_server_selection",
        cluster={"profile": "5.x"},
    ),
    "a broker dies during a short pause of a NameServer": Odd(
        [
            {"at_s": 5, "do": "pause", "nodes": ["ns-0"], "for_s": 2.5},
            {"at_s": 5.5, "do": "kill", "nodes": ["broker-a"], "for_s": 24.5},
        ],
        "name-server-ignores-close",
        "routes_are_true",
    ),
    "a cut of no length": Odd(
        [{"at_s": 3, "do": "cut", "links": ["broker-a <-> ns-0"]}, {"at_s": 3, "do": "heal"}],
        "name-server-takes-nobody-back",
        "routes_are_true",
        phases={"broker-a": 20},
    ),
    "one sharding key, whose broker dies right after a poll": Odd(
        [{"at_s": 5, "do": "kill", "nodes": ["broker-a"], "for_s": 90}],
        "producer-ignores-new-routes",
        "recovery_time",
        workload={"ordered": True, "ordered_keys": 1, "queues": 1},
        phases={"producer-0": 4.9, "producer-1": 4.9},
    ),
    "clean stops of what has just started": Odd(
        [
            {"at_s": 0, "do": "stop", "nodes": ["broker-a"], "for_s": 20},
            {"at_s": 24, "do": "stop", "nodes": ["broker-a"], "for_s": 36},
        ],
        "name-server-unregisters-by-half",
        "registrations_are_kept",
        cluster={"name_servers": 4},
    ),
    "a stop right behind a black hole": Odd(
        [
            {"at_s": 5, "do": "black_hole", "links": ["broker-a -> *"], "for_s": 35},
            {"at_s": 40.05, "do": "stop", "nodes": ["broker-a"], "for_s": 39.95},
        ],
        "name-server-takes-nobody-back",
        "routes_are_true",
        cluster={"name_servers": 3},
    ),
    "a stop within a black hole": Odd(
        [
            {"at_s": 5, "do": "black_hole", "links": ["broker-a -> *"], "for_s": 35},
            {"at_s": 10, "do": "stop", "nodes": ["broker-a"], "for_s": 70},
        ],
        "name-server-unregisters-by-half",
        "registrations_are_kept",
    ),
    "a producer cut from every NameServer before it hears of a stop": Odd(
        [
            {"at_s": 5, "do": "stop", "nodes": ["broker-a"], "for_s": 295},
            {"at_s": 5.05, "do": "black_hole", "links": ["producer-0 <-> name_servers"], "for_s": 119.95},
        ],
        "client-stops-polling-after-a-failure",
        "timers_kept",
    ),
    "dials to two of three NameServers are unanswered, and a call ends before the third is asked": Odd(
        [
            {"at_s": 5, "do": "packet_loss", "links": ["clients <-> ns-1", "clients <-> ns-2"], "for_s": 195},
            {"at_s": 40, "do": "kill", "nodes": ["broker-a"], "for_s": 260},
        ],
        "client-stops-polling-after-a-failure",
        "timers_kept",
        cluster={"name_servers": 3},
    ),
    "a stop while the other broker is not back at one NameServer": Odd(
        [
            {"at_s": 5, "do": "black_hole", "links": ["broker-a <-> ns-0"], "for_s": 135},
            {"at_s": 140.05, "do": "stop", "nodes": ["broker-b"], "for_s": 159.95},
        ],
        "producer-ignores-new-routes",
        "client_routes_are_true",
        phases={"broker-a": 29} | dict.fromkeys(("producer-0", "producer-1", "consumer-0", "consumer-1"), 25),
    ),
    "brokers close a channel that is idle sooner than the NameServer that is no more on their list": Odd(
        [{"at_s": 20, "do": "name_server_list", "name_servers": ["ns-1"]}],
        "name-server-expires-the-living",
        "no_false_eviction",
        cluster={"profile": "5.x", "name_server_list": ["ns-0", "ns-1"]},
        config={
            "name_servers": {"serverChannelMaxIdleTimeSeconds": 150},
            "brokers": {"brokerNotActiveTimeoutMillis": 180_000},
        },
        settle_s=200,
    ),
    "one queue for each of three brokers, of which one hangs when another has just come back": Odd(
        [
            {"at_s": 0, "do": "pause", "nodes": ["broker-b"], "for_s": 106.918},
            {"at_s": 107.418, "do": "cut", "links": ["broker-b <-> name_servers"], "for_s": 0.05},
            {"at_s": 173.526, "do": "pause", "nodes": ["broker-c"], "for_s": 111.002},
        ],
        "consumer-stops-consuming",
        "messages_delivered",
        cluster={"name_servers": 3, "brokers": 3},
        workload={"queues": 1, "producers": 1},
        config={"clients": {"pollNameServerInterval": 5_000}},
        settle_s=200,
    ),
    "the only NameServer, back from a pause, drops the broker that lives and names the one that hangs": Odd(
        [
            {"at_s": 5, "do": "pause", "nodes": ["ns-0"], "for_s": 47},
            {"at_s": 5, "do": "pause", "nodes": ["broker-b"], "for_s": 220},
        ],
        "client-takes-no-broker-back",
        "client_routes_are_true",
        cluster={"profile": "5.x", "name_servers": 1},
        workload={"queues": 8},
        phases={"ns-0": 25, "broker-a": 25, "producer-0": 22.2, "producer-1": 22.2},
        config={"brokers": {"registerNameServerPeriod": 45_000}},
        settle_s=150,
    ),
    "brokers leave a NameServer off their list before they send the bytes that are reset": Odd(
        [
            {"at_s": 16, "do": "reset", "links": ["broker-a <-> name_servers"]},
            {"at_s": 17, "do": "name_server_list", "name_servers": ["ns-0"]},
            {"at_s": 200, "do": "heal"},
        ],
        "name-server-ignores-close",
        "routes_are_true",
        cluster={"profile": "5.x", "name_server_list": ["ns-0", "ns-1"]},
        phases={"broker-a": 15},
        settle_s=100,
    ),
    "a broker hangs before it sends the bytes that are reset": Odd(
        [
            {"at_s": 16, "do": "reset", "links": ["broker-a <-> name_servers"]},
            {"at_s": 17, "do": "pause", "nodes": ["broker-a"], "for_s": 183},
            {"at_s": 260, "do": "heal"},
        ],
        "name-server-never-expires",
        "registrations_are_kept",
        phases={"broker-a": 15},
        settle_s=100,
    ),
    "a broker that closed a consumer's channel hears of it with the next heartbeat, 58 s later": Odd(
        [{"at_s": 52, "do": "cut", "links": ["consumers <-> broker-a"], "for_s": 1}],
        "consumer-stops-consuming",
        "messages_delivered",
        workload={"consumers": 1},
        config={"clients": {"heartbeatBrokerInterval": 60_000}},
        phases={"consumer-0": 20},
        settle_s=150,
    ),
    "a master that routes name again has forgotten who read its slave meanwhile": Odd(
        [{"at_s": 10, "do": "cut", "links": ["broker-a <-> name_servers"], "for_s": 170}],
        "consumer-stops-consuming",
        "messages_delivered",
        cluster={"slaves": 1},
        workload={"consumers": 1},
        config={"clients": {"heartbeatBrokerInterval": 60_000}},
        phases={"consumer-0": 20},
        settle_s=150,
    ),
    "a broker that may be written to only": Odd(
        [
            {"at_s": 22, "do": "update_config", "nodes": ["broker-a"], "settings": {"brokerPermission": 2}},
            {"at_s": 123, "do": "update_config", "nodes": ["broker-a"], "settings": {"brokerPermission": 6}},
        ],
        "consumer-stops-consuming",
        "messages_delivered",
        settle_s=150,
    ),
    "a topic with fewer queues to read than to write at one broker": Odd(
        [
            {"at_s": 22, "do": "update_topic", "nodes": ["broker-a"], "topic": "orders", "read_queues": 1},
            {"at_s": 123, "do": "update_topic", "nodes": ["broker-a"], "topic": "orders"},
        ],
        "consumer-stops-consuming",
        "messages_delivered",
        settle_s=150,
    ),
    "a broker that joins gets its list of NameServers over a slow link": Odd(
        [{"at_s": 5, "do": "bandwidth", "links": ["broker-b <-> address-server"], "rate_kb_s": 10, "for_s": 95}],
        "name-server-expires-the-living",
        "routes_are_true",
        cluster={"name_server_list": ["ns-0", "ns-1"]},
        nodes={"broker-b": {"joins_at_s": 10}},
        settle_s=200,
    ),
    "a producer sends before the only NameServer of its list is there": Odd(
        [{"at_s": 100, "do": "pause", "nodes": ["broker-a"], "for_s": 30}],
        "name-server-answers-not-found",
        "availability",
        nodes={"ns-1": {"joins_at_s": 60}, "producer-0": {"name_servers": ["ns-1"]}},
        settle_s=150,
    ),
    "a NameServer that the only broker there does not list, until another joins": Odd(
        [{"at_s": 100, "do": "pause", "nodes": ["broker-a"], "for_s": 30}],
        "name-server-answers-not-found",
        "availability",
        nodes={"broker-a": {"name_servers": ["ns-0"]}, "broker-b": {"joins_at_s": 20}},
        settle_s=150,
    ),
    "a NameServer that stood still reads the registration of a broker that has hung since": Odd(
        [
            {"at_s": 20, "do": "pause", "nodes": ["ns-0"], "for_s": 40},
            {"at_s": 42, "do": "pause", "nodes": ["broker-a"], "for_s": 218},
        ],
        "name-server-never-expires",
        "registrations_are_kept",
        config={"brokers": {"registerNameServerPeriod": 10_000, "registerBrokerTimeoutMills": 10_000}},
        settle_s=100,
    ),
    "a NameServer that stood still reads the registration of a broker whose list it has left": Odd(
        [
            {"at_s": 10, "do": "restart", "nodes": ["ns-0"]},
            {"at_s": 10, "do": "pause", "nodes": ["ns-0"], "for_s": 35},
            {"at_s": 11, "do": "name_server_list", "name_servers": ["ns-1"]},
        ],
        "name-server-ignores-close",
        "registrations_are_kept",
        cluster={"name_server_list": ["ns-0", "ns-1"]},
        config={"brokers": {"registerNameServerPeriod": 10_000, "registerBrokerTimeoutMills": 10_000}},
        settle_s=200,
    ),
    "consumers are back on new channels before the broker hears that the old ones are closed": Odd(
        [
            {
                "at_s": 26,
                "do": "packet_loss",
                "links": ["consumer-0 <-> broker-a", "consumer-3 <-> broker-a"],
                "for_s": 20,
            }
        ],
        "consumer-sorts-members-otherwise",
        "queue_ownership",
        cluster={"brokers": 1, "profile": "5.x"},
        workload={"consumers": 4, "queues": 2},
        phases={"consumer-0": 20, "consumer-1": 22, "consumer-3": 24},
        settle_s=100,
    ),
    "a broker's rounds of registrations take 24 s while a NameServer hangs, and begin each 10 s else": Odd(
        [
            {"at_s": 5, "do": "pause", "nodes": ["ns-0"], "for_s": 115},
            {"at_s": 42, "do": "restart", "nodes": ["ns-1"]},
        ],
        "broker-registers-rarely",
        "routes_are_true",
        cluster={"profile": "5.x", "name_servers": 3},
        config={"brokers": {"registerNameServerPeriod": 10_000}},
        phases={"broker-a": 0, "broker-b": 0},
        settle_s=100,
    ),
    "a fault before the only NameServer of a consumer joins": Odd(
        [{"at_s": 20, "do": "reset", "links": ["clients <-> chosen"]}, {"at_s": 150, "do": "heal"}],
        "client-stops-polling-after-a-failure",
        "timers_kept",
        nodes={"ns-1": {"joins_at_s": 120}, "consumer-0": {"name_servers": ["ns-1"]}},
        settle_s=150,
    ),
    "a consumer commits for 16 queues whose broker it cannot dial, 3 s each, and its polls wait": Odd(
        [
            {
                "at_s": 5,
                "do": "packet_loss",
                "links": ["clients <-> broker-a", "broker-a <-> name_servers"],
                "for_s": 455,
            }
        ],
        "consumer-keeps-lost-queues",
        "dead_brokers_avoided",
        workload={"queues": 16, "producers": 1},
        settle_s=0,
    ),
}


@pytest.mark.nightly_but("a restart of a broker that still runs", "a NameServer lost at the first send")
@pytest.mark.parametrize("what", ODD)
def test_it_is_no_alarm(what: str, tmp_path: Path) -> None:
    assert found_wrong(record_virtual(scenario(ODD[what]), 1, tmp_path / "run").path) == {}


@pytest.mark.nightly_but("a restart of a broker that still runs", "a NameServer lost at the first send")
@pytest.mark.parametrize("what", ODD)
def test_what_the_rule_was_for_is_still_found_there(what: str, tmp_path: Path) -> None:
    odd = ODD[what]
    folder = record_virtual(scenario(odd), 1, tmp_path / "run", DEFECTS[odd.defect])
    assert odd.check in found_wrong(folder.path)

"""`nemesrv predict` as a person, and a program, meets it."""

import json
import re

import pytest
from click.testing import CliRunner

from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.errors import ScenarioError


def told(*words: str) -> str:
    found = CliRunner().invoke(cli, ["predict", "--runs", "1", *words], catch_exceptions=False, standalone_mode=False)
    assert found.exit_code == 0
    return found.stdout


def refused(*words: str) -> str:
    with pytest.raises(ScenarioError) as info:
        told(*words)
    return str(info.value)


def test_a_table_says_who_recovers_when_and_which_sends_fail() -> None:
    text = told("--fault", "hang", "--for", "47", "--producers", "8", "--retries", "0")
    assert "broker-a: paused, at 20 s for 47 s" in text
    assert "ns-0, ns-1, ns-2: broker-a dropped" in text
    assert re.search(r"never .. never   \(never: (\d+) of \1\)", text)
    assert "sends that fail meanwhile" in text


def test_of_a_name_server_cut_off_alone_it_is_said_how_many_clients_keep_the_broker() -> None:
    small = ("--producers", "3", "--consumers", "0", "--brokers", "2", "--sends-per-s", "1", "--runs", "2")
    text = told("--fault", "partition", "--for", "155", *small)
    assert "broker-a <-> ns-0: packet loss (no packet passes, so no connection can be opened), at 20 s" in text
    assert re.search(r"producers: broker-a out of the route .*\(never: [1-6] of 6\)", text)
    assert "(only ns-0 can drop broker-a: clients of other NameServers keep it, so never)" in text
    assert "(no packet passes" not in told("--fault", "one-way", "--for", "5", *small[:-1], "1")


def test_what_other_settings_change_is_said_in_sentences() -> None:
    small = ("--for", "40", "--producers", "3", "--consumers", "0", "--brokers", "2", "--sends-per-s", "1")
    changes = ("--set", "pollNameServerInterval=10000", "--set", "retryTimesWhenSendFailed=0")
    text = told("--fault", "crash", "--runs", "2", *small, *changes)
    assert "with pollNameServerInterval=10000:" in text
    assert "producers: broker-a out of the route: p90 falls from 2" in text
    assert "with pollNameServerInterval=10000 and retryTimesWhenSendFailed=0:" in text


def test_the_same_as_json() -> None:
    document = json.loads(
        told("--fault", "crash", "--for", "40", "--consumers", "0", "--json", "--set", "pollNameServerInterval=10000")
    )
    assert [variant["set"] for variant in document["variants"]] == [[], ["pollNameServerInterval=10000"]]
    (prediction,) = document["variants"][0]["predictions"]
    routes = [each for each in prediction["runs"]["recovery"] if (each["who"], each["what"]) == ("producers", "route")]
    assert {"p50_ms", "p90_ms", "p99_ms", "least_ms", "most_ms", "never", "whom"} <= routes[0].keys()
    assert 0 <= prediction["runs"]["failed_sends"]["share"] <= 1
    assert prediction["runs"]["count"] == document["runs"] == 1

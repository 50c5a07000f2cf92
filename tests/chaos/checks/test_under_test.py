"""Clients under test are judged by their own profile beside ours, and a verdict that is to be about one says so."""

import json
import random
from typing import Any

import pytest

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.clients.name_server_selection import judge
from nemesrv.chaos.checks.finishing import clients_of, with_clients_under_test
from nemesrv.chaos.oracle.client_profiles import PROFILES
from nemesrv.chaos.oracle.lost_name_servers import name_server_losses
from nemesrv.chaos.verdict import Clients, Validity, Verdict
from tests.chaos.builder import HistoryBuilder, cluster
from tests.chaos.fronts.test_rows import NS
from tests.chaos.reference_clients import ReferenceClient

OUTSIDE = ("availability", "dead_brokers_avoided", "dead_name_servers_left", "name_server_selection", "recovery_time")


def under_test(builder: HistoryBuilder, name: str, profile: str, *, kind: str = "producer") -> None:
    value = {"kind": kind, "implementation": "go", "client_profile": profile, "dialler": "go"}
    builder.event("harness", "node", source=name, value=value)
    if kind != "external":
        builder.event(name, "started")
        builder.rows[-1]["role"] = kind


def queries(builder: HistoryBuilder, node: str, profile: str, seed: int = 1, **kinds: Any) -> None:
    """Five look-ups of a client that keeps this profile."""
    client = ReferenceClient(
        builder=builder,
        node=node,
        profile=PROFILES[profile],
        configured=[*NS.values()],
        rng=random.Random(seed),
        **kinds,
    )
    at_s = client.start(2).query(3)
    for _ in range(4):
        at_s = client.query(at_s + 30)
    for row in builder.rows:
        if row["node"] == node:
            row["role"] = "producer"
            if isinstance(row.get("value"), dict | list):
                row["value"] = json.dumps(row["value"])


def told(go: str, **kinds: Any) -> Verdict:
    """One of our own clients, and two of somebody's Go client which keep the profile `go` says."""
    builder = cluster(name_servers=3, clients=["producer-0"])
    queries(builder, "producer-0", "java-4.9")
    for name in ("go", "go-2"):
        under_test(builder, name, "go")
        queries(builder, name, go, **kinds)
    return judge(*builder.end(900).facts())


def test_clients_under_test_are_judged_by_their_own_profile_beside_ours() -> None:
    verdict = told("go")
    assert verdict.verdict is Validity.VALID, verdict.why
    assert verdict.measured["first_choices_of"] == {
        "go": {address: 2 * (not i) for i, address in enumerate(NS.values())}
    }
    assert sum(verdict.measured["first_choices"].values()) == 1
    assert verdict.examined == 1 + 2 * 5


@pytest.mark.parametrize(
    ("go", "kinds", "rule"), [("java-4.9", {}, "every request"), ("go", {"defect": "starts one further"}, "start")]
)
def test_one_unlike_its_profile_is_invalid_though_ours_are_right(go: str, kinds: dict[str, Any], rule: str) -> None:
    verdict = told(go, **kinds)
    assert verdict.verdict is Validity.INVALID
    assert rule in verdict.measured["broken_rules"]
    assert {finding.subject for finding in verdict.findings if finding.wrong} <= {"go", "go-2"}


def test_uneven_first_choices_of_clients_under_test_are_not_hidden_by_ours() -> None:
    builder = cluster(name_servers=3, clients=[f"producer-{index}" for index in range(30)])
    for index in range(30):
        queries(builder, f"producer-{index}", "java-4.9", seed=index)
    for index in range(40):
        under_test(builder, f"go-{index}", "java-4.9")
        queries(builder, f"go-{index}", "java-4.9", seed=7)
    verdict = judge(*builder.end(900).facts())
    assert verdict.verdict is Validity.INVALID
    assert "first choices of go are not uniform" in verdict.why


def test_a_verdict_that_would_be_about_a_client_that_made_no_connection_is_unknown() -> None:
    """A test whose "client" is /bin/false."""
    builder = cluster(name_servers=3, clients=["producer-0"])
    queries(builder, "producer-0", "java-4.9")
    under_test(builder, "go", "go", kind="external")
    control, world = builder.end(900).facts()
    verdict = judge(control, world)
    assert verdict.verdict is Validity.VALID
    check = CHECKS["name_server_selection"]
    assert with_clients_under_test(check, verdict, world).verdict is Validity.UNKNOWN
    assert with_clients_under_test(check, verdict, world).why == "go, which is under test, made no connection"
    assert with_clients_under_test(CHECKS["routes_converge"], verdict, world) is verdict


def test_these_checks_judge_clients_under_test_and_no_others_do() -> None:
    assert tuple(sorted(name for name, check in CHECKS.items() if check.outside)) == OUTSIDE
    builder = cluster(name_servers=3, clients=["producer-0"])
    under_test(builder, "go", "go")
    _, world = builder.end(900).facts()
    assert [node.name for node in world.of_kind("producer")] == ["go", "producer-0"]
    assert [node.name for node in world.of_ours().of_kind("producer")] == ["producer-0"]


def test_a_verdict_says_whose_clients_it_examined() -> None:
    builder = cluster(name_servers=3, clients=["producer-0"])
    under_test(builder, "go", "go")
    under_test(builder, "go-2", "go")
    _, world = builder.end(900).facts()
    assert clients_of(world, ("producer",)) == (
        Clients(kind="producer", count=2, implementation="go", profile="go"),
        Clients(kind="producer", count=1, implementation="ours", profile="java-4.9"),
    )


def test_windows_of_a_client_under_test_are_made_of_its_profile_s_timers_and_its_dialler_s_links() -> None:
    builder = cluster(name_servers=3, clients=["producer-0"])
    for name in ("go", "go-2"):
        under_test(builder, name, "go")
    _, world = builder.at(100).black_hole("go", "ns-1").end(900).facts()
    assert (world.timers_of("go").A_ms, world.timers_of("go").C_ms) == (6_000, 6_000)
    assert world.timers_of("producer-0").A_ms == 3_000
    assert [fault.fault_id for fault in world.link_faults("go-2", "ns-1")] == ["f1"]
    assert not world.link_faults("producer-0", "ns-1")


def test_what_a_client_under_test_did_counts_until_whoever_started_it_ends_it() -> None:
    builder = cluster(name_servers=3)
    under_test(builder, "go", "java-4.9")
    builder.at(100).fault("f1", "kill", "sigkill", "ns-1")
    builder.at(300).event("go", "stopped")
    _, world = builder.end(900).facts()
    [loss] = name_server_losses(world)
    assert (loss.client, loss.name_server, loss.start_ms, loss.end_ms) == ("go", "ns-1", 100_000, 300_000)

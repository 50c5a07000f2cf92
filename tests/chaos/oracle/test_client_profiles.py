"""Each client profile's rules: a clean twin of every profile passes, and each planted defect breaks its own rule."""

import json
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nemesrv.chaos.checks.clients.name_server_calls import Tries, selections
from nemesrv.chaos.checks.clients.name_server_selection import broken_rules, judge
from nemesrv.chaos.checks.spark.judge import check_run
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.history.schema import raw_dir
from nemesrv.chaos.oracle.client_profiles import PROFILES, Advance, ClientProfile, profile_of
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.verdict import Validity, Verdict
from nemesrv.remoting.node.profile import Profile
from tests.chaos.builder import HistoryBuilder, address_of, cluster
from tests.chaos.reference_clients import ReferenceClient

NS = [address_of(f"ns-{i}") for i in range(3)]
HALF_DEAD = {"dead": frozenset(NS[:2])}
ALL_DEAD = {"dead": frozenset(NS)}
ALL_SILENT = {"silent": frozenset(NS)}
CODED = {"coded": frozenset(NS)}

CPP = ("cpp", "cpp-1", "cpp-2.1", "cpp-3")
LISTED = ("go", "node", "cpp-1", "cpp-2.1", "cpp-3")

DEFECTS: dict[str, tuple[dict[str, frozenset[str]], dict[str, str]]] = {
    # defect: the NameServers it needs to show, and for each profile the rule that it breaks
    "orders as the others do": ({}, dict.fromkeys(LISTED, "listed")),
    "starts one further": ({}, dict.fromkeys((*LISTED, "cpp"), "start")),
    "skips one": (ALL_DEAD, dict.fromkeys(PROFILES, "in order")),
    "goes by the other rule": (
        {},
        {name: "every request" if of.advance is Advance.EVERY_REQUEST else "sticky" for name, of in PROFILES.items()},
    ),
    "gives up after one": (ALL_DEAD, dict.fromkeys((*LISTED, "java-4.9", "cpp"), "attempts")),
    "tries twice": (ALL_SILENT, dict.fromkeys(("java-4.9", "java-5.3", *CPP), "no more attempts")),
    "asks on after a code": (CODED, dict.fromkeys((*LISTED, "java-4.9", "cpp"), "answers are final")),
    "waits too long": (ALL_SILENT, dict.fromkeys(PROFILES, "in time")),
}


GO_ON = ("tries twice", "asks on after a code")


def told(profile: ClientProfile, clients: list[ReferenceClient]) -> HistoryBuilder:
    """Each client's four queries, a poll apart, in a cluster that lives through it."""
    builder = clients[0].builder
    for number, client in enumerate(clients):
        at_s = client.start(2 + number / 100).query(3 + number / 100)
        if client.op_id is None:
            for _ in range(3):
                at_s = client.query(at_s + 30)
    return builder.end(900)


def client(builder: HistoryBuilder, profile: ClientProfile, node: str, seed: int, **kinds: object) -> ReferenceClient:
    rng = random.Random(seed)
    return ReferenceClient(builder=builder, node=node, profile=profile, configured=NS, rng=rng, **kinds)  # type: ignore[arg-type]


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_each_defect_breaks_its_rule_and_clean_twins_break_none(profile: ClientProfile) -> None:
    planted = {
        f"producer-{number}": (defect, kinds, of[profile.name])
        for number, (defect, (kinds, of)) in enumerate(DEFECTS.items())
        if profile.name in of
    }
    twins = {"consumer-0": HALF_DEAD, "consumer-1": ALL_DEAD, "consumer-2": ALL_SILENT, "consumer-3": CODED}
    builder = cluster(name_servers=3, clients=(*planted, *twins, "prober"), workload={"client_profile": profile.name})
    clients = [client(builder, profile, node, n, **kinds) for n, (node, kinds) in enumerate(twins.items())]
    clients += [client(builder, profile, "prober", n, op_id=f"start-{n}") for n in range(40)]
    clients += [client(builder, profile, node, 7, defect=d, **kinds) for node, (d, kinds, _) in planted.items()]
    control, world = told(profile, clients).facts()
    tries = Tries(profile, world, control.lateness)
    found = broken_rules(selections(control), world, profile, tries)
    broken = {(one.row.node, one.rule) for one in found}
    meant = {(node, rule) for node, (_, _, rule) in planted.items()}
    # A call that goes on without a reason also leaves a NameServer without one.
    meant |= {(node, "sticky") for node, (defect, _, _) in planted.items() if defect in GO_ON} & broken
    assert broken == meant


@pytest.mark.parametrize("name", ["java-5.3", "go"])
def test_a_run_of_clean_twins_is_valid_by_its_own_profile(name: str) -> None:
    verdict = verdict_of(PROFILES[name], name)
    assert (verdict.verdict, verdict.why, verdict.allowed["client_profile"]) == (Validity.VALID, "", name)
    assert verdict.measured["calls"] == 41 + 3


@pytest.mark.spark
def test_json_lines_that_a_go_client_wrote_are_judged_by_go_s_rules(tmp_path: Path, spark: SparkSession) -> None:
    """As docs/client-profiles.md says: one file of lines a node, and nothing of ours."""
    builder = HistoryBuilder(profile="4.9", workload={"client_profile": "go"})
    for name in ("ns-0", "ns-1", "ns-2"):
        builder.event("harness", "node", source=name, address=address_of(name), value={"kind": "name_server"})
    clients = [
        client(builder, PROFILES["go"], "producer-0", 1, **HALF_DEAD),
        client(builder, PROFILES["go"], "go-1", 2),
    ]
    told(PROFILES["go"], clients)
    raw = raw_dir(tmp_path)
    raw.mkdir(parents=True)
    for row in builder.rows:
        with (raw / f"{row['node']}.0.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    (verdict,) = check_run(tmp_path, ["name_server_selection"], spark)
    assert (verdict.verdict, verdict.measured["calls"], verdict.measured["starts"]) == (Validity.VALID, 8, 2)


def test_clients_judged_by_the_rules_of_another_language_are_invalid() -> None:
    assert set(verdict_of(PROFILES["java-4.9"], "go").measured["broken_rules"]) >= {"listed", "every request"}


def test_a_client_that_should_shuffle_and_does_not_is_not_uniform() -> None:
    verdict = verdict_of(PROFILES["cpp"], "cpp", defect="orders as the others do")
    assert (verdict.verdict, verdict.measured["broken_rules"]) == (Validity.INVALID, {})
    assert "not uniform: 41 / 0 / 0" in verdict.why


def test_a_profile_that_does_not_exist_is_unknown() -> None:
    verdict = verdict_of(PROFILES["go"], "cobol")
    assert (verdict.verdict, verdict.examined, "'cobol'" in verdict.why) == (Validity.UNKNOWN, 0, True)


def verdict_of(profile: ClientProfile, judged_by: str, defect: str | None = None) -> Verdict:
    builder = cluster(name_servers=3, clients=("producer-0", "prober"), workload={"client_profile": judged_by})
    clients = [client(builder, profile, "prober", n, op_id=f"start-{n}", defect=defect) for n in range(40)]
    return judge(*told(profile, [*clients, client(builder, profile, "producer-0", 5, defect=defect)]).facts())


def test_our_own_clients_are_java_s_of_the_cluster_s_version() -> None:
    assert [profile_of(None, cluster).name for cluster in (Profile.V4_9, Profile.V5_X)] == ["java-4.9", "java-5.3"]
    assert profile_of("node", Profile.V4_9).rule == (
        "list listed, second start, the next NameServer at every request, a call tries the whole list"
    )


def test_a_scenario_may_name_every_profile_and_no_other() -> None:
    document = {"checks": ["name_server_selection"]}
    for name in PROFILES:
        scenario = parse({**document, "workload": {"client_profile": name}}, file="mine.yaml")
        assert scenario.workload.client_profile == name
    with pytest.raises(ScenarioError, match=r"java-4\.9"):
        parse({**document, "workload": {"client_profile": "cobol"}}, file="mine.yaml")


def test_the_documentation_has_every_profile_as_it_is() -> None:
    text = (Path(__file__).parents[3] / "docs" / "client-profiles.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{p.name}` | {p.order} | {p.start} | {str(p.advance).replace('_', ' ')} "
        f"| {str(p.attempts).replace('_', ' ')} | {', '.join(sorted(p.retries)) or '–'} "
        f"| {p.try_timeout_ms / 1000:g} s |"
        for p in PROFILES.values()
    ]

"""The end of a run answers two questions first: are routes right, and do clients follow? Letters stand for nothing."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.clients.name_server_selection import UNIFORM
from nemesrv.chaos.checks.findings import at_a_moment, verdict_of
from nemesrv.chaos.checks.plain.tries import SAME
from nemesrv.chaos.reports.answers import answers, changes_nothing, counted, of_incident, spoken_of
from nemesrv.chaos.reports.cost import Cost, Without, elsewhere
from nemesrv.chaos.reports.groups import exercised_line, groups
from nemesrv.chaos.reports.imported import result
from nemesrv.chaos.reports.terminal import print_answers
from nemesrv.chaos.scenarios.loading import find as find_scenario
from nemesrv.chaos.scenarios.loading import parse, shipped
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.verdict import Clients, Example, Finding, Validity, Verdict
from tests.chaos.builder import example, invalid, valid

CUT = "black_hole-1"
CLIENTS = (Clients(kind="producer", count=2, implementation="ours", profile="java-4.9"),)
CONVERGE = valid("routes_converge")


def change(kind: str, phase: str, measured_ms: float, earliest_ms: float | None, bound_ms: float) -> Finding:
    return Finding(
        subject="ns-0",
        object="broker-a",
        kind=kind,
        from_ms=0.0,
        to_ms=1.0,
        measured_ms=measured_ms,
        earliest_ms=earliest_ms,
        bound_ms=bound_ms,
        after=f"{CUT} {phase}",
    )


DROP = change("must not hold", "start", 109_000.0, 90_000.0, 130_000.0)
RETURN = change("must hold", "end", 14_100.0, None, 33_000.0)
TRUE = valid("routes_are_true", findings=(RETURN, DROP))
USED = valid("living_are_used", clients=CLIENTS)
ARRIVED = valid(
    "no_acknowledged_loss",
    examined=1961,
    measured={"acknowledged": 1961, "received": 1961, "only_in_final_reads": 0, "lost": 0, "unread": 0},
)
OF_THE_CUT = {"after": f"{CUT} start", "kind": "must not hold"}
HELD = example("ns-0", "broker-a", from_s=150, to_s=225, due_s=150, took_s=205, allowed_s=130, **OF_THE_CUT)
STAYED = invalid("routes_are_true", allowed={"bound_ms": 130_000.0, "formula": "E - R .. E + S"}, examples=(HELD,))


def said(*verdicts: Verdict, scenario: Scenario | None = None) -> list[str]:
    scenario = find_scenario("broker-partition") if scenario is None else scenario
    return answers(verdicts, scenario, scenario.name, "seed 1").lines()


def test_what_is_right_is_told_as_two_answers_with_what_was_measured_and_what_was_allowed() -> None:
    assert said(TRUE, CONVERGE, USED, ARRIVED) == [
        "VALID broker-partition (seed 1). broker-a was cut from ns-0 for 155 s.",
        "Routes: ns-0 dropped broker-a 109.0 s after the cut (90 to 130 s allowed) and had it back 14.1 s after the "
        "end of the cut (33 s allowed); all 3 NameServers agree.",
        "Clients: 2 of 2 used the living brokers in turn; 1,961 of 1,961 messages arrived.",
    ]


def test_a_drop_that_took_too_long_is_counted_beside_those_in_time() -> None:
    drop = change("must not hold", "start", 109_000.0, 90_000.0, 130_000.0)
    late = replace(drop, subject="ns-1", measured_ms=205_000.0, wrong=1)
    both = replace(TRUE, verdict=Validity.INVALID, findings=(drop, late))
    assert "1 drop in time and 1 late, the slowest drop in time: ns-0 dropped broker-a 109.0 s" in said(both)[2]


def test_a_drop_that_came_too_soon_stands_beside_the_limit_that_it_broke() -> None:
    dropped = change("must not hold", "start", 48_500.0, None, 125_000.0)
    kept = replace(dropped, kind="must hold", earliest_ms=90_000.0, over_ms=41_500.0, wrong=1)
    soon = replace(TRUE, verdict=Validity.INVALID, findings=(dropped, kept))
    told = "ns-0 dropped broker-a 48.5 s after the cut (90 to 125 s allowed: 41.5 s too soon)"
    assert told in said(soon)[2]
    two = replace(soon, findings=(dropped, kept, replace(DROP, subject="ns-1")))
    assert f"2 drops, 1 too soon: {told}" in said(two)[2]


def test_a_limit_that_is_too_short_to_read_is_left_out() -> None:
    at_once = replace(TRUE, findings=(change("must not hold", "start", 1.0, None, 1.45),))
    assert "ns-0 dropped broker-a 0.0 s after the cut;" in said(at_once, CONVERGE)[1]


def test_each_drop_is_told_with_its_reason_and_the_return_and_equal_drops_are_told_once() -> None:
    def drop(name_server: str, at_ms: float, reason: str, back_ms: float | None) -> dict[str, object]:
        what = {"broker": "broker-a", "reason": reason}
        return {"name_server": name_server, "at_ms": at_ms, "back_ms": back_ms, **what}

    drops = [
        drop("ns-1", 72_210.0, "expired", 80_000.0),
        drop("ns-0", 72_190.0, "expired", 80_400.0),
        *(drop("ns-0", 90_000.0, "closed", None) for _ in range(2)),
        *(drop("ns-0", 91_000.0 + 200 * number, "unknown", 99_000.0) for number in range(4)),
    ]
    found = valid("no_false_eviction", examined=2, timeline_ms=10_000.0, measured={"dropped": drops})
    assert said(found)[1] == (
        "Drops: ns-0 and ns-1 dropped broker-a at 62.2 s (silent for longer than brokerChannelExpiredTime) and "
        "acknowledged its next registration at 70.0 to 70.4 s; ns-0 dropped broker-a 2 times at 80.0 s (the broker's "
        "channel had ended); ns-0 dropped broker-a at 81.0 s and acknowledged its next registration 8.0 s later, at "
        "89.0 s; ns-0 dropped broker-a at 81.2 s and acknowledged its next registration 7.8 s later, at 89.0 s; and 2 "
        "more."
    )


def test_who_is_guilty_what_it_did_and_what_was_allowed_comes_before_all_else() -> None:
    first, broken, routes, _ = said(STAYED, USED)
    assert first.startswith(
        "INVALID broker-partition (seed 1). ns-0 still listed broker-a until 225.0 s, 205.0 s after the cut; "
        "allowed 130.0 s: 75.0 s over. broker-a was cut"
    )
    assert broken.startswith("Broken rule: each NameServer lists exactly the brokers that are alive")
    assert routes == "Routes: INVALID: routes_are_true."


def test_the_broken_rule_is_a_sentence_with_the_name_of_its_check_behind_it() -> None:
    kept = replace(STAYED, name="registrations_are_kept")
    assert f"{CHECKS['registrations_are_kept'].says} (registrations_are_kept)" in said(kept)[1]


def test_no_letter_of_a_formula_stands_in_the_lines() -> None:
    for lines in (said(TRUE, CONVERGE, USED, ARRIVED), said(STAYED, USED)):
        assert not re.search(r"\b[RCESPJ]\b", " ".join(lines))


def test_a_run_that_is_not_decided_says_why() -> None:
    unknown = Verdict.nothing_examined("the fault had no effect.", name="exercised")
    assert "(seed 1). exercised is not decided: the fault had no effect. broker-a was" in said(TRUE, unknown)[0]


def test_that_too_few_clients_started_is_no_line_of_a_run_and_any_other_open_question_is() -> None:
    few = valid("name_server_selection", examined=94, undecided={UNIFORM: "94 starts"})
    open_ = replace(few, undecided={"after the last fault": "it ended too soon"})
    assert not any("not decided" in line for line in said(TRUE, few))
    assert "name_server_selection: not decided: after the last fault: it ended too soon." in said(TRUE, open_)


def test_clients_that_were_wrong_are_named_and_messages_that_did_not_arrive_are_counted() -> None:
    late = Finding(subject="producer-1", kind="must not use", from_ms=0.0, to_ms=1.0, wrong=1)
    used = invalid("dead_brokers_avoided", examined=4, why="x", findings=(late,))
    lost = valid(
        "no_acknowledged_loss", examined=3, measured={"acknowledged": 3, "received": 1, "only_in_final_reads": 2}
    )
    arrived = "1 of 3 messages arrived, 2 still in a broker when the run ended"
    expected = f"Clients: INVALID: dead_brokers_avoided (producer-1); {arrived}."
    assert expected in said(used, lost)
    kept = replace(late, subject="producer-1", object="broker-a", kind="lost")
    gone = replace(used, name="no_acknowledged_loss", findings=(kept,))
    assert "Clients: INVALID: no_acknowledged_loss (broker-a)." in said(gone), "not the producer of the lost message"


def test_clients_that_left_what_was_dead_are_told_with_the_last_of_them() -> None:
    left = {"left": [{"client": "consumer-0", "name_server": "ns-0", "after_ms": 31_000.0, "bound_ms": 36_000.0}]}
    found = valid("dead_name_servers_left", examined=2, measured=left, clients=CLIENTS)
    assert said(found)[-1] == (
        "Clients: 2 of 2 left dead NameServers in time "
        "(only consumer-0 had to, 31.0 s after ns-0 was lost; 36 s allowed)."
    )
    (one,) = left["left"]
    both = {"left": [one, {**one, "client": "producer-0", "after_ms": 8_000.0, "bound_ms": 16_000.0}]}
    assert (
        "(consumer-0 the last, 31.0 s after ns-0 was lost; 36 s allowed, producers 16 s)"
        in said(replace(found, measured=both))[-1]
    )


@pytest.mark.parametrize(("promised_s", "said_of_it"), [(40, True), (30, False)])
def test_a_promise_above_rocketmqs_own_limit_is_said_to_decide_nothing(promised_s: float, said_of_it: bool) -> None:
    scenario = find_scenario("broker-crash", [f"promises.brokers_left_within_s={promised_s}"])
    bounds = [30_000.0, min(35_000.0, promised_s * 1000)]
    left = tuple(Finding(subject="x", kind="must not use", from_ms=0, to_ms=1, bound_ms=bound) for bound in bounds)
    found = valid("dead_brokers_avoided", examined=2, findings=left)
    sentence = "your 40 s (brokers_left_within_s) is above RocketMQ's 35 s, so RocketMQ's limit decides"
    assert (sentence in answers([found], scenario, "x").clients) == said_of_it


@pytest.mark.parametrize("name", sorted(shipped()))
def test_what_any_shipped_scenario_injects_is_a_sentence(name: str) -> None:
    (first,) = said(valid("order_kept", examined=1), scenario=find_scenario(name))
    assert re.fullmatch(rf"VALID {re.escape(name)} \(seed 1\)\. \S.*[a-z0-9\])]\.", first), first


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"do": "cut", "links": ["clients <-> ns-0"]}, "clients were cut from ns-0 for 9 s"),
        ({"do": "black_hole", "links": ["isolate broker-a"]}, "broker-a was cut from all others for 9 s"),
        ({"do": "cut", "links": ["broker-a <-> *"]}, "broker-a was cut from all others for 9 s"),
        ({"do": "cut", "links": ["clients <-> chosen"]}, "clients were cut for 9 s from the NameServers that they had"),
        (
            {"do": "latency", "links": ["broker-a <-> ns-0"], "latency_ms": 500},
            "broker-a <-> ns-0 had a fault (latency)",
        ),
        ({"do": "pause", "nodes": ["ns-0", "ns-1"]}, "ns-0 and ns-1 were paused."),
        ({"do": "isolate_host", "hosts": ["b"]}, "host b was cut from all other hosts for 9 s"),
        ({"do": "restart", "nodes": ["ns-0"], "new_address": True}, "ns-0 was removed, and ns-3 joined at 1 s."),
    ],
)
def test_a_fault_is_told_in_words(entry: dict[str, object], sentence: str) -> None:
    end = {"do": "return_host", "hosts": entry["hosts"]} if "hosts" in entry else {"do": "heal"}
    document = {"name": "x", "timeline": [{"at_s": 1, **entry}, {"at_s": 10, **end}], "checks": ["routes_are_true"]}
    scenario = parse({**document, "placement": {"hosts": ["a", "b", "c"]}}, file="x.yaml")
    assert sentence in said(CONVERGE, scenario=scenario)[0]


def test_a_fault_ends_with_the_heal_of_its_own_links() -> None:
    links = ["broker-a <-> ns-0", "broker-a <-> ns-1"]
    heals = [{"at_s": at_s, "do": "heal", "links": [link]} for at_s, link in zip((150, 209), links, strict=True)]
    timeline = [{"at_s": 60, "do": "black_hole", "links": links}, *heals, {"at_s": 256, "do": "heal"}]
    scenario = parse({"name": "x", "timeline": timeline, "checks": ["routes_are_true"]}, file="x.yaml")
    assert "broker-a was cut from ns-0 and ns-1 for 149 s." in said(CONVERGE, scenario=scenario)[0]


def test_a_process_that_is_started_again_while_it_runs_has_a_fault() -> None:
    timeline = [{"at_s": 20, "do": "restart", "nodes": ["broker-a"], "new_address": True}]
    scenario = parse({"name": "x", "timeline": timeline, "checks": ["routes_are_true"]}, file="x.yaml")
    assert "broker-a was restarted at another address." in said(CONVERGE, scenario=scenario)[0]


def test_of_an_import_it_is_told_what_happened_and_not_what_was_injected() -> None:
    cut = {"certainty": "likely", "sentence": "nothing passed", "timeline": [{"at_s": 1, "do": "black_hole"}]}
    told = of_incident(answers([TRUE, CONVERGE], None, "incident"), {"episodes": [{"hypotheses": [cut]}]})
    behaved = "As far as these logs show, no node broke a rule of RocketMQ"
    outside = "what went wrong came from outside"
    assert told.lines()[0] == f"What happened: nothing passed. VALID incident. {behaved}; {outside}."
    assert told.routes.startswith("ns-0 dropped broker-a 109.0 s after the cut (")
    of_day = {
        "origin": "2026-11-23T07:42:57+08:00",
        "episodes": [{"hypotheses": [cut], "from_ms": 1_000, "to_ms": 9_000}],
    }
    dropped = replace(told, drops="ns-0 dropped broker-a at 190.5 s (the broker's channel had ended)")
    again = of_incident(dropped, of_day)
    assert "nothing passed (07:42:58 to 07:43:06; the fault took 8.0 s)" in again.lines()[0]
    assert again.drops == "ns-0 dropped broker-a at 190.5 s (07:46:07) (the broker's channel had ended)"
    assert of_incident(told, {"episodes": []}).lines()[0] == f"VALID incident. {behaved}. No fault shows in these logs."


def test_an_excerpt_without_anything_to_judge_is_a_line_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = [Verdict.nothing_examined("nothing was recorded", name=check) for check in CHECKS]
    assert {(group.told, group.is_judged) for group in groups(nothing)} == {((), False)}
    told = of_incident(answers(nothing, None, "excerpt"), {"episodes": []}, is_judged=False)
    print_answers(nothing, told.lines())
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("UNKNOWN excerpt. No fault shows in these logs. No check has anything to judge")
    assert "nemesrv doctor" in first
    assert len(lines) == len(groups(nothing))
    assert "nemesrv doctor" in result({"episodes": []}, nothing, 0)


def test_of_an_import_what_clients_miss_is_no_cause_beside_an_unsure_fault() -> None:
    cut = {"certainty": "unsure", "score": 0.42, "sentence": "nothing passed", "timeline": [{"at_s": 1, "do": "cut"}]}
    misses = {"certainty": "likely", "score": 0.97, "sentence": "no address", "fault": "broker_is_not_registered"}
    both, alone = ({"episodes": [{"hypotheses": [one]} for one in of]} for of in ((cut, misses), (misses,)))
    unknown = answers([replace(TRUE, verdict=Validity.UNKNOWN)], None, "incident")
    assert of_incident(unknown, both).first == "What happened is unsure; the likeliest (0.42): nothing passed"
    told = of_incident(unknown, alone).lines()[0]
    assert told.startswith("UNKNOWN incident. What happened: no address (likely, 0.97). routes_are_true is not decided")


def test_a_broker_that_a_fault_takes_out_of_the_tables_at_once_is_named() -> None:
    """Stamps of whole seconds show no time between an inferred kill and the end of its channels."""
    there = Finding(subject="ns-0", object="broker-a", kind="must hold", from_ms=0.0, to_ms=84_500.0, after="begin")
    gone = replace(there, kind="must not hold", from_ms=84_500.0, to_ms=176_500.0, after="kill-1 start")
    findings = [replace(f, subject=server) for server in ("ns-0", "ns-1") for f in (there, gone)]
    told = answers([replace(TRUE, findings=(*findings,))], None, "incident")
    kill = {"certainty": "likely", "sentence": "it ended", "timeline": [{"at_s": 84.5, "do": "kill"}]}
    right = "every table was right all the time"
    of = of_incident(told, {"episodes": [{"hypotheses": [kill]}]})
    assert of.routes == f"{right}: ns-0 and ns-1 had broker-a no more from the kill on."
    assert answers([replace(TRUE, findings=(there,))], None, "incident").routes == f"{right}."


CUT_LINK = {"do": "cut", "links": ["broker-a <-> ns-0"]}


@pytest.mark.parametrize(
    ("timeline", "idle"),
    [
        (
            [{"at_s": 1, **CUT_LINK}, {"at_s": 3, **CUT_LINK}, {"at_s": 30, "do": "heal"}],
            ["cut-2 changes nothing: cut-1 is on broker-a <-> ns-0 as long"],
        ),
        (
            [{"at_s": 20, "do": "black_hole", "links": ["broker-a <-> ns-0"]}, {"at_s": 20, "do": "heal"}],
            ["black_hole-1 changes nothing: it ends at 20 s, when it begins"],
        ),
        ([{"at_s": 1, **CUT_LINK, "for_s": 5}, {"at_s": 3, **CUT_LINK, "for_s": 9}], []),
        ([{"at_s": 1, **CUT_LINK, "for_s": 5}, {"at_s": 6, **CUT_LINK, "for_s": 9}], []),
        ([{"at_s": 1, **CUT_LINK}, {"at_s": 3, "do": "cut", "links": ["broker-a <-> ns-1"]}], []),
    ],
)
def test_a_fault_that_changes_nothing_is_told(timeline: list[dict[str, object]], idle: list[str]) -> None:
    scenario = parse({"name": "x", "timeline": timeline, "checks": ["routes_are_true"]}, file="x.yaml")
    assert changes_nothing(scenario) == idle
    assert all(sentence in said(TRUE, scenario=scenario)[0] for sentence in idle)


@pytest.mark.parametrize(("check", "key"), [("dead_brokers_avoided", "last_use"), ("dead_name_servers_left", "left")])
def test_clients_that_never_used_a_dead_node_are_not_said_to_have_left_it(check: str, key: str) -> None:
    told = valid(
        check,
        examined=2,
        measured={key: [], "promised": 2},
        clients=(Clients(kind="producer", count=2, implementation="ours", profile="java-4.9"),),
    )
    assert said(told)[-1].startswith("Clients: 2 of 2 used no dead ")


def test_the_first_line_of_a_run_without_a_fault_says_that_the_run_shows_nothing_about_faults() -> None:
    scenario = parse({"name": "x", "timeline": [], "checks": ["routes_are_true"]}, file="x.yaml")
    first = "VALID x. No fault was injected, so this run shows nothing about faults."
    assert answers([CONVERGE], scenario, "x").lines()[0] == first
    cluster = scenario.cluster.model_copy(update={"external": True})
    up = scenario.model_copy(update={"cluster": cluster})
    assert answers([CONVERGE], up, "up").lines()[0] == "VALID up.", "its faults are in the record alone"


def test_of_several_faults_two_are_told_and_labels_say_which_is_meant() -> None:
    timeline = [{"at_s": at_s, "do": "kill", "nodes": [node]} for at_s, node in ((1, "ns-0"), (2, "ns-1"), (3, "ns-2"))]
    scenario = parse({"name": "x", "timeline": timeline, "checks": ["routes_are_true"]}, file="x.yaml")
    assert said(TRUE, scenario=scenario)[0].endswith("ns-0 was killed; ns-1 was killed; and 1 more.")
    assert f"after the cut named {CUT} (" in said(TRUE, scenario=scenario)[1]


def test_faults_of_the_same_words_are_told_once_with_their_number() -> None:
    timeline = [{"at_s": at_s, "do": "restart", "nodes": ["broker-a"]} for at_s in (1, 40, 80, 120)]
    scenario = parse({"name": "x", "timeline": timeline, "checks": ["routes_are_true"]}, file="x.yaml")
    assert said(TRUE, scenario=scenario)[0].endswith("broker-a was restarted, 4 times.")


def test_a_full_disk_is_told_with_how_long_it_was_full() -> None:
    entry = {"at_s": 5, "do": "fill_disk", "nodes": ["broker-a"], "for_s": 30}
    scenario = parse({"checks": ["routes_are_true"], "timeline": [entry]}, file="x.yaml")
    assert said(TRUE, scenario=scenario)[0].endswith("the disk of broker-a was full for 30 s.")


def test_a_history_without_a_scenario_has_its_answers_all_the_same() -> None:
    lines = answers([TRUE, CONVERGE], None, "hdfs://a").lines()
    assert lines[0] == "VALID hdfs://a."
    assert lines[1].startswith(f"Routes: ns-0 dropped broker-a 109.0 s after {CUT} start")


def test_what_it_cost_stands_behind_the_clients() -> None:
    gap = Without(client="consumer-0", broker="broker-a", from_s=20.0, to_s=61.0, took_ms=41_000.0, came_back=True)
    cost = Cost(
        longest_without_broker_ms=gap.took_ms,
        without_broker=(gap,),
        sends={"ok": 40, "failed": 0, "unanswered": 0},
        messages={"waited": 65, "longest_ms": 40_500.0, "never_received": 0},
    )
    assert Cost.from_json(json.loads(json.dumps(cost.to_json()))) == cost
    lines = answers([TRUE, USED], None, "x", cost=cost).lines()
    assert lines[-1] == (
        "Cost: consumer-0 was without broker-a for 41.0 s (20.0 to 61.0 s); "
        "65 messages arrived more than 5 s after their send, 40.5 s at most."
    )
    assert lines[-2].startswith("Clients: ")
    about = {"timeline": [{"at_s": 20, **CUT_LINK}], "checks": ["routes_are_true"], "defect": "producer-has-one-try"}
    planted = parse({"name": "x", **about}, file="x.yaml")
    told = answers([TRUE, USED], planted, "x", cost=cost).lines()[-1]
    assert told.startswith("Cost: of the faults and the planted defect ")
    failed = {"sends": {"ok": 34, "failed": 5, "unanswered": 1}, "failed_of": {"producer-0": 4, "producer-1": 2}}
    known = replace(cost, without_broker=(replace(gap, because="broker-a was killed"),), **failed)
    of_guilty = invalid(
        "living_are_used", examples=(Example(who="producer-1", what="broker-a", from_ms=2.0, more={"kind": SAME}),)
    )
    assert answers([of_guilty], None, "x", cost=known).cost.startswith(
        "6 of 40 sends failed or ended without an answer, 2 of them producer-1's; "
        "consumer-0 was without broker-a for 41.0 s (20.0 to 61.0 s), because broker-a was killed; "
    )
    assert known.sentence.startswith("consumer-0 was without")


def test_the_broken_rule_is_the_rule_of_the_violation_s_kind_and_more_counts_that_kind() -> None:
    def wrong(kind: str, row: str, at_ms: float) -> Finding:
        return at_a_moment("producer-1", "broker-a", kind, at_ms, row, {"op_id": f"o-{at_ms:g}"})

    avoids = "selectOneMessageQueue: a retry avoids the broker that failed"
    found = [wrong(SAME, avoids, at_ms) for at_ms in (1.0, 2.0, 3.0)]
    found.append(wrong("given up too soon", "sendDefaultImpl: a message is sent again", 4.0))
    of_rule = replace(verdict_of(found, measured={}, nothing="", noun="uses broke a rule"), name="living_are_used")
    first, broken, *_ = said(of_rule)
    assert "had failed, at 0.0 s; and 2 more, and 1 violation of another kind. broker-a was cut" in first
    assert broken == "Broken rule: a retry avoids the broker that failed (living_are_used: selectOneMessageQueue)."
    mixed = replace(of_rule, findings=(*found, wrong(SAME, "another: rule", 5.0)))
    assert said(mixed)[1] == f"Broken rule: {CHECKS['living_are_used'].says} (living_are_used)."


def test_the_answers_speak_of_what_was_wrong_and_of_the_latest_drop_and_return() -> None:
    for verdicts in ([STAYED], [TRUE, CONVERGE]):
        told = [(check, about.who, about.what) for check, about in spoken_of(verdicts)]
        assert told == [("routes_are_true", "ns-0", "broker-a")] * 2
    assert spoken_of([CONVERGE]) == []


EXERCISED = valid("exercised", examined=5, measured={"faults": 1, "effects": 8, "clients": 4})


def test_checks_stand_in_groups_those_that_are_not_valid_first_and_what_was_exercised_is_a_line() -> None:
    assert counted([TRUE, STAYED]) == "2 checks, 1 INVALID, 1 VALID."
    assert counted([TRUE]) == "1 check, 1 VALID."
    found = groups([CONVERGE, ARRIVED, STAYED, EXERCISED])
    assert [(group.label, group.verdict, group.counted) for group in found] == [
        ("routes", Validity.INVALID, "1 INVALID, 1 VALID"),
        ("messages", Validity.VALID, "1 VALID"),
    ]
    assert [v.name for v in found[0].verdicts] == ["routes_are_true", "routes_converge"]
    assert exercised_line([TRUE, EXERCISED]) == "Exercised: 1 fault with 8 effects, 4 clients."


def test_what_was_not_exercised_is_a_group_like_any_other() -> None:
    nothing = Verdict.nothing_examined("the fault had no effect", name="exercised")
    assert [group.label for group in groups([TRUE, nothing])] == ["routes", "exercised"]
    assert exercised_line([TRUE, nothing]) == ""


@pytest.mark.parametrize("full", [False, True])
def test_a_group_is_a_line_and_below_it_stand_the_checks_that_are_not_valid_or_with_full_all(
    full: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    line = "a line that no pipe wraps " * 9
    print_answers([STAYED, CONVERGE, ARRIVED], [line], full=full)
    out = capsys.readouterr().out
    assert out.startswith(line)
    assert "\n  routes    1 INVALID, 1 VALID\n" in out
    assert "\n  messages  1 VALID\n" in out
    assert "│ routes_are_true │ INVALID" in out
    assert "R: a broker registers every" in out
    assert ("│ routes_converge │ VALID" in out) is full
    assert ("no_acknowledged_loss" in out) is full


def test_what_one_node_did_is_one_row_and_a_line_names_the_other_checks_that_see_the_same() -> None:
    kept = invalid("registrations_are_kept", examples=(Example(who="ns-0", what="broker-a"),))
    elsewhere = replace(STAYED, name="routes_converge", examples=(Example(who="ns-1", what="ns-2"),))
    [routes] = groups([STAYED, kept, elsewhere])
    assert [v.name for v in routes.told] == ["registrations_are_kept", "routes_converge"]
    assert routes.again_line == "the same is seen by routes_are_true (1 violation), each with a limit of its own"


def assigned(node: str, at_ms: float, *brokers: str) -> dict[str, Any]:
    queues = json.dumps([[broker, 0] for broker in brokers])
    return {"event": "assigned", "node": node, "topic": "orders", "time_ms": at_ms, "value": queues}


@pytest.mark.parametrize(
    ("mine", "theirs", "away"),
    [
        ((), ("broker-a",), [(227_000, 400_000)]),
        ((), (), []),  # nobody has it back
        (("broker-a",), ("broker-a",), [(100_000, 226_000)]),
    ],
)
def test_a_consumer_whose_queues_another_took_is_not_without_the_broker(
    mine: tuple[str, ...], theirs: tuple[str, ...], away: list[tuple[float, float]]
) -> None:
    began = [assigned("consumer-0", 0, "broker-a"), assigned("consumer-1", 0, *theirs)]
    lost = [assigned("consumer-0", 100_000)] if mine else []
    ended = [assigned("consumer-0", 226_000, *mine), assigned("consumer-1", 227_000, *theirs)]
    if theirs and not mine:
        began[1] = assigned("consumer-1", 0)
    assert elsewhere([*began, *lost, *ended], "consumer-0", "broker-a", 400_000) == away
    assert elsewhere([*began, *lost, *ended], "producer-0", "broker-a", 400_000) == []

"""Verdicts over all rules; profiles: the built-in ones, files, what is refused, and what is written."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.fronts.behaviour import Behaviour
from nemesrv.chaos.fronts.observed import Answered, Asked, Behaved
from nemesrv.chaos.verdict import Validity
from nemesrv.conformance.rule_verdicts import (
    RuleProfile,
    asked_for,
    hindered_in,
    judge_all,
    names,
    profile_of,
    situations_of,
    written,
)
from nemesrv.conformance.rules import RULES, LeftOut, Measured
from nemesrv.conformance.rules.rule import Range
from nemesrv.conformance.situations import SITUATIONS, Watched, slowest_answer_ms
from tests.conformance.story import Story, polls
from tests.refusals import is_told

KEPT = polls(Story("quiet", for_s=460.0), "ns-1", *(30.0 * poll for poll in range(16))).watched()
MOVES = polls(Story("quiet", for_s=500.0), "ns-1", *(30.0 * poll for poll in range(15))).ask("ns-2", 450.0).watched()


def test_every_rule_is_measured_in_situations_that_there_are() -> None:
    assert set(situations_of(RULES)) <= set(SITUATIONS)
    assert list(RULES) == [rule.name for rule in RULES.values()]


def test_without_a_profile_rules_are_measured_and_held_against_nothing() -> None:
    by_name = {one.rule.name: one for one in judge_all([KEPT], None)}
    assert list(by_name) == list(RULES)
    assert (by_name["sticky"].verdict, by_name["sticky"].to_json()["verdict"]) == (None, "measured")
    assert by_name["start"].to_json() == {"rule": "start", "why": "not run: starts"}
    assert by_name["next"].verdict is Validity.UNKNOWN


def test_with_a_profile_the_rules_that_it_names_are_judged() -> None:
    java = profile_of("java-5.3")
    sticky = {name: judge_all([of], java, ["sticky"])[0] for name, of in (("kept", KEPT), ("moves", MOVES))}
    assert [sticky[name].verdict for name in ("kept", "moves")] == [Validity.VALID, Validity.INVALID]
    document = sticky["moves"].to_json()
    assert [document[key] for key in ("rule", "measured", "count", "expected", "verdict")] == [
        "sticky", "moves", 15, "kept", "INVALID",
    ]  # fmt: skip


def test_a_time_out_of_bounds_on_a_machine_that_was_late_is_unknown_and_says_so() -> None:
    slow = polls(Story("quiet", for_s=100.0), "ns-1", 0.05, 31.0, 62.0, 93.0).watched()
    java = profile_of("java-5.3")
    (on_time,) = judge_all([slow], java, ["poll_period_s"])
    (late,) = judge_all([replace(slow, late_ms=1200.0)], java, ["poll_period_s"])
    assert (on_time.verdict, late.verdict) == (Validity.INVALID, Validity.UNKNOWN)
    assert isinstance(late.measured, Measured)
    assert "this machine was 1.20 s late meanwhile, which may explain the value" in late.measured.why


def test_without_a_profile_a_word_that_depends_on_short_times_names_the_lateness_of_the_machine() -> None:
    quiet = polls(Story("quiet", for_s=100.0), "ns-1", 0.05, 30.0, 60.0, 90.0).watched()
    slow = polls(Story("slow", for_s=100.0), "ns-1", 0.05, 30.0, 60.0, 90.0).watched()
    why = "this machine was 1.20 s late meanwhile, so the word may be wrong: run again alone"
    for late_ms, is_named in ((100.0, False), (1200.0, True)):
        (kind,) = judge_all([replace(quiet, late_ms=late_ms), slow], None, ["poll_kind"])
        assert kind.measured.why.endswith(why) is is_named


def test_an_answer_that_came_late_says_how_late_this_machine_was_but_not_for_what_its_front_delays() -> None:
    def slowest(*, delay_ms: float = 0.0) -> float:
        asked = [Asked(at_ms, "ns-1", 1, opaque, code) for opaque, at_ms, code in ((1, 5.0, 105), (2, 6.0, 11))]
        answered = [Answered(at_ms, "ns-1", 1, opaque, 0) for opaque, at_ms in ((1, 2_018.0), (2, 20_006.0))]
        behaved = Behaved(at_ms=0.0, front="ns-1", behaviour=Behaviour(delay_ms=delay_ms))
        return slowest_answer_ms([behaved, *asked, *answered, Asked(21_000.0, "ns-1", 1, 3, 105)])

    assert (slowest(), slowest(delay_ms=1_000.0)) == (2_013.0, 1_013.0)


def test_situations_are_repeated_in_which_the_machine_was_too_late_for_a_rule() -> None:
    java = profile_of("java-5.3")
    slow = polls(Story("quiet", for_s=100.0), "ns-1", 0.05, 31.0, 62.0, 93.0).watched()

    def named(profile: RuleProfile | None, *watched: Watched) -> tuple[str, ...]:
        return hindered_in(watched, profile, ["sticky", "poll_period_s"])

    assert named(java, slow) == (), "it is INVALID, and the machine was not late"
    assert named(java, replace(slow, late_ms=1200.0)) == ("quiet",), "it is UNKNOWN"
    assert named(java, replace(KEPT, late_ms=1200.0)) == (), "it is VALID all the same"
    assert named(None, replace(KEPT, late_ms=600.0)) == ("quiet",), "a time that is measured to half a second"
    assert named(None, replace(KEPT, late_ms=400.0)) == ()
    slowed = replace(polls(Story("slow"), "ns-1", 0.05, 30.0).watched(), late_ms=20.0)
    assert named(None, replace(KEPT, late_ms=600.0), slowed) == ("quiet",), "and not where it was on time"


def test_a_rule_that_fails_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Story("quiet").watched()
    monkeypatch.setattr("nemesrv.conformance.rules.choosing.label_in", lambda watched: 1 / 0)
    (one,) = judge_all([broken], profile_of("go"), ["sticky"])
    assert one.verdict is Validity.UNKNOWN
    assert isinstance(one.measured, Measured)
    assert one.measured.why == "the rule failed: ZeroDivisionError: division by zero"


def test_a_rule_whose_situation_is_unclear_or_could_not_be_had_says_so() -> None:
    unclear = replace(Story("refused").watched(), unclear="two look alike")
    (one,) = judge_all([Story("quiet").watched(), unclear], None, ["leaves_on_refused"])
    assert (one.verdict, one.measured) == (Validity.UNKNOWN, Measured.undecided("two look alike", 1))
    why = "the program never asked the address server for its list"
    (one,) = judge_all([], None, ["list_change_s"], {"list_changes": why})
    assert one.measured == LeftOut(why=why)


def test_a_rule_that_somebody_asked_for_is_unknown_if_the_client_gave_no_occasion(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("client: mine\nrules: {killed_broker_s: {at_most: 40}}\n", encoding="utf-8")
    (tmp_path / "like.yaml").write_text("client: mine\nlike: java-5.3\nrules: {start: random}\n", encoding="utf-8")
    mine, like, java = (profile_of(name) for name in (f"{tmp_path}/mine.yaml", f"{tmp_path}/like.yaml", "java-5.3"))
    (left_out,) = judge_all([], java, ["killed_broker_s"])
    for profile in (java, like):
        assert asked_for([left_out], profile, None) == [left_out], "it is for clients with and without a part"
    for profile, named in ((mine, None), (java, ["killed_broker_s"])):
        (asked,) = asked_for([left_out], profile, named)
        assert asked.verdict is Validity.UNKNOWN
        assert asked.measured.why == f"not examined: {left_out.measured.why}"


def test_every_built_in_profile_can_be_read() -> None:
    assert len(names()) >= 9
    for name in names():
        assert profile_of(name).rules


def test_a_profile_like_another_has_its_rules_but_for_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("like: java-5.3\nrules: {start: 0, poll_kind: null}", encoding="utf-8")
    expected = {**profile_of("java-5.3").rules, "start": "0"}
    del expected["poll_kind"]
    assert profile_of(str(file)).rules == expected
    file.write_text("like: java-5\nrules: {}", encoding="utf-8")
    with pytest.raises(ScenarioError, match="did you mean java-5"):
        profile_of(str(file))


WRONG: dict[str, str] = yaml.safe_load(Path(__file__).with_name("wrong_profiles.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_profile_is_refused_with_what_is_allowed(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError) as refused:
        profile_of(str(file))
    assert is_told(f"{file}: {WRONG[text]}", str(refused.value)), refused.value


def test_a_profile_that_does_not_exist_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"did you mean java-4\.9\?"):
        profile_of("java-4.8")
    with pytest.raises(ScenarioError, match="No such file"):
        profile_of(str(tmp_path / "none.yaml"))


def test_what_was_measured_is_a_profile_that_it_meets(tmp_path: Path) -> None:
    found = [(one.rule.name, one.measured) for one in judge_all([KEPT], None) if not isinstance(one.measured, LeftOut)]
    file = tmp_path / "mine.yaml"
    file.write_text(written("mine", found), encoding="utf-8")
    mine = profile_of(str(file))
    assert (mine.rules["sticky"], mine.rules["poll_period_s"]) == ("kept", 30.0)
    again = judge_all([KEPT], mine)
    assert {one.verdict for one in again if one.rule.name in mine.rules} == {Validity.VALID}


def test_what_may_be_less_is_written_as_the_most_that_is_allowed_with_the_tolerance(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    found = [
        ("killed_broker_s", Measured(value=21.5, count=1)),
        ("silent_broker_s", Measured(value="still used", count=1)),
    ]
    file.write_text(written("mine", found), encoding="utf-8")
    mine = profile_of(str(file)).rules
    assert mine == {"killed_broker_s": Range(at_most=22.5), "silent_broker_s": "still used"}

"""What makes a client leave its NameServer, on observations written by hand."""

from dataclasses import replace

import pytest

from nemesrv.chaos.fronts.behaviour import CLOSES_EACH, CLOSES_ONCE, DROPS_SYNS, REFUSES, RESETS_ONCE, SILENT, Behaviour
from nemesrv.chaos.fronts.observed import By
from nemesrv.chaos.oracle.choosing.labels import EVERY, RANDOM, Label
from nemesrv.chaos.verdict import Validity
from nemesrv.conformance.rule_verdicts import judge_all, names, profile_of
from nemesrv.conformance.rules import RULES, LeftOut
from nemesrv.conformance.situations import Watched
from tests.conformance.rules.test_choosing import found, verdict
from tests.conformance.story import Story, polls

FAILING = {
    "leaves_on_refused": ("refused", REFUSES),
    "leaves_on_syn_dropped": ("syn_dropped", DROPS_SYNS),
    "leaves_on_silence": ("silent", SILENT),
    "leaves_on_close": ("closed", CLOSES_ONCE),
    "leaves_on_reset": ("reset", RESETS_ONCE),
    "leaves_on_closed_at_accept": ("closes_each", CLOSES_EACH),
}
CODES = {"leaves_on_error_code": ("error_code", 1), "leaves_on_code_17": ("topic_not_exist", 17)}


def began(situation: str, behaviour: Behaviour) -> Story:
    return Story(situation).ask("ns-1", 0.05).behave("ns-1", behaviour, 5.0)


def leaves(situation: str, behaviour: Behaviour) -> Watched:
    story = began(situation, behaviour)
    if situation == "silent":
        story.ask("ns-1", 30.0, code=None, closes_after_s=3.0)
    return story.ask("ns-2", 40.0).ask("ns-2", 60.0).watched()


def stays(situation: str, behaviour: Behaviour) -> Watched:
    story = began(situation, behaviour)
    for at_s in (30.0, 60.0):
        if situation in ("refused", "syn_dropped"):
            story.dial("ns-1", at_s, opens=False)
        elif situation == "silent":
            story.ask("ns-1", at_s, code=None)
        elif situation == "closes_each":
            story.dial("ns-1", at_s).close("ns-1", at_s + 0.002, By.FRONT)
        else:
            story.ask("ns-1", at_s)
    return story.watched()


@pytest.mark.parametrize("rule", FAILING)
def test_who_turns_to_another_one_left_and_who_does_not_stayed(rule: str) -> None:
    situation, behaviour = FAILING[rule]
    assert verdict(rule, "left", leaves(situation, behaviour)) is Validity.VALID
    assert verdict(rule, "left", stays(situation, behaviour)) is Validity.INVALID
    assert verdict(rule, "kept", stays(situation, behaviour)) is Validity.VALID
    assert verdict(rule, "left", began(situation, behaviour).watched()) is Validity.UNKNOWN


def test_a_promise_to_leave_a_dead_name_server_within_so_long_is_of_every_death() -> None:
    of_each = [leaves("refused", REFUSES), leaves("silent", SILENT), leaves("closes_each", CLOSES_EACH)]
    measured = found("leaves_within_s", *of_each)
    assert (measured.value, measured.count) == (35.0, 3)
    assert measured.why == "refused 35 s, silent 35 s, closes_each 35 s"
    assert verdict("leaves_within_s", {"at_most": 35}, *of_each) is Validity.VALID
    assert verdict("leaves_within_s", {"at_most": 33}, *of_each) is Validity.INVALID
    later = began("silent", SILENT).ask("ns-1", 30.0, code=None).ask("ns-2", 70.0)
    assert verdict("leaves_within_s", {"at_most": 35}, *of_each, later.watched()) is Validity.INVALID
    assert found("leaves_within_s", *of_each, stays("silent", SILENT)).value == "never"
    assert verdict("leaves_within_s", {"at_most": 35}, *of_each, stays("refused", REFUSES)) is Validity.INVALID
    unknown = began("silent", SILENT).watched()
    assert verdict("leaves_within_s", {"at_most": 35}, *of_each, unknown) is Validity.UNKNOWN
    assert found("leaves_within_s", *of_each, unknown).why == "silent: the client tried no NameServer then"


def test_a_client_whose_request_hangs_at_a_dead_name_server_breaks_a_promise_that_was_over_and_no_longer_one() -> None:
    hangs = began("silent", SILENT).ask("ns-1", 5.3, code=None).watched()
    measured = found("leaves_within_s", hangs)
    assert (measured.value, measured.why) == ("never", "silent never in 70 s")
    assert verdict("leaves_within_s", {"at_most": 60}, hangs) is Validity.INVALID
    assert verdict("leaves_within_s", {"at_most": 100}, hangs) is Validity.UNKNOWN


@pytest.mark.parametrize("profile", [name for name in names() if name != "node-2"])  # which may draw the dead one again
def test_a_client_that_keeps_a_name_server_that_refuses_is_invalid_under_every_profile(profile: str) -> None:
    rules = ("leaves_within_s", "leaves_on_refused")
    kept = judge_all([stays("refused", REFUSES)], profile_of(profile), rules)
    assert Validity.INVALID in {one.verdict for one in kept}
    left = judge_all([polls(began("refused", REFUSES), "ns-2", 30.0, 60.0).watched()], profile_of(profile), rules)
    assert {one.verdict for one in left if one.expected is not None} == {Validity.VALID}


@pytest.mark.parametrize("rule", CODES)
def test_an_error_code_is_an_answer(rule: str) -> None:
    situation, code = CODES[rule]
    told = Behaviour(codes={105: code})
    kept = polls(began(situation, told), "ns-1", 30.0, 60.0, code=code).watched()
    left = began(situation, told).ask("ns-1", 30.0, code=code).ask("ns-2", 60.0).watched()
    assert verdict(rule, "kept", kept) is Validity.VALID
    assert verdict(rule, "kept", left) is Validity.INVALID
    assert verdict(rule, "kept", began(situation, told).ask("ns-1", 30.0, code=code).watched()) is Validity.UNKNOWN


def test_refusals_that_nobody_sees_are_unknown_with_the_reason() -> None:
    story = Story("refused", unseen="no seccomp here").ask("ns-1", 0.05).behave("ns-1", REFUSES, 5.0)
    measured = found("leaves_on_refused", story.watched())
    assert (measured.value, measured.why) == (None, "no seccomp here")


def test_who_takes_turns_leaves_nobody() -> None:
    turns = Story("quiet").ask("ns-1", 0.05).ask("ns-2", 30.0).ask("ns-0", 60.0).ask("ns-1", 70.0).watched()
    measured = RULES["leaves_on_refused"].measure([turns, leaves("refused", REFUSES)])
    assert isinstance(measured, LeftOut)


def test_when_one_that_draws_for_each_request_draws_another_one_is_chance() -> None:
    drawing = Label(word=RANDOM, steps=40, moved=20, odds={RANDOM: 1.0, EVERY: 0.0})
    measured = RULES["leaves_within_s"].measure([replace(leaves("refused", REFUSES), label=drawing)])
    assert isinstance(measured, LeftOut)


def test_a_client_that_was_not_in_the_situation_is_left_out() -> None:
    quiet = Story("quiet").ask("ns-1", 0.05).ask("ns-1", 30.0).ask("ns-1", 60.0).watched()
    assert RULES["leaves_on_refused"].measure([quiet]) == LeftOut(why="another client's NameServer failed in refused")

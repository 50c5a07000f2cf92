"""When look-ups are made, on observations written by hand."""

from dataclasses import replace

import pytest

from nemesrv.chaos.fronts.behaviour import PASSES
from nemesrv.chaos.fronts.observed import By
from nemesrv.chaos.oracle.choosing.labels import EVERY, RANDOM, Label
from nemesrv.chaos.verdict import Validity
from nemesrv.conformance.rules import RULES, LeftOut
from nemesrv.conformance.situations import Watched
from tests.conformance.rules.test_choosing import found, verdict
from tests.conformance.story import TOPIC, Story, polls


def quiet(*times_s: float, situation: str = "quiet") -> Watched:
    return polls(Story(situation, for_s=130.0), "ns-0", *times_s).watched()


def test_the_period_is_between_the_rounds_of_the_poll() -> None:
    assert verdict("poll_period_s", 30.0, quiet(0.05, 30.0, 60.0, 90.0)) is Validity.VALID
    assert found("poll_period_s", quiet(0.05, 3.0, 33.0, 63.0, 93.0)).value == 30.0  # C++ begins after 3 s
    assert verdict("poll_period_s", 30.0, quiet(0.05, 20.0, 40.0, 60.0)) is Validity.INVALID
    assert verdict("poll_period_s", 30.0, quiet(0.05)) is Validity.INVALID, "not again in 130 s"
    assert verdict("poll_period_s", 30.0, quiet(80.0)) is Validity.UNKNOWN, "the next would not have been due"


def test_look_ups_of_other_topics_are_no_rounds_of_their_own() -> None:
    story = Story("quiet", for_s=100.0)
    for at_s in (0.0, 30.0, 60.0):
        story.ask("ns-0", at_s).ask("ns-0", at_s + 5, topic="TBW102")
    assert found("poll_period_s", story.watched()).value == 29.999


def test_rounds_that_come_early_or_late_are_jitter() -> None:
    assert verdict("poll_jitter_s", 0.0, quiet(0.0, 30.0, 60.1, 90.0)) is Validity.VALID
    assert verdict("poll_jitter_s", 0.0, quiet(0.0, 30.0, 62.0, 90.0)) is Validity.INVALID
    assert verdict("poll_jitter_s", 0.0, quiet(1.6, 30.0, 60.0, 90.0)) is Validity.VALID, "the first is a send's"
    assert verdict("poll_jitter_s", 0.0, quiet(0.0, 30.0)) is Validity.UNKNOWN


def test_a_poll_that_waits_for_its_answer_comes_later_while_answers_are_slow() -> None:
    plain = quiet(0.0, 30.0, 60.0, 90.0)
    rate, delay = quiet(0.0, 30.0, 60.0, situation="slow"), quiet(0.0, 31.0, 62.0, situation="slow")
    assert verdict("poll_kind", "fixed rate", plain, rate) is Validity.VALID
    assert verdict("poll_kind", "fixed rate", plain, delay) is Validity.INVALID
    assert verdict("poll_kind", "fixed delay", plain, delay) is Validity.VALID
    later_in_its_round = quiet(0.0, 32.0, 62.0, situation="slow")
    assert verdict("poll_kind", "fixed rate", plain, later_in_its_round) is Validity.VALID
    after_a_send = quiet(1.2, 31.0, 62.0, 93.0, situation="slow")
    assert verdict("poll_kind", "fixed delay", plain, after_a_send) is Validity.VALID
    once = quiet(0.0, situation="slow")
    assert verdict("poll_kind", "fixed rate", plain, once) is Validity.UNKNOWN
    assert isinstance(RULES["poll_kind"].measure([plain]), LeftOut)
    uneven = quiet(0.05, 30.0, 61.5, 91.7, 122.8)  # of a fixed delay, on a machine that is late
    assert found("poll_kind", uneven, rate).why.endswith("but without that, too, its periods differ by 1.3 s")


def list_changes(*, front: str | None, at_s: float = 130.0, at_work_s: float | None = 0.1) -> Watched:
    story = Story("list_changes", for_s=180.0, at_work_s=at_work_s).ask("ns-0", 0.05)
    story.happened("name_server_list", "ns-1;ns-2;ns-3", 20.0)
    return (story if front is None else story.ask(front, at_s)).watched()


def test_a_client_whose_name_server_left_the_list_takes_one_of_the_new() -> None:
    assert found("list_change_s", list_changes(front="ns-2")).value == 110.0
    assert found("list_change_s", list_changes(front="ns-3")).value == 110.0  # which it was not told at its start
    assert verdict("list_change_s", {"at_most": 150}, list_changes(front="ns-2")) is Validity.VALID
    assert verdict("list_change_s", {"at_most": 100}, list_changes(front="ns-2")) is Validity.INVALID
    assert verdict("list_change_s", {"at_most": 150}, list_changes(front="ns-0")) is Validity.INVALID
    assert isinstance(RULES["list_change_s"].measure([list_changes(front=None, at_work_s=None)]), LeftOut)
    assert found("list_change_s", Story("list_changes").ask("ns-0", 0.1).watched()).why == "the list never changed"


@pytest.mark.parametrize("fronts", ["ns-0 ns-1 ns-2 ns-0 ns-1 ns-2 ns-0", "ns-1 ns-0 ns-0 ns-2 ns-1 ns-2 ns-0"])
def test_a_client_that_takes_turns_is_not_said_to_have_taken_the_list_because_it_goes_on(fronts: str) -> None:
    """ali-ons 2.0.4 never asks the address server again, and draws a NameServer for each look-up."""
    story = Story("list_changes", for_s=180.0).happened("name_server_list", "ns-1;ns-2;ns-3", 20.0)
    for number, front in enumerate(fronts.split()):
        story.ask(front, 0.05 + 25 * number)
    assert isinstance(found("list_change_s", story.watched()), LeftOut)


def test_a_client_that_the_address_server_answered_too_late_is_not_judged_by_its_list() -> None:
    def fetched(ended_by: By) -> Story:
        story = Story("list_changes", for_s=180.0).ask("ns-0", 0.05).happened("name_server_list", "ns-1;ns-2", 20.0)
        return story.fetch_list(130.0, ended_by=ended_by, after_s=3.0).ask("ns-0", 150.0)

    assert verdict("list_change_s", {"at_most": 150}, fetched(By.CLIENT).watched()) is Validity.UNKNOWN
    assert verdict("list_change_s", {"at_most": 150}, fetched(By.SERVER).watched()) is Validity.INVALID


def empty(look_ups: int) -> Watched:
    story = Story("empty", for_s=15.0, at_work_s=None)
    for number in range(look_ups):
        story.ask("ns-0", 0.05 + number / 20, code=17, topic=(TOPIC, "TBW102")[number % 2])
    return (story.ask("ns-0", 9.0, code=17) if look_ups else story).watched()


def test_look_ups_of_the_first_second_are_the_storm() -> None:
    assert verdict("storm", {"at_most": 10}, empty(10)) is Validity.VALID
    assert verdict("storm", {"at_most": 10}, empty(15)) is Validity.INVALID
    assert verdict("storm", {"at_most": 10}, empty(0)) is Validity.UNKNOWN
    assert found("storm", empty(10)).interval == (0.0, 10.0)


def all_refuse(*, until_s: float | None = 70.0) -> Story:
    """One of four, ns-1, is back then."""
    story = Story("all_gone", name_servers=4, for_s=195.0).ask("ns-0", 0.05).all_refuse(5.0)
    return story if until_s is None else story.behave("ns-1", PASSES, until_s)


def all_gone(*, asked_at_s: float | None, back: bool = True) -> Watched:
    story = all_refuse(until_s=70.0 if back else None)
    return (story if asked_at_s is None else story.ask("ns-1", asked_at_s)).watched()


def test_the_first_that_is_back_is_asked_again_in_time() -> None:
    rule = "back_after_all_gone_s"
    assert verdict(rule, {"at_most": 30}, all_gone(asked_at_s=90.0)) is Validity.VALID
    assert verdict(rule, {"at_most": 30}, all_gone(asked_at_s=120.0)) is Validity.INVALID
    assert found(rule, all_gone(asked_at_s=None)).value == "not asked again"
    assert verdict(rule, {"at_most": 30}, all_gone(asked_at_s=None, back=False)) is Validity.UNKNOWN


@pytest.mark.parametrize(("dials", "value"), [(12, None), (60, "not asked again")])
def test_one_that_is_back_was_not_asked_where_enough_connects_passed_it_by(dials: int, value: str | None) -> None:
    """One of four: chance passes it by with 0.75 for each connect, so 49 connects decide."""
    story = all_refuse()
    for number in range(dials):
        story.dial("ns-2", 71.0 + number, opens=False)
    assert found("back_after_all_gone_s", story.watched()).value == value


def test_a_client_that_draws_and_passed_it_by_in_one_of_two_processes_has_no_time_of_its_own() -> None:
    """ali-ons 2.0.4: 50 s was the longest of two processes, and in three others no look-up met it."""
    drawing = Label(word=RANDOM, steps=90, moved=60, odds={RANDOM: 1.0, EVERY: 0.0})
    passed_by = all_refuse().dial("ns-2", 90.0, opens=False)
    met, not_met = (replace(one, label=drawing) for one in (all_gone(asked_at_s=120.0), passed_by.watched()))
    assert found("back_after_all_gone_s", met).value == 50.0
    assert isinstance(found("back_after_all_gone_s", met, not_met), LeftOut)


@pytest.mark.parametrize("first_s", [10.0, 30.0, 40.0])
def test_the_time_from_a_send_s_look_up_to_the_first_poll_is_no_period(first_s: float) -> None:
    quiet = polls(Story("quiet", for_s=130.0), "ns-0", 0.05, first_s, first_s + 30, first_s + 60).watched()
    assert verdict("poll_period_s", 30.0, quiet) is Validity.VALID
    short = polls(Story("quiet", for_s=100.0), "ns-0", 0.05, first_s, first_s + 30).watched()
    assert verdict("poll_period_s", 30.0, short) is Validity.VALID

"""Brokers that fail or return, and sends meanwhile, on observations written by hand."""

import pytest

from nemesrv.chaos.fronts.behaviour import BLACK_HOLE, REFUSES, SILENT, Behaviour
from nemesrv.chaos.verdict import Validity
from nemesrv.conformance.rules import RULES, LeftOut
from nemesrv.conformance.situations import Watched
from tests.conformance.rules.test_choosing import found, verdict
from tests.conformance.story import Story

DIED_S = 8.0
SITUATIONS = {
    "killed_broker_s": "broker_killed",
    "silent_broker_s": "broker_silent",
    "refusing_broker_s": "broker_refuses",
    "unreachable_broker_s": "broker_unreachable",
    "unrouted_broker_s": "route_changes",
}
BEHAVIOURS = {"broker_silent": SILENT, "broker_refuses": REFUSES, "broker_unreachable": BLACK_HOLE}


def fails(situation: str, unseen: str | None = None) -> Story:
    story = Story(situation, unseen=unseen)
    for second in range(1, 8):
        send(story, second)
    if situation == "broker_killed":
        return story.happened("kill", "broker-a", DIED_S).behave("broker-a", REFUSES, DIED_S)
    if situation == "route_changes":
        return story.behave("ns-0", Behaviour(without=frozenset({"broker-a"})), DIED_S)
    return story.behave("broker-a", BEHAVIOURS[situation], DIED_S)


def send(story: Story, at_s: float, *fronts: str, codes: tuple[int | None, ...] = (0,), key: str = "") -> Story:
    """One message, tried at each front in turn."""
    properties = f"A\x01b\x02UNIQ_KEY\x01{key or at_s}\x02"
    for number, front in enumerate(fronts or ("broker-a",)):
        code = codes[number] if number < len(codes) else 0
        story.ask(front, at_s + number / 100, request=310, code=code, fields={"i": properties})
    return story


def used_until(situation: str, last_s: float) -> Watched:
    story = fails(situation)
    at_s = DIED_S
    while at_s < 73:
        if at_s <= last_s and situation != "broker_killed":
            send(story, at_s, codes=(None,))
        elif at_s <= last_s:
            story.dial("broker-a", at_s, opens=False)
        send(story, at_s + 0.5, "broker-b")
        at_s += 1
    return story.watched()


@pytest.mark.parametrize("rule", SITUATIONS)
def test_the_last_use_of_a_broker_that_failed(rule: str) -> None:
    situation = SITUATIONS[rule]
    assert found(rule, used_until(situation, 30.0)).value == 22.0
    assert verdict(rule, {"at_most": 30}, used_until(situation, 30.0)) is Validity.VALID
    assert verdict(rule, {"at_most": 30}, used_until(situation, 50.0)) is Validity.INVALID
    assert found(rule, used_until(situation, 99.0)).value == "still used"
    assert verdict(rule, {"at_most": 30}, used_until(situation, 99.0)) is Validity.INVALID
    assert verdict(rule, {"at_most": 200}, used_until(situation, 99.0)) is Validity.UNKNOWN, "it was not seen so long"
    assert verdict(rule, {"at_most": 30}, send(Story(situation), 1.0).watched()) is Validity.UNKNOWN
    assert isinstance(RULES[rule].measure([Story(situation).ask("ns-0", 0.1).watched()]), LeftOut)


def busy_beside(took_s: float, *fronts: str) -> Watched:
    story = send(Story("broker_busy"), 1.0)
    story.ask("broker-b", 2.0, request=310, fields={"i": "UNIQ_KEY\x01slow\x02"}, after_s=took_s)
    story.behave("broker-a", Behaviour(codes={310: 14}), DIED_S)
    for at_s in (10.0, 11.0, 12.0):
        send(story, at_s, *fronts, codes=tuple(14 if front == "broker-a" else 0 for front in fronts))
    return story.watched()


def test_a_client_that_avoids_a_broker_that_was_slow_is_not_said_to_retry_at_the_same_broker() -> None:
    slow = found("send_retries", busy_beside(0.83, "broker-a", "broker-a"))
    assert slow.value is None
    assert slow.why.startswith("the same broker; broker-b had taken 0.83 s to answer a send")
    assert found("send_retries", busy_beside(0.05, "broker-a", "broker-a")).value == "the same broker"
    assert found("send_retries", busy_beside(0.83, "broker-a", "broker-b")).value == "another broker"
    assert found("send_retries", busy_beside(0.83, "broker-a")).value == "none"


def returns(used_s: float | None) -> Watched:
    story = send(Story("broker_returns", for_s=110.0), 1.0).happened("kill", "broker-a", DIED_S)
    story.happened("restart", "broker-a", 38.0)
    return (story if used_s is None else send(story, used_s)).watched()


def test_a_broker_that_is_back_is_used_again() -> None:
    assert verdict("returned_broker_s", {"at_most": 30}, returns(60.0)) is Validity.VALID
    assert verdict("returned_broker_s", {"at_most": 30}, returns(80.0)) is Validity.INVALID
    assert found("returned_broker_s", returns(None)).value == "not used again"
    assert (
        verdict("returned_broker_s", {"at_most": 30}, send(Story("broker_returns"), 1.0).watched()) is Validity.UNKNOWN
    )

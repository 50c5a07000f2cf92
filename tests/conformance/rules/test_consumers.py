"""Two consumers of a group, on observations written by hand."""

from dataclasses import replace

import pytest

from nemesrv.chaos.verdict import Validity
from nemesrv.conformance.rules import RULES, LeftOut
from nemesrv.conformance.situations import Watched
from tests.conformance.rules.test_choosing import found, verdict
from tests.conformance.story import TOPIC, Story

END_S = 40.0
HEARTBEATS = {"producer": b'{"consumerDataSet":[]}', "consumer": b'{"consumerDataSet":[{"groupName":"g"}]}'}
RULES_OF = {"queues_of_killed_s": ("consumer_dies", "kill"), "queues_of_stopped_s": ("consumer_stops", "stop")}


def pulls(story: Story, queue: int, *times_s: float, offset: int = 0, takes: int = 1) -> Story:
    """From `offset` on, each pull that many messages."""
    for at_s in times_s:
        fields = {"topic": TOPIC, "queueId": str(queue), "queueOffset": str(offset)}
        offset += takes
        answer = {"nextBeginOffset": str(offset)}
        story.ask("broker-a", at_s, request=11, fields=fields, answer=answer)
    return story


def two(what: str, situation: str, *, taken_s: float | None, from_: int = 3, told: bool = False) -> list[Watched]:
    """The second one ends with queue 1 read up to offset 3; the first goes on from `from_`."""
    stays, gone = Story(situation, for_s=90.0), Story(situation, number=1, for_s=END_S)
    pulls(stays, 0, 1.0, 20.0, 39.0, 60.0)
    pulls(gone, 1, 1.0, 20.0, 39.0)
    if taken_s is not None:
        pulls(stays, 1, taken_s, 80.0, offset=from_)
    if told:
        for number in range(3):
            gone.told("received", 39.0, id=number)
        stays.told("received", 50.0, id=2)
    for story in (stays, gone):
        story.happened(what, "1", END_S)
    return [stays.watched(), gone.watched()]


def test_queues_that_nobody_took_because_the_other_consumer_had_ended_by_itself_are_held_against_nobody() -> None:
    stays, gone = two("stop", "consumer_stops", taken_s=None)
    dead = replace(stays, ended="exit 1", ended_ms=15_700.0)
    assert verdict("queues_of_stopped_s", 20.0, stays, gone) is Validity.INVALID
    assert verdict("queues_of_stopped_s", 20.0, dead, gone) is Validity.UNKNOWN
    assert found("queues_of_stopped_s", dead, gone).why == "a consumer ended by itself (exit 1) after 15.7 s"


@pytest.mark.parametrize("rule", RULES_OF)
def test_the_queues_of_the_one_that_ended_have_an_owner_again(rule: str) -> None:
    situation, what = RULES_OF[rule]
    assert verdict(rule, {"at_most": 20}, *two(what, situation, taken_s=41.5)) is Validity.VALID
    assert found(rule, *two(what, situation, taken_s=41.5)).value == 1.5
    assert verdict(rule, {"at_most": 20}, *two(what, situation, taken_s=70.0)) is Validity.INVALID
    assert found(rule, *two(what, situation, taken_s=None)).value == "never"
    idle = [
        pulls(Story(situation), 0, 1.0).happened(what, "1", END_S),
        Story(situation, number=1).happened(what, "1", 40),
    ]
    assert verdict(rule, {"at_most": 20}, *(story.watched() for story in idle)) is Validity.UNKNOWN
    dead = [replace(story.watched(), ended="signal 11", ended_ms=10_400.0) for story in idle]
    assert found(rule, *dead).why == "a consumer ended by itself (signal 11) after 10.4 s"
    assert isinstance(RULES[rule].measure([Story(situation).ask("ns-0", 1.0).watched()]), LeftOut)
    beats = {group: Story(situation).ask("broker-a", 1.0, request=34, body=body) for group, body in HEARTBEATS.items()}
    assert isinstance(RULES[rule].measure([beats["producer"].watched()]), LeftOut)
    assert found(rule, beats["consumer"].watched()).why == "its consumers pulled nothing"


def test_messages_that_both_were_given_are_received_twice() -> None:
    rule = "received_twice"
    assert verdict(rule, 0, *two("kill", "consumer_dies", taken_s=41.0)) is Validity.VALID
    again = two("kill", "consumer_dies", taken_s=41.0, from_=1)
    assert (found(rule, *again).value, found(rule, *again).why) == (2.0, "2 of 7 messages pulled twice")
    assert verdict(rule, 0, *again) is Validity.VALID  # what a commit each 5 s makes of it
    many = [pulls(Story("consumer_dies", number=k), 1, 39.0, takes=60).happened("kill", "1", END_S) for k in (0, 1)]
    assert verdict(rule, 0, *(story.watched() for story in many)) is Validity.INVALID
    told = found(rule, *two("kill", "consumer_dies", taken_s=41.0, told=True))
    assert (told.value, told.why) == (1.0, "1 of 3 messages received twice")
    alone = pulls(Story("consumer_dies"), 0, 1.0).watched()
    assert verdict(rule, 0, alone) is Validity.UNKNOWN

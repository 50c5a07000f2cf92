"""A client that redials without a pause: what is done with its dials grows as their number does, and no faster."""

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType

import pytest

from nemesrv.chaos.fronts.behaviour import PASSES
from nemesrv.chaos.fronts.observed import Asked, Dialled
from nemesrv.conformance.result import ALIKE_MAX, lines
from nemesrv.conformance.rule_verdicts import judge_all
from nemesrv.conformance.rules import RULES
from nemesrv.conformance.situations import Watched
from tests.conformance.story import Story

N = 4


def redials(dials: int, *, in_turn: bool, clients: int = 1, java: bool = False) -> Watched:
    """It dials so often within 10 s in which every NameServer refuses."""
    rng = random.Random(1)
    story = Story("all_gone", name_servers=N, for_s=300.0)
    for client in range(clients):
        story.ask(f"ns-{client}", 0.05 + client / 100)
    story.all_refuse(5.0)
    for dial in range(dials):
        story.dial(f"ns-{dial % N if in_turn else rng.randrange(N)}", 6.0 + 10.0 * dial / dials, opens=False)
    story.behave("ns-1", PASSES, 70.0).ask("ns-1", 72.0).ask("ns-1", 102.0)
    watched = story.watched()
    if not java:
        return watched
    threads = (
        replace(one, thread=7)
        if isinstance(one, Dialled) and one.at_ms >= 6_000
        else one._replace(language="JAVA")
        if isinstance(one, Asked)
        else one
        for one in watched.seen
    )
    return replace(watched, seen=tuple(threads))


def calls_to_judge(watched: Sequence[Watched]) -> int:
    """The number of calls, Python's and C's, that its verdicts take."""
    calls = 0

    def count(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        judge_all(watched, None, [name for name, rule in RULES.items() if "all_gone" in rule.situations])
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("in_turn", [True, False], ids=["in turn", "out of turn"])
@pytest.mark.parametrize("of", [{}, {"clients": 2}, {"java": True}], ids=["one client", "two clients", "Java"])
def test_four_times_the_dials_take_about_four_times_the_calls(in_turn: bool, of: dict[str, int]) -> None:
    few, many = (calls_to_judge([redials(dials, in_turn=in_turn, **of)]) for dials in (500, 2_000))
    assert few > 500
    assert many < 5 * few, f"{few:,} and {many:,} calls"


def test_its_evidence_tells_how_many_there_were_in_no_more_lines_than_for_fewer() -> None:
    few, many = ([json.loads(line) for line in lines(redials(dials, in_turn=True))] for dials in (8_000, 80_000))
    dials = [line for line in many if line.get("seen") == "Dialled" and line["after_ms"] >= 6_000]
    assert len(many) == len(few) < N * ALIKE_MAX + 100
    assert sum(line.get("times", 1) for line in dials) == 80_000 + 1  # and the one with which it comes back
    of_ns_3 = next(line for line in dials if line["front"] == "ns-3" and "times" in line)
    assert (of_ns_3["times"], of_ns_3["until_ms"]) == (20_000 - ALIKE_MAX, pytest.approx(16_000, abs=1))

"""List, start, stickiness and order, on observations written by hand: clean, broken, and nothing seen."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from nemesrv.chaos.fronts.behaviour import CLOSES_EACH, REFUSES
from nemesrv.chaos.verdict import Validity
from nemesrv.conformance.rules import RULES, LeftOut, Measured
from nemesrv.conformance.rules.lookups import label_in
from nemesrv.conformance.situations import Watched
from tests.conformance.story import Story, polls


def found(rule: str, *watched: Watched) -> Measured:
    measured = RULES[rule].measure([one for one in watched if one.situation in RULES[rule].situations])
    assert isinstance(measured, Measured), measured
    return measured


def verdict(rule: str, expected: object, *watched: Watched) -> Validity:
    return RULES[rule].judge(found(rule, *watched), RULES[rule].read(expected))


def starts(*counts: int) -> list[Watched]:
    fronts = [place for place, count in enumerate(counts) for _ in range(count)]
    n = len(counts)
    return [Story("starts", name_servers=n, number=k).ask(f"ns-{p}", 0.05).watched() for k, p in enumerate(fronts)]


def goes_through(
    order: Sequence[int], number: int = 0, situation: str = "all_gone", n: int = 4, quick: Sequence[int] = ()
) -> Watched:
    """A process that turns to these, one a poll, while all refuse; those polls of `quick` half a millisecond after the
    one before."""
    story = Story(situation, name_servers=n, number=number, for_s=300.0).ask(f"ns-{order[0]}", 0.05)
    story.all_refuse(5.0)
    for poll, place in enumerate(order[1:]):
        at_s = 30.0 * poll + 0.0005 if poll in quick else 30.0 * (poll + 1)
        story.dial(f"ns-{place}", at_s, opens=False)
    return story.watched()


def test_even_first_choices_are_random_and_what_so_many_starts_find_is_said() -> None:
    measured = found("start", *starts(21, 19, 20))
    assert (measured.value, measured.count, measured.power) == ("random", 60, 0.99)
    assert measured.p is not None
    assert measured.p > 0.9
    assert measured.why == "first choices 21 / 19 / 20; so many starts find one chosen 45 points too often"
    assert verdict("start", "random", *starts(21, 19, 20)) is Validity.VALID
    assert verdict("start", "0 of the shuffle", *starts(21, 19, 20)) is Validity.VALID
    assert verdict("start", 0, *starts(21, 19, 20)) is Validity.INVALID


def test_starts_that_are_all_at_one_place_are_not_random() -> None:
    assert verdict("start", "random", *starts(30, 0, 0)) is Validity.INVALID
    assert verdict("start", 0, *starts(30, 0, 0)) is Validity.VALID
    assert verdict("start", 1, *starts(0, 30, 0)) is Validity.VALID
    assert found("start", *starts(0, 30, 0)).why == "all 30 processes asked ns-1 first"
    assert verdict("start", "random", *starts(50, 8, 2)) is Validity.INVALID


def test_few_starts_decide_nothing_of_chance() -> None:
    assert verdict("start", "random", *starts(3, 2, 4)) is Validity.UNKNOWN
    assert verdict("start", 0, *starts(3, 2, 4)) is Validity.INVALID, "one start elsewhere is enough"
    assert verdict("start", "random", *starts(8, 0, 0)) is Validity.UNKNOWN
    assert verdict("start", 0, *starts(4, 0, 0)) is Validity.UNKNOWN
    assert found("start", Story("starts", at_work_s=None).watched()).value is None


@pytest.mark.parametrize("more", [1, 2])
def test_who_connects_to_more_than_it_asks_chooses_by_a_score(more: int) -> None:
    def rust(number: int, *, closes: bool = False) -> Watched:
        story = Story("starts", number=number).ask(f"ns-{number % 3}", 0.02)
        for other in range(number + 1, number + 1 + more):
            story.dial(f"ns-{other % 3}", 0.01)
            if closes:
                story.close(f"ns-{other % 3}", 0.015)
        return story.watched()

    assert verdict("start", "scored", *map(rust, range(20))) is Validity.VALID
    assert verdict("start", "random", *map(rust, range(20))) is Validity.INVALID
    first = [rust(3 * number) for number in range(20)]
    assert found("start", *first).value == "0", "the first of the list, with idle connections to the others"
    gave_up = [rust(number, closes=True) for number in range(20)]
    for right in (gave_up, starts(7, 7, 6)):
        assert verdict("start", "scored", *right) is Validity.INVALID


def test_a_list_as_given_is_known_by_what_follows_what_and_by_its_starts() -> None:
    assert found("list_order", *starts(30, 0, 0)).value is None, "the first alone says nothing of what follows"
    in_order = [goes_through([k % 4, (k + 1) % 4, (k + 2) % 4, (k + 3) % 4], k) for k in range(6)]
    assert found("list_order", *in_order[:4]).value is None, "1 of 1,296 shuffled ones looks so"
    assert found("list_order", *in_order).value == "as given"
    assert verdict("list_order", "shuffled", *in_order) is Validity.UNKNOWN  # 1 of 46,656 shuffled ones looks so
    assert verdict("list_order", "shuffled", *in_order, *starts(30, 0, 0)) is Validity.INVALID


def test_another_order_that_all_processes_share_is_neither_as_given_nor_shuffled() -> None:
    own = [0, 2, 1, 3]
    of_all = [goes_through([own[(k + at) % 4] for at in range(4)], k) for k in range(7)]
    measured = found("list_order", *of_all)
    assert (measured.value, measured.why) == ("of its own", "ns-0, ns-2, ns-1, ns-3 in all processes")
    assert measured.power == pytest.approx(1 - 6**-6)
    assert found("list_order", *of_all[:3]).value is None
    assert verdict("list_order", "of its own", *of_all) is Validity.VALID
    assert verdict("list_order", "as given", *of_all) is Validity.INVALID
    assert verdict("list_order", "as given", *of_all[:1]) is Validity.INVALID, "one that is not the next is enough"
    assert verdict("list_order", "shuffled", *of_all) is Validity.UNKNOWN  # 1 of 46,656 shuffled ones looks so
    backwards = [goes_through([2, 1, 0], k, "refused", n=3) for k in range(3)]
    assert found("list_order", *backwards, *starts(0, 0, 30)).why == "ns-2, ns-1, ns-0 in all processes"


def test_of_a_list_that_is_not_known_it_is_said_what_decides_it() -> None:
    in_order = [goes_through([k % 3, (k + 1) % 3, (k + 2) % 3], k, "refused", n=3) for k in range(4)]
    assert found("list_order", *in_order, *starts(20, 20, 20)).why == (
        "4 processes show what follows, and 60 what is first: too few to tell as given from shuffled (shuffled lists "
        "look so with p = 0.062, and p ≤ 0.0001 decides); 4 times as many decide (--repeats), or leave this rule out "
        "(--rules)"
    )


def test_of_who_turns_to_name_servers_out_of_turn_no_list_is_known() -> None:
    back_and_forth = [goes_through([k % 4, (k + 1) % 4, k % 4, (k + 2) % 4], k) for k in range(3)]
    assert isinstance(RULES["list_order"].measure([*back_and_forth, goes_through([0, 2, 1, 3], 3)]), LeftOut)
    shuffled = [goes_through([3, 1, 0, 2], 3), goes_through([0, 2, 1, 3], 4), goes_through([0, 3, 1, 2], 5)]
    assert found("list_order", *back_and_forth, *shuffled).value == "shuffled", "half of them is not most of them"


def test_a_shuffled_list_is_known_by_what_follows_what() -> None:
    rng = random.Random(5)
    shuffled = [goes_through(rng.sample(range(4), 4), k) for k in range(4)]
    assert verdict("list_order", "shuffled", *shuffled) is Validity.VALID
    assert verdict("list_order", "as given", *shuffled) is Validity.INVALID
    assert verdict("list_order", "shuffled", *starts(20, 20, 20)) is Validity.UNKNOWN


def test_the_next_in_a_list_as_given_is_one_further() -> None:
    first = starts(30, 0, 0)
    ten = [*first, goes_through([0, 1, 2, 3, 0, 1, 2, 3, 0, 1])]
    assert verdict("next", "the next", *ten) is Validity.VALID
    assert found("next", *ten).examples[0]["chosen"] == ["ns-0", "ns-1", "ns-2", "ns-3"] * 2
    few = found("next", *first, goes_through([0, 1, 2]))
    assert (few.value, few.count, few.power) == (None, 2, pytest.approx(8 / 9))
    assert few.why == (
        "2 steps: one that takes any other looks so with p = 0.11; 5 times as many decide (--repeats), or leave this "
        "rule out (--rules)"
    )
    assert found("next", *first, goes_through([0, 2, 0, 2], 0, n=3 + 1)).value == "out of turn"


def test_in_a_shuffled_list_all_others_have_their_turn_first() -> None:
    polls = [
        goes_through([*order, *order[:2]], k) for k, order in enumerate([[2, 0, 3, 1], [1, 2, 0, 3], [0, 1, 3, 2]])
    ]
    assert found("next", *polls).power == pytest.approx(1 - (2 / 81) ** 3)
    assert verdict("next", "the next", *polls) is Validity.VALID
    assert verdict("next", "the next", *polls[:2]) is Validity.UNKNOWN
    assert verdict("next", "the next", goes_through([2, 0, 2, 0])) is Validity.INVALID
    assert verdict("next", "the next", goes_through([2, 0])) is Validity.UNKNOWN


def test_two_dials_that_nobody_can_tell_apart_may_be_seen_in_the_other_order_once_of_ten() -> None:
    first, tie = starts(30, 0, 0, 0), [0, 1, 2, 3, 0, 1, 3, 2, 0, 1, 2]
    measured = found("next", *first, goes_through(tie, quick=[6]))
    assert (measured.value, measured.count) == ("the next", 10)
    assert measured.why == "1 time two dials less than 1 ms apart were seen in the other order"
    assert found("next", *first, goes_through(tie)).value == "out of turn"
    assert found("next", *first, goes_through([0, 1, 2, 0, 3, 1, 2, 3, 0], quick=range(9))).value == "out of turn"
    assert found("next", *first, goes_through(tie[:9], quick=[6])).value == "out of turn", "too few for one of them"


def test_dialling_the_lost_one_once_more_is_told() -> None:
    def lost(first: str) -> Watched:
        story = Story("closes_each").ask("ns-0", 0.05).behave("ns-0", CLOSES_EACH, 5.0)
        story.dial(first, 30.0).close(first, 30.002) if first == "ns-0" else None
        return story.ask("ns-1", 30.005).ask("ns-1", 60.0).watched()

    clean, again = ([*starts(30, 0, 0), *[lost(first)] * 14] for first in ("ns-1", "ns-0"))
    assert verdict("next", "the next", *clean) is Validity.VALID
    assert verdict("next", "the lost one again, then the next", *again) is Validity.VALID
    assert verdict("next", "the next", *again) is Validity.INVALID


def turns(*order: int, number: int = 0, each_s: float = 1.0) -> Watched:
    """Look-ups one after the other, each answered."""
    story = Story("quiet", number=number)
    for poll, place in enumerate(order):
        story.ask(f"ns-{place}", 1.0 + each_s * poll)
    return story.watched()


def test_who_keeps_the_one_that_answers_is_sticky() -> None:
    kept = turns(*[1] * 15)
    assert verdict("sticky", "kept", kept) is Validity.VALID
    assert found("sticky", kept).why == "a client that changes in 1 of 4 look-ups would have been found"
    short = [turns(1, 1, 1, number=number) for number in range(20)]
    assert found("sticky", *short).why == "a client that changes in 1 of 2 look-ups would have been found", (
        "none made three more"
    )
    assert verdict("sticky", "next at every request", kept) is Validity.INVALID
    assert found("sticky", Story("quiet").ask("ns-1", 0.05).watched()).value is None


def test_few_look_ups_give_no_label_and_rule_out_what_they_do() -> None:
    few = found("sticky", turns(1, 1, 1))
    assert (few.value, few.count) == (None, 2)
    assert few.why.startswith("0 of 2 tries went to another one than the last, which had answered: too few to tell")
    assert verdict("sticky", "kept", turns(1, 1, 1)) is Validity.UNKNOWN
    assert verdict("sticky", "next at every request", turns(1, 1, 1)) is Validity.INVALID
    assert verdict("sticky", "kept", turns(1, 1, 2)) is Validity.INVALID, "one such step is enough"
    coins = turns(2, 0, 1, 0)
    assert found("sticky", coins).value is None
    assert [verdict("sticky", word, coins) for word in ("kept", "next at every request", "random at each request")] == [
        Validity.INVALID, Validity.INVALID, Validity.UNKNOWN,
    ]  # fmt: skip


def test_who_closes_a_connection_of_its_start_may_have_waited_too_long_for_what_nobody_saw_begin() -> None:
    kept = turns(*[1] * 15, number=1)
    assert verdict("sticky", "kept", turns(1, *[2] * 15)) is Validity.INVALID
    story = Story("quiet", at_work_s=1.1).ask("ns-1", 1.0).ask("ns-2", 2.6).close("ns-1", 2.65)
    assert verdict("sticky", "kept", story.watched(), kept) is Validity.VALID
    seen_late = Story("quiet", at_work_s=1.1).ask("ns-1", 1.0).ask("ns-2", 2.6).close("ns-1", 3.2).watched()
    assert verdict("sticky", "kept", seen_late, kept) is Validity.INVALID
    assert verdict("sticky", "kept", replace(seen_late, late_ms=200.0), kept) is Validity.VALID
    story = Story("quiet", at_work_s=1.1).ask("ns-1", 1.0).ask("ns-1", 2.0).ask("ns-2", 3.0).close("ns-1", 3.05)
    assert verdict("sticky", "kept", story.watched(), kept) is Validity.INVALID


@pytest.mark.parametrize(
    ("rule", "word", "situation", "answered_s"),
    [("next", "the next", "refused", 0.1), ("sticky", "kept", "quiet", 0.002)],
)
def test_a_request_given_up_at_once_had_waited(rule: str, word: str, situation: str, answered_s: float) -> None:
    def starved(number: int, waits_s: float) -> Watched:
        """Its first request waited in the client itself, which meanwhile has gone on to the next one."""
        story = Story(situation, number=number).dial("ns-2", 0.1).dial("ns-0", 1.7)
        story.ask("ns-0", 2.0, after_s=answered_s)
        story.ask("ns-2", 2.05, after_s=waits_s + number % 2 / 100, closes_after_s=waits_s + 0.005).ask("ns-0", 4.0)
        return polls(story.behave("ns-0", REFUSES, 5.0), "ns-1", 30.0, 60.0).watched()

    at_once, later = ([starved(number, waits_s) for number in range(20)] for waits_s in (0.01, 0.8))
    kept = turns(*[1] * 15, number=99)
    assert verdict(rule, word, *at_once, kept) is Validity.VALID
    assert verdict(rule, word, *later, kept) is Validity.INVALID


def test_a_client_that_goes_elsewhere_anyhow_is_known_by_what_follows_error_codes_too() -> None:
    draws = random.Random(7)
    story = Story("quiet", number=1, for_s=300.0)
    for poll in range(150):
        story.ask(f"ns-{draws.randrange(3)}", 1.0 + poll, code=17)
    few = turns(2, 0, 1, 0, 2, 1)
    assert found("sticky", few).value is None
    assert found("sticky", few, story.watched()).value == "random at each request"


def test_who_takes_turns_draws_or_moves_is_called_so() -> None:
    assert found("sticky", turns(*(at % 3 for at in range(20)))).value == "next at every request"
    assert found("sticky", turns(*[1] * 20, 2, *[2] * 5)).value == "moves"
    draws = random.Random(7)
    drawn = [turns(*(draws.randrange(3) for _ in range(20)), number=number) for number in range(12)]
    assert found("sticky", *drawn).value == "random at each request"


def test_who_keeps_its_name_server_and_dials_dead_ones_meanwhile_draws_none() -> None:
    """As Java 5.2.0 does, which looks for available ones."""
    watched = [turns(1, 1, 1, 1)]
    draws = random.Random(7)
    for number in range(5):
        story = Story("all_gone", number=number, for_s=200.0).ask("ns-1", 80.0)
        for front in ("ns-0", "ns-2"):
            story.behave(front, REFUSES, 0.5)
        for poll in range(4):
            story.dial(f"ns-{draws.choice((0, 2))}", 82.0 + 30 * poll, opens=False).ask("ns-1", 110.0 + 30 * poll)
        watched.append(story.watched())
    assert label_in(watched).word == "kept"


def test_of_who_draws_nothing_is_said_that_needs_an_order() -> None:
    coins = turns(2, 0, 1, 0, 2, 0, 0, 1, 2, 1)
    for rule in ("next", "list_order", "phase_lock"):
        assert isinstance(RULES[rule].measure([coins, *starts(7, 6, 7)]), LeftOut), rule
    assert isinstance(
        RULES["leaves_on_refused"].measure([turns(0, 2, 1, 0, 2), goes_through([0, 1], 0, "refused")]), LeftOut
    )


def test_refused_dials_that_nobody_sees_decide_no_order() -> None:
    unseen = Story("all_gone", name_servers=4, unseen="no seccomp here").ask("ns-0", 0.05).watched()
    measured = found("next", unseen)
    assert (measured.value, measured.why) == (None, "no seccomp here")


def test_one_name_server_leaves_nothing_to_choose() -> None:
    polls = Story("quiet", name_servers=1)
    for poll in range(40):
        polls.ask("ns-0", 0.05 + poll)
    seen = [polls.watched(), *starts(60)]
    for rule in (rule for rule in RULES.values() if rule.of_choice):
        measured = rule.measure([one for one in seen if one.situation in rule.situations])
        if not isinstance(measured, LeftOut):
            assert measured.value is None, rule.name
            assert measured.why
            assert {rule.judge(measured, rule.read(word)) for word in rule.words} == {Validity.UNKNOWN}


def test_of_turns_taken_at_every_request_each_goes_on_to_the_next() -> None:
    first, in_turn = starts(30, 0, 0), [at % 3 for at in range(18)]
    assert verdict("next", "the next", *first, turns(*in_turn)) is Validity.VALID
    backwards = [*first, turns(*(-at % 3 for at in range(18)))]
    assert (found("list_order", *backwards).value, found("next", *backwards).value) == ("of its own", "the next")
    assert found("next", *first, turns(0, 1, 2)).value is None


def test_two_requests_at_once_may_be_seen_in_the_other_order() -> None:
    order = [0, 1, 2, 1, 0, 2] * 4  # the fourth and the fifth of six are under way together
    story = Story("quiet")
    for poll, place in enumerate(order):
        story.ask(f"ns-{place}", 1.0 + poll - (0.9995 if poll % 6 == 4 else 0.0))
    story_of_one = turns(*order)
    assert verdict("sticky", "next at every request", story_of_one) is Validity.INVALID
    assert verdict("sticky", "next at every request", story.watched()) is not Validity.INVALID
    assert (
        verdict("next", "the next", *starts(30, 0, 0), turns(*[at % 3 for at in range(18)]), story.watched())
        is Validity.VALID
    )


def test_no_machine_is_too_late_to_tell_which_one() -> None:
    out = Measured(value="out of turn", count=9)
    assert RULES["next"].judge(out, "the next", 2.0) is Validity.INVALID
    assert {name for name, rule in RULES.items() if rule.of_choice} == {"list_order", "start", "sticky", "next"}


def test_a_scan_that_connects_in_vain_beside_the_connection_in_use_is_no_move() -> None:
    story = Story("all_gone", for_s=195.0).ask("ns-1", 0.05)
    for at_s in (30.0, 60.0, 90.0, 120.0, 150.0):
        story.behave("ns-2", REFUSES, 1.0).dial("ns-2", at_s - 0.1, opens=False).ask("ns-1", at_s)
    quiet = [polls(Story("quiet", for_s=100.0, number=n), "ns-1", 0.05, 30.0, 60.0, 90.0).watched() for n in range(9)]
    assert found("sticky", *quiet, story.watched()).value == "kept"


def test_connects_of_a_pool_are_no_choices() -> None:
    """Python's pyrocketmq has four connections to each NameServer, and each connects again by itself."""
    story = Story("refused", for_s=110.0)
    for front in ("ns-0", "ns-1", "ns-2") * 4:
        story.dial(front, 0.01)
    story.ask("ns-0", 0.08)
    story.all_refuse(5.0)
    for at in range(12):
        story.dial(f"ns-{at % 2}", 10.0 + at, opens=False)
    pool = story.watched()
    assert found("next", pool).value is None
    assert found("leaves_on_refused", pool).why == "the client tried no NameServer then"
    all_gone = replace(pool, situation="all_gone")
    assert found("tries_refused", all_gone).why == (
        "it has a pool of connections, and which connects are of a look-up is not seen"
    )

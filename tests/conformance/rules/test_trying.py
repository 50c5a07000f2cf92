"""Tries of a call, time-outs, phase lock and failover, on observations written by hand."""

from dataclasses import replace

from nemesrv.chaos.fronts.behaviour import BLACK_HOLE, CLOSES_ONCE, DROPS_SYNS, PASSES, REFUSES, SILENT
from nemesrv.chaos.oracle.choosing.labels import EVERY, MOVES, RANDOM, Label
from nemesrv.chaos.verdict import Validity
from nemesrv.conformance.rules import RULES, LeftOut
from nemesrv.conformance.situations import Watched
from tests.conformance.rules.test_choosing import found, verdict
from tests.conformance.story import Story

NEVER_ANSWERED = "none of 3 calls got an answer, as in Java 4.9.1 to 4.9.8 (apache/rocketmq#7056)"


def all_gone(dials: int, *, topics: int = 1, unseen: str | None = None) -> Watched:
    story = Story("all_gone", name_servers=4, for_s=195.0, unseen=unseen)
    for topic in range(topics):
        story.ask("ns-0", 0.02 + topic / 100, topic=f"topic-{topic}")
    story.all_refuse(5.0)
    for at_s in (30.0, 60.0):
        for number in range(dials):
            story.dial(f"ns-{(number + 1) % 4}", at_s + number / 500, opens=False)
    return story.watched()


def test_the_dials_of_a_poll_while_all_refuse_are_the_tries_of_a_call() -> None:
    assert verdict("tries_refused", "all", all_gone(4)) is Validity.VALID
    assert verdict("tries_refused", "all", all_gone(8, topics=2)) is Validity.VALID
    assert verdict("tries_refused", "all", all_gone(1)) is Validity.INVALID
    assert verdict("tries_refused", "one", all_gone(1)) is Validity.VALID
    assert verdict("tries_refused", "one", all_gone(2)) is Validity.INVALID
    assert found("tries_refused", all_gone(5)).value == "some"
    assert found("tries_refused", all_gone(0)).value is None
    assert found("tries_refused", all_gone(4, unseen="no seccomp here")).why == "no seccomp here"


def test_who_meets_the_lost_one_on_its_old_connection_dials_only_the_others() -> None:
    def tries(*fronts: str, again: bool = False) -> Watched:
        story = Story("all_gone", name_servers=4, for_s=195.0).ask("ns-0", 0.02).all_refuse(5.0)
        for round_s in (30.0, 60.0) if again else (30.0,):
            for number, front in enumerate(fronts):
                story.dial(front, round_s + number / 500, opens=False)
        return story.watched()

    assert found("tries_refused", tries("ns-1", "ns-2", "ns-3")).value == "all"
    assert found("tries_refused", tries("ns-1", "ns-2")).value == "some"
    assert found("tries_refused", tries("ns-0", "ns-1", "ns-2")).value == "some"
    assert found("tries_refused", tries("ns-1", "ns-2", "ns-3", again=True)).value == "some"


def silent(*, waits_s: float = 3.0, closes: bool = True, goes_on: bool = False) -> Watched:
    story = Story("silent", for_s=100.0).ask("ns-1", 0.05).behave("ns-1", SILENT, 5.0)
    story.ask("ns-1", 30.0, code=None, closes_after_s=waits_s if closes else None)
    if goes_on:
        story.ask("ns-2", 30.005 + waits_s)
    return story.ask("ns-2", 60.0).ask("ns-2", 90.0).watched()


def test_a_look_up_without_an_answer_ends_its_call_or_goes_on() -> None:
    assert verdict("tries_silent", "one", silent()) is Validity.VALID
    assert verdict("tries_silent", "one", silent(goes_on=True)) is Validity.INVALID
    assert verdict("tries_silent", "all", silent(waits_s=6.0, closes=False, goes_on=True)) is Validity.VALID
    assert verdict("tries_silent", "one", Story("silent").ask("ns-1", 0.05).watched()) is Validity.UNKNOWN


def test_whether_a_look_up_goes_on_after_a_long_time_out_is_not_known() -> None:
    def goes_on(after_s: float, *polls_s: float) -> Watched:
        story = Story("silent", for_s=130.0).ask("ns-0", 0.05).behave("ns-0", SILENT, 5.0)
        story.ask("ns-0", 10.0, code=None)
        for at_s in (10.0 + after_s, *polls_s):
            story.ask("ns-1", at_s)
        return story.watched()

    why = "35 s after a look-up without an answer it asked another NameServer, and whether that is the same look-up"
    for rule in ("tries_silent", "answer_timeout_s"):
        measured = found(rule, goes_on(35.0))
        assert measured.value is None
        assert measured.why.startswith(why)
    assert found("tries_silent", goes_on(3.0)).value == "all"
    assert found("tries_silent", goes_on(33.0, 73.0, 103.0)).value == "one", "its polls have this period"


def test_the_answer_time_out_ends_with_the_close_or_the_next_try() -> None:
    assert verdict("answer_timeout_s", 3.0, silent()) is Validity.VALID
    assert found("answer_timeout_s", silent(waits_s=5.0)).value == 5.0
    assert verdict("answer_timeout_s", 3.0, silent(waits_s=3.2)) is Validity.INVALID
    assert verdict("answer_timeout_s", 6.0, silent(waits_s=6.0, closes=False, goes_on=True)) is Validity.VALID
    kept = RULES["answer_timeout_s"].measure([silent(closes=False)])
    assert kept == LeftOut(why="the client neither closes a connection without an answer nor goes on elsewhere")
    by_a_scan = RULES["answer_timeout_s"].measure([silent(closes=False), silent(waits_s=2.8)])
    why = "1 of 2 look-ups without an answer were seen to end: the connection of the others stayed open"
    assert by_a_scan == LeftOut(why=why)


def first_call(waits_s: float) -> Watched:
    story = Story("one_dead", at_work_s=20.0).behave("ns-1", SILENT, 0.0)
    return story.ask("ns-1", 18.0, code=None, closes_after_s=waits_s).ask("ns-2", 20.0).watched()


def test_of_a_first_call_whose_beginning_nobody_sees_too_short_a_time_is_held_against_nobody() -> None:
    assert verdict("answer_timeout_s", 3.0, first_call(1.1)) is Validity.UNKNOWN
    assert verdict("answer_timeout_s", 3.0, first_call(3.0)) is Validity.VALID
    assert found("answer_timeout_s", first_call(1.1), silent(waits_s=5.0)).value == 5.0


def test_a_silent_connection_is_closed_or_kept() -> None:
    assert verdict("closes_on_silence", "yes", silent()) is Validity.VALID
    assert verdict("closes_on_silence", "yes", silent(closes=False)) is Validity.INVALID
    assert verdict("closes_on_silence", "yes", Story("silent").watched()) is Validity.UNKNOWN


def test_a_connection_that_ends_as_it_is_asked_was_not_closed_for_the_silence() -> None:
    assert found("closes_on_silence", silent(waits_s=0.0002)).value is None
    idle = silent(closes=False), silent(waits_s=0.0002)
    assert RULES["closes_on_silence"].measure(idle).value == "no"


def test_a_connection_that_outlived_a_look_up_without_an_answer_does_not_end_for_want_of_another() -> None:
    """Go's: 120 s after its connect, however long before that it was last asked."""
    story = Story("one_dead", for_s=130.0).behave("ns-1", SILENT, 0.0).ask("ns-1", 0.05, code=None)
    aged = story.ask("ns-2", 30.0).ask("ns-1", 115.0, code=None, closes_after_s=5.05).watched()
    assert found("closes_on_silence", aged).value == "no"
    assert RULES["answer_timeout_s"].measure([aged]) == LeftOut(
        why="the client neither closes a connection without an answer nor goes on elsewhere"
    )


def dropped(*, waits_s: float = 3.0, asks: bool = True, seen: bool = False, goes_on: bool = True) -> Watched:
    """The other one closes after 5 s; the poll dials the one that drops SYNs, and goes on or not."""
    story = Story("one_unreachable", name_servers=2, for_s=62.0).behave("ns-0", DROPS_SYNS, 0.0)
    story.ask("ns-1", 0.05).behave("ns-1", CLOSES_ONCE, 5.0)
    story.dial("ns-0", 30.0, opens=False, gave_up_after_s=waits_s if seen else None)
    after_s = 30.001 + waits_s
    if goes_on and asks:
        story.ask("ns-1", after_s)
    elif goes_on:
        story.dial("ns-1", after_s).close("ns-1", after_s + 0.003)
    return story.watched()


def test_the_connect_time_out_ends_when_the_socket_goes_or_the_call_goes_on() -> None:
    assert verdict("connect_timeout_s", 3.0, dropped()) is Validity.VALID
    assert verdict("connect_timeout_s", 3.0, dropped(seen=True, goes_on=False)) is Validity.VALID
    assert verdict("connect_timeout_s", 3.0, dropped(waits_s=4.0)) is Validity.INVALID
    assert verdict("connect_timeout_s", 3.0, dropped(goes_on=False)) is Validity.UNKNOWN
    assert verdict("connect_timeout_s", 3.0, Story("one_unreachable", name_servers=2).watched()) is Validity.UNKNOWN


def test_what_a_connect_took_is_the_answer_s_or_not() -> None:
    assert verdict("timeouts_add", "added", dropped()) is Validity.VALID
    assert verdict("timeouts_add", "one deadline", dropped(asks=False)) is Validity.VALID
    assert verdict("timeouts_add", "one deadline", dropped()) is Validity.INVALID
    assert isinstance(RULES["timeouts_add"].measure([dropped(seen=True, goes_on=False)]), LeftOut)
    nothing = Story("one_unreachable", name_servers=2).watched()
    assert verdict("timeouts_add", "added", nothing) is Validity.UNKNOWN


def test_who_goes_on_with_a_connection_that_it_has_had_time_for_it() -> None:
    story = Story("one_unreachable", name_servers=2, for_s=62.0).behave("ns-0", DROPS_SYNS, 0.0).ask("ns-1", 0.05)
    watched = story.dial("ns-0", 30.0, opens=False, gave_up_after_s=6.0).ask("ns-1", 36.01).watched()
    assert verdict("timeouts_add", "added", watched) is Validity.VALID


def test_before_it_is_at_work_a_look_up_after_a_dropped_dial_may_be_another_thread_s() -> None:
    story = Story("one_unreachable", name_servers=2, at_work_s=3.2).behave("ns-0", DROPS_SYNS, 0.0)
    early = story.dial("ns-0", 0.1, opens=False, gave_up_after_s=3.0).ask("ns-1", 3.101).watched()
    assert isinstance(RULES["timeouts_add"].measure([early]), LeftOut)
    assert found("connect_timeout_s", early).value == 3.0


def test_the_look_up_of_the_default_topic_after_a_dropped_dial_is_the_next_call() -> None:
    story = Story("one_unreachable", name_servers=2, at_work_s=None).behave("ns-0", DROPS_SYNS, 0.0).ask("ns-1", 0.05)
    story.behave("ns-1", CLOSES_ONCE, 5.0).dial("ns-0", 5.1, opens=False, gave_up_after_s=3.0)
    after = story.ask("ns-1", 8.101, topic="TBW102").watched()
    assert isinstance(RULES["timeouts_add"].measure([after]), LeftOut)


def one_dead(*, locked: bool, polls: int = 4) -> Watched:
    story = Story("one_dead", name_servers=2, for_s=130.0).behave("ns-0", SILENT, 0.0)
    story.ask("ns-0", 0.01, code=None, closes_after_s=3.0).ask("ns-1", 3.02)
    for poll in range(1, polls + 1):
        at_s = 3.0 + 30 * poll
        if locked:
            story.ask("ns-0", at_s, code=None, closes_after_s=3.0)
        story.ask("ns-1", at_s + 3.01)
    return story.watched()


def test_who_meets_the_dead_one_of_two_at_every_look_up_is_locked() -> None:
    assert verdict("phase_lock", "none", one_dead(locked=False)) is Validity.VALID
    assert verdict("phase_lock", "1/(N-1)", one_dead(locked=True)) is Validity.VALID
    assert verdict("phase_lock", "none", one_dead(locked=True)) is Validity.INVALID
    assert found("phase_lock", one_dead(locked=True)).why == "4 of 4 look-ups with 2 NameServers met the dead one first"
    assert verdict("phase_lock", "none", one_dead(locked=False, polls=0)) is Validity.UNKNOWN
    assert verdict("phase_lock", "none", Story("one_dead", name_servers=2).watched()) is Validity.UNKNOWN
    never_left = Story("silent").ask("ns-1", 0.05).behave("ns-1", SILENT, 5.0).ask("ns-1", 30.0, code=None).watched()
    lucky = replace(
        Story("one_dead", name_servers=2).ask("ns-1", 0.05).watched(),
        label=Label(word=MOVES, steps=40, moved=5, odds={MOVES: 1.0}),
    )
    assert found("phase_lock", lucky, never_left).value == "none"


def test_how_long_a_client_stays_at_the_dead_one_is_no_phase_lock() -> None:
    story = Story("silent", for_s=130.0).ask("ns-1", 0.05).behave("ns-1", SILENT, 5.0).ask("ns-1", 30.0, code=None)
    scanned = story.ask("ns-1", 60.0, code=None, closes_after_s=3.0).ask("ns-2", 90.0).ask("ns-2", 120.0).watched()
    assert found("phase_lock", scanned).why == "0 of 2 look-ups with 3 NameServers met the dead one first"


def unreachable(calls: int, *, answered_after: int | None = None, at_once: bool = False) -> Watched:
    """Sends that ask at two NameServers without a route; ns-0 drops SYNs from 5 s on.

    apache/rocketmq#7056: the good one is connected to when the call's time is over, and closed again.
    """
    story = Story("one_unreachable", name_servers=2, for_s=29.0, at_work_s=None).ask("ns-1", 0.05, code=17)
    story.behave("ns-0", DROPS_SYNS, 5.0).behave("ns-1", REFUSES, 5.0).behave("ns-1", PASSES, 6.0)
    at_s = 5.2
    for call in range(calls):
        story.dial("ns-0", at_s, opens=False, gave_up_after_s=3.0)
        if answered_after == call + 1:
            story.ask("ns-1", at_s + (3.001 if at_once else 3.2), code=17)
            break
        story.dial("ns-1", at_s + 3.001).close("ns-1", at_s + 3.003)
        at_s += 3.2
    return story.watched()


def test_the_lock_of_7056_never_recovers() -> None:
    assert verdict("failover", "recovers", unreachable(1, answered_after=1)) is Validity.VALID
    assert verdict("failover", "recovers", unreachable(3, answered_after=3)) is Validity.VALID
    assert verdict("failover", "recovers", unreachable(3)) is Validity.INVALID
    assert found("failover", unreachable(7)).why == NEVER_ANSWERED
    assert verdict("failover", "recovers", unreachable(5, answered_after=4)) is Validity.INVALID, "by luck, later"
    assert verdict("failover", "recovers", unreachable(2)) is Validity.UNKNOWN
    assert found("failover", unreachable(2)).why == "only 2 of its look-ups met the NameServer that drops SYNs"
    assert found("failover", unreachable(0)).why == "it never dialled the NameServer that drops SYNs"


def test_connects_of_several_threads_at_one_time_are_one_failure() -> None:
    def pool(rounds: int) -> Watched:
        story = Story("one_unreachable", name_servers=2, for_s=29.0, at_work_s=None).ask("ns-1", 0.05, code=17)
        story.behave("ns-0", DROPS_SYNS, 5.0).behave("ns-1", REFUSES, 5.0).behave("ns-1", PASSES, 6.0)
        for at in range(4 * rounds):
            story.dial("ns-0", 5.3 + 4 * (at // 4) + at / 500, opens=False, gave_up_after_s=3.0)
        return story.watched()

    assert found("failover", pool(1)).why == "only 1 of its look-ups met the NameServer that drops SYNs"
    assert verdict("failover", "recovers", pool(3)) is Validity.INVALID


def test_a_client_that_draws_for_each_call_may_miss_the_living_of_two_three_times() -> None:
    def drawn(calls: int, answered_after: int | None = None) -> Watched:
        label = Label(word=RANDOM, steps=40, moved=20, odds={RANDOM: 1.0, EVERY: 0.0})
        return replace(unreachable(calls, answered_after=answered_after), label=label)

    assert verdict("failover", "recovers", drawn(3)) is Validity.UNKNOWN
    assert "who draws for each looks so with p = 0.12" in found("failover", drawn(3)).why
    assert verdict("failover", "recovers", drawn(5, answered_after=5)) is Validity.VALID


def dialled_once(late: int, *, answered: bool = False) -> Watched:
    """As C++ 3.0.0: the dial to ns-0 stays under way, and each call waits for it before it turns to ns-1."""
    story = Story("one_unreachable", name_servers=2, for_s=29.0, at_work_s=None).ask("ns-1", 0.05, code=17)
    story.behave("ns-0", DROPS_SYNS, 5.0).behave("ns-1", REFUSES, 5.0).behave("ns-1", PASSES, 6.0)
    story.dial("ns-0", 5.3, opens=False, gave_up_after_s=3.0)
    for call in range(late):
        story.dial("ns-1", 8.301 + 3.2 * call).close("ns-1", 8.302 + 3.2 * call)
    if answered:
        story.ask("ns-1", 8.301 + 3.2 * late, code=17)
    return story.watched()


def test_calls_that_wait_for_the_first_dial_are_locked_as_well() -> None:
    assert verdict("failover", "recovers", dialled_once(7)) is Validity.INVALID
    assert found("failover", dialled_once(7)).why == NEVER_ANSWERED
    assert verdict("failover", "recovers", dialled_once(7, answered=True)) is Validity.INVALID, "by luck, later"
    assert verdict("failover", "recovers", dialled_once(1, answered=True)) is Validity.VALID
    assert verdict("failover", "recovers", dialled_once(2)) is Validity.UNKNOWN


def test_of_sends_that_ask_one_after_the_other_each_has_its_own_time() -> None:
    assert verdict("timeouts_add", "one deadline", unreachable(3)) is Validity.VALID
    assert verdict("timeouts_add", "added", unreachable(1, answered_after=1, at_once=True)) is Validity.VALID
    assert isinstance(RULES["timeouts_add"].measure([unreachable(1, answered_after=1)]), LeftOut), "the next send's"


def test_a_black_hole_is_silent_first_and_drops_syns_then() -> None:
    story = Story("black_hole").ask("ns-1", 0.05).behave("ns-1", BLACK_HOLE, 5.0)
    story.ask("ns-1", 30.0, code=None, closes_after_s=3.0).dial("ns-1", 40.0, opens=False, gave_up_after_s=3.0)
    watched = story.ask("ns-2", 60.0).watched()
    assert verdict("answer_timeout_s", 3.0, watched) is Validity.VALID
    assert verdict("connect_timeout_s", 3.0, watched) is Validity.VALID

"""A client's look-ups from outside: which calls, choices and channels its connects and bytes are told as."""

from collections.abc import Iterable
from typing import Any

import pytest

from nemesrv.chaos.fronts.behaviour import PASSES, REFUSES
from nemesrv.chaos.fronts.look_ups import LookUps, Rules
from nemesrv.chaos.fronts.observed import Answered, Asked, Behaved, By, Closed, Dialled, Observation, Opened
from nemesrv.remoting.node.network import Address

NS = {f"ns-{number}": f"10.0.1.{number}:9876" for number in range(3)}
IN_ORDER = Rules(shuffled=False)
PEER = Address("10.0.3.1", 40_000)

Row = tuple[float, str, dict[str, Any]]


def dialled(at_ms: float, ns: int) -> Dialled:
    return Dialled(at_ms=at_ms, address=Address.parse(NS[f"ns-{ns}"]), front=f"ns-{ns}", process=1)


def opened(at_ms: float, ns: int, connection: int = 0) -> Opened:
    return Opened(at_ms=at_ms, front=f"ns-{ns}", connection=connection or ns, peer=PEER)


def asked(at_ms: float, ns: int, connection: int = 0, topic: str = "orders", oneway: bool = False) -> Asked:
    return Asked(at_ms, f"ns-{ns}", connection or ns, int(at_ms), 105, {"topic": topic}, oneway)


def answered(at_ms: float, ns: int, to: float, connection: int = 0, code: int = 0) -> Answered:
    return Answered(at_ms, f"ns-{ns}", connection or ns, int(to), code)


def closed(at_ms: float, ns: int, by: By = By.CLIENT, connection: int = 0) -> Closed:
    return Closed(at_ms=at_ms, front=f"ns-{ns}", connection=connection or ns, by=by)


def lost(at_ms: float, *ns: int) -> list[Observation]:
    return [Behaved(at_ms=at_ms, front=f"ns-{number}", behaviour=REFUSES) for number in ns]


def back(at_ms: float, *ns: int) -> list[Observation]:
    return [Behaved(at_ms=at_ms, front=f"ns-{number}", behaviour=PASSES) for number in ns]


def rows(*seen: Observation, rules: Rules = IN_ORDER, dials_are_seen: bool = True, end_ms: float = 60_000) -> list[Row]:
    found: list[Row] = []
    of = LookUps(lambda at_ms, event, **fields: found.append((at_ms, event, fields)), rules, NS, seen=dials_are_seen)
    for one in seen:
        of.passed(one.at_ms)
        of.saw(one)
    of.end(end_ms)
    return found


def calls(found: Iterable[Row]) -> list[tuple[Any, ...]]:
    """Of each call its end, how it ended, and its tries."""
    names = {address: name for name, address in NS.items()}
    return [
        (at_ms, fields["type"], *(f"{names[one['name_server']]} {one['outcome']}" for one in fields["value"]["tried"]))
        for at_ms, event, fields in found
        if event == "name_server_call"
    ]


def choices(found: Iterable[Row]) -> list[tuple[float, str, str]]:
    return [
        (at_ms, fields["name_server"], fields["value"]["reason"])
        for at_ms, event, fields in found
        if event == "name_server_chosen"
    ]


ASKED_WELL = [opened(100, 0, 9), asked(101, 0, 9), answered(105, 0, 101, 9)]
"""A call of ns-0 on connection 9, to begin with."""


def test_an_answer_ends_the_call_with_its_code_and_how_long_it_took() -> None:
    found = rows(opened(100, 0), asked(101, 0), answered(109, 0, 101, code=17))
    [(at_ms, fields)] = [(at_ms, fields) for at_ms, event, fields in found if event == "name_server_call"]
    assert (at_ms, fields["type"], fields["code"], fields["duration_ms"]) == (109, "fail", 17, 9)
    assert calls(rows(*ASKED_WELL)) == [(105, "ok", "ns-0 answered")]
    assert calls(rows(opened(100, 0), asked(101, 0, oneway=True))) == []


def test_a_call_without_an_answer_is_open_until_its_channel_or_its_program_ends() -> None:
    assert calls(rows(opened(100, 0), asked(101, 0), closed(3_101, 0))) == [(3_101, "info", "ns-0 no_answer")]
    assert calls(rows(opened(100, 0), asked(101, 0), end_ms=9_000)) == [(9_000, "info", "ns-0 no_answer")]


def test_who_may_go_on_after_a_failed_connect_goes_round_once_in_one_call() -> None:
    dials = [dialled(at_ms, ns) for at_ms, ns in ((100, 0), (200, 1), (300, 2), (400, 0))]
    once = ("ns-0 connect_failed", "ns-1 connect_failed", "ns-2 connect_failed")
    assert calls(rows(*lost(0, 0, 1, 2), *dials)) == [(300, "fail", *once), (400, "fail", "ns-0 connect_failed")]


@pytest.mark.parametrize(("later_ms", "tries"), [(900, [2]), (1_100, [1, 1])])
def test_a_try_within_a_second_of_a_failed_one_is_of_the_same_call(later_ms: float, tries: list[int]) -> None:
    found = calls(rows(*lost(0, 0), dialled(100, 0), opened(100 + later_ms, 1), asked(101 + later_ms, 1)))
    assert [len(call) - 2 for call in found] == tries


def test_a_call_that_nobody_goes_on_with_has_failed_when_its_connect_had() -> None:
    found = rows(*lost(0, 0), dialled(100, 0), *back(5_000, 0))
    assert calls(found) == [(100, "fail", "ns-0 connect_failed")]
    assert found[-1][:2] == (100, "name_server_call"), "and not when the program ends"


def test_another_topic_is_another_call() -> None:
    both = Rules(shuffled=False, retries=frozenset({"no_answer"}))
    ends = [opened(100, 0), asked(101, 0), closed(3_101, 0), opened(3_200, 1)]
    assert len(calls(rows(*ends, asked(3_201, 1), rules=both))) == 1
    assert len(calls(rows(*ends, asked(3_201, 1, topic="stock"), rules=both))) == 2


def test_the_same_request_elsewhere_after_a_second_gives_the_first_up() -> None:
    first = [opened(100, 0), asked(101, 0), opened(3_000, 1)]
    assert calls(rows(*first, asked(3_001, 1)))[0] == (3_001, "info", "ns-0 no_answer")
    assert calls(rows(*first, asked(3_001, 1, topic="stock")))[0][0] == 60_000


def test_a_connection_on_which_nothing_is_asked_is_a_probe_or_a_try_that_failed_or_came_too_late() -> None:
    assert rows(opened(100, 0), closed(5_000, 0)) == []
    assert calls(rows(opened(100, 0), closed(200, 0, By.SERVER))) == [(200, "fail", "ns-0 connect_failed")]
    assert rows(opened(100, 0), closed(50_000, 0, By.SERVER)) == [], "an idle one, of a pool"
    failed = [*lost(0, 0), dialled(100, 0)]
    late = calls(rows(*failed, opened(150, 1), closed(900, 1)))
    assert late == [(900, "fail", "ns-0 connect_failed", "ns-1 not_sent")]
    assert calls(rows(*failed, opened(150, 1), closed(1_900, 1))) == [(100, "fail", "ns-0 connect_failed")]


def test_a_look_up_on_a_connection_that_was_idle_begins_with_its_request() -> None:
    found = rows(opened(100, 0), asked(50_000, 0), answered(50_002, 0, 50_000))
    assert [fields["duration_ms"] for _, event, fields in found if event == "name_server_call"] == [2]
    assert choices(found) == [(50_000, NS["ns-0"], "first")]


def test_who_goes_to_another_says_why_it_left_the_one_before() -> None:
    first, second = NS["ns-0"], NS["ns-1"]
    another = [opened(4_000, 1), asked(4_001, 1)]
    assert choices(rows(*ASKED_WELL, *another)) == [(100, first, "first"), (4_000, second, "not_active")]
    unanswered = [asked(200, 0, 9), closed(3_200, 0, connection=9)]
    assert choices(rows(*ASKED_WELL, *unanswered, *another))[1] == (4_000, second, "connect_failed")
    answers_again = [opened(3_300, 0, 8), asked(3_301, 0, 8), answered(3_302, 0, 3_301, 8)]
    assert choices(rows(*ASKED_WELL, *unanswered, *answers_again, *another))[-1] == (4_000, second, "not_active")


def test_a_new_connection_to_the_chosen_one_is_a_choice_and_a_request_on_the_old_one_none() -> None:
    assert len(choices(rows(*ASKED_WELL, asked(200, 0, 9)))) == 1
    assert len(choices(rows(*ASKED_WELL, opened(4_000, 0, 8), asked(4_001, 0, 8)))) == 2
    every = Rules(shuffled=False, every_request=True)
    assert len(choices(rows(*ASKED_WELL, asked(200, 0, 9), rules=every))) == 2


def test_a_channel_was_left_when_the_next_name_server_was_dialled_and_no_sooner() -> None:
    def left_ms(*turned: Observation) -> float:
        found = rows(opened(100, 0), *turned, closed(4_000, 0))
        return next(at_ms for at_ms, event, fields in found if event == "channel" and fields["f"] == "close")

    assert left_ms(asked(101, 0), dialled(3_101, 1)) == 3_101
    assert left_ms(opened(90, 1), asked(101, 0)) == 4_000, "it was connected before"
    assert left_ms(asked(101, 0), opened(3_101, 0, 8)) == 4_000, "to the same one"


GONE = [*ASKED_WELL, closed(150, 0, By.SERVER, 9)]


def skipped(*seen: Observation, rules: Rules = IN_ORDER) -> list[tuple[Any, ...]]:
    """The calls of a program whose connects are not seen, that loses ns-0 and then asks ns-2."""
    return calls(rows(*GONE, *seen, opened(20_000, 2), asked(20_001, 2), rules=rules, dials_are_seen=False))[1:]


def test_where_connects_are_not_seen_whoever_was_lost_between_two_entries_was_tried() -> None:
    through_ns_1 = [(60_000, "info", "ns-1 connect_failed", "ns-2 no_answer")]
    straight = [(60_000, "info", "ns-2 no_answer")]
    assert skipped() == straight
    assert skipped(*lost(0, 1)) == through_ns_1
    assert skipped(*lost(0, 1), *back(19_000, 1)) == through_ns_1, "a connect may take 6 s"
    assert skipped(*lost(0, 1), *back(9_000, 1)) == straight
    assert skipped(*lost(0, 1), rules=Rules(shuffled=True)) == straight, "what is next on its list nobody knows"
    alone = Rules(shuffled=False, retries=frozenset())
    assert skipped(*lost(0, 1), rules=alone) == straight, "that try was a call of its own"


def test_who_lost_all_may_have_gone_round_to_any_entry() -> None:
    all_lost = [*lost(200, 0, 1, 2), *back(5_000, 1), *back(15_000, 2)]
    assert skipped(*all_lost) == [(60_000, "info", "ns-1 connect_failed", "ns-2 no_answer")]


def test_the_list_of_who_shuffles_is_told_as_far_as_it_is_known() -> None:
    found = rows(*ASKED_WELL, opened(4_000, 2), asked(4_001, 2), rules=Rules(shuffled=True))
    lists = [fields["value"] for _, event, fields in found if event == "name_server_list"]
    assert lists == [[NS[name] for name in order] for order in (("ns-0", "ns-1", "ns-2"), ("ns-0", "ns-2", "ns-1"))]
    in_order = rows(*ASKED_WELL, opened(4_000, 2), asked(4_001, 2))
    assert len([event for _, event, _ in in_order if event == "name_server_list"]) == 1

"""A program with several clients in it: each is told apart, and judged by itself."""

from nemesrv.chaos.fronts.behaviour import DROPS_SYNS, REFUSES
from nemesrv.chaos.verdict import Validity
from nemesrv.conformance.instances import ONLY, clients_of
from nemesrv.conformance.rule_verdicts import RuleVerdict, judge_all, profile_of
from nemesrv.conformance.rules import LeftOut
from nemesrv.conformance.situations import Watched
from tests.conformance.story import Story, beats, together


def client(name: str, front: str, topic: str, *more: tuple[str, float], first_s: float = 0.05) -> Story:
    """One that polls its topic's route at one NameServer, and at others as `more` says."""
    story = beats(Story("quiet", for_s=100.0), name, 1.0, 31.0, 61.0)
    for at_s in (first_s, 30.0 + first_s, 60.0 + first_s, 90.0 + first_s):
        there = next((other for other, since_s in more if abs(since_s - at_s) < 1), front)
        story.ask(there, at_s, topic=topic)
    return story


def sticky(*watched: Watched) -> RuleVerdict:
    (found,) = judge_all(watched, profile_of("java-4.9"), ["sticky"])
    return found


def test_three_clients_that_each_keep_their_own_name_server_are_three_that_keep_it() -> None:
    program = together(
        client("a", "ns-0", "orders"),
        client("b", "ns-1", "trace", first_s=0.2),
        client("c", "ns-1", "bills", first_s=3),
    )
    found = sticky(program)
    assert found.verdict is not Validity.INVALID
    assert [*clients_of([program])] == ["orders", "trace", "bills"]
    assert [*found.clients] == ["orders", "trace", "bills"]


def test_the_one_that_moves_is_found_among_those_that_do_not() -> None:
    moves = client("b", "ns-1", "trace", ("ns-2", 60.2), first_s=0.2)
    found = sticky(together(client("a", "ns-0", "orders"), moves, client("c", "ns-1", "bills", first_s=3)))
    assert found.verdict is Validity.INVALID
    wrong = [name for name, one in found.clients.items() if one.verdict is Validity.INVALID]
    assert wrong == ["trace"]


def test_two_of_the_same_topic_that_keep_theirs_are_two_that_keep_it() -> None:
    program = together(client("a", "ns-0", "orders"), client("b", "ns-1", "orders", first_s=3))
    assert len(clients_of([program])[ONLY]) == 2
    assert sticky(program).verdict is not Validity.INVALID


def test_a_move_that_may_be_of_either_of_two_is_unknown_with_the_reason() -> None:
    program = together(client("a", "ns-0", "orders"), client("b", "ns-0", "orders", ("ns-2", 63.0), first_s=3))
    found = sticky(program)
    assert found.verdict is Validity.UNKNOWN
    assert "2 clients of one process ask for the same topics" in found.to_json()["why"]


def test_of_one_client_nothing_is_taken_apart() -> None:
    alone = client("a", "ns-0", "orders", ("ns-1", 30.0)).watched()
    assert clients_of([alone]) == {ONLY: [alone]}
    assert sticky(alone).verdict is Validity.INVALID


def test_a_client_whose_name_server_was_not_the_one_that_fails_says_nothing_of_failures() -> None:
    def leaves(name: str, front: str, topic: str, at_s: float) -> Story:
        story = beats(Story("refused"), name, 1.0).ask(front, 0.05, topic=topic)
        for at in (at_s, at_s + 30):
            story.ask("ns-1", at, topic=topic)
        return story.behave("ns-0", REFUSES, 5.0)

    program = together(leaves("a", "ns-0", "orders", 30.0), leaves("b", "ns-1", "trace", 31.0))
    assert len([one for of in clients_of([program]).values() for one in of]) == 1


def test_a_client_that_was_not_seen_where_every_client_is_makes_the_rule_unknown() -> None:
    def start(number: int) -> Story:
        front = f"ns-{number % 3}"
        return beats(Story("starts", for_s=3.0, number=number), "a", 1.0).ask(front, 0.05).ask(front, 0.3)

    lasting = together(client("a", "ns-0", "orders"), client("b", "ns-1", "trace", first_s=3))
    starts = [start(number).watched() for number in range(60)]
    (found,) = judge_all([lasting, *starts], profile_of("java-5.3"), ["start"])
    assert {name: one.verdict for name, one in found.clients.items()} == {
        "orders": Validity.VALID,
        "trace": Validity.UNKNOWN,
    }
    assert (found.verdict, found.measured.why) == (Validity.UNKNOWN, "too little was seen of this client in starts")


def test_a_rule_that_one_client_has_no_part_for_is_left_out_though_another_never_met_the_situation() -> None:
    def one(name: str, front: str, topic: str) -> Story:
        story = beats(Story("one_unreachable", name_servers=2, for_s=62.0), name, 1.0).ask(front, 0.05, topic=topic)
        return story.behave("ns-0", DROPS_SYNS, 5.0).ask(front, 31.0, topic=topic)

    met = one("a", "ns-1", "orders").close("ns-1", 32.0).dial("ns-0", 33.0, opens=False, gave_up_after_s=3.0)
    program = together(met, one("b", "ns-1", "trace"))
    (found,) = judge_all([program], None, ["timeouts_add"])
    assert {name: each.measured.why for name, each in found.clients.items()} == {
        "orders": "no call went on after a connect that took its whole time",
        "trace": "no dial met dropped SYNs",
    }
    assert isinstance(found.measured, LeftOut)

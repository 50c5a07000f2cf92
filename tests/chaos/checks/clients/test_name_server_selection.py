"""name_server_selection over hand-written histories."""

from itertools import permutations
from typing import Any

import pytest

from nemesrv.chaos.checks.clients.name_server_calls import kept_between_requests, selections
from nemesrv.chaos.checks.clients.name_server_selection import UNIFORM, judge
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import HistoryBuilder, address_of, cluster, judging, valid

NS = [address_of(f"ns-{i}") for i in range(3)]
STICKY = {"sticky": 1}
JAVA = {"client_profile": "java-4.9", "dialler": "java"}
ORDERS = [list(order) for order in permutations(NS)]

check = judging(judge)


def choice(
    builder: HistoryBuilder, node: str, listed: list[str], index: int, old: str | None = None, **fields: object
) -> HistoryBuilder:
    reason = "first" if old is None else "not_active"
    value = {"old": old, "index": index, "reason": reason}
    return builder.event(node, "name_server_chosen", name_server=listed[index], value=value, **fields)


def starts(counts: tuple[int, int, int] = (10, 10, 10), profile: str = "4.9", **workload: object) -> HistoryBuilder:
    """The prober's starts, each with its own list; `counts` of first choices per NameServer."""
    builder = cluster(name_servers=3, clients=("producer-0", "prober"), workload=workload, profile=profile)
    number = 0
    for index, count in enumerate(counts):
        for _ in range(count):
            op_id, listed = f"start-{number}", ORDERS[number % 6]
            builder.at(2 + number / 100).event("prober", "name_server_list", op_id=op_id, value=listed)
            choice(builder, "prober", listed, listed.index(NS[index]), op_id=op_id)
            number += 1
    return builder


@pytest.mark.parametrize(("starts_", "orders", "wrong"), [(60, 6, 0), (60, 3, 1), (60, 1, 1), (10, 1, 1), (7, 1, 0)])
def test_every_order_of_the_list_is_drawn_by_somebody(starts_: int, orders: int, wrong: int) -> None:
    builder = cluster(name_servers=3, clients=("prober",))
    for number in range(starts_):
        op_id, listed = f"start-{number}", ORDERS[number % orders]
        builder.at(2 + number / 100).event("prober", "name_server_list", op_id=op_id, value=listed)
        choice(builder, "prober", listed, listed.index(NS[number % 3]), op_id=op_id)
    found = check(builder)
    assert sum(example.more["kind"] == "shuffled evenly" for example in found.examples) == wrong


def test_of_apaches_clients_only_the_order_in_which_they_chose_is_known_so_nothing_is_said_of_their_lists() -> None:
    names = [f"producer-{number}" for number in range(60)]
    of_apaches = cluster(name_servers=3, clients=names).made_by("apache-5.3.3", *names)
    for number, name in enumerate(names):
        listed = sorted(NS, key=lambda address: address != NS[number % 3])  # its first choice, and the others as given
        of_apaches.at(2 + number / 100).event(name, "name_server_list", value=listed)
        choice(of_apaches, name, listed, 0)
    assert check(of_apaches).verdict is Validity.VALID


@pytest.mark.parametrize(("is_dead", "verdict"), [(True, Validity.VALID), (False, Validity.INVALID)])
def test_first_choices_while_one_is_dead_are_no_matter_of_chance(is_dead: bool, verdict: Validity) -> None:
    names = [f"java-{number}" for number in range(60)]
    builder = cluster(name_servers=3, clients=names).made_by("java", *names, **JAVA)
    if is_dead:
        builder.at(1).fault("f-1", "kill", "signals", "ns-0")
    for number, name in enumerate(names):
        listed = sorted(NS, key=lambda address: address != NS[1 + number % 2])
        builder.at(20 + number / 100).event(name, "name_server_list", value=listed)
        choice(builder, name, listed, 0)
    assert check(builder.end(200)).verdict is verdict


def test_what_a_client_under_test_looks_like_is_told_beside_what_it_breaks() -> None:
    builder = cluster(name_servers=3, clients=("java",)).made_by("java", "java", **JAVA)
    builder.at(2).event("java", "name_server_list", value=NS)
    for number in range(20):
        index, old = number % 3, NS[(number - 1) % 3] if number else None
        choice(builder.at(3 + number), "java", NS, index, old)
        fields = {"name_server": NS[index], "type": "ok", "code": 0, "topic": "orders", "duration_ms": 1.0}
        builder.at(3.5 + number).event("java", "name_server_call", f="route", **fields)
    found = check(builder.end(200))
    assert found.verdict is Validity.INVALID
    assert found.measured["looks_like"] == {"java": "next at every request"}


def test_clients_that_nobody_can_tell_apart_are_unknown_whatever_they_seem_to_do() -> None:
    clients, why = ("java", "java-2"), "2 clients of one process ask for the same topics"
    builder = cluster(name_servers=3, clients=clients).made_by("java", *clients, **JAVA, unclear=why)
    builder.at(2).event("java", "name_server_list", value=NS)
    choice(choice(builder, "java", NS, 0).at(30), "java", NS, 2, NS[0])
    found = check(builder.end(200))
    assert (found.verdict, found.why) == (Validity.UNKNOWN, f"java, java-2: {why}")


def call(
    builder: HistoryBuilder, at_s: float, name_server: str, type_: str = "ok", took_s: float = 0.01, **fields: object
) -> HistoryBuilder:
    fields = {"name_server": name_server, "type": type_, "topic": "orders", "duration_ms": took_s * 1000, **fields}
    return builder.at(at_s).event("producer-0", "name_server_call", f="route", **fields)


def channel(builder: HistoryBuilder, at_s: float, f: str, address: str, by: str = "self") -> HistoryBuilder:
    return builder.at(at_s).event("producer-0", "channel", f=f, address=address, value={"reason": f"closed by {by}"})


def client(**kwargs: Any) -> HistoryBuilder:
    """producer-0 with the list ns-0, ns-1, ns-2 chose ns-1 first, and called it once."""
    builder = starts(**kwargs).at(10).event("producer-0", "name_server_list", value=NS)
    channel(choice(builder, "producer-0", NS, 1), 10.01, "open", NS[1])
    return call(builder, 10.02, NS[1])


def moved(builder: HistoryBuilder, at_s: float, index: int, old: int = 1) -> HistoryBuilder:
    choice(builder.at(at_s), "producer-0", NS, index, NS[old])
    return call(channel(builder, at_s + 0.01, "open", NS[index]), at_s + 0.02, NS[index])


def test_clients_that_choose_as_java_does_are_valid() -> None:
    """A call without an answer closes the channel; the next call takes the next entry."""
    builder = client()
    channel(call(builder, 43, NS[1], "info", took_s=3), 43.001, "close", NS[1])
    assert check(moved(builder, 70, 2).end(100)) == valid(
        "name_server_selection",
        examined=32,
        measured={
            "first_choices": {NS[0]: 10, NS[1]: 11, NS[2]: 10},
            "first_choices_of_lasting": {NS[0]: 0, NS[1]: 1, NS[2]: 0},
            "later_choices": 1,
            "calls": 0,
            "starts": 31,
            "p_value": pytest.approx(1.0),
            "judged_by": "exact multinomial",
            "bias": 0.1,
            "starts_needed": 1292,
            "power": pytest.approx(0.0001, abs=0.0001),
            "bias_found": pytest.approx(0.635, abs=0.001),
            "broken_rules": {},
        },
        allowed={
            "bound_ms": None,
            "formula": "p ≥ 1e-06 over 1,292+ first choices; next = index + 1 mod n, only after a failure; "
            "n tries a call",
            "tolerance_ms": None,
            "row": "list shuffled, random start, one NameServer kept until its channel is not active, "
            "a call tries the whole list",
            "client_profile": "java-4.9",
        },
        undecided={
            UNIFORM: "31 starts are too few to say whether each NameServer is chosen equally often; 1,292 are enough"
        },
    )


def test_what_was_measured_is_told_in_a_sentence() -> None:
    assert judge.tells is not None
    assert judge.tells(check(client().end(100)).measured) == "first choices 10 / 11 / 10, p = 1; 0 later ones; 0 calls"


def test_every_finding_is_there_right_or_wrong() -> None:
    verdict = check(moved(client(), 40, 2).end(100))
    assert [(f.subject, f.kind, f.examined, f.wrong) for f in verdict.findings] == [
        ("producer-0", "sticky", 1, 1),
        ("prober", "chose by the rules", 30, 0),
        ("all clients", "first choices uniform", 0, 0),
    ]
    assert verdict.examples == (verdict.findings[0].example,)


def broken(builder: HistoryBuilder) -> dict[str, int]:
    verdict = check(builder.end(200))
    assert verdict.verdict is (Validity.INVALID if verdict.measured["broken_rules"] else Validity.VALID), verdict
    return dict(verdict.measured["broken_rules"])


def test_where_each_choice_is_wrong_and_all_together_are_uneven_no_more_is_wrong_than_was_examined() -> None:
    builder = cluster(name_servers=3, clients=("producer-0", "prober"))
    for number in range(20):
        op_id = f"start-{number}"
        builder.at(2 + number / 100).event("prober", "name_server_list", op_id=op_id, value=NS[:1])
        choice(builder, "prober", NS[:1], 0, op_id=op_id)
    verdict = check(builder.end(100))
    assert (verdict.violations, verdict.examined) == (21, 21), "20 lists that are not shuffled, and their unevenness"


def test_first_choices_that_are_all_the_same_are_invalid_as_soon_as_chance_cannot_be_the_reason() -> None:
    """3^-13 is less than one in a million, 3^-12 is not."""
    assert check(starts((14, 0, 0)).end(100)).verdict is Validity.INVALID
    fewer = check(starts((12, 0, 0)).end(100))
    assert (fewer.verdict, fewer.examined, [*fewer.undecided]) == (Validity.VALID, 12, [UNIFORM])


def test_evenness_is_decided_by_enough_starts_only_and_the_exact_rules_apart_from_it() -> None:
    """94 even starts say nothing of ten points; a client that leaves without a reason is found all the same."""
    few = check(starts((31, 32, 31)).end(100))
    assert (few.verdict, few.measured["power"]) == (Validity.VALID, 0.0014)
    assert "1,292 are enough" in few.undecided[UNIFORM]
    enough = check(starts((431, 431, 430)).end(100))
    assert (enough.verdict, enough.undecided, enough.findings[-1].examined) == (Validity.VALID, {}, 1292)
    wrong = check(moved(client(), 40, 2).end(100))
    assert (wrong.verdict, wrong.violations, [*wrong.undecided]) == (Validity.INVALID, 1, [UNIFORM])


def lasting(last: int) -> Verdict:
    """300 even starts of the prober, and 20 producers of which the first `last` choose ns-0 and the others in turn."""
    builder = starts((100, 100, 100))
    for number in range(20):
        index = 0 if number < last else number % 3
        builder.at(10 + number).event(f"producer-{number}", "name_server_list", value=NS)
        choice(builder, f"producer-{number}", NS, index)
    return check(builder.end(100))


def test_clients_that_last_are_not_hidden_behind_the_starts_of_the_prober() -> None:
    wrong = lasting(20)
    assert (wrong.verdict, wrong.violations, wrong.examined) == (Validity.INVALID, 1, 321)
    assert "first choices of producers and consumers are not uniform: 20 / 0 / 0" in wrong.why
    even = lasting(0)
    assert (even.verdict, even.measured["first_choices_of_lasting"][NS[0]]) == (Validity.VALID, 7)


def test_leaving_a_name_server_that_did_not_fail_is_invalid() -> None:
    """Closing one's own channel is no reason, and neither is an answer with an error code."""
    builder = call(client(), 40, NS[1], "fail", code=17)
    assert broken(moved(channel(builder, 40.1, "close", NS[1]), 40.2, 2)) == {"sticky": 1}


@pytest.mark.parametrize(("stall_ms", "verdict"), [(350.0, Validity.UNKNOWN), (250.0, Validity.INVALID)])
def test_leaving_is_judged_if_the_client_ran_for_most_of_the_time_out(stall_ms: float, verdict: Validity) -> None:
    builder = client()
    for tenth in range(360, 401, 6):
        builder.at(tenth / 10).lag(stall_ms, "producer-0", until_s=tenth / 10 + 0.6)
    found = check(moved(builder, 40, 2).end(100))
    assert (found.verdict, found.violations) == (verdict, int(verdict is Validity.INVALID))
    assert "rule 'sticky' broken 1 time" in found.why


@pytest.mark.parametrize(("by", "found"), [("peer", {}), ("server", {}), ("self", STICKY), ("client", STICKY)])
def test_a_channel_ended_by_the_name_server_is_a_reason_to_leave(by: str, found: dict[str, int]) -> None:
    assert broken(moved(channel(client(), 50.01, "close", NS[1], by), 70, 2)) == found


def test_where_nobody_says_who_ended_it_nobody_is_accused() -> None:
    closed = client().at(50.01).event("producer-0", "channel", f="close", address=NS[1], value={"reason": "closed"})
    assert broken(moved(closed, 70, 2)) == {}


def test_a_channel_closed_because_nobody_used_it_is_a_reason_to_leave() -> None:
    assert broken(moved(channel(client(), 130.03, "close", NS[1]), 140, 2)) == {}


@pytest.mark.parametrize(("new", "found"), [(NS[::-1], 1), ([NS[0], NS[2]], 0)])
def test_who_is_on_the_new_list_is_kept_and_nobody_else(new: list[str], found: int) -> None:
    builder = client().at(40).event("producer-0", "name_server_list", f="fetchNameServerAddr", value=new)
    value = {"old": None, "index": 0, "reason": "first"}
    builder.at(70).event("producer-0", "name_server_chosen", name_server=new[0], value=value)
    assert broken(call(channel(builder, 70.01, "open", new[0]), 70.02, new[0])).get("sticky", 0) == found


@pytest.mark.parametrize(("profile", "closes", "found"), [("5.x", True, 0), ("5.x", False, 1), ("4.9", False, 0)])
def test_since_5_3_1_a_new_list_closes_the_channel_to_who_left_it(profile: str, closes: bool, found: int) -> None:
    builder = (
        client(profile=profile)
        .at(40)
        .event("producer-0", "name_server_list", f="fetchNameServerAddr", value=[NS[0], NS[2]])
    )
    if closes:
        channel(builder, 40.001, "close", NS[1])
    assert broken(builder.at(60)).get("closes the lost", 0) == found


@pytest.mark.parametrize(("new", "found"), [(NS[::-1], 1), ([NS[1], NS[0]], 0)])
def test_the_same_name_servers_in_another_order_are_no_new_list(new: list[str], found: int) -> None:
    builder = client().at(40).event("producer-0", "name_server_list", f="fetchNameServerAddr", value=new)
    assert broken(builder).get("keeps the list", 0) == found


@pytest.mark.parametrize(("last", "found"), [(["ns-1", "ns-0"], 0), (["ns-0", "ns-2"], 1)])
def test_a_list_that_nobody_fetched_is_no_new_order(last: list[str], found: int) -> None:
    """Of a client that takes its list as given (random seed 1679478)."""
    told = cluster(3, clients=("producer-0",), name_server_list=["ns-0", "ns-1"], workload={"client_profile": "node"})
    for at_s, served in ((40, ["ns-0"]), (45, last)):
        told.at(at_s).event("harness", "served_list", value=served)
    told.at(10).event("producer-0", "name_server_list", value=NS[:2])
    examples = check(choice(told.at(190), "producer-0", NS[:2], 1).end(200)).examples
    assert [one.more["kind"] for one in examples].count("listed") == found


def test_who_goes_back_to_its_first_name_server_leaves_one_that_had_not_failed() -> None:
    away = moved(channel(client(), 50, "close", NS[1], "peer"), 70, 2)
    assert broken(channel(away, 100, "open", NS[1])) == STICKY
    assert broken(channel(channel(away, 99, "close", NS[2], "peer"), 100, "open", NS[1])) == {"moves on": 1}


def test_a_client_without_a_list_calls_no_name_server_again() -> None:
    """Random seed 1772025."""
    builder = starts()
    for at_s in (20, 21, 22):
        builder.at(at_s).event("producer-0", "name_server_call", type="fail", f="route", value={"tried": []})
    assert broken(builder) == {}


@pytest.mark.parametrize(("chosen_s", "wrong"), [(43.0, 0), (42.9, 1)])
def test_of_two_calls_that_time_out_one_may_choose_before_the_close(chosen_s: float, wrong: int) -> None:
    only = NS[1:2]
    builder = starts().at(10).event("producer-0", "name_server_list", value=only)
    channel(choice(builder, "producer-0", only, 0), 10.01, "open", NS[1])
    choice(call(builder, 42, NS[1], "info", took_s=3).at(chosen_s), "producer-0", only, 0, NS[1])
    channel(channel(builder, 43, "close", NS[1]), 43.2, "open", NS[1])
    assert broken(call(builder, 43.3, NS[1])).get("moves on", 0) == wrong


def test_a_channel_to_a_name_server_that_was_never_chosen_is_none_of_a_java_clients() -> None:
    assert broken(channel(client(), 20, "open", NS[2])) == {"dials the chosen": 1}
    assert broken(channel(client(), 20, "open", "127.0.0.1:10911")) == {}  # a broker
    assert broken(channel(client().made_by("apache-4.9.8", "producer-0"), 20, "open", NS[2])) == {}


def test_calls_that_were_in_flight_together_may_fail_together() -> None:
    builder = call(call(client(), 43, NS[1], "info", took_s=3), 43.01, NS[1], "info", took_s=2)
    assert broken(moved(channel(builder, 43.02, "close", NS[1]), 70, 2)) == {}


def given_up(ended_s: float, *, next_s: float | None = None, killed: bool = False) -> dict[str, int]:
    """A 4.9 producer's call of 60 s found two of three NameServers refused, and no more; its process ended then."""
    tried = [{"name_server": NS[place], "outcome": "connect_failed"} for place in (1, 2)]
    builder = channel(client(), 59, "close", NS[1], "peer")
    for place in (1, 2):
        choice(builder.at(59.1 + place / 10), "producer-0", NS, (place + 1) % 3, NS[place])
        channel(builder, 59.15 + place / 10, "connect_failed", NS[(place + 1) % 3])
    call(builder, 60, NS[2], "fail", took_s=0.9, value={"tried": tried})
    if next_s is not None:
        call(builder, next_s, NS[0], "fail", value={"tried": [*tried, *tried[:1]]})
    builder.at(ended_s)
    if killed:
        builder.fault("f1", "kill", "sigkill", "producer-0")
    else:
        builder.event("producer-0", "stopped")
    return broken(builder)


def test_a_look_up_that_its_clients_own_end_cut_short_has_not_given_up() -> None:
    assert given_up(60.5) == given_up(62.9) == given_up(60.0, killed=True) == {}
    assert given_up(90) == {"attempts": 1}
    assert given_up(62.9, next_s=62) == {"attempts": 1}


@pytest.mark.parametrize(
    ("took_s", "other", "found"), [(0.001, True, {"attempts": 1}), (3.0, True, {}), (3.0, False, {"attempts": 1})]
)
def test_a_look_up_without_a_try_waited_for_another(took_s: float, other: bool, found: dict[str, int]) -> None:
    builder = call(client(), 60, NS[1], "fail", took_s=took_s, value={"tried": []})
    builder = call(builder, 60.1, NS[1], took_s=3.5) if other else builder
    assert broken(call(builder, 90, NS[1])) == found


@pytest.mark.parametrize(("reset", "found"), [(True, {}), (False, {"attempts": 1})])
def test_a_client_that_may_have_no_list_yet_has_nothing_to_try(reset: bool, found: dict[str, int]) -> None:
    builder = client().run_says(name_server_list=["ns-0", "ns-1", "ns-2"])
    if reset:
        of = "reset-1", "reset_peer", "toxiproxy.reset_peer", "producer-0", "address-server"
        builder.at(59.9).fault(*of, until_s=60.1)
    assert broken(call(call(builder, 60, NS[1], "fail", 0.001, value={"tried": []}), 90, NS[1])) == found


def test_a_look_up_that_the_runs_end_cut_short_has_not_given_up() -> None:
    assert (given_up(200.5), given_up(61)) == ({"attempts": 1}, {})
    tried = [{"name_server": NS[1], "outcome": "connect_failed"}]
    assert broken(call(client(), 199.9, NS[1], "fail", value={"tried": tried})) == {}


def test_a_restarted_client_chooses_anew() -> None:
    builder = client().at(60).restarted("producer-0").event("producer-0", "name_server_list", value=NS[::-1])
    assert broken(choice(builder, "producer-0", NS[::-1], 0)) == {}


def test_a_run_that_is_to_find_a_bias_needs_the_starts_for_it() -> None:
    """31 starts find 64 points with power 0.99 at 1e-6, not 40."""
    verdict = check(starts((11, 10, 10), start_bias=0.4).end(100))
    assert (verdict.verdict, verdict.measured["starts"]) == (Validity.UNKNOWN, 31)
    assert verdict.measured["starts_needed"] == 78
    assert "the run is to find a bias of 0.4: 31 starts are too few" in verdict.why
    assert "78 are enough" in verdict.why
    found = check(starts((11, 10, 10), start_bias=0.65).end(100))
    assert (found.verdict, found.undecided) == (Validity.VALID, {})


@pytest.mark.parametrize(("chosen_s", "broken"), [((3.0, 13.0), 0), ((3.0, 14.9), 0), ((3.0,), 1)])
def test_who_takes_the_next_at_every_request_chose_since_the_request_before(chosen_s: list[float], broken: int) -> None:
    builder = cluster(name_servers=3, clients=("consumer-0",))
    for at_s in chosen_s:
        choice(builder.at(at_s), "consumer-0", NS, 0)
    for at_s in (4, 15):  # each took 1 s: the second began at 14 s
        fields = {"name_server": NS[0], "type": "ok", "code": 0, "topic": "orders", "duration_ms": 1000.0}
        builder.at(at_s).event("consumer-0", "name_server_call", f="route", **fields)
    (one,) = selections(builder.facts()[0])
    assert len([*kept_between_requests(one)]) == broken


def test_the_rule_that_was_broken_first_is_told_first() -> None:
    away = moved(channel(client(), 50, "close", NS[1], "peer"), 70, 0)
    found = check(channel(away, 100, "open", NS[1]).end(200))
    assert [one.more["kind"] for one in found.examples] == ["in order", "sticky"]

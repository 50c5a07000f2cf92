"""dead_name_servers_left over hand-written histories."""

import pytest

from nemesrv.chaos.checks.clients.dead_name_servers_left import judge
from nemesrv.chaos.verdict import Validity
from tests.chaos.builder import HistoryBuilder, address_of, cluster, example, judging, valid

CLIENT = "producer-0"
KILL = ("f1", "kill", "sigkill", "ns-0")
LINK = ("f1", "black_hole", "toxiproxy.bandwidth.rate=0", CLIENT, "ns-0")

check = judging(judge)


def chosen(builder: HistoryBuilder, at_s: float, name_server: str) -> HistoryBuilder:
    return builder.at(at_s).event(CLIENT, "name_server_chosen", name_server=address_of(name_server))


def call(
    builder: HistoryBuilder, began_s: float, name_server: str, *, took_s: float = 0.01, type_: str = "ok"
) -> HistoryBuilder:
    fields = {"name_server": address_of(name_server), "duration_ms": took_s * 1000, "f": "route"}
    code = 0 if type_ == "ok" else None
    return builder.at(began_s + took_s).event(CLIENT, "name_server_call", type=type_, code=code, **fields)


def silence(left_s: float | None, *, first: str = "ns-0", until_s: float = 200) -> HistoryBuilder:
    """ns-0 does not answer from 100 s to `until_s`; the client, on it, fails one call and leaves it at `left_s`."""
    builder = chosen(cluster(name_servers=3, clients=(CLIENT,)), 2, first)
    call(builder, 90, first).at(100).fault(*LINK)
    if first == "ns-0":
        call(builder, 120, "ns-0", took_s=3, type_="info")
    if left_s is not None:
        call(chosen(builder, left_s, "ns-1"), left_s, "ns-1")
    call(builder, 180, "ns-1" if left_s is not None else first)
    return builder.at(until_s).fault(*LINK, end=True)


def test_a_client_that_fails_one_call_and_leaves_at_the_next_poll_is_valid() -> None:
    took = {"after_ms": 50_000.0, "bound_ms": 60_000.0}
    assert check(silence(150).end(260)) == valid(
        "dead_name_servers_left",
        examined=1,
        measured={
            "max_ms": 50_000.0,
            "left": [{"client": CLIENT, "name_server": "ns-0", "fault_id": "f1", **took}],
            "calls_failed": 1,
        },
        allowed={
            "bound_ms": 60_000.0,
            "formula": "P + 1·P",
            "tolerance_ms": 53.0,
            "row": "client leaves a NameServer: accepts, never answers, client 4.9.1 to 4.9.8",
        },
    )


def test_a_client_that_stays_longer_is_invalid() -> None:
    verdict = check(silence(170).end(260))
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    (late,) = verdict.examples
    about = {"after": "f1 start", "times": {"lost": 100, "back": 200}, "kind": "must have left", "calls_failed": 1}
    assert late == example(CLIENT, "ns-0", from_s=160, to_s=170, due_s=160, took_s=70, allowed_s=60, **about)


def test_a_long_loss_that_another_fault_meets_is_not_told_as_short() -> None:
    builder = chosen(cluster(name_servers=3, clients=(CLIENT,)), 2, "ns-0").at(100).fault(*KILL)
    builder.at(104).black_hole(CLIENT, "ns-1", until_s=105, fault_id="f2")
    verdict = check(builder.at(180).fault(*KILL, end=True).restarted("ns-0").end(260))
    assert verdict.why == (
        "producer-0 lost ns-0 for 80 s, but met another fault after 4 s: only a fault that comes alone is judged"
    )


def test_a_run_without_a_loss_tells_of_none() -> None:
    assert check(chosen(cluster(name_servers=3, clients=(CLIENT,)), 2, "ns-0").end(260)).why == (
        "no client lost its NameServer while another could be chosen, as in the scenario name-server-crash"
    )


def test_what_was_measured_is_told_in_a_sentence() -> None:
    assert judge.tells is not None
    assert judge.tells(check(silence(None).end(260)).measured).startswith("no client left the lost NameServer; ")
    assert judge.tells(check(silence(150).end(260)).measured) == (
        "the last to leave: producer-0, 50.0 s after ns-0 was lost; failed calls of one client: 1 at most"
    )


def test_a_client_that_chooses_the_same_one_again_has_not_left_it() -> None:
    builder = chosen(silence(None), 150, "ns-0").end(260)
    assert check(builder).verdict is Validity.INVALID


def test_where_every_client_was_on_another_one_nothing_is_examined() -> None:
    verdict = check(silence(None, first="ns-2").end(260))
    assert (verdict.verdict, verdict.examined, verdict.measured["left"]) == (Validity.UNKNOWN, 0, [])
    assert verdict.why == "no client had chosen ns-0 before or during the loss"


def test_round_robin_may_lead_past_a_lost_one_for_one_failed_call() -> None:
    builder = chosen(silence(150, until_s=400), 230, "ns-0")
    call(builder, 230, "ns-0", took_s=3, type_="info")
    chosen(builder, 260, "ns-1")
    call(builder, 260, "ns-1")
    assert check(builder.end(460)).verdict is Validity.VALID
    builder = call(chosen(silence(150, until_s=400), 230, "ns-0"), 390, "ns-1")
    assert check(builder.end(460)).verdict is Validity.INVALID


@pytest.mark.parametrize(("left_s", "expected"), [(130, Validity.VALID), (140, Validity.INVALID)])
def test_a_killed_one_closes_its_channels_so_the_next_poll_leaves_it(left_s: float, expected: Validity) -> None:
    builder = chosen(cluster(name_servers=3, clients=(CLIENT,)), 2, "ns-0").at(100).fault(*KILL)
    call(chosen(builder, left_s, "ns-1"), left_s, "ns-1")
    builder.at(200).fault(*KILL, end=True).restarted("ns-0")
    verdict = check(builder.end(260))
    assert verdict.verdict is expected
    assert verdict.allowed["bound_ms"] == 30_000.0


@pytest.mark.parametrize(("left_s", "expected"), [(130, Validity.VALID), (140, Validity.INVALID)])
def test_a_fault_of_a_brokers_link_changes_nothing_for_the_client(left_s: float, expected: Validity) -> None:
    builder = chosen(cluster(name_servers=3, clients=(CLIENT,)), 2, "ns-0")
    builder.at(60).black_hole("broker-a", "ns-1", until_s=75, fault_id="f2")
    builder.at(100).fault(*KILL)
    call(chosen(builder, left_s, "ns-1"), left_s, "ns-1")
    builder.at(104).black_hole("broker-a", "ns-2", until_s=120, fault_id="f3")
    verdict = check(builder.at(200).fault(*KILL, end=True).restarted("ns-0").end(260))
    assert (verdict.verdict, verdict.examined) == (expected, 1)


def test_with_a_second_fault_nothing_more_is_asked() -> None:
    builder = silence(170).at(150).fault("f2", "kill", "sigkill", "ns-2")
    assert check(builder.end(260)).examined == 0


def test_a_leave_is_late_by_no_more_than_timers_fired_late() -> None:
    assert check(silence(165).end(260, lag_ms=2_000)).verdict is Validity.VALID


def test_a_lone_name_server_a_short_fault_and_a_silent_client_are_unknown() -> None:
    alone = chosen(cluster(name_servers=1, clients=(CLIENT,)), 2, "ns-0").at(100).fault(*LINK, until_s=300)
    quiet = chosen(cluster(name_servers=3, clients=(CLIENT,)), 2, "ns-0").at(100).fault(*LINK, until_s=300)
    for builder in (alone, quiet, silence(110, until_s=150)):
        verdict = check(builder.end(400))
        assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)

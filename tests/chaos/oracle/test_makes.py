"""Whose clients a run had stands in its verdicts: how many of each kind, who made them, which rules they choose by."""

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.finishing import clients_of
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.reports.html.found import Place
from nemesrv.chaos.reports.html.page import template
from nemesrv.chaos.reports.sentences import clients_sentence
from nemesrv.chaos.reports.terminal import legend_line
from nemesrv.chaos.verdict import Clients, Verdict
from tests.chaos.builder import cluster, valid

OURS = (
    Clients(kind="producer", count=2, implementation="ours", profile="java-4.9"),
    Clients(kind="consumer", count=1, implementation="ours", profile="java-4.9"),
)


def world(**run: object) -> World:
    return World.of_rows(cluster(clients=("producer-0", "producer-1", "consumer-0"), **run).end(10).rows)


def test_clients_are_counted_by_kind_and_ours_follow_the_profile_of_the_cluster() -> None:
    assert clients_of(world(), ("producer", "consumer")) == OURS
    assert clients_of(world(), ()) == ()


def test_the_profile_is_that_of_the_workload_where_it_names_one() -> None:
    of = clients_of(world(workload={"client_profile": "go"}), ("consumer",))
    assert of == (Clients(kind="consumer", count=1, implementation="ours", profile="go"),)


def test_clients_of_another_make_are_told_apart() -> None:
    told = cluster(clients=("producer-0", "producer-1")).made_by("apache-4.9.8", "producer-1")
    found = clients_of(World.of_rows(told.end(10).rows), ("producer",))
    assert (
        clients_sentence(found)
        == "1 producer (apache-4.9.8, judged as java-4.9); 1 producer (ours, judged as java-4.9)"
    )


def test_a_check_of_tables_looks_at_no_clients_and_one_of_first_choices_at_the_prober_too() -> None:
    assert CHECKS["routes_converge"].looks_at == ()
    assert CHECKS["duplicates"].looks_at == ("producer", "consumer")
    assert CHECKS["name_server_selection"].looks_at == ("producer", "consumer", "prober")


def test_whose_clients_stands_in_the_json_on_the_terminal_and_on_the_page() -> None:
    verdict = valid("duplicates", examined=3, clients=OURS)
    assert Verdict.from_json(verdict.to_json()).clients == OURS
    place = Place(check="duplicates", from_ms=0.0, to_ms=1.0, section="sends", lane=None, text="", bad=False)
    said = "2 producers, 1 consumer (ours, judged as java-4.9)"
    assert said in template("parts.html.template").module.verdict_rows(verdict, place, ())  # type: ignore[attr-defined]
    assert legend_line([verdict]) == ""

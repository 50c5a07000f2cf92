"""What a check measured, as a person would say it."""

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.finishing import finished
from nemesrv.chaos.oracle.timers import Timers
from nemesrv.chaos.oracle.windows import legend, set_values
from nemesrv.chaos.reports.answers import answers
from nemesrv.chaos.reports.ci import junit
from nemesrv.chaos.reports.html.found import Place
from nemesrv.chaos.reports.html.page import template
from nemesrv.chaos.reports.sentences import example_sentence, measured_sentences, nearest_sentence, wrong_sentence
from nemesrv.chaos.reports.terminal import allowed, legend_line, measured
from nemesrv.chaos.verdict import Example, Finding, Validity, Verdict
from tests.chaos.builder import cluster, invalid, valid

verdict_rows: Any = template("parts.html.template").module.verdict_rows  # type: ignore[attr-defined]
PLACE = Place(check="availability", from_ms=0.0, to_ms=1.0, section="sends", lane=None, text="", bad=False)


def availability(**more: Any) -> Verdict:
    values: dict[str, Any] = {
        "send": 0.969999,
        "pull": 1.0,
        "name_server_call": 0.999999,
        "quiet": 1.0,
        "quiet_operations": 1335,
        "quiet_stretches": [[2000.0, 20000.0], [98000.0, 150000.0]],
        "bucket_ms": 2000.0,
        "series": {"send": [[8, 0], [8, 1], [4, 3], [8, 6]], "pull": [[9, 0]], "name_server_call": [[4, 1]]},
        **more,
    }
    return valid("availability", examined=1919, measured=values)


def test_availability_is_told_in_three_sentences_and_never_rounded_up() -> None:
    assert measured_sentences(availability()) == [
        "96.99 % of sends, all pulls and 99.99 % of look-ups succeeded",
        "when it was quiet, 2.0 to 20.0 s and 98.0 to 150.0 s, all 1,335 operations succeeded",
        "at worst, from 6.0 to 8.0 s, 6 of 8 sends failed",
    ]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"operation": "send", "slow": 184, "of": 1840}, "184 of 1,840 were late"),
        ({"operation": "pull", "succeeded": 2, "failed": 79, "floor": 1.0}, "79 of 81 failed"),
    ],
)
def test_an_example_says_how_many_of_how_many(more: dict[str, Any], said: str) -> None:
    assert example_sentence(Example(who="broker-a", from_ms=0.0, more=more)).endswith(f"; {said}")


def test_what_is_not_decided_is_named_wherever_a_verdict_is_told() -> None:
    """Table, report, its first sentence, verdicts.json and back."""
    why = "94 starts are too few to say, 1,292 are enough"
    verdict = valid(
        "name_server_selection",
        examined=94,
        measured={"first_choices": {"a": 33, "b": 24, "c": 37}, "p_value": 0.25},
        undecided={"first choices uniform": why},
    )
    said = f"not decided: first choices uniform: {why}"
    assert measured_sentences(verdict)[1:] == [said]
    assert measured(verdict) == f"first choices 33 / 24 / 37, p = 0.25; 0 later ones; 0 calls; {said}"
    assert said in verdict_rows(verdict, PLACE, ())
    own = replace(verdict, measured={**verdict.measured, "own_lists": ["producer-0"]}, undecided={})
    assert "37, p = 0.25 (without producer-0, which has a list of its own); 0" in measured(own)
    assert Verdict.from_json(verdict.to_json()) == verdict


def test_of_many_quiet_times_three_are_named() -> None:
    stretches = [[1000.0 * at, 1000.0 * at + 500] for at in range(5)]
    assert measured_sentences(availability(quiet_stretches=stretches, quiet=0.5, series={}))[1:] == [
        "when it was quiet, 0.0 to 0.5 s, 1.0 to 1.5 s, 2.0 to 2.5 s and 2 more times, "
        "50 % of 1,335 operations succeeded"
    ]


def test_without_a_quiet_time_or_an_operation_it_says_so() -> None:
    assert measured_sentences(availability(quiet_stretches=[], series={}))[1:] == ["no time was quiet"]
    assert measured_sentences(availability(quiet=None, quiet_operations=0, quiet_stretches=[[0.0, 1000.0]], series={}))[
        1:
    ] == ["when it was quiet, 0.0 to 1.0 s, no operation ended"]
    assert measured_sentences(Verdict.nothing_examined("nothing", name="availability")) == []


def test_the_page_has_the_sentences_in_place_of_the_numbers_and_the_table_the_first_two() -> None:
    row = verdict_rows(availability(), PLACE, ())
    assert "96.99 % of sends, all pulls" in row
    assert "at worst, from 6.0 to 8.0 s" in row
    assert "series" not in row
    assert measured(availability()).endswith("all 1,335 operations succeeded")


def never(verdict: Validity = Validity.VALID, **more: Any) -> Verdict:
    bounded = {"bound_ms": 0.0, "formula": "never", "tolerance_ms": 500.0, "row": "a live broker stays"}
    return Verdict(name="no_false_eviction", verdict=verdict, examined=3, allowed=bounded, **more)


def test_what_may_never_happen_has_no_bound_in_seconds() -> None:
    assert allowed(never()) == "never"
    assert "0.0 s" not in verdict_rows(never(), PLACE, ())


def test_a_tolerance_is_told_only_where_there_is_a_bound_that_it_widens() -> None:
    lost = {"bound_ms": None, "formula": "0 lost", "tolerance_ms": 0, "row": "an acknowledged send is durable"}
    verdict = valid("no_acknowledged_loss", examined=3, allowed=lost)
    assert allowed(verdict) == "0 lost"


@pytest.mark.parametrize(
    ("earliest_ms", "bound_ms", "said"),
    [
        (10_000.0, 10_000.04, "10.0 s ± 500 ms (1·S)"),
        (10_000.0, 13_000.0, "10.0 to 13.0 s (1·S), tolerance 500 ms"),
        (None, 10_000.0, "10.0 s (1·S), tolerance 500 ms"),
        (10_000.0, None, "not before 10.0 s (1·S), tolerance 500 ms"),
    ],
)
def test_an_exact_time_is_told_with_its_tolerance(earliest_ms: float | None, bound_ms: float | None, said: str) -> None:
    ends = {"earliest_ms": earliest_ms, "bound_ms": bound_ms, "formula": "1·S", "tolerance_ms": 500.0}
    verdict = valid("timers_kept", examined=3, allowed=ends)
    assert allowed(verdict) == said
    assert said in verdict_rows(verdict, PLACE, ())


def test_what_happened_although_it_never_may_is_told_without_a_bound() -> None:
    verdict = never(Validity.INVALID, violations=2, measured={"max_ms": 40_000.0}, why="2 drops of live brokers")
    assert answers([verdict], None, "x").first == "2 drops of live brokers."


def timed(measured_ms: float, bound_ms: float, **about: str) -> Finding:
    fields = {"subject": "ns-0", "kind": "must be equal", **about}
    return Finding(from_ms=0.0, to_ms=1.0, measured_ms=measured_ms, bound_ms=bound_ms, **fields)


def test_the_bound_of_a_valid_check_says_whose_it_is_so_that_no_other_figure_stands_against_it() -> None:
    verdict = valid(
        "routes_converge",
        examined=2,
        measured={"max_ms": 19_900.0, "converged": [{"change": "cut-1 end", "after_ms": 0.0, "bound_ms": 33_000.0}]},
        allowed={"bound_ms": 33_000.0, "formula": "R + C"},
        findings=(timed(0.0, 33_000.0, after="cut-1 end"), timed(19_900.0, 33_000.0, object="ns-1", after="begin")),
    )
    said = "closest to the limit: 19.9 s (ns-0, ns-1: must be equal, after the start)"
    assert nearest_sentence(verdict) == said
    assert allowed(verdict) == f"33.0 s (R + C); {said}"
    assert said in verdict_rows(verdict, PLACE, ())


def test_nobody_is_named_beside_a_bound_where_nothing_is_timed_or_something_is_wrong() -> None:
    fine = valid("order_kept", examined=2, allowed={"bound_ms": 1.0})
    assert nearest_sentence(fine) == ""
    assert nearest_sentence(replace(fine, verdict=Validity.INVALID, findings=(timed(2.0, 1.0),))) == ""


def test_the_letters_of_a_formula_have_their_meaning_in_the_same_cell() -> None:
    verdict = valid("routes_converge", examined=1, allowed={"bound_ms": 33_000.0, "formula": "R + C"})
    row = verdict_rows(verdict, PLACE, ())
    assert "R: a broker registers every registerNameServerPeriod" in row
    assert "C: connecting may take connectTimeoutMillis" in row


def wrong() -> Verdict:
    example = Example(
        who="ns-1",
        what="broker-a",
        topic="orders",
        from_ms=45_000.0,
        to_ms=105_000.0,
        over_ms=60_000.0,
        after="kill-1 start",
        more={"kind": "must not hold"},
    )
    return invalid(
        "routes_are_true",
        violations=3,
        examples=(example,),
        timeline_ms=25_000.0,
        allowed={"bound_ms": 130_000.0, "formula": "E - R .. E + S"},
    )


def test_what_is_wrong_names_who_when_and_by_how_much_counted_from_the_timeline() -> None:
    said = "ns-1 must not hold broker-a (topic orders), from 20.0 to 80.0 s (60.0 s); and 2 more"
    assert wrong_sentence(wrong()) == said
    assert measured(wrong()).startswith(said)
    message = ET.fromstring(junit("smoke", 1, [wrong()])).find(".//failure").get("message")  # type: ignore[union-attr]
    assert message == f"{said} (3 of 9 examined)"


def test_the_symbols_of_the_formulas_shown_are_explained_below_the_table() -> None:
    assert [part.split(":")[0] for part in legend_line([wrong()]).split("; ")] == ["R", "E", "S"]
    assert legend_line([never()]) == ""


def test_the_legend_has_the_values_of_the_run_and_the_default_beside_a_value_that_was_set() -> None:
    set_ = [replace(wrong(), allowed={**wrong().allowed, "timers": {"R": "20 s"}})]
    assert "R: a broker registers every registerNameServerPeriod, 20 s (default 30 s); E: " in legend_line(set_)
    said = legend(["B"], {"B": "10 to 12 s"})["B"]
    assert said.endswith("registerBrokerTimeoutMills, 10 to 12 s (default 6 s; 5.x: 24 s)")


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({}, {}),
        ({"profile": "5.x"}, {}),
        ({"timers": {"E_ms": 50_000}}, {"E": "50 s"}),
        ({"node_timers": {"broker-a": {"R_ms": 20_000}}}, {"R": "20 to 30 s"}),
        ({"timers": {"W_ms": 45_000, "P_ms": 10_500}}, {"P": "10.5 s"}),
    ],
)
def test_a_changed_timer_has_its_value_in_the_legend(run: dict[str, Any], expected: dict[str, str]) -> None:
    assert set_values(Timers.from_json({"profile": "4.9", **run}), run.get("node_timers", {})) == expected


def test_a_verdict_has_the_values_of_the_timers_in_its_formula_that_were_set() -> None:
    control, world = cluster(timers={"R_ms": 20_000, "P_ms": 10_000}).end(300).facts()
    check = CHECKS["routes_are_true"]
    verdict = finished(check, check.judge(control, world), world)
    assert (verdict.allowed["formula"], verdict.allowed["timers"]) == ("R + C", {"R": "20 s"})

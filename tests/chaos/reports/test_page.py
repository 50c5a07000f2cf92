"""The page as text: it fetches nothing, escapes what nodes wrote, stays small, and still opens without a history."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from nemesrv.chaos.reports.cost import cost_of
from nemesrv.chaos.reports.html import Run, html_report
from nemesrv.chaos.verdict import Example, Verdict
from tests import generate
from tests.chaos.builder import invalid
from tests.chaos.reports.recorded import RUN, VERDICTS, recorded

MOST_BYTES = 5_000_000


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = recorded(tmp_path_factory.mktemp("run"))
    return html_report(replace(RUN, cost=cost_of(folder)), VERDICTS, folder)


def test_what_nodes_and_people_wrote_is_escaped(page: str) -> None:
    assert "<b>told</b>" not in page
    assert "&lt;b&gt;told" in page
    assert "<k>&" not in page


def test_the_table_shows_measured_against_allowed_and_why(page: str) -> None:
    for expected in ("0.0 s (RTT + event thread), tolerance 50 ms", "no NameServer was lost"):
        assert expected in page


def test_who_is_guilty_the_answers_what_it_cost_and_what_to_do_next_come_before_the_checks(page: str) -> None:
    first = page[: page.index('<h2 id="checks">')]
    assert "<dt>Guilty</dt><dd><b>ns-0</b> (routes_are_true)</dd>" in first
    assert (
        "<dt>Cost</dt><dd>2 clients were without broker-a, consumer-0 the longest, for 63.0 s (20.0 to 83.0 s, the end"
        in first
    )
    assert "in=routes&amp;lane=ns-0/broker-a" in first
    assert "<code>nemesrv run scenario.yaml</code>" in first
    assert first.index("<dt>Cost</dt>") < first.index("<section id='story'")


def test_a_group_is_folded_until_something_in_it_is_wrong(page: str) -> None:
    groups = re.findall(r'<details class="group" (open)?><summary><b>([^<]+)</b>', page)
    assert groups == [("open", "routes"), ("open", "choice of NameServers"), ("", "messages")]


def test_a_run_that_recorded_nothing_has_its_verdicts_all_the_same(tmp_path: Path) -> None:
    page = html_report(RUN, [Verdict.nothing_examined("nothing was recorded", name="routes_converge")], tmp_path)
    assert "nothing was recorded" in page
    assert len(page) < 100_000


@pytest.mark.nightly("chaos/reports/test_page_in_browser.py::test_verdict_guilt_cost_and_lanes_are_on_the_first_screen")
def test_a_million_events_fit_and_the_one_violation_is_drawn(tmp_path: Path) -> None:
    generate.write(tmp_path, events=1_000_000, seed=1)
    missing = Example(who="ns-1", what="broker-b", from_ms=50_000, to_ms=52_000, more={"kind": "must hold"})
    page = html_report(Run(name="big"), [invalid("routes_are_true", why="one moment", examples=(missing,))], tmp_path)
    assert len(page.encode()) < MOST_BYTES
    assert "OVER: routes_are_true: ns-1 did not list broker-b, from " in page

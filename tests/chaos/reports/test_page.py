"""The page as text: it fetches nothing, escapes what nodes wrote, stays small, and still opens without a history."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nemesrv.chaos.history.rows import to_table
from nemesrv.chaos.history.schema import arrow_schema, parquet_path
from nemesrv.chaos.reports.cost import cost_of
from nemesrv.chaos.reports.html import Run, html_report
from nemesrv.chaos.verdict import Example, Validity, Verdict
from tests.chaos.builder import HistoryBuilder, cluster
from tests.chaos.reports.recorded import RUN, VERDICTS, recorded

MOST_BYTES = 5_000_000


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = recorded(tmp_path_factory.mktemp("run"))
    return html_report(replace(RUN, cost=cost_of(folder)), VERDICTS, folder)


@pytest.mark.nightly("chaos/reports/test_page_in_browser.py::test_lanes_fault_bands_and_windows_are_drawn")
def test_nothing_is_fetched(page: str) -> None:
    tags = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", page)
    assert tags
    for tag in tags:
        assert "src=" not in tag
        assert 'href="data:,"' in tag or "href=" not in tag


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


@pytest.mark.nightly(
    "chaos/reports/test_page_in_browser.py::test_verdict_guilt_cost_and_the_time_line_of_their_lanes_are_on_the_first_screen"
)
def test_a_million_events_fit_and_the_one_violation_and_the_one_failure_are_drawn(tmp_path: Path) -> None:
    _million(tmp_path)
    missing = Example(who="ns-1", what="broker-b", from_ms=500_000, to_ms=502_000, more={"kind": "must hold"})
    verdict = Verdict(
        name="routes_are_true",
        verdict=Validity.INVALID,
        examined=1,
        violations=1,
        why="one moment",
        examples=(missing,),
    )
    page = html_report(Run(name="big"), [verdict], tmp_path)
    assert len(page.encode()) < MOST_BYTES
    assert "OVER: routes_are_true: ns-1 did not list broker-b, from 500.0 to 502.0 s (2.0 s)" in page
    assert "ns-1 did not list broker-b" in page
    assert "k-the-one-that-failed" in page


def _million(folder: Path) -> None:
    """1,000,000 sends in 1000 s, of which one fails, around a healthy cluster with 2 s of a missing broker."""
    told = cluster(name_servers=2, brokers=("broker-a", "broker-b"), clients=("producer-0",))
    told.at(500).route("ns-1", "orders", "broker-a").at(502).route("ns-1", "orders", "broker-a", "broker-b")
    failed = {"op_id": "op", "msg_key": "k-the-one-that-failed", "topic": "orders"}
    told.at(600).event("producer-0", "send", type="fail", duration_ms=1.0, code=1, **failed)
    told.end(1000.0)
    number = 1_000_000
    rng = np.random.default_rng(1)
    values = {
        "time_ms": np.sort(rng.uniform(2_000, 998_000, number)),
        "seq": np.arange(number) + 10_000,
        "node": _same("producer-0", number),
        "role": _same("producer", number),
        "incarnation": np.zeros(number, "i4"),
        "event": _same("send", number),
        "type": _same("ok", number),
        "topic": _same("orders", number),
        "op_id": pa.array(np.arange(number).astype("U7")),
        "broker_name": _same("broker-a", number),
        "duration_ms": rng.exponential(4.0, number),
    }
    sends = pa.table({field.name: _column(values.get(field.name), field, number) for field in arrow_schema()})
    parquet_path(folder).parent.mkdir()
    pq.write_table(to_table(_rows(told)), parquet_path(folder))
    pq.write_table(sends, parquet_path(folder).with_name("part-00001.parquet"))


def _rows(told: HistoryBuilder) -> list[dict[str, object]]:
    return told.rows


def _same(text: str, number: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(np.zeros(number, "i4"), pa.array([text])).cast(pa.string())


def _column(values: object, field: pa.Field, number: int) -> pa.Array:
    if values is None:
        return pa.nulls(number, field.type)
    return pa.array(values).cast(field.type)

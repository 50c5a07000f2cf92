"""The picture of a replay in a real headless Chromium: marks and lines are drawn, and it fits a phone."""

import json
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.reports.html import html_report
from nemesrv.chaos.reports.html.replayed import lanes_of
from tests.chaos.reports.chromium import find_chromium
from tests.chaos.reports.recorded import RUN, VERDICTS, recorded


def change(found: str, kind: str, original_s: float | None, replay_s: float | None, **of: str) -> dict[str, Any]:
    said = {"node": "ns-0", "subject": "broker-a", "how": "", "told": f"ns-0 {kind} broker-a"} | of
    at = {"original_ms": original_s and 1000 * original_s, "replay_ms": replay_s and 1000 * replay_s}
    return {"found": found, "kind": kind, **said, **at}


DOCUMENT: dict[str, Any] = {
    "happens": "in part",
    "sentence": "It happens again in part: <1> of 2.",
    "imported": True,
    "from_ms": 25_000,
    "lasts_ms": 150_000,
    "compared_from_ms": 10_000,
    "not_compared": ["producer-0 chose"],
    "names": {"broker-b": "trade-1"},
    "notes": ["Episode 2 is left out."],
    "hypotheses": [{"episode": 1, "place": 1, "sentence": "ns-0 & broker-a", "certainty": "likely"}],
    "matched": 1, "missing": 1, "extra": 1,
    "transitions": [
        change("both", "lost", 20, 22, how="silent"),
        change("original", "came", 50, None),
        change("replay", "took", None, 40, node="producer-0", subject="orders", how="broker-b"),
    ],
    "lanes": [
        {"node": "ns-0", "of": "broker-a", "original": [[0, 20_000, "broker-a"]], "replay": [[0, 22_000, "broker-a"]]},
        {"node": "producer-0", "of": "orders", "original": [], "replay": [[40_000, 60_000, "broker-b"]]},
    ],
    "variants": [],
    "cost": {"original": None, "replay": "consumer-0 was without broker-a for 41.0 s"},
}  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = recorded(tmp_path_factory.mktemp("run"))
    (folder / "replay.json").write_text(json.dumps(DOCUMENT), encoding="utf-8")
    path = folder / "report.html"
    path.write_text(html_report(RUN, (), folder), encoding="utf-8")
    (folder / "judged.html").write_text(html_report(RUN, VERDICTS, folder), encoding="utf-8")
    return path


def test_the_page_says_how_alike_they_are_and_what_was_left_out(file: Path) -> None:
    page = file.read_text(encoding="utf-8")
    assert '<span class="badge UNKNOWN">in part</span>' in page
    assert "&lt;1&gt; of 2. Episode 2 is left out." in page
    assert "so not compared: producer-0 chose" in page
    assert "ns-0 &amp; broker-a" in page
    assert "0 s here is 25.0 s of the original&#39;s time" in page
    assert "the replay injects nothing more; until 150.0 s its cluster settles." in page
    assert "In the run below broker-b is trade-1." in page
    assert "<li>original: not known: no send or pull is recorded, as in RocketMQ&#39;s logs</li>" in page
    assert "<li>replay: consumer-0 was without broker-a for 41.0 s</li>" in page
    assert "3 transitions: 1 in both, 1 only in the original, 1 only in the replay." in page
    judged = (file.parent / "judged.html").read_text(encoding="utf-8")
    assert '<span class="badge INVALID">INVALID</span>' in judged, "once judged, the verdict counts"
    assert "The original above, the replay beneath" in judged


def test_of_very_many_lanes_those_that_differ_are_drawn_first() -> None:
    many = [change("both", "came", 1, 1, node=f"ns-{at}") for at in range(80)]
    kept, more = lanes_of({"transitions": [*many, change("replay", "came", None, 1, node="ns-99")]})
    assert (len(kept), more) == (60, 21)
    assert ("ns-99", "broker-a") in kept


@pytest.mark.nightly("test_the_page_says_how_alike_they_are_and_what_was_left_out")
@pytest.mark.browser
def test_both_time_lines_are_drawn_and_fit_a_phone(file: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        try:
            page = browser.new_page(viewport={"width": 390, "height": 800})
            errors: list[str] = []
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.goto(file.as_uri())
            page.wait_for_function("() => window.Bokeh && Bokeh.index.roots.length > 2", timeout=30_000)
            drawn = page.evaluate(
                """() => Object.fromEntries([...Bokeh.documents[0]._all_models.values()]
                  .filter((m) => m.type === "GlyphRenderer" && m.glyph.tags.length)
                  .map((m) => [m.glyph.tags[0], Object.values(m.data_source.data)[0].length]))"""
            )
            assert {name: drawn[name] for name in ("mark:joined", "mark:missing", "mark:extra", "line:joined")} == {
                "mark:joined": 2, "mark:missing": 1, "mark:extra": 1, "line:joined": 1,
            }  # fmt: skip
            assert drawn["replayed"] >= 1
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            assert not errors
        finally:
            browser.close()

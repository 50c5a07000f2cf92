"""report.html in a real headless Chromium: no error, no request, lanes and bands, links, hover, dark, keys, print."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.reports.cost import cost_of
from nemesrv.chaos.reports.html import html_report
from tests.chaos.reports.chromium import find_chromium
from tests.chaos.reports.recorded import END_S, KILL_S, RUN, STALE_UNTIL_S, VERDICTS, recorded

pytestmark = pytest.mark.browser

Open = Callable[..., Any]

FIND = """(tag) => [...Bokeh.documents[0]._all_models.values()]
  .filter((m) => m.type === "GlyphRenderer" || m.type === "BoxAnnotation")
  .filter((m) => (m.glyph || m).tags.includes(tag))
  .map((m) => m.glyph
    ? {...Object.fromEntries(Object.entries(m.data_source.data).map(([k, v]) => [k, [...v]])),
       fill: String(m.glyph.fill_color && m.glyph.fill_color.value), shown: m.visible}
    : {left: m.left, right: m.right, shown: m.visible})"""
WHERE = """([x, y]) => {
  const view = [...Bokeh.index.roots].find((v) => v.model.name === "plot-routes");
  const box = view.el.getBoundingClientRect(), {frame} = view;
  return [box.left + frame.x_scale.compute(x), box.top + frame.y_scale.compute(y)];
}"""
RANGE = "() => { const t = Bokeh.documents[0].get_model_by_name('time'); return [t.start, t.end]; }"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = recorded(tmp_path_factory.mktemp("run"))
    path = folder / "report.html"
    path.write_text(html_report(replace(RUN, cost=cost_of(folder)), VERDICTS, folder), encoding="utf-8")
    return path


@pytest.fixture
def open_page(browser: Any, file: Path) -> Iterator[Open]:
    """Opens the page; afterwards it must have logged no error and asked for nothing but itself."""
    with opening(browser, file) as visit:
        yield visit


@pytest.fixture(scope="module")
def opened(browser: Any, file: Path) -> Iterator[Any]:
    """A page that tests share, for to load it takes most of a test's time; `page` is as it was opened."""
    with opening(browser, file) as visit:
        yield visit(color_scheme="light")


@pytest.fixture
def page(opened: Any) -> Iterator[Any]:
    """The page that is open already, with the whole time in view again, at its top and no pointer over it."""
    whole = opened.evaluate(RANGE)
    yield opened
    opened.mouse.move(0, 0)
    opened.keyboard.press("0")
    opened.evaluate("() => scrollTo(0, 0)")
    assert opened.evaluate(RANGE) == pytest.approx(whole)


@pytest.fixture(scope="module")
def so_wide(browser: Any, file: Path) -> Iterator[Callable[[int], Any]]:
    """The page on a screen of that width, which tests share as they left it."""
    with opening(browser, file) as visit:
        yield cache(lambda width: visit(viewport={"width": width, "height": 844}))


@contextmanager
def opening(browser: Any, file: Path) -> Iterator[Open]:
    """What opens the page; at the end no page may have logged an error or asked for anything but itself."""
    troubles: list[str] = []
    contexts = []

    def visit(fragment: str = "", script: str = "", **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1366, "height": 768}, **options})
        context.add_init_script(script)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: troubles.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda r: troubles.append(r.url) if not r.url.startswith(("file://", "data:")) else None)
        page.goto(f"file://{file}{fragment}")
        page.wait_for_selector("html[data-ready=yes]", timeout=30_000)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert troubles == []


def test_lanes_fault_bands_and_windows_are_drawn(page: Any) -> None:
    bands = page.evaluate(FIND, "band")
    assert len(bands) == page.evaluate("() => document.querySelectorAll('section[id] [data-root-id]').length")
    assert all((band["left"], band["right"]) == (KILL_S, END_S) for band in bands)
    over = page.evaluate(FIND, "over")
    assert [(box["left"], box["right"]) for box in over] == [([KILL_S], [STALE_UNTIL_S])] * 2
    assert sorted(len(held["left"]) for held in page.evaluate(FIND, "held")) == [1, 4]
    for section in ("faults", "routes", "clients", "latency", "sends"):
        assert page.locator(f"#{section} canvas").first.is_visible()
    assert page.locator("#sentence").inner_text().startswith("ns-0 listed broker-a (topic <k>&)")


def test_verdict_guilt_cost_and_lanes_are_on_the_first_screen(so_wide: Callable[[int], Any]) -> None:
    page = so_wide(1280)
    assert page.locator(".answers").inner_text().startswith("Guilty\nns-0 (routes_are_true)\n")
    box = page.locator("#story canvas").first.bounding_box()
    assert box["y"] + box["height"] < 844
    lanes = page.evaluate("() => JSON.parse(document.getElementById('data').textContent).rows.story")
    assert list(lanes) == ["ns-0/broker-a", "consumer-0/broker-a", "producer-0/broker-a"]


def test_a_folded_group_opens_for_the_link_that_leads_into_it(open_page: Open) -> None:
    page = open_page()
    folded = page.locator("details.group:not([open])")
    assert folded.count() == 1
    link = folded.locator("tr.check a").first.get_attribute("href")
    page.evaluate("(link) => { location.hash = link; }", link)
    page.wait_for_function("() => document.querySelectorAll('details.group:not([open])').length === 0")


def test_the_link_of_an_example_zooms_there_and_marks_its_lane(page: Any) -> None:
    before = page.evaluate(RANGE)
    page.locator("tr.example a").first.click()
    page.wait_for_function("() => document.querySelector('tr.current') !== null")
    start, end = page.evaluate(RANGE)
    assert before[0] < start < KILL_S
    assert STALE_UNTIL_S < end < before[1]
    assert (KILL_S, STALE_UNTIL_S, True) in {
        (m["left"], m["right"], m["shown"]) for m in page.evaluate(FIND, "highlight")
    }
    page.wait_for_function(
        "() => { const r = document.getElementById('routes').getBoundingClientRect();"
        " return r.top >= 0 && r.top < innerHeight; }"
    )


@pytest.mark.nightly("test_the_link_of_an_example_zooms_there_and_marks_its_lane")
def test_a_link_with_a_place_in_it_opens_there(open_page: Open) -> None:
    page = open_page("#at=20.000,60.000&in=routes&lane=ns-0/broker-a")
    start, end = page.evaluate(RANGE)
    assert (start < 20, end > 60, end - start < END_S) == (True, True, True)
    assert any(mark["shown"] for mark in page.evaluate(FIND, "highlight"))


def test_pointing_at_a_lane_says_what_happened_there(page: Any) -> None:
    page.locator("#routes").scroll_into_view_if_needed()
    x, y = page.evaluate(WHERE, [40, 0])
    page.mouse.move(x - 5, y)
    page.mouse.move(x, y)
    page.locator(".tip:visible").wait_for(timeout=20_000)
    (said,) = page.locator(".tip:visible").all_inner_texts()
    assert said.startswith("OVER: routes_are_true: ns-0 listed broker-a (topic <k>&) from 20.0 to 60.0 s, for 40.0 s;")
    assert said.count("40.0 s") == 1
    page.mouse.move(x, 5)
    page.locator(".tip:visible").wait_for(state="detached", timeout=20_000)


OVERLAPPING = """() => {
  const pen = document.createElement("canvas").getContext("2d"), found = [];
  for (const plot of Bokeh.documents[0]._all_models.values()) {
    if (!plot.renderers || !plot.inner_width) continue;
    const px = plot.inner_width / (plot.x_range.end - plot.x_range.start);
    for (const {glyph, data_source} of plot.renderers) {
      if (!glyph || glyph.type !== "Text") continue;
      pen.font = `${glyph.text_font_size.value} sans-serif`;
      const {x, y, text} = data_source.data;
      const boxes = [...x].map((at, i) => [y[i], at * px, at * px + pen.measureText(text[i]).width, text[i]]);
      boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
        if (a[0] === b[0] && a[1] < b[2] && b[1] < a[2]) found.push([a[3], b[3]]);
      }));
    }
  }
  return found;
}"""


@pytest.mark.nightly_but("390")
@pytest.mark.parametrize("width", [390, 1280])
def test_no_two_texts_of_a_row_lie_over_each_other_at_any_zoom(so_wide: Callable[[int], Any], width: int) -> None:
    page = so_wide(width)
    for key in ("0", "+", "+", "-"):
        page.keyboard.press(key)
        page.wait_for_function(f"() => ({OVERLAPPING})().length === 0", timeout=20_000)


AT_FIRST = f"""new MutationObserver(() => {{
  window.overlapping = ({OVERLAPPING})();
  window.phases = [...Bokeh.documents[0]._all_models.values()]
    .find((m) => m.glyph && m.glyph.tags.includes("text:label")).data_source.data.text;
}}).observe(document, {{subtree: true, attributeFilter: ["data-ready"]}})"""


@pytest.mark.nightly_but("900")
@pytest.mark.parametrize("width", [900, 1400])
def test_labels_fit_when_the_page_is_first_painted(open_page: Open, width: int) -> None:
    page = open_page(script=AT_FIRST, viewport={"width": width, "height": 844})
    assert page.evaluate("() => overlapping") == []
    assert page.evaluate("() => [...phases]") == ["steady", "fault", "broker-a killed, 70.0 s", "settle"]


@pytest.mark.parametrize("width", [390, 900])
def test_the_name_of_a_check_is_never_broken(so_wide: Callable[[int], Any], width: int) -> None:
    name = so_wide(width).locator("details[open] tr.check th a").first
    assert name.evaluate("(a) => a.getClientRects().length") == 1


LEGENDS = """() => (Bokeh.index.roots || Bokeh.index).flatMap((view) => (view.model.above || [])
  .filter((legend) => legend.items)
  .map((legend) => [Bokeh.index.find_one(legend).bbox.right, view.bbox.width]))"""


@pytest.mark.nightly_but("390")
@pytest.mark.parametrize("width", [390, 940, 1280])
def test_a_long_legend_has_rows_and_is_as_wide_as_its_plot(so_wide: Callable[[int], Any], width: int) -> None:
    ends = so_wide(width).evaluate(LEGENDS)
    assert ends
    assert [end for end in ends if end[0] > end[1] + 24] == []


def test_a_click_on_a_red_bar_lists_the_events_nearest_to_it(page: Any) -> None:
    page.locator("#routes").scroll_into_view_if_needed()
    page.mouse.click(*page.evaluate(WHERE, [40, 0]))
    page.wait_for_function("() => parseInt(document.getElementById('listed').innerText) >= 5")
    start, end = page.evaluate(RANGE)
    assert start < 40 < end
    assert end - start < END_S


def test_on_a_phone_nothing_is_wider_than_the_screen_and_each_check_is_a_card(so_wide: Callable[[int], Any]) -> None:
    page = so_wide(390)
    assert page.evaluate("() => document.documentElement.scrollWidth") == 390
    for label in ("measured", "allowed"):
        cell = page.locator(f"tr.check td[data-label={label}]").first.bounding_box()
        assert cell["x"] >= 0
        assert cell["x"] + cell["width"] <= 390


def test_the_switch_turns_the_page_and_the_plots_dark_and_back(page: Any) -> None:
    light = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    held, *_ = page.evaluate(FIND, "held")
    page.locator("#theme").click()
    dark = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    held_dark, *_ = page.evaluate(FIND, "held")
    assert light == "rgb(255, 255, 255)"
    assert dark != light
    assert held["fill"] != held_dark["fill"]
    page.locator("#theme").click()
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == light


@pytest.mark.nightly("test_the_switch_turns_the_page_and_the_plots_dark_and_back")
def test_a_person_who_prefers_dark_gets_dark(open_page: Open) -> None:
    assert open_page(color_scheme="dark").evaluate("() => document.documentElement.classList.contains('dark')")


def test_the_keyboard_reaches_every_verdict_and_zooms(page: Any) -> None:
    links = page.locator("tr a").count()
    assert links == len(VERDICTS) + 1
    page.locator("tr.check a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('tr.current') !== null")
    start, end = page.evaluate(RANGE)
    page.keyboard.press("+")
    nearer = page.evaluate(RANGE)
    assert nearer[1] - nearer[0] == pytest.approx((end - start) / 2)
    page.keyboard.press("0")
    whole = page.evaluate(RANGE)
    assert whole[1] - whole[0] > END_S


def test_the_events_in_view_follow_the_zoom_and_the_filter(open_page: Open) -> None:
    page = open_page("#at=59.9,60.1&in=routes")
    page.wait_for_function("() => document.getElementById('list').innerText.includes('broker dropped')")
    page.locator("#filter").fill("no such thing")
    page.wait_for_function("() => document.getElementById('listed').innerText === '0 in view'")


def test_a_click_on_a_legend_entry_hides_what_it_names_and_another_shows_it_again(page: Any) -> None:
    entry = page.locator("#routes").get_by_text("did not have it", exact=True)
    for shown in (False, True):
        entry.click()
        assert sorted(missing["shown"] for missing in page.evaluate(FIND, "missing")) == [shown, True]


def test_it_prints(page: Any) -> None:
    assert page.pdf().startswith(b"%PDF")

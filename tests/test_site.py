"""`make site`: docs/ by question, whole, with a search that works from the disk without a network."""

import os
import re
import sys
from pathlib import Path

import pytest

from tests import site
from tests.chaos.reports.chromium import find_chromium
from tests.ran import ran


def test_the_menu_has_every_page_of_docs_once_below_its_question() -> None:
    listed = [file for _, pages in site.questions() for _, file in pages]
    pages = {str(page.relative_to(site.DOCS)) for page in site.DOCS.glob("**/*.md")}
    assert sorted(listed) == sorted(pages - {"README.md", "incident-logs/README.md"})
    assert [question for question, _ in site.questions()][1:3] == [
        "My CI job says UNKNOWN, or a message that I do not know",
        "Does my client stop using a dead NameServer?",
    ]


@pytest.mark.parametrize(
    ("page", "text", "shown"),
    [
        ("apache.md", "[history](history.md#rows)", "[history](history.md#rows)"),
        ("tutorial/5-ci.md", "[install](../install.md)", "[install](../install.md)"),
        ("tutorial/5-ci.md", "[README](../../README.md)", "[README](../start.md)"),
        ("../README.md", "[faults](docs/faults.md) [x](CONTRIBUTING.md)", "[faults](faults.md) [x](contributing.md)"),
        ("../README.md", "![A report](docs/pictures/replay.png)", "![A report](pictures/replay.png)"),
        ("hosts.md", "[deploy/](../deploy/README.md)", "`deploy/README.md`"),
        ("apache.md", "[Ray](https://www.ray.io)", "[Ray](https://www.ray.io)"),
        ("apache.md", "```\n[a](../deploy/x)\n```", "```\n[a](../deploy/x)\n```"),
    ],
)
def test_a_link_leads_to_a_page_of_the_site_or_names_the_file(page: str, text: str, shown: str) -> None:
    assert site.within(page, text) == shown


@pytest.mark.browser
def test_the_site_is_built_without_a_warning_fetches_nothing_and_finds_a_word(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = ran(command, cwd=site.ROOT, env=env)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    for page in tmp_path.rglob("*.html"):
        fetched = re.findall(r'<(?:script|img|link)[^>]*(?:src|href)="?(?:https?:)?//[^ >]*', page.read_text("utf-8"))
        assert fetched == [], page.name
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        context = browser.new_context(offline=True)
        shown = context.new_page()
        shown.goto((tmp_path / "tutorial" / "5-ci.html").as_uri())
        shown.click("[data-md-component=search-query]")
        shown.keyboard.type("isolate_host")
        found = shown.locator(".md-search-result__link").first
        found.wait_for(timeout=30_000)
        assert re.search(r"/(hosts|scenarios)\.html", found.get_attribute("href") or "")
        browser.close()

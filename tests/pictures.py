"""`make pictures`: docs/pictures/, of what README's commands print and write (terminal, report's first screen), and of
the replay of docs/incidents.md.

README's `sh` block ─► nemesrv, in colours ─► terminal.png
                    └► its report.html ─► Chromium ─► report-VERDICT.png
"""

import io
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from tests.chaos.reports.chromium import find_chromium
from tests.ran import ran
from tests.test_tutorial import ROOT, blocks

PICTURES = ROOT / "docs" / "pictures"
LOGS = ROOT / "docs" / "incident-logs" / "broker-partition"
WIDTH, HEIGHT, COLUMNS = 1280, 980, 120
"""The first screen of the report in pixels, and the width of the terminal in characters."""


def commands() -> Iterator[str]:
    """README's commands that run a scenario, each alone."""
    for block in blocks(ROOT / "README.md"):
        if block.kind == "sh" and not block.about:
            yield from (line.partition("||")[0].strip() for line in block.text.splitlines() if "nemesrv run" in line)


def printed(command: str, folder: Path) -> str:
    """What the command prints on a terminal, in its colours; its run folder is `folder`."""
    words = [sys.executable, "-m", "nemesrv.chaos", *shlex.split(command)[1:], "--out", folder.name]
    env = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    done = ran(words, cwd=folder.parent, env=env)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def terminal(command: str, output: str) -> str:
    """A page that looks like the terminal."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(f"[bold]$ {command}[/bold]", soft_wrap=False)
    console.print(Text.from_ansi(output))
    page = console.export_html(theme=DIMMED_MONOKAI)
    return page.replace("<pre style=", "<pre style='display:inline-block;padding:12px' data-style=")


def taken(folder: Path) -> Iterator[Path]:
    """Takes the pictures of each command; `folder` has the runs."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        for command in commands():
            run = folder / command.split()[2]
            output = printed(command, run)
            verdict = Text.from_ansi(output).plain.split()[0].lower()
            page.set_content(terminal(command, output))
            page.locator("pre").screenshot(path=PICTURES / f"terminal-{verdict}.png")
            yield PICTURES / f"terminal-{verdict}.png"
            page.goto((run / "report.html").as_uri())
            page.wait_for_timeout(1_500)  # Bokeh draws its plots when the page is there
            page.screenshot(path=PICTURES / f"report-{verdict}.png")
            yield PICTURES / f"report-{verdict}.png"
        incident, again = folder / "incident", folder / "again"
        for words in (("import", str(LOGS), "--out", str(incident)), ("replay", str(incident), "--out", str(again))):
            subprocess.run([sys.executable, "-m", "nemesrv.chaos", *words], check=True, stdout=subprocess.DEVNULL)
        page.goto((again / "report.html").as_uri())
        page.wait_for_timeout(1_500)
        above, below = (page.locator(f"#replay {part}").first.bounding_box() for part in ("h2", "p:not(.note)"))
        assert above is not None
        assert below is not None
        clip = {"x": 0.0, "y": above["y"] - 8, "width": float(WIDTH), "height": below["y"] - above["y"]}
        page.screenshot(path=PICTURES / "replay.png", full_page=True, clip=clip)
        yield PICTURES / "replay.png"
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as runs:
        for picture in taken(Path(runs)):
            print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size / 1e3:.0f} kB", flush=True)

"""Where a Chromium is, for the tests that open a page; the tests' conftest skips them where there is none."""

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str | None:
    """The path of a Chromium, from NEMESRV_CHROMIUM or PATH; None when there is none."""
    return os.environ.get("NEMESRV_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)

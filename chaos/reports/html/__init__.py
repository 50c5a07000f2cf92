"""report.html of a run, or of two side by side; page.py says how it is made."""

from __future__ import annotations

from .page import html_beside, html_report
from .told import Run

__all__ = ["Run", "html_beside", "html_report"]

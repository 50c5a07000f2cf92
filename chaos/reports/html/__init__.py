"""report.html of a run; page.py says how it is made."""

from __future__ import annotations

from .page import Run, html_report

__all__ = ["Run", "html_report"]

"""report.html of a run; page.py says how it is made."""

from .page import html_of, html_report
from .run_to_draw import Run, RunToDraw

__all__ = ["Run", "RunToDraw", "html_of", "html_report"]

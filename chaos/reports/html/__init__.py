"""Makes report.html, the page of one run. page.py has the overview."""

from .page import html_of, html_report
from .run_to_draw import Run, RunToDraw

__all__ = ["Run", "RunToDraw", "html_of", "html_report"]

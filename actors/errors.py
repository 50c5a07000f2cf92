"""What can go wrong with the processes that carry an experiment; never a verdict."""

from __future__ import annotations


class HarnessError(Exception):
    """The harness failed (exit status 4): one line that says what, and how to mend it."""

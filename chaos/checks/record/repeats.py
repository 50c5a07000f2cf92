"""What came twice, as Spark and plain Python count it for `duplicates`."""

from __future__ import annotations

from typing import Any, NamedTuple

TOO_LATE = "received after its consumer had given the queue up"


class Again(NamedTuple):
    """Receipts, or stored copies, beyond the first; `wrong` and `late`: how many of them nothing explains, or only the
    machine's lateness."""

    again: int = 0
    wrong: int = 0
    late: int = 0
    oldest_ms: float | None = None
    """How long after its first receipt the latest repeat came; in a fault that may be far beyond the bound."""
    first: tuple[dict[str, Any], ...] = ()
    """The first of the wrong ones, or of the late ones where none is wrong."""

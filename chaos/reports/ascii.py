"""Text for an encoding that lacks its characters: each becomes its nearest in ASCII, or a question mark."""

from __future__ import annotations

import unicodedata

_NEAREST = {
    "−": "-", "–": "-", "—": "-", "·": "|", "→": "->", "←": "<-", "↔": "<->", "⇄": "<->", "≥": ">=", "≤": "<=",
    "≠": "!=", "≈": "~", "±": "+-", "×": "x", "“": '"', "”": '"', "’": "'", "‘": "'", "•": "*", "█": "#", "░": ".",
    "━": "-", "╸": "-", "╺": "-", "✓": "v", "✗": "x", "⁄": "/",
}  # fmt: skip


def nearest(text: str) -> str:
    """The text in ASCII."""
    found = []
    for char in text:
        plain = _NEAREST.get(char) or unicodedata.normalize("NFKD", char)
        plain = "".join(_NEAREST.get(part, part) for part in plain).encode("ascii", "ignore").decode()
        found.append(plain or "?")
    return "".join(found)

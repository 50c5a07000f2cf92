"""What a verdict measured and allowed, as words: milliseconds become seconds, nothing is shown where nothing is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

NEVER = "never"
"""The formula of a check whose bound is that it happens at no time."""


def label(key: str) -> str:
    """`tolerance_ms` as "tolerance"."""
    return key.removesuffix("_ms").replace("_", " ")


def phrase(value: object, *, milliseconds: bool = False) -> str:
    """One value as text; "" where there is nothing to say. Nested values become short lists of words."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value / 1000:.1f} s" if milliseconds else f"{value:.4g}" if isinstance(value, float) else str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {text}" for name, text in phrases(value, milliseconds=milliseconds))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "; ".join(filter(None, (phrase(item, milliseconds=milliseconds) for item in value)))
    return str(value)


def phrases(values: Mapping[str, object], *, milliseconds: bool = False) -> Iterator[tuple[str, str]]:
    """(label, text) of each entry that says something, in order. The bound of what may never happen is no time."""
    for key, value in values.items():
        if key == "bound_ms" and values.get("formula") == NEVER:
            continue
        text = phrase(value, milliseconds=milliseconds or key.endswith("_ms"))
        if text:
            yield label(key), text

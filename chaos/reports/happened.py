"""What happened, in words: `ns-0 dropped broker-a at 42.0 s (unregistered), 2.0 s after its registration; away 28.0 s;
never allowed`.

One function a kind of finding says who did what, when and for how long; what was allowed, and by how much that was
exceeded, is said the same way of all. A kind that has no function here is told by its own name. Moments are in the
example's own axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..verdict import Example
from .values import NEVER


def happened(e: Example) -> str:
    """The sentence; "" for a kind that has none, or an example without what was measured."""
    kind = str(e.more.get("kind") or "")
    tell = _OF_KIND.get(kind) or (_recovered if kind.startswith(_RECOVERED) else None)
    if tell is None or e.from_ms is None or e.measured_ms is None:
        return ""
    return f"{tell(e)}; {allowed(e)}{_after(e)}"


SAID = frozenset(
    ("kind", "masters", "reason", "registered_before_ms", "name_servers", "queue_id", "clients", "group", "routes")
)
"""What of an example's `more` the sentences say, or only a program wants."""


def allowed(e: Example) -> str:
    """`allowed 33.0 s: 2.0 s over`; `never allowed`; `allowed not before 120.0 s: 16.0 s too soon`."""
    over = length(e.over_ms or 0.0)
    if e.too_early:
        return f"allowed not before {length(e.earliest_ms or 0.0)}: {over} too soon"
    if e.latest_ms:
        return f"allowed {length(e.latest_ms)}: {over} over"
    return f"allowed at once: {over} over" if _is_late(e) else f"{NEVER} allowed"


def length(ms: float) -> str:
    """How long: seconds, and below one milliseconds."""
    if ms < 10:
        return f"{ms:.1f} ms"
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def moment(ms: float) -> str:
    """When, in seconds of the axis."""
    return f"{seconds_of(ms)} s"


def seconds_of(ms: float) -> str:
    """To a tenth; what rounds to nothing has no sign."""
    return f"{round(ms / 1000, 1) + 0.0:.1f}"


def _is_late(e: Example) -> bool:
    """Whether it was wrong from when it was due on, and not once it had been right."""
    return e.from_ms == e.due_ms


def _after(e: Example) -> str:
    """Which fault it followed, where the length does not say so already."""
    return f"; after {e.after}" if e.after and e.after != "begin" and not (_is_late(e) or e.too_early) else ""


def _about(e: Example) -> str:
    return " ".join(filter(None, (e.what, f"({e.topic})" if e.topic else "")))


def _until(e: Example) -> str:
    """`until 80.0 s, 60.0 s after f1 end`, or `from 42.0 to 70.0 s; 28.0 s`."""
    to_ms = e.from_ms if e.to_ms is None else e.to_ms
    assert e.from_ms is not None
    assert to_ms is not None
    assert e.measured_ms is not None
    if _is_late(e):
        since = "the start" if e.after in ("", "begin") else e.after
        return f"until {moment(to_ms)}, {length(e.measured_ms)} after {since}"
    return f"from {seconds_of(e.from_ms)} to {moment(to_ms)}, for {length(e.measured_ms)}"


def _measured(e: Example) -> str:
    return length(e.measured_ms or 0.0)


def _at(e: Example) -> str:
    return moment(e.from_ms or 0.0)


def _dropped(e: Example) -> str:
    reason, age_ms = e.more.get("reason"), e.more.get("registered_before_ms")
    said = f"{e.who} dropped {e.what} at {_at(e)}" + (f" ({reason})" if reason else "")
    said += "" if age_ms is None else f", {length(age_ms)} after its last registration"
    return said if e.too_early else f"{said}; away {_measured(e)}"


def _missing(e: Example) -> str:
    if e.too_early:
        since = f", {_measured(e)} after {e.after}" if e.after else ""
        return f"{e.who} lost {_about(e)} at {_at(e)}{since}"
    return f"{e.who} did not hold {_about(e)} {_until(e)}"


def _held(e: Example) -> str:
    return f"{e.who} still held {_about(e)} {_until(e)}" if _is_late(e) else f"{e.who} held {_about(e)} {_until(e)}"


def _differed(e: Example) -> str:
    topic = f" of {e.topic}" if e.topic else ""
    return f"{e.who} and {e.what} held different routes{topic} {_until(e)}"


def _owned(e: Example) -> str:
    owners = [str(name) for name in e.more.get("clients") or ()]
    queue = f"queue {e.more.get('queue_id')} of {_about(e)}"
    return f"{' and '.join(owners) or 'nobody'} owned {queue} {_until(e)}"


def _came_back(e: Example) -> str:
    return f"{e.who} took {_about(e)} back at {_at(e)}, for {_measured(e)}, while it was down"


def _used(e: Example) -> str:
    return f"{e.who} used {_about(e)} at {_at(e)}, {_measured(e)} after it was lost"


def _stayed(e: Example) -> str:
    return f"{e.who} stayed with {e.what} until {moment(e.to_ms or e.from_ms or 0.0)}, for {_measured(e)}"


def _waited(e: Example) -> str:
    return f"{e.who} waited for {e.what} until {moment(e.to_ms or e.from_ms or 0.0)}, for {_measured(e)}"


def _asked(e: Example) -> str:
    return f"{e.who} asked {e.what} at {_at(e)}, {_measured(e)} away from any choice of it"


def _asked_again(e: Example) -> str:
    return f"{e.who} asked {e.what} again at {_at(e)}, {_measured(e)} after it had not answered"


_RECOVERED = "first good "


def _recovered(e: Example) -> str:
    operation = str(e.more["kind"]).removeprefix(_RECOVERED)
    since = f" after {e.after}" if e.after else ""
    return f"{e.who} had no good {operation} until {moment(e.to_ms or e.from_ms or 0.0)}, {_measured(e)}{since}"


_OF_KIND: Mapping[str, Callable[[Example], str]] = {
    "must not be dropped": _dropped,
    "dropped too soon": _dropped,
    "must hold": _missing,
    "must not hold": _held,
    "held too long": lambda e: f"{e.who} held {_about(e)} from {_at(e)} on, for {_measured(e)}",
    "missing too long": lambda e: f"{e.who} missed {_about(e)} from {_at(e)} on, for {_measured(e)}",
    "must be equal": _differed,
    "promised to agree": _differed,
    "promised to stay": lambda e: (
        f"the master of {e.what} at {e.who} changed its address from {_at(e)} on, for {_measured(e)} "
        f"({e.more.get('masters')})"
    ),
    "promised to last": lambda e: f"{e.what} could be written to at {e.who} {_until(e)}",
    "promised to poll": lambda e: f"{e.who} asked for no route {_until(e)}",
    "must own": _owned,
    "must alone own": _owned,
    "must not come back": _came_back,
    "must not use": _used,
    "must have left": _stayed,
    "must give up": _waited,
    "must not ask": _asked,
    "must not ask again": _asked_again,
}

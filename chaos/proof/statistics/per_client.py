"""Each client's sends, recovery and time without a broker in a run, and the difference from another run. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median_low
from typing import Any

from ...history.matching import TransitionPair, matched
from ...history.transitions import Transition
from ...reports.cost import LEAST_MS, Cost
from ...verdict import singular

EVENTS = ("send", "send_attempt", "fault", "phase")
_FAR = 0.1
"""Numbers whose difference is less than this part are equal, and times whose difference is less than 5 s, too."""
CHANGED_MAX = 12
"""Most differing transitions that are listed."""
_APART_MS = 1_000.0
_MEANING = (
    "without a broker: the longest time in which one broker answered none of the client's sends and pulls; "
    "last failed send: the time from the first fault to it; of several runs each figure is the median"
)


@dataclass(slots=True)
class ClientFigures:
    """One client's figures in a run. Times are in milliseconds; None means that the event did not happen."""

    sends: int = 0
    failed: int = 0
    failed_tries: int = 0
    """Tries of its sends that failed, whether or not a later try saved the send."""
    without_broker_ms: float = 0.0
    """The longest time in which a broker answered none of its sends or pulls."""
    recovered_ms: float | None = None
    """From the first fault to the last failed send, 0 if none failed after it; None for a consumer."""
    transitions: int = 0


def clients_of(
    rows: Iterable[Mapping[str, Any]],
    begin_ms: float,
    to_ms: float,
    transitions: Sequence[Transition],
    names: Mapping[str, str],
    cost: Cost | None,
) -> dict[str, ClientFigures]:
    """Return each client's figures. Sends, failures and recovery are counted from `begin_ms` to `to_ms` on the
    history's time axis. `without_broker_ms` is taken from `cost`, which covers the whole run. `rows` are in order of
    time."""
    found: dict[str, ClientFigures] = defaultdict(ClientFigures)
    fault_ms: float | None = None
    for row in rows:
        at_ms = float(row["time_ms"])
        if not begin_ms <= at_ms < to_ms:
            continue
        event = row["event"]
        if event == "fault" and row.get("phase") == "start" and fault_ms is None:
            fault_ms = at_ms
        if event == "send_attempt" and row.get("type") in ("fail", "info"):
            found[names.get(row["node"], row["node"])].failed_tries += 1
        if event == "send" and row.get("type") in ("ok", "fail", "info"):
            client = found[names.get(row["node"], row["node"])]
            client.sends += 1
            if client.recovered_ms is None:
                client.recovered_ms = 0.0
            if row["type"] != "ok":
                client.failed += 1
                if fault_ms is not None:
                    client.recovered_ms = at_ms - fault_ms
    for gap in cost.without_broker if cost is not None else ():
        client = found[names.get(gap.client, gap.client)]
        client.without_broker_ms = max(client.without_broker_ms, gap.took_ms)
    for one in transitions:
        if one.node in found:
            found[one.node].transitions += 1
    return dict(found)


def typical(runs: Sequence[Mapping[str, ClientFigures]]) -> dict[str, ClientFigures]:
    """Return for each client the median of each figure over the runs."""
    found: dict[str, ClientFigures] = {}
    for name in sorted({name for run in runs for name in run}):
        figures = found[name] = ClientFigures()
        for figure in asdict(figures):
            known = [value for run in runs if name in run and (value := getattr(run[name], figure)) is not None]
            setattr(figures, figure, median_low(known) if known else None)
    return found


def beside(
    vary: str,
    was: Mapping[str, ClientFigures],
    now: Mapping[str, ClientFigures],
    transitions: tuple[Sequence[Transition], Sequence[Transition]],
    costs: tuple[Cost | None, Cost | None],
    tested: str = "",
) -> dict[str, Any]:
    """Return each client's figures and the costs of both runs, and the difference in a sentence. `vary` says which
    setting was changed. `tested`: what a test of several runs says; without it the sentence calls nothing better or
    worse, because two runs do not show what is chance."""
    pairs = matched(*transitions)
    changed = [pair for pair in pairs if pair.apart_ms is None or abs(pair.apart_ms) > _APART_MS]
    changes = {
        "was": len(transitions[0]),
        "now": len(transitions[1]),
        "gone": sum(pair.replay is None for pair in changed),
        "new": sum(pair.original is None for pair in changed),
        "moved": sum(None not in pair for pair in changed),
    }
    clients = {
        name: (asdict(was.get(name, ClientFigures())), asdict(now.get(name, ClientFigures())))
        for name in sorted({*was, *now})
    }
    return {
        "vary": vary,
        "transitions": changes,
        "changed": [_changed(pair) for pair in changed],
        "clients": clients,
        "cost": [None if cost is None else cost.sentence for cost in costs],
        "sentence": f"With {vary}, {'. '.join([tested or _figures(was, now, costs), *_moved(changes, tested)])}.",
    }


def _figures(
    was: Mapping[str, ClientFigures], now: Mapping[str, ClientFigures], costs: tuple[Cost | None, Cost | None]
) -> str:
    parts = list[str]()

    def say(said: str, then: float, since: float) -> None:
        parts.append(f"{'more' if since > then else 'fewer'} {said}")

    failed = sum(one.failed for one in was.values()), sum(one.failed for one in now.values())
    sends = sum(one.sends for one in was.values()), sum(one.sends for one in now.values())
    if failed[0] != failed[1]:
        was_share, share = (f"{100 * f / n:.1f} %" if n else "none" for f, n in zip(failed, sends, strict=True))
        counts = f"{failed[1]:,} instead of {failed[0]:,}"
        say(f"failed sends: {counts} ({share} instead of {was_share} of all sends)", *failed)
    tries = sum(one.failed_tries for one in was.values()), sum(one.failed_tries for one in now.values())
    if tries[0] != tries[1]:
        say(f"failed tries of sends: {tries[1]:,} instead of {tries[0]:,}", *tries)
    none = ClientFigures()
    both = [(was.get(client, none), now.get(client, none), client) for client in sorted({*was, *now})]
    gaps = [(one.without_broker_ms, other.without_broker_ms, client) for one, other, client in both]
    for word in ("shorter", "longer"):
        if of := [gap for gap in gaps if _differ(*gap[:2]) and (gap[1] < gap[0]) == (word == "shorter")]:
            then, since, client = max(of, key=lambda gap: max(gap[:2]))
            who = f"{client} is" if len(of) == 1 else f"{len(of)} clients are"
            most = "" if len(of) == 1 else f", {client} the longest"
            parts.append(f"{who} without a broker for a {word} time{most}: {_s(since)} instead of {_s(then)}")
    last = _worst(was, "recovered_ms"), _worst(now, "recovered_ms")
    if last[0] is not None and last[1] is not None and _differ(last[0], last[1]):
        after = f"the last failed send is {_s(last[1])} instead of {_s(last[0])} after the fault"
        if not last[1]:
            after = f"no send fails after the fault; without the change the last failed {_s(last[0])} after it"
        elif not last[0]:
            after = f"the last failed send is {_s(last[1])} after the fault; without the change none failed after it"
        parts.append(after)
    waited = [cost.messages["waited"] for cost in costs if cost is not None]
    if len(waited) == 2 and abs(waited[1] - waited[0]) > _FAR * max(waited):
        late = f"messages arrived more than {LEAST_MS / 1000:g} s after their send"
        say(f"{late}: {waited[1]:,} instead of {waited[0]:,}", *waited)
    return f"in one run: {'; '.join(parts) or 'the clients fare the same'}"


def _moved(changes: Mapping[str, int], tested: str) -> list[str]:
    told = [f"{changes['gone']} would not have happened"] if changes["gone"] else []
    told += [f"{changes['moved']} would have happened at another time"] if changes["moved"] else []
    told += [f"{changes['new']} more would have happened"] if changes["new"] else []
    of = f"Of {changes['was']} transitions{' in the first run' if tested else ''}"
    return [singular(f"{of} {', '.join(told) or 'all would have happened, at the same times'}")]


def _differ(then_ms: float, since_ms: float) -> bool:
    return abs(since_ms - then_ms) > max(_APART_MS, min(LEAST_MS, _FAR * max(since_ms, then_ms)))


def _changed(pair: TransitionPair) -> str:
    """Return `ns-0 lost broker-a (silent): at 209.2 s instead of 165.0 s`."""
    was, now = pair
    told = pair.what.words
    if was is None or now is None:
        return f"{told}, at {_s(pair.what.at_ms)}: only {'with' if was is None else 'without'} the change"
    return f"{told}: at {_s(now.at_ms)} instead of {_s(was.at_ms)}"


def _worst(of: Mapping[str, ClientFigures], name: str) -> float | None:
    return max((getattr(one, name) for one in of.values() if getattr(one, name) is not None), default=None)


def client_lines(variants: Sequence[Mapping[str, Any]], file: str = "") -> Iterator[str]:
    """Return the result of `beside` as lines of text: sentences, and one table of the clients. `file` has all
    transitions that differ."""
    if not variants:
        return
    for one in variants:
        yield one["sentence"]
        yield from (f"  {said}" for said in one["changed"][:CHANGED_MAX])
        if (more := len(one["changed"]) - CHANGED_MAX) > 0:
            yield f"  and {more} more{file and f', in {file}'}"
    width = max((len(client) for one in variants for client in one["clients"]), default=6)
    head = f"{'failed sends':>14}  {'failed tries':>14}  {'without a broker':>20}  {'last failed send':>20}  "
    head += f"{'transitions':>11}"
    yield f"  {'client':{width}}  {head}"
    for one in variants:
        yield f"  {one['vary']}"
        for client, (was, now) in one["clients"].items():
            failed, tries = (f"{was[name]} -> {now[name]}" for name in ("failed", "failed_tries"))
            gap = f"{_s(was['without_broker_ms'])} -> {_s(now['without_broker_ms'])}"
            recovered = f"{_last(was['recovered_ms'])} -> {_last(now['recovered_ms'])}"
            changes = f"{was['transitions']} -> {now['transitions']}"
            yield f"  {client:{width}}  {failed:>14}  {tries:>14}  {gap:>20}  {recovered:>20}  {changes:>11}"
    yield f"  {_MEANING}"


def _last(recovered_ms: float | None) -> str:
    """Return when the last send failed; `none` if no send failed after the fault, `-` for a consumer."""
    return "none" if recovered_ms == 0 else _s(recovered_ms)


def _s(ms: float | None) -> str:
    return "-" if ms is None else f"{ms / 1000:.1f} s"

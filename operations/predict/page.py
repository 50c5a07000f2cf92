"""Predictions as a person reads them: a table for each fault, and what other settings would change, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...chaos.topology import listed
from .distribution import NEVER, quantile
from .prediction import SHARES, Prediction, Share, Told, Variant, Way
from .quantities import LEFT, RELEASED, ROUTE, Quantity

_WIDTH = 48
_HEAD = "   ".join(("  p50", "  p90", "  p99", "least .. most"))


def page(variants: Sequence[Variant]) -> str:
    """All of it."""
    lines: list[str] = []
    for variant in variants:
        if lines:
            lines.append("")
        lines += _variant(variant, several=len(variants) > 1)
    lines += _changes(variants)
    return "\n".join(lines)


def _variant(variant: Variant, *, several: bool) -> Iterator[str]:
    scenario = variant.scenario
    if several:
        yield f"== {variant.name}"
    cluster, workload = scenario.cluster, scenario.workload
    yield (
        f"{scenario.name}: profile {cluster.profile}, {cluster.name_servers} NameServers, {cluster.brokers} brokers, "
        f"{workload.producers} producers of {workload.sends_per_s:g} sends a second each, {workload.consumers} "
        "consumers; in seconds from the start of the fault"
    )
    for prediction in variant.predictions:
        yield ""
        yield from _prediction(prediction)


def _prediction(prediction: Prediction) -> Iterator[str]:
    subject = prediction.subject
    yield f"{subject.what}, at {subject.start_ms / 1000:g} s for {subject.lasts_ms / 1000:g} s"
    ways = [
        (name, way)
        for name, way in (("window model", prediction.model), ("virtual runs", prediction.runs))
        if way is not None
    ]
    if prediction.model is None:
        yield f"virtual runs only: {prediction.no_figure}" + ("" if ways else "; ask for some with --runs")
    if not ways:
        return
    yield " " * _WIDTH + "  |  ".join(f"{_counted(name, way):<42}" for name, way in ways).rstrip()
    yield " " * _WIDTH + "  |  ".join(f"{_HEAD:<42}" for _ in ways).rstrip()
    differ = set(prediction.disagreements())
    for words, rows in _alike(prediction):
        cells = [_told(way.told.get(rows[0])) for _, way in ways]
        mark = "  differ by more than chance" if any(row.words in differ for row in rows) else ""
        yield f"{words:<{_WIDTH}}" + "  |  ".join(f"{cell:<42}" for cell in cells).rstrip() + mark
    shares = [way.sends for _, way in ways]
    if any(share is not None for share in shares):
        mark = "  differ by more than chance" if "failed sends" in differ else ""
        yield (
            f"{'sends that fail meanwhile':<{_WIDTH}}"
            + "  |  ".join(f"{_share(each):<42}" for each in shares).rstrip()
            + mark
        )
    if prediction.model is not None and prediction.runs is not None and not differ:
        yield "model and runs differ by no more than chance"


def _counted(name: str, way: Way) -> str:
    if name == "window model":
        return f"{name}, {way.count:,} draws in {1000 * way.took_s:,.0f} ms"
    return f"{name}: {way.count}, in {way.took_s:,.1f} s"


def _alike(prediction: Prediction) -> Iterator[tuple[str, list[Quantity]]]:
    """Every quantity, but NameServers of which the same is said together."""
    groups: dict[tuple[str, ...], list[Quantity]] = {}
    for quantity in prediction.quantities():
        server = quantity.who.startswith("ns-")
        told = () if not server or prediction.runs is None else (_told(prediction.runs.told.get(quantity)),)
        key = (quantity.what, quantity.whom, "" if server else quantity.who, *told)
        groups.setdefault(key, []).append(quantity)
    for same in groups.values():
        first = same[0]
        who = listed(each.who for each in same)
        yield first._replace(who=who).words, same


def _told(told: Told | None) -> str:
    if told is None:
        return "–"
    cells = [_seconds(quantile(told.values, share)) for share in SHARES]
    return "   ".join([*cells, f"{_seconds(min(told.values)).strip()} .. {_seconds(max(told.values)).strip()}"])


def _seconds(value_ms: float) -> str:
    if value_ms == NEVER:
        return "never"
    return f"{value_ms / 1000:5.1f}"


def _share(share: Share | None) -> str:
    if share is None or math.isnan(share.share):
        return "–"
    return f"{100 * share.share:.1f} %: {share.failed:,.0f} of {share.of:,.0f}"


def _changes(variants: Sequence[Variant]) -> Iterator[str]:
    """What each other setting changes, of clients' times and failed sends."""
    if len(variants) < 2:
        return
    yield ""
    before = variants[0]
    for after in variants[1:]:
        said = list(_changed(before, after))
        yield f"with {after.name}:" + ("" if said else " nothing of this changes")
        yield from said


def _changed(before: Variant, after: Variant) -> Iterator[str]:
    for old, new in zip(before.predictions, after.predictions, strict=True):
        was, is_ = (one.model or one.runs for one in (old, new))
        if was is None or is_ is None:
            continue
        for quantity, told in was.told.items():
            other = is_.told.get(quantity)
            if other is None or quantity.what not in _OF_CLIENTS:
                continue
            from_ms, to_ms = quantile(told.values, 0.9), quantile(other.values, 0.9)
            if _seconds(from_ms) != _seconds(to_ms):
                yield (
                    f"  {quantity.words}: p90 {_way_of(from_ms, to_ms)} from {_seconds(from_ms).strip()} "
                    f"to {_seconds(to_ms).strip()} s"
                )
        if was.sends is not None and is_.sends is not None:
            first, second = was.sends.share, is_.sends.share
            if f"{first:.3f}" != f"{second:.3f}":
                fell = f"{_way_of(first, second)} from {100 * first:.1f} to {100 * second:.1f} %"
                yield f"  share of failed sends: {fell}"


_OF_CLIENTS = (ROUTE, RELEASED, LEFT, "last failed send")


def _way_of(before: float, after: float) -> str:
    return "falls" if after < before else "rises"

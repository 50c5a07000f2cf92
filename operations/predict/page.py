"""Predictions as a person reads them: a table for each fault, and what other settings would change, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...chaos.checks.service.recovery_time import percentile
from ...chaos.topology import listed
from .prediction import SHARES, Prediction, Variant
from .recovery import LAST_FAILED, LEFT, NEVER, RELEASED, ROUTE, Quantity

_WIDTH = 48
_OF_CLIENTS = (ROUTE, RELEASED, LEFT, LAST_FAILED)


def page(variants: Sequence[Variant]) -> str:
    """All of it."""
    lines: list[str] = []
    for variant in variants:
        lines += [""] if lines else []
        lines += _variant(variant, several=len(variants) > 1)
    for after in variants[1:]:
        changed = list(_changed(variants[0], after))
        lines += ["", f"with {after.name}:" + ("" if changed else " nothing of this changes"), *changed]
    return "\n".join(lines)


def _variant(variant: Variant, *, several: bool) -> Iterator[str]:
    if several:
        yield f"== {variant.name}"
    cluster, workload = variant.scenario.cluster, variant.scenario.workload
    yield (
        f"{variant.scenario.name}: profile {cluster.profile}, {cluster.name_servers} NameServers, {cluster.brokers} "
        f"brokers, {workload.producers} producers of {workload.sends_per_s:g} sends a second each, "
        f"{workload.consumers} consumers; in seconds from the start of the fault"
    )
    for prediction in variant.predictions:
        yield ""
        yield from _prediction(prediction)


def _prediction(prediction: Prediction) -> Iterator[str]:
    fault = prediction.fault
    yield f"{fault.what}, at {fault.start_ms / 1000:g} s for {fault.lasts_ms / 1000:g} s"
    runs = f"virtual runs: {len(prediction.runs)}, in {prediction.took_s:,.1f} s"
    yield f"{runs:<{_WIDTH}}" + "   ".join(("  p50", "  p90", "  p99", "least .. most"))
    alike: dict[tuple[str, ...], list[Quantity]] = {}  # NameServers of which the same is said are one line
    for quantity, values in prediction.quantities.items():
        whose = () if quantity.who.startswith("ns-") else (quantity.who,)
        alike.setdefault((quantity.what, quantity.whom, _cells(values), *whose), []).append(quantity)
    for (_, _, cells, *_), same in alike.items():
        yield f"{same[0]._replace(who=listed(each.who for each in same)).words:<{_WIDTH}}{cells}"
    if prediction.failed_share is not None:
        failed, of = prediction.sends
        share = f"{100 * prediction.failed_share:.1f} %: {failed:,.0f} of {of:,.0f}"
        yield f"{'sends that fail meanwhile':<{_WIDTH}}{share}"


def _cells(values: Sequence[float]) -> str:
    ends = " .. ".join(_seconds(end).strip() for end in (min(values), max(values)))
    return "   ".join([*(_seconds(percentile(values, share)) for share in SHARES), ends])


def _seconds(value_ms: float | None) -> str:
    return "never" if value_ms is None or value_ms == NEVER else f"{value_ms / 1000:5.1f}"


def _changed(before: Variant, after: Variant) -> Iterator[str]:
    """What another setting changes, of clients' times and failed sends."""
    for old, new in zip(before.predictions, after.predictions, strict=True):
        others = new.quantities
        for quantity, values in old.quantities.items():
            if quantity.what in _OF_CLIENTS and quantity in others:
                was, is_ = (percentile(of, 0.9) or 0.0 for of in (values, others[quantity]))
                if _seconds(was) != _seconds(is_):
                    told = f"{_way(was, is_)} from {_seconds(was).strip()} to {_seconds(is_).strip()} s"
                    yield f"  {quantity.words}: p90 {told}"
        was, is_ = old.failed_share or 0.0, new.failed_share or 0.0
        if f"{was:.3f}" != f"{is_:.3f}":
            yield f"  share of failed sends: {_way(was, is_)} from {100 * was:.1f} to {100 * is_:.1f} %"


def _way(before: float, after: float) -> str:
    return "falls" if after < before else "rises"

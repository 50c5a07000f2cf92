"""Predicts recovery times by running a scenario many times on the virtual clock, each time with other random timer
phases. The result is a distribution, as JSON or as tables.
"""

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from ...chaos.checks.record.recoveries import percentile
from ...chaos.history.rows import read_rows
from ...chaos.machine import in_processes, processors
from ...chaos.runner import record_virtual
from ...chaos.scenarios.model import Scenario
from ...chaos.topology import listed
from ...chaos.verdict import singular
from .faults import FaultSpan, faults_of
from .recovery_times import EVENTS, LAST_FAILED, LEFT, NEVER, RELEASED, ROUTE, Quantity, RunRecovery, recovery_of

SHARES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The recovery times after one fault of a scenario, in all runs."""

    fault: FaultSpan
    runs: tuple[RunRecovery, ...]
    took_s: float

    @property
    def quantities(self) -> dict[Quantity, list[float]]:
        """Return the values of each predicted time, from all runs and all nodes. Milliseconds, or NEVER."""
        names = dict.fromkeys(name for run in self.runs for name in run.values)
        return {name: [value for run in self.runs for value in run.values.get(name, ())] for name in names}

    def has_never(self, broker: str) -> bool:
        """Whether a client of some run kept the broker in its route until the end of the fault."""
        return any(NEVER in of for name, of in self.quantities.items() if (name.what, name.whom) == (ROUTE, broker))

    @property
    def failed_share(self) -> float | None:
        """The share of failed sends among the sends begun during the fault; None if there were no sends."""
        begun = sum(run.begun for run in self.runs)
        return sum(run.failed for run in self.runs) / begun if begun else None

    @property
    def sends(self) -> tuple[float, float]:
        """The mean number per run of failed sends, and of all sends, that were begun during the fault."""
        return fmean(run.failed for run in self.runs), fmean(run.begun for run in self.runs)

    def to_json(self) -> dict[str, Any]:
        recovery = [
            {"who": name.who, "what": name.what, "whom": name.whom or None, **_distribution(values)}
            for name, values in self.quantities.items()
        ]
        failed = None
        if self.failed_share is not None:
            each = [run.failed / run.begun for run in self.runs if run.begun]
            shares = {f"p{100 * share:.0f}": percentile(each, share) for share in SHARES}
            failed = {"share": self.failed_share, "failed": self.sends[0], "of": self.sends[1], **shares}
        runs = {"count": len(self.runs), "took_s": round(self.took_s, 3), "recovery": recovery, "failed_sends": failed}
        return {"fault": self.fault.what, "lasts_s": self.fault.lasts_ms / 1000, "runs": runs}


def _distribution(values: Sequence[float]) -> dict[str, Any]:
    found = {f"p{100 * share:.0f}_ms": percentile(values, share) for share in SHARES}
    found |= {"least_ms": min(values), "most_ms": max(values)}
    plain = {key: round(value, 3) if value is not None and value < NEVER else None for key, value in found.items()}
    return {**plain, "never": sum(map(math.isinf, values)) / len(values), "values": len(values)}


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    scenario: Scenario
    predictions: tuple[Prediction, ...]


def predict(
    name: str,
    scenario: Scenario,
    *,
    runs: int,
    seed: int = 1,
    done: Callable[[], None] = lambda: None,
) -> Variant:
    """Run the scenario `runs` times. Run k has the seed `seed` + k, which decides the random timer phases. `done`
    is called after each run. Raises ScenarioError for a scenario without a fault."""
    faults, begin_s = faults_of(scenario), time.monotonic()
    workload = scenario.workload.model_copy(update={"client_starts": 0, "start_bias": None})
    lean = scenario.model_copy(update={"workload": workload, "seed": None})  # recovery needs no prober's starts
    found = []
    for of_run in in_processes(_ran, [(lean, faults, seed + k) for k in range(runs)], processors()):
        found.append(of_run)
        done()
    took_s = time.monotonic() - begin_s
    predictions = (Prediction(fault, of, took_s) for fault, of in zip(faults, zip(*found, strict=True), strict=True))
    return Variant(name, scenario, tuple(predictions))


def _ran(job: tuple[Scenario, Sequence[FaultSpan], int]) -> list[RunRecovery]:
    scenario, faults, seed = job
    with tempfile.TemporaryDirectory(prefix="nemesrv-predict-") as folder:
        rows = read_rows(record_virtual(scenario, seed, Path(folder) / "run", latest=False).path, EVENTS)
    topics = {client: scenario.topic_of(client) for client in scenario.topology().kinds}
    return [recovery_of(rows, fault, topics) for fault in faults]


# -- as a person reads it

_WIDTH = 48
_OF_CLIENTS = (ROUTE, RELEASED, LEFT, LAST_FAILED)


def page(variants: Sequence[Variant]) -> str:
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
    yield singular(
        f"{variant.scenario.name}: profile {cluster.profile}, {cluster.name_servers} NameServers, {cluster.brokers} "
        f"brokers, {workload.producers} producers of {workload.sends_per_s:g} sends a second each, "
        f"{workload.consumers} consumers; in seconds from the start of the fault"
    )
    if phases := variant.scenario.phases:
        yield (
            f"The scenario sets timer phases (nodes: {len(phases)}), which every run has, as in one incident. How "
            "long clients take after any such fault: --set 'phases={}'"
        )
    for prediction in variant.predictions:
        yield ""
        yield from _prediction(prediction, cluster.name_servers)


def _prediction(prediction: Prediction, name_servers: int) -> Iterator[str]:
    fault = prediction.fault
    yield f"{fault.what}{fault.means}, at {fault.start_ms / 1000:g} s for {fault.lasts_ms / 1000:g} s"
    runs = f"virtual runs: {len(prediction.runs)}, in {prediction.took_s:,.1f} s"
    yield f"{runs:<{_WIDTH}}" + "   ".join(("  p50", "  p90", "  p99", "least .. most"))
    alike: dict[tuple[str, ...], list[Quantity]] = {}  # NameServers of which the same is said are one line
    for quantity, values in prediction.quantities.items():
        whose = () if quantity.who.startswith("ns-") else (quantity.who,)
        alike.setdefault((quantity.what, quantity.whom, _cells(values), *whose), []).append(quantity)
    for (_, _, cells, *_), same in alike.items():
        yield f"{same[0]._replace(who=listed(each.who for each in same)).words:<{_WIDTH}}{cells}"
    for broker, servers in fault.unheard.items():
        if len(servers) < name_servers and prediction.has_never(broker):
            yield f"(only {listed(sorted(servers))} can drop {broker}: clients of other NameServers keep it, so never)"
    if prediction.failed_share is not None:
        failed, of = prediction.sends
        share = f"{100 * prediction.failed_share:.1f} %: {failed:,.0f} of {of:,.0f}"
        yield f"{'sends that fail meanwhile':<{_WIDTH}}{share}"


def _cells(values: Sequence[float]) -> str:
    ends = " .. ".join(_seconds(end).strip() for end in (min(values), max(values)))
    never = sum(map(math.isinf, values))
    ends += f"   (never: {never} of {len(values)})" if never else ""
    return "   ".join([*(_seconds(percentile(values, share)) for share in SHARES), ends])


def _seconds(value_ms: float | None) -> str:
    return "never" if value_ms is None or value_ms == NEVER else f"{value_ms / 1000:5.1f}"


def _changed(before: Variant, after: Variant) -> Iterator[str]:
    """The effect of another setting on clients' times and failed sends."""
    for old, new in zip(before.predictions, after.predictions, strict=True):
        others = new.quantities
        for quantity, values in old.quantities.items():
            if quantity.what in _OF_CLIENTS and quantity in others:
                was, is_ = (percentile(of, 0.9) or 0.0 for of in (values, others[quantity]))
                if _seconds(was) != _seconds(is_):
                    told = f"{_way(was, is_)} from {_seconds(was).strip()} to {_seconds(is_).strip()} s"
                    if NEVER in (was, is_):
                        told = f"{_or_never(was)} before, {_or_never(is_)} with it"
                    yield f"  {quantity.words}: p90 {told}"
        was, is_ = old.failed_share or 0.0, new.failed_share or 0.0
        if f"{was:.3f}" != f"{is_:.3f}":
            yield f"  share of failed sends: {_way(was, is_)} from {100 * was:.1f} to {100 * is_:.1f} %"


def _or_never(value_ms: float) -> str:
    return "never" if value_ms == NEVER else f"{_seconds(value_ms).strip()} s"


def _way(before: float, after: float) -> str:
    return "falls" if after < before else "rises"

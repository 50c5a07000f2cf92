"""All that is predicted of one scenario, or of the same with other settings: by the model, by runs, side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from ...chaos.scenarios.model import Scenario
from .distribution import NEVER, by_chance, quantile
from .model import DRAWS, NoFigure, WindowModel
from .quantities import FAILED_SENDS, Quantity, Sample
from .subject import Subject, subjects_of

SHARES = (0.5, 0.9, 0.99)
ALPHA = 0.01
"""That the model and the runs of one prediction are said to disagree although they do not, at most."""
GRAIN_MS = 50.0
"""Less apart is the same: what "at once" may take."""
FEW_RUNS = 4
"""With fewer runs nothing is said of chance."""


@dataclass(frozen=True, slots=True)
class Told:
    """One quantity by one way: over all draws or runs, and all who have it. Milliseconds, NEVER among them."""

    values: tuple[float, ...]
    by_draw: tuple[float, ...]
    """The median of each draw or run: those of one share its luck."""

    def to_json(self) -> dict[str, Any]:
        ends = {"least_ms": min(self.values), "most_ms": max(self.values)}
        found = {f"p{100 * share:.0f}_ms": quantile(self.values, share) for share in SHARES} | ends
        never = sum(value == NEVER for value in self.values) / len(self.values)
        return {**{key: _plain(value) for key, value in found.items()}, "never": never, "values": len(self.values)}


@dataclass(frozen=True, slots=True)
class Share:
    """Sends that failed: of all draws or runs together, and each one's own share."""

    failed: float
    of: float
    by_draw: tuple[float, ...]

    @property
    def share(self) -> float:
        return self.failed / self.of if self.of else math.nan

    def to_json(self) -> dict[str, Any]:
        found = {f"p{100 * share:.0f}": quantile(self.by_draw, share) for share in SHARES}
        return {"share": self.share, "failed": self.failed, "of": self.of, **found}


@dataclass(slots=True)
class Way:
    """What one way says: the model, or the runs."""

    count: int
    took_s: float
    told: dict[Quantity, Told] = field(default_factory=dict)
    sends: Share | None = None

    @classmethod
    def of(cls, samples: Sequence[Sample], took_s: float) -> Way:
        way = cls(len(samples), took_s)
        for quantity in dict.fromkeys(name for sample in samples for name in sample.values):
            each = [sample.values[quantity] for sample in samples if sample.values.get(quantity)]
            way.told[quantity] = Told(tuple(v for values in each for v in values), tuple(median(v) for v in each))
        counts = [sample.counts[FAILED_SENDS] for sample in samples if FAILED_SENDS in sample.counts]
        if counts:
            shares = tuple(failed / of for failed, of in counts if of)
            way.sends = Share(fmean(failed for failed, _ in counts), fmean(of for _, of in counts), shares)
        return way


@dataclass(slots=True)
class Prediction:
    """Of one fault of one scenario."""

    subject: Subject
    model: Way | None
    no_figure: str
    """Why the model says nothing; "" where it does."""
    runs: Way | None = None

    def quantities(self) -> list[Quantity]:
        ways = [way for way in (self.model, self.runs) if way is not None]
        return list(dict.fromkeys(quantity for way in ways for quantity in way.told))

    def chance(self, quantity: Quantity) -> float | None:
        """The probability that model and runs are as far apart as they are, or farther, if they are of one
        distribution; None where there is not enough to say it."""
        if self.model is None or self.runs is None:
            return None
        model, runs = self.model.told.get(quantity), self.runs.told.get(quantity)
        if model is None or runs is None or len(runs.by_draw) < FEW_RUNS:
            return None
        return by_chance(model.by_draw, runs.by_draw, GRAIN_MS)

    def chance_of_sends(self) -> float | None:
        """The same of the share of failed sends, to half a percent of all sends."""
        if self.model is None or self.runs is None or self.model.sends is None or self.runs.sends is None:
            return None
        if len(self.runs.sends.by_draw) < FEW_RUNS:
            return None
        return by_chance(self.model.sends.by_draw, self.runs.sends.by_draw, 0.005)

    def disagreements(self) -> list[str]:
        """Where the two differ by more than chance (Bonferroni over all that is compared), in words."""
        chances = {quantity.words: self.chance(quantity) for quantity in self.quantities()}
        chances[FAILED_SENDS] = self.chance_of_sends()
        known = {what: chance for what, chance in chances.items() if chance is not None}
        return [what for what, chance in known.items() if chance < ALPHA / len(known)]

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "fault": self.subject.what,
            "lasts_s": self.subject.lasts_ms / 1000,
            "model": None if self.model is None else _way(self.model),
            "no_figure": self.no_figure or None,
            "runs": None if self.runs is None else _way(self.runs),
        }
        if self.model is not None and self.runs is not None:
            document["disagree"] = self.disagreements()
        return document


@dataclass(frozen=True, slots=True)
class Variant:
    """The scenario as it is, or with something set."""

    name: str
    scenario: Scenario
    predictions: tuple[Prediction, ...]


def predict(
    name: str,
    scenario: Scenario,
    *,
    draws: int = DRAWS,
    runs: int = 0,
    seed: int = 1,
    done: Callable[[int], None] = lambda _number: None,
) -> Variant:
    """By the model where it has a figure, and by so many runs. ScenarioError for a scenario without a fault."""
    subjects = subjects_of(scenario)
    found = [_by_model(scenario, subject, len(subjects), draws, seed) for subject in subjects]
    if runs:
        from .runs import virtual_runs  # the whole experiment, which the model does without

        begin_s = time.monotonic()
        samples = virtual_runs(scenario, subjects, runs, seed, done)
        for prediction, of in zip(found, samples, strict=True):
            prediction.runs = Way.of(of, time.monotonic() - begin_s)
    return Variant(name, scenario, tuple(found))


def _by_model(scenario: Scenario, subject: Subject, faults: int, draws: int, seed: int) -> Prediction:
    if faults > 1:
        return Prediction(subject, None, f"{faults} faults, and the model knows one at a time")
    begin_s = time.process_time()
    try:
        samples = WindowModel(scenario, subject).sample(draws, seed)
    except NoFigure as exc:
        return Prediction(subject, None, f"the model has no figure for {exc}")
    return Prediction(subject, Way.of(samples, time.process_time() - begin_s), "")


def _way(way: Way) -> dict[str, Any]:
    return {
        "count": way.count,
        "took_s": round(way.took_s, 3),
        "recovery": [
            {"who": quantity.who, "what": quantity.what, "whom": quantity.whom or None, **told.to_json()}
            for quantity, told in way.told.items()
        ],
        "failed_sends": None if way.sends is None else way.sends.to_json(),
    }


def _plain(value: float) -> float | None:
    return round(value, 3) if math.isfinite(value) else None

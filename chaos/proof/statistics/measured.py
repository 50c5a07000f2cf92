"""What else two sides are shown beside each other: windows of the servers, routes at the end. Described, not tested.

    registration period      per NameServer and broker: from one accepted registration to the next
    silence before a drop    per drop at a NameServer: since the broker's last registration there
    drop, return             per NameServer or client, broker and change, as staleness counts it: until its route had
                             the broker no more, or again
    good send                per producer: the median of its sends that succeeded

Pure functions on rows; times are milliseconds of RocketMQ time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...history.schema import object_of
from .two_samples import Numbers, hodges_lehmann

EVENTS = ("registration", "broker_dropped", "route", "started")
"""The rows that `windows_of` and `routes_of` read."""
RESAMPLES = 2_000
_SUCCESS = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One window on both sides: how many values, the median with its interval, and B − A with its."""

    name: str
    n: tuple[int, int]
    median: tuple[float | None, float | None]
    interval: tuple[tuple[float, float] | None, tuple[float, float] | None]
    difference: tuple[float, float, float] | None
    """B − A (Hodges-Lehmann), from, to."""


def windows_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[float, ...]]:
    """Periods and silences, from the rows of one run in order of time."""
    last: dict[tuple[str, str], float] = {}
    found = defaultdict[str, list[float]](list)
    for row in rows:
        key = (str(row["node"]), str(row.get("address")))
        if row["event"] == "registration" and row.get("code") in (None, _SUCCESS):
            if key in last:
                found["registration period"].append(row["time_ms"] - last[key])
            last[key] = row["time_ms"]
        elif row["event"] == "broker_dropped" and key in last:
            found["silence before a drop"].append(row["time_ms"] - last.pop(key))
    return {name: tuple(values) for name, values in found.items()}


def routes_of(rows: Iterable[Mapping[str, Any]], name_servers: Sequence[str]) -> dict[str, str]:
    """NameServer to what it held at the end, whatever the ports: topic, brokers with their ids, and queues."""
    held: dict[str, dict[str, object]] = {name: {} for name in name_servers}
    for row in rows:
        if row["node"] not in held:
            continue
        if row["event"] == "started":
            held[row["node"]] = {}
        elif row["event"] == "route":
            value = object_of(row.get("value"))
            brokers = {name: sorted(ids) for name, ids in (value.get("brokers") or {}).items()}
            topics = held[row["node"]]
            if brokers:
                topics[row["topic"]] = {"brokers": brokers, "queues": value.get("queues")}
            else:
                topics.pop(row["topic"], None)
    return {name: json.dumps(topics, sort_keys=True) for name, topics in held.items()}


def side_by_side(
    a: Sequence[Mapping[str, Sequence[float]]],
    b: Sequence[Mapping[str, Sequence[float]]],
    *,
    by_run: bool,
    alpha: float,
    seed: int,
) -> list[Shown]:
    """One for each window that either side has; a run's value is the median of its own."""
    names = dict.fromkeys(name for run in (*a, *b) for name in run)
    shown = []
    for index, name in enumerate(names):
        rng = np.random.default_rng([seed, index])
        sides = [_values(side, name, by_run) for side in (a, b)]
        both = all(len(values) for values in sides)
        shown.append(
            Shown(
                name=name,
                n=(len(sides[0]), len(sides[1])),
                median=(_median(sides[0]), _median(sides[1])),
                interval=(_interval(sides[0], alpha, rng), _interval(sides[1], alpha, rng)),
                difference=hodges_lehmann(sides[0], sides[1], alpha, rng) if both else None,
            )
        )
    return shown


def topics_that_differ(a: Iterable[Mapping[str, str]], b: Iterable[Mapping[str, str]]) -> dict[str, tuple[int, int]]:
    """Topic to how many different routes NameServers had of it at the end on each side, where not all had the same one.

    Sides whose every NameServer ended with the same route of every topic give nothing.
    """
    sides = [[json.loads(held) for run in side for held in run.values()] for side in (a, b)]
    topics = {topic for side in sides for held in side for topic in held}
    found = {}
    for topic in sorted(topics):
        routes = [{json.dumps(held.get(topic), sort_keys=True) for held in side} for side in sides]
        if len(routes[0] | routes[1]) > 1:
            found[topic] = (len(routes[0]), len(routes[1]))
    return found


def _values(runs: Sequence[Mapping[str, Sequence[float]]], name: str, by_run: bool) -> Numbers:
    each = [run[name] for run in runs if run.get(name)]
    values = [float(np.median(one)) for one in each] if by_run else [value for one in each for value in one]
    return np.asarray(values, dtype=np.float64)


def _median(values: Numbers) -> float | None:
    return float(np.median(values)) if len(values) else None


def _interval(values: Numbers, alpha: float, rng: np.random.Generator) -> tuple[float, float] | None:
    """Of the median, by bootstrap; None where one value says nothing of its own spread."""
    if len(values) < 2:
        return None
    medians = np.median(rng.choice(values, (RESAMPLES, min(len(values), RESAMPLES))), axis=1)
    low, high = np.quantile(medians, (alpha / 2, 1 - alpha / 2))
    return float(low), float(high)

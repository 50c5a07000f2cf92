"""What is told of an incident: episodes, each with the faults that would account for it, ranked (`incident.json`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class Hypothesis:
    rank: int
    fault: str
    """`do` of the scenario language, or what has none (host_lost, part_of_the_list, own_list)."""
    sentence: str
    certainty: str
    """certain, likely or unsure."""
    score: float
    """Its share of the likelihood of all that would account for this; nothing having happened is one of them."""
    timeline: list[dict[str, Any]]
    bounds_ms: list[float | None]
    """By how much the beginning and the end may be earlier or later."""
    speaks_for: list[dict[str, Any]] = field(default_factory=list)
    speaks_against: list[dict[str, Any]] = field(default_factory=list)
    nodes: dict[str, Any] = field(default_factory=dict)
    """What single nodes have of their own, in the scenario's `nodes:`, where that is the fault."""
    observers: frozenset[str] = frozenset()
    """Whose lines say it; of acts only."""

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "rank": self.rank, "fault": self.fault, "sentence": self.sentence, "certainty": self.certainty,
            "score": round(self.score, 4), "timeline": self.timeline, "bounds_ms": self.bounds_ms,
            "for": self.speaks_for, "against": self.speaks_against,
        }  # fmt: skip
        return told | ({"nodes": self.nodes} if self.nodes else {})


@dataclass(slots=True, kw_only=True)
class Episode:
    from_ms: float
    to_ms: float | None
    hypotheses: list[Hypothesis]

    def to_json(self) -> dict[str, Any]:
        told = [one.to_json() for one in self.hypotheses]
        return {"from_ms": self.from_ms, "to_ms": self.to_ms, "hypotheses": told}


@dataclass(slots=True, kw_only=True)
class Inferred:
    episodes: list[Episode]
    not_seen: list[str]
    """Which log would decide what."""

    def to_json(self) -> dict[str, Any]:
        return {"episodes": [one.to_json() for one in self.episodes], "not_seen": self.not_seen}

"""Reads incident.json for `replay`, and validates the contents, because a person can have edited the file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...chaos.errors import ScenarioError
from ...chaos.scenarios.refused import allowed_at, key_of, shown_of


class _Read(BaseModel):
    """The object may have other keys, which are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Entry(BaseModel):
    """An entry of a timeline, as in a scenario. The scenario's parser validates all keys except `at_s`."""

    model_config = ConfigDict(extra="allow", frozen=True)

    at_s: float
    do: str


class IncidentHypothesis(_Read):
    rank: int = Field(ge=1)
    fault: str = ""
    sentence: str = ""
    certainty: Literal["certain", "likely", "unsure"] = "unsure"
    timeline: tuple[Entry, ...] = ()
    bounds_ms: tuple[float | None, ...] = ()
    """Errors of the first and the last time of `timeline`; None: the fault has no end."""
    nodes: dict[str, dict[str, Any]] = {}
    """Settings of nodes that it implies, as in a scenario's `nodes`."""


class IncidentEpisode(_Read):
    from_ms: float
    to_ms: float | None = None
    """None if the fault had not ended at the end of the record."""
    hypotheses: tuple[IncidentHypothesis, ...] = ()
    follows: int | None = None
    """The number of the episode whose effect this is."""


class ImportedClient(_Read):
    id: str | None = None
    kind: str = "unknown"
    name_servers: tuple[str, ...] = ()


class IncidentTopology(_Read):
    clusters: dict[str, tuple[str, ...]] = {}
    name_servers: dict[str, tuple[str, ...]] = {}
    brokers: dict[str, dict[str, tuple[str, ...]]] = {}
    clients: dict[str, ImportedClient] = {}


class IncidentTimer(_Read):
    ms: float = Field(gt=0)
    by: Literal["settings", "fitted", "default", "given"] = "given"


class ImportedSource(_Read):
    source: str
    bound_ms: float = 500.0


class Incident(_Read):
    format: Literal[1]
    origin: str = ""
    """The moment of time 0, in the zone in which times are shown."""
    sources: tuple[ImportedSource, ...] = ()
    topology: IncidentTopology
    timers: dict[str, IncidentTimer] = {}
    episodes: tuple[IncidentEpisode, ...] = ()


def read_incident(file: Path) -> Incident:
    """Return the contents of incident.json. Raises ScenarioError with key, value and allowed values if the contents are
    invalid."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as exc:
        raise ScenarioError(str(file), "", "", f"a readable incident.json ({exc.strerror})") from exc
    except UnicodeDecodeError as exc:
        raise ScenarioError(str(file), "", "", "well-formed JSON in UTF-8") from exc
    except json.JSONDecodeError as exc:
        where = f"line {exc.lineno}, column {exc.colno}"
        raise ScenarioError(str(file), where, "", f"well-formed JSON ({exc.msg})") from exc
    if not isinstance(document, Mapping):
        raise ScenarioError(str(file), "", f"a {type(document).__name__}", "an object, as `nemesrv import` writes it")
    try:
        return Incident.model_validate(document)
    except ValidationError as exc:
        error = exc.errors()[0]
        raise ScenarioError(str(file), key_of(error), shown_of(error), allowed_at(error, Incident)) from exc

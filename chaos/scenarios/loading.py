"""Loads a scenario: reads its YAML file, applies `--set`, and validates every value. Bad input raises ScenarioError
with file, key, value and the allowed values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ..checks import CHECKS
from ..checks.check import Group
from ..errors import NotAllowed, ScenarioError, nearest
from .document import change, read_file
from .implementations import said_by_command, with_defaults
from .incident import IncidentModel
from .model import CHECK_NAMES, NodeModel, Scenario
from .new_addresses import listing, readdressed
from .refused import allowed_at, key_of, shown_of
from .rules import RULES, incident_is_found
from .series import lasting

if TYPE_CHECKING:
    from .defect import Defect


def load(
    path: Path, sets: Sequence[str] = (), implementation: str | None = None, *, reads_defect: bool = True
) -> Scenario:
    """Return the scenario of a YAML file with the changes of `--set`. `implementation` sets the servers'
    implementation, and the profile unless `--set` sets the profile. Without `reads_defect`, the planted defect's file
    need not exist, because no node is started. Raises ScenarioError with one sentence."""
    file = str(path)
    document = read_file(path)
    if implementation is not None:
        document["cluster"] = said_by_command(document.get("cluster"), implementation)
    changes = [change(one, document, Scenario.model_fields) for one in sets]
    try:
        return parse(document, file=file, reads_defect=reads_defect)
    except ScenarioError as exc:
        if is_about(exc, changes):
            raise ScenarioError("--set", exc.key, exc.value, exc.allowed) from exc
        raise


def is_about(exc: ScenarioError, changes: Iterable[str]) -> bool:
    """Whether the error is about one of these changed keys, a key in it, or the key that it is in."""
    return any(f"{exc.key}.".startswith(f"{key}.") or key.startswith(f"{exc.key}.") for key in changes)


def parse(document: dict[str, Any], *, file: str, reads_defect: bool = True) -> Scenario:
    """Return the scenario of an already parsed document; error messages name `file`."""
    document = with_defaults({"name": Path(file).stem, **document}, file)
    entries = document.get("timeline")
    if not isinstance(entries, list | tuple):
        return _parsed(document, file=file, reads_defect=reads_defect)
    try:
        document["timeline"], written = lasting(entries)
        return _parsed(document, file=file, reads_defect=reads_defect)
    except NotAllowed as exc:
        raise exc.in_file(file) from exc
    except ScenarioError as exc:
        first, _, rest = exc.key.removeprefix("timeline.").partition(".")
        if not exc.key.startswith("timeline.") or not first.isdigit() or int(first) >= len(written):
            raise
        key = ".".join(filter(None, ("timeline", str(written[int(first)]), rest)))
        raise ScenarioError(exc.file, key, exc.value, exc.allowed) from exc


def _parsed(document: dict[str, Any], *, file: str, reads_defect: bool) -> Scenario:
    """Do as `parse`, for a document whose entries each stand for one action."""
    if document.get("checks") == "all":
        document["checks"] = list(CHECK_NAMES)
    elif isinstance(asked := document.get("checks"), list):
        document["checks"] = [name for one in asked for name in _checks_of(one)]
    try:
        scenario = Scenario.model_validate(document)
    except ValidationError as exc:
        error = min(exc.errors(), key=lambda one: one["type"] == "missing")  # a misspelt key says what it should be
        raise ScenarioError(file, key_of(error), shown_of(error), allowed_at(error, Scenario)) from exc
    if more := tuple(check for check in scenario.promised if check not in scenario.checks):
        scenario = scenario.model_copy(update={"checks": (*scenario.checks, *more)})
    try:
        scenario = _readdressed(scenario)
        for rule in RULES:
            rule(scenario)
    except NotAllowed as exc:
        raise exc.in_file(file) from exc
    if scenario.defect is not None and reads_defect:
        defect = found_defect(scenario.defect, file=file, key="defect", beside=Path(file).parent)
        scenario = scenario.model_copy(update={"defect": str(defect.source or defect.name)})
        refuse_nowhere(defect, scenario, file)
    if scenario.incident is not None:
        try:
            incident_is_found(scenario)
        except NotAllowed as exc:
            raise exc.in_file(file) from exc
        _without_incident(document, scenario.incident, file=file)
    return scenario


def _readdressed(scenario: Scenario) -> Scenario:
    """Return the scenario in which a NameServer that returns at another address is removed, and a new one joins."""
    timeline, joins, first = readdressed(scenario.timeline, scenario.topology())
    if not joins:
        return scenario
    nodes = {name: NodeModel(joins_at_s=at_s) for name, at_s in joins.items()} | scenario.nodes
    by_http = scenario.cluster.name_server_list is not None
    for name in () if by_http else listing(scenario.topology()):
        if name not in nodes or nodes[name].name_servers is None:
            nodes[name] = nodes.get(name, NodeModel()).model_copy(update={"name_servers": first})
    cluster = scenario.cluster.model_copy(update={"name_servers": len(first) + len(joins)})
    return scenario.model_copy(update={"timeline": timeline, "nodes": nodes, "cluster": cluster})


def _without_incident(document: Mapping[str, Any], incident: IncidentModel, *, file: str) -> Scenario:
    changed = deepcopy({key: value for key, value in document.items() if key != "incident"})
    try:
        for one in incident.sets:
            change(one, changed, Scenario.model_fields)
        changed["name"] = f"{changed['name']}-fixed"
        return parse(changed, file=file)
    except ScenarioError as exc:
        raise ScenarioError(file, f"incident.fixed.sets.{exc.key}".rstrip("."), exc.value, exc.allowed) from exc


def fixed(path: Path) -> Scenario:
    """Return the scenario in this file, changed by its incident's fix."""
    scenario = load(path)
    assert scenario.incident is not None
    document = with_defaults({"name": path.stem, **read_file(path)}, str(path))
    return _without_incident(document, scenario.incident, file=str(path))


def found_defect(name: str, *, file: str, key: str = "", beside: Path | None = None) -> Defect:
    """Return the planted defect of that name, or in that file; a file in the scenario's folder comes first. Raises
    ScenarioError for an unknown name, or a file that defines no defect."""
    from .defect import DefectModuleError, of_file, shipped_defects  # a broker's program, which few scenarios need

    if not name.endswith(".py"):
        known = shipped_defects()
        if name not in known:
            allowed = f"a defect that `nemesrv defects` lists, or a file NAME.py{nearest(name, known)}"
            raise ScenarioError(file, key, repr(name), allowed)
        return known[name]
    at = Path(name) if beside is None or not (beside / name).exists() else beside / name
    try:
        return of_file(at)
    except DefectModuleError as exc:
        raise ScenarioError(file, key, name, str(exc)) from exc


def refuse_nowhere(defect: Defect, scenario: Scenario, file: str) -> None:
    """Raise ScenarioError if the scenario lacks a node (or, without nodes, a kind of node) of the user's defect, or if
    a defect of Apache's servers is for a node of nemesrv."""
    kinds = scenario.topology().kinds
    if defect.of_apache:
        wrong = [node for node in defect.nodes if node not in scenario.implementations()]
        if wrong:
            allowed = f"one for {', '.join(defect.nodes)} of Apache's (implementation: apache-5.3.3)"
            raise ScenarioError(file, "defect", defect.name, allowed)
    absent = [name for name in defect.nodes if name not in kinds]
    if not defect.nodes:
        absent = [str(kind) for kind in defect.kinds if kind not in kinds.values()]
    if defect.source and (absent or not any(defect.is_for(name, kind) for name, kind in kinds.items())):
        where = ", ".join(absent or defect.nodes)
        allowed = f"one for a node of {scenario.name}: it is for {where}"
        raise ScenarioError(file, "defect", defect.source.name, allowed)


def _checks_of(name: Any) -> list[Any]:
    if not isinstance(name, str) or name in CHECKS or name not in tuple(Group):
        return [name]
    return [check.name for check in CHECKS.values() if check.group == name]


SHIPPED_DIR = Path(__file__).parent
KINDS_SHIPPED = ("", "drills", "upgrades", "roles", "selftest", "incidents")
"""Folders of scenarios: those of `nemesrv run all`; drills from real clusters (docs/drills.md); upgrades of Apache's
servers; roles that only Apache's brokers have; scenarios in which the self-test plants defects; reported incidents
(docs/incidents.md)."""


def shipped(kind: str = "") -> dict[str, Path]:
    """Return the file of every shipped scenario of this kind, by name."""
    return {path.stem: path for path in sorted((SHIPPED_DIR / kind).glob("*.yaml"))}


def all_shipped() -> dict[str, Path]:
    return {name: path for kind in KINDS_SHIPPED for name, path in shipped(kind).items()}


def find(
    name_or_path: str, sets: Sequence[str] = (), implementation: str | None = None, *, reads_defect: bool = True
) -> Scenario:
    """Return the shipped scenario of that name, or the YAML file's scenario, with the changes of `--set` and
    `--implementation`, as `load` does."""
    known = all_shipped()
    if name_or_path in known:
        return load(known[name_or_path], sets, implementation, reads_defect=reads_defect)
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml") and not path.exists():
        first = shipped()
        others = f"and {len(known) - len(first)} more, which `nemesrv scenarios` lists"
        allowed = f"a YAML file or one of {', '.join(first)}, {others}{nearest(name_or_path, known)}"
        raise ScenarioError(name_or_path, "SCENARIO", repr(name_or_path), allowed)
    return load(path, sets, implementation, reads_defect=reads_defect)

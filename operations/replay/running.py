"""Runs the replay, compares it with the original run, and writes replay.json."""

import json
import secrets
import shlex
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ...chaos.errors import ScenarioError
from ...chaos.experiment.harness import Harness
from ...chaos.experiment.hosts_stage import real_stage
from ...chaos.experiment.run_folder import RunFolder, refuse_used
from ...chaos.experiment.virtual.stage import VirtualStage
from ...chaos.history.matching import TransitionPair
from ...chaos.history.transitions import ShownTransitions, Transition, seen
from ...chaos.installation import has
from ...chaos.oracle.world import World
from ...chaos.proof.statistics.per_client import EVENTS as OF_CLIENTS
from ...chaos.proof.statistics.per_client import ClientFigures, beside, client_lines, clients_of
from ...chaos.reporting import write_replay
from ...chaos.reports.ci import INCIDENT, read_incident
from ...chaos.reports.cost import Cost, cost_of, sides_of_replay
from ...chaos.reports.imported import suffered_lines
from ...chaos.runner import Options, as_run_with, planted, processes_of, record, require_parts, with_file_beside
from ...chaos.scenarios.document import change
from ...chaos.scenarios.loading import is_about, parse
from ...chaos.scenarios.model import Scenario
from .imported import imported
from .original import Original, compared_to_ms, recorded, rows_of
from .similarity import EXACT_MS, Similarity, similarity

REPLAY_FILE = "replay.json"
EXPIRY, IDLE = "brokerChannelExpiredTime", "serverChannelMaxIdleTimeSeconds"
SHOWN_MAX = 12
"""Largest number of listed transitions that only one of the two runs has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    out: Path | None = None
    virtual: bool = True
    seed: int | None = None
    sets: tuple[str, ...] = ()
    hypotheses: Mapping[int, int] | None = None
    """Episode to the place of its explanation in incident.json, both from 1, if that is not the first."""
    episodes: tuple[int, ...] = ()
    """Only these, from 1; empty: all that lie together."""
    varied: tuple[str, ...] = ()
    """Each variant's settings, separated by spaces."""
    say: Callable[[str], None] = lambda _text: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    original: Original
    scenario: Scenario
    folder: RunFolder
    similarity: Similarity
    held: tuple[ShownTransitions, ShownTransitions]
    """States of lanes, in the original and in the replay."""
    unseen: Sequence[str]
    """Kinds of transitions that the original's record never has, so that they are not compared."""
    lasts_ms: float


def read_original(folder: Path, wanted: ReplayOptions) -> Original:
    """Return the recorded run to replay. Raises ScenarioError if the folder has no run, or the import has no known
    fault."""
    rows = rows_of(folder)
    if (folder / INCIDENT).is_file():
        return imported(folder, rows, wanted.hypotheses or {}, wanted.episodes, virtual=wanted.virtual)
    if wanted.hypotheses or wanted.episodes:
        option = "--hypothesis" if wanted.hypotheses else "--episode"
        raise ScenarioError(option, "", "", f"an import with it, which has an incident.json; {folder} has none")
    if not (folder / "scenario.yaml").is_file():
        allowed = "a run with a scenario.yaml, or an import with an incident.json, beside its history"
        raise ScenarioError("replay", "RUN_DIR", str(folder), allowed)
    return recorded(folder, rows, virtual=wanted.virtual)


def scenario_of(original: Original, sets: Sequence[str], *, file: str, option: str = "--set") -> Scenario:
    """Return the original run's scenario with the changes of `--set` or `--vary`. Raises ScenarioError for a wrong
    change."""
    document = json.loads(json.dumps(original.document, default=list))
    try:
        changes = [change(one, document, Scenario.model_fields) for one in sets]
    except ScenarioError as exc:
        raise ScenarioError(option, exc.key, exc.value, exc.allowed) from exc
    _drop_order(document)
    try:
        return parse(document, file=file)
    except ScenarioError as exc:
        if is_about(exc, changes):
            raise ScenarioError(option, exc.key, exc.value, exc.allowed) from exc
        part, _, rest = exc.key.removeprefix("timeline.").partition(".")
        if part.isdigit() and exc.key.startswith("timeline.") and int(part) in original.places:
            at = f"{original.places[int(part)]}.{rest}".rstrip(".")
            raise ScenarioError(str(original.folder / INCIDENT), at, exc.value, exc.allowed) from exc
        raise


def _drop_order(document: dict[str, Any]) -> None:
    """Remove the order of NameServer lists: clients of Apache's, or in other languages, have orders of their own."""
    javas = (document.get("workload") or {}).get("implementation") not in (None, "ours")
    for own in (document.get("nodes") or {}).values():
        if javas or own.get("client_profile") or own.get("implementation") not in (None, "ours"):
            own.pop("in_order", None)
            own.pop("later_orders", None)


def replay(original: Original, wanted: ReplayOptions) -> Replayed:
    """Run the recorded run's scenario once, and compare the new run with the recorded run. The replay's run folder has
    scenario.yaml and a history."""
    refuse_used(wanted.out)
    for vary in wanted.varied:  # what is wrong is said before anything runs
        scenario_of(original, (*wanted.sets, *_settings(vary)), file=f"--vary {vary}", option="--vary")
    scenario = scenario_of(original, wanted.sets, file=f"the scenario of {original.folder}")
    folder = ran(scenario, wanted.out, wanted)
    return held_against(original, scenario, folder)


def ran(scenario: Scenario, out: Path | None, wanted: ReplayOptions) -> RunFolder:
    """Run the scenario once, on the clock in `wanted`, without judging the run. Returns the run folder."""
    seed = wanted.seed if wanted.seed is not None else scenario.seed
    as_run = as_run_with(
        scenario, Options(seed=secrets.randbelow(2**31) if seed is None else seed, virtual=wanted.virtual)
    )
    defect = planted(as_run)
    if wanted.virtual:
        folder = RunFolder.create(as_run.name, out)
        record(with_file_beside(as_run, defect), folder, VirtualStage(), defect, wanted.say)
        return folder
    require_parts("nemesrv replay --clock real", [as_run], out, spark=False)
    with Harness(spark_master=None, gentle=True, workers=processes_of(as_run), ray=None) as harness:
        folder = RunFolder.create(as_run.name, out)
        record(with_file_beside(as_run, defect), folder, real_stage(harness), defect, wanted.say)
    return folder


def held_against(original: Original, scenario: Scenario, folder: RunFolder) -> Replayed:
    rows = rows_of(folder.path)
    world = World.of_rows(rows)
    begin_ms = world.timeline_ms
    lasts_ms = min(original.to_ms - original.from_ms, compared_to_ms(rows, world) - begin_ms)
    after_ms = original.compared_ms - original.from_ms
    from_ms, clients = original.from_ms, original.clients
    ours = seen(original.rows, from_ms + after_ms, from_ms + lasts_ms, zero_ms=from_ms, clients=clients)
    theirs = seen(rows, begin_ms + after_ms, begin_ms + lasts_ms, zero_ms=begin_ms, names=original.names)
    left_out: set[str] = set()
    shown = theirs.transitions
    if original.imported:
        whole = seen(original.rows, float("-inf"), float("inf")).transitions
        visible = {(one.node, one.kind) for one in whole}
        told = {(one.node, one.kind, one.how) for one in ours.transitions}
        kept = [one for one in shown if _could_be_seen(one, visible, told)]
        left_out = {f"{one.node} {one.kind}" for one in shown} - {f"{one.node} {one.kind}" for one in kept}
        shown = as_logged(kept, whole)
    exact_ms = original.exact.get
    alike = similarity(
        ours.transitions,
        shown,
        tick_ms=world.timers.R_ms,
        exact_ms=lambda node: exact_ms(node, EXACT_MS),
        of_logs=original.imported,
    )
    return Replayed(
        original=original,
        scenario=scenario,
        folder=folder,
        similarity=alike,
        held=(ours, theirs),
        unseen=sorted(left_out),
        lasts_ms=lasts_ms,
    )


def as_logged(shown: Iterable[Transition], logged: Iterable[Transition]) -> list[Transition]:
    """Remove from the replay's routes each broker that the original's log does not name, because a NameServer logs only
    a topic's first broker."""
    named: dict[tuple[str, str], set[str]] = {}
    for one in logged:
        if one.kind == "route":
            named.setdefault((one.node, one.subject), set()).update(one.how.split(", "))
    found, last = list[Transition](), dict[tuple[str, str], str]()
    for one in shown:
        of = one.node, one.subject
        if one.kind == "route" and of in named:
            one = one._replace(how=", ".join(who for who in one.how.split(", ") if who in named[of]) or "nobody")
            if last.get(of) == one.how:
                continue
            last[of] = one.how
        found.append(one)
    return found


def _could_be_seen(one: Transition, visible: set[tuple[str, str]], told: set[tuple[str, str, str]]) -> bool:
    """Whether the original's logs could show the transition: some log has such a line. Some clients log failures and
    never successes."""
    if one.kind in ("looks up", "registers") and one.how in ("answered", "ok"):
        return (one.node, one.kind, one.how) in told
    return (one.node, one.kind) in visible


def _settings(vary: str) -> list[str]:
    try:
        found = shlex.split(vary)
    except ValueError as exc:
        raise ScenarioError("--vary", "", repr(vary), f"KEY=VALUE, several with a space between ({exc})") from exc
    if not found:
        raise ScenarioError("--vary", "", repr(vary), "KEY=VALUE, several with a space between")
    return found


def varied(replayed: Replayed, wanted: ReplayOptions) -> list[dict[str, Any]]:
    """Replay once more for each `--vary`, with the same seed, and return the effect of each change."""
    seed = replayed.folder.scenario().seed
    found = []
    for number, vary in enumerate(wanted.varied, start=1):
        sets = (*wanted.sets, *_settings(vary))
        scenario = scenario_of(replayed.original, sets, file=f"--vary {vary}", option="--vary")
        folder = ran(scenario, replayed.folder.path / f"vary-{number}", replace(wanted, seed=seed))
        again = held_against(replayed.original, scenario, folder)
        was, now = _clients(replayed), _clients(again)
        changes = replayed.held[1].transitions, again.held[1].transitions
        said = beside(vary, was, now, changes, (_cost(replayed), _cost(again)))
        if EXPIRY in vary and IDLE not in vary and not said["changed"]:
            idle_s = replayed.original.world.timers.I_ms / 1000
            said["sentence"] += (
                f" A NameServer closes a channel that is idle for {IDLE} ({idle_s:g} s), and drops its broker then, "
                f"whatever {EXPIRY} is: set both. Java's 4.9 has {EXPIRY} as a constant, so that a real cluster can "
                f"change only {IDLE}."
            )
        found.append(said | {"happens": again.similarity.happens, "run_dir": folder.path.name})
    return found


def _clients(replayed: Replayed) -> dict[str, ClientFigures]:
    rows = rows_of(replayed.folder.path, OF_CLIENTS)
    begin_ms = next(row["time_ms"] for row in rows if row["event"] == "phase" and row["phase"] == "steady")
    names, to_ms = replayed.original.names, begin_ms + replayed.lasts_ms
    return clients_of(rows, begin_ms, to_ms, replayed.held[1].transitions, names, cost_of(replayed.folder.path))


def _cost(replayed: Replayed) -> Cost | None:
    """The replay's cost for its clients, with the original's names."""
    cost = cost_of(replayed.folder.path)
    return None if cost is None else cost.renamed(replayed.original.names)


def cost_of_original(original: Original) -> str | None:
    """Return the original's cost for its clients in a sentence; for an import, what the clients' own logs say. None if
    nothing says what the cost was."""
    cost = cost_of(original.folder)
    if cost is not None:
        return cost.sentence
    told = "; ".join(suffered_lines((read_incident(original.folder) or {}).get("suffered") or ()))
    return f"the clients' logs say: {told}" if told else None


def document_of(replayed: Replayed, variants: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    original = replayed.original
    cost = _cost(replayed)
    return {
        "format": 1,
        "original": str(original.folder),
        "scenario": replayed.scenario.name,
        "clock": "virtual" if replayed.folder.scenario().clock == "virtual" else "real",
        "seed": replayed.folder.scenario().seed,
        "fixed_phases": bool(replayed.scenario.phases),
        "from_ms": original.from_ms,
        "begun": original.begun,
        "compared_from_ms": original.compared_ms - original.from_ms,
        "lasts_ms": replayed.lasts_ms,
        "imported": original.imported,
        **replayed.similarity.to_json(),
        "not_compared": list(replayed.unseen),
        "notes": original.notes,
        "hypotheses": original.chosen,
        "names": dict(original.names),
        "transitions": [_transition(pair) for pair in replayed.similarity.pairs],
        "lanes": _lanes(replayed),
        "cost": {"original": cost_of_original(original), "replay": None if cost is None else cost.sentence},
        "variants": list(variants),
    }


def _transition(pair: TransitionPair) -> dict[str, Any]:
    what = pair.what
    return {
        "told": what.words,
        "found": "both" if pair.apart_ms is not None else "original" if pair.original else "replay",
        "node": what.node,
        "kind": what.kind,
        "subject": what.subject,
        "how": what.how,
        "original_ms": None if pair.original is None else round(pair.original.at_ms, 3),
        "replay_ms": None if pair.replay is None else round(pair.replay.at_ms, 3),
    }


def _lanes(replayed: Replayed) -> list[dict[str, Any]]:
    ours, theirs = (shown.held for shown in replayed.held)
    return [
        {"node": lane[0], "of": lane[1], "original": ours.get(lane, ()), "replay": theirs.get(lane, ())}
        for lane in sorted({*ours, *theirs})
    ]


def _head(replayed: Replayed) -> None:
    """Return the comment at the head of scenario.yaml: what the scenario was made from."""
    original, file = replayed.original, replayed.folder.scenario_file
    said = [f"replay of {original.folder}: `nemesrv run` on this file runs it again"]
    said += [f"{ours} is {theirs} there" for ours, theirs in sorted(original.names.items())]
    said += original.notes
    head = "".join(f"# {line}\n" for text in said for line in textwrap.wrap(text, 110))
    file.write_text(head + file.read_text(encoding="utf-8"), encoding="utf-8")


def write(replayed: Replayed, variants: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Write replay.json into the replay's folder, and report.html if Bokeh is installed. Returns the contents of
    replay.json."""
    document = document_of(replayed, variants)
    text = json.dumps(document, indent=1, ensure_ascii=False)
    (replayed.folder.path / REPLAY_FILE).write_text(text + "\n", encoding="utf-8")
    _head(replayed)
    if has("report"):
        write_replay(replayed.folder)
    return document


def lines_of(document: Mapping[str, Any], folder: Path) -> Iterator[str]:
    yield f"{document['scenario']}: {document['sentence']}"
    yield from document["notes"]
    begun = datetime.fromisoformat(document["begun"]) if document["begun"] else None
    for found, said in (("original", "only in the original"), ("replay", "only in the replay")):
        alone = [one for one in document["transitions"] if one["found"] == found]
        if alone:
            yield f"{said} ({_counted(document)}):"
            for one in alone[:SHOWN_MAX]:
                at_ms = one[f"{found}_ms"]
                of_day = f" ({begun + timedelta(milliseconds=at_ms):%H:%M:%S})" if begun is not None else ""
                yield f"  {at_ms / 1000:8.1f} s{of_day}  {one['told']}"
            if len(alone) > SHOWN_MAX:
                yield f"  and {len(alone) - SHOWN_MAX} more, in replay.json"
    if document["not_compared"]:
        yield f"not in the original's logs, so not compared: {', '.join(document['not_compared'])}"
    yield from client_lines(document["variants"], REPLAY_FILE)
    if document["variants"] and not document["fixed_phases"]:
        yield f"all with seed {document['seed']}: --seed N shows how much of a difference is chance"
    if document["fixed_phases"]:
        yield (
            "The timer phases are those of the original: this is that one night, and --seed changes little. `nemesrv "
            f"compare {document['original']} --set 'phases={{}}' --set-b KEY=VALUE` tests a change with other phases."
        )
    yield f"cost for the clients ({_counted(document)})"
    yield from (f"  {line}" for line in sides_of_replay(document))
    yield f"scenario: {folder / 'scenario.yaml'}"
    if (folder / "report.html").is_file():
        yield f"report: {folder / 'report.html'}"
    yield f"not judged yet: `nemesrv check {folder}` says whether this replay lost messages or broke a rule"


def _counted(document: Mapping[str, Any]) -> str:
    if not document["begun"]:
        return "seconds since the start of the timeline"
    begun = datetime.fromisoformat(document["begun"])
    said = f"seconds since {begun:%Y-%m-%d %H:%M:%S %Z} in the original"
    return f"{said}; 0 s here is {document['from_ms'] / 1000:.1f} s of the import" if document["imported"] else said

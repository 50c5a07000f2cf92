"""How much of an incident its logs show: `python -m tests.operations.importing.proof --incidents 100 --first 0`.

Random incidents of ten kinds are recorded, written as Apache's logs, distorted (clocks, cut ends, missing files, edited
lines), imported, and what the import says is compared with what happened. Held to: 95 % of the NameServers' transitions
within 1 s, every offset found, the true fault named first in 90 %, and none named with certainty that did not happen.
"""

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from nemesrv.operations.inferring.episodes import episodes_of
from nemesrv.operations.logs_to_rows.clocks import AT, NOT_AT_ONCE
from nemesrv.operations.logs_to_rows.marks import marks_of
from nemesrv.operations.logs_to_rows.reconstruct import Reconstructed, reconstruct
from tests.operations.made_logs import read_logs

from . import distortion
from .distortion import Distortion
from .entries import Cluster
from .recording import KINDS, Incident, drawn, recorded
from .truth import Transition, done, is_true, names_of, transitions, truly_done
from .writing import Source, sources_of

WITHIN_MS = 1_000.0
OFFSET_WITHIN_MS = 1_000.0
"""Stamps of whole seconds allow no better."""
EXACT_MS = 2_000.0
SETTLED_MS = 35_000.0
"""So long after a log's beginning, who is heard first was there before."""


@dataclass(slots=True)
class Compared:
    """One incident."""

    seed: int
    kind: str
    transitions: int = 0
    within: int = 0
    extra: int = 0
    """Transitions that the import has and that did not happen."""
    offsets: int = 0
    offsets_found: int = 0
    offsets_unsure: int = 0
    """Of the others, those that the import does not claim to know: `unsure`, or within the bound that it gives."""
    named_first: bool = False
    wrongly_certain: list[str] = field(default_factory=list)
    offsets_undecided: int = 0
    """Of those that are unsure, the clocks of logs that share no moment with any other: no offset can be told of them
    to a second."""
    doubts: list[str] = field(default_factory=list)
    """Clocks that were not found, and of which the import says so."""
    others: int = 0
    """Episodes that were told beside the true one."""
    said: str = ""
    missed: list[str] = field(default_factory=list)
    took_s: float = 0.0

    @property
    def is_whole(self) -> bool:
        return self.named_first and not self.wrongly_certain and not self.missed

    def told(self) -> str:
        lines = [f"seed {self.seed} ({self.kind}): {'' if self.named_first else 'NOT FIRST: '}{self.said}"]
        lines += [f"    certain and wrong: {one}" for one in self.wrongly_certain]
        lines += [f"    unsure: {one}" for one in self.doubts]
        return "\n".join(lines + [f"    {one}" for one in self.missed[:6]])


def compared(incident: Incident, folder: Path, level: str) -> Compared:
    """One incident, recorded, written, distorted and imported below the folder."""
    run = recorded(incident, folder / "run")
    of, sources = sources_of(run, slf4j=["producer-1"])
    distorted = distortion.drawn(incident.seed, of, sources, level)
    distorted.written(folder / "logs", of, sources)
    (folder / "distortion.txt").write_text(distorted.said() + "\n")
    began = time.process_time()
    imported = reconstruct(read_logs([folder / "logs"]).lines)
    inferred = episodes_of(imported.rows).to_json()
    found = Compared(incident.seed, incident.kind, took_s=time.process_time() - began)
    compare(found, imported, inferred["episodes"], incident, Truth(of, distorted, sources, {}))
    return found


class Truth(NamedTuple):
    """Of an incident, and what its nodes are called in the import."""

    of: Cluster
    distorted: Distortion
    sources: list[Source]
    names: dict[str, str]


def compare(
    found: Compared, imported: Reconstructed, episodes: list[dict[str, Any]], incident: Incident, truth: Truth
) -> None:
    truth.names.update(names_of(imported.topology, truth.of.addresses))
    node_of = {source.file: source.node for source in truth.sources}
    for one in imported.sources:
        truth.names.update((one["source"], node_of[file]) for file in one["files"] if file in node_of)
    shift_ms = offsets_compared(found, imported, truth)
    transitions_compared(found, imported.rows, truth, shift_ms)
    faults_compared(found, episodes, incident, truth)


def offsets_compared(found: Compared, imported: Reconstructed, truth: Truth) -> float:
    """How far the import's time is ahead of the truth, zone included: as most clocks have it that it calls known.

    Clocks are told against each other; whose is right no log says.
    """
    undecided = alone(imported, truth)
    off: list[tuple[dict[str, Any], str, float]] = []
    for one in imported.sources:
        node = truth.names.get(one["source"], one["source"])
        if node not in truth.distorted.clocks or one["offset_ms"] is None:
            found.missed.append(f"nobody knows the clock of {one['source']} ({node})")
            continue
        true_ms = _true_ms(node, truth)
        off.append((one, node, one["offset_ms"] + _zone_ms(one["zone"]) - true_ms))
    known = [by for one, _, by in off if one["certainty"] != "unsure" and one["bound_ms"] <= EXACT_MS]
    ahead_ms = median(known if len(known) > 1 else [by for _, _, by in off] or [0.0])
    for one, node, by in off:
        found.offsets += 1
        off_ms = by - ahead_ms
        if abs(off_ms) <= OFFSET_WITHIN_MS:
            found.offsets_found += 1
            continue
        is_unsure = one["certainty"] == "unsure" or abs(off_ms) <= one["bound_ms"]
        found.offsets_unsure += is_unsure
        found.offsets_undecided += is_unsure and node in undecided
        told_as = f"{one['offset_ms'] / 1000:+.1f} s {one['zone']} ±{one['bound_ms'] / 1000:.1f} s"
        said = f"clock of {node}: {told_as}, {one['certainty']} ({one['why']}); wrong by {off_ms / 1000:+.1f} s"
        (found.doubts if is_unsure else found.missed).append(said)
    return -ahead_ms


def _true_ms(node: str, truth: Truth) -> float:
    """How far the stamps of its logs are ahead of the truth, zone included."""
    clock = truth.distorted.clocks[node]
    is_local = any(source.node == node and source.writer in ("client-4.9", "slf4j") for source in truth.sources)
    return clock.offset_ms + (clock.zone_h if is_local else clock.servers_zone_h) * 3_600_000


def alone(imported: Reconstructed, truth: Truth) -> frozenset[str]:
    """Nodes whose logs have no moment of which another log tells, too, by the true clocks: what a client hears up to a
    poll later, and whom somebody gives up after silence, are of no moment."""
    moments: dict[str, list[tuple[float, str]]] = defaultdict(list)
    nodes = set()
    for source in imported.found:
        node = truth.names.get(source.name, source.name)
        if node not in truth.distorted.clocks:
            continue
        nodes.add(node)
        for mark in marks_of(source, imported.book):
            if not mark.key.startswith(NOT_AT_ONCE):
                at_ms = mark.at_ms - _true_ms(node, truth)
                moments[mark.key.partition(AT)[0]].append((at_ms, node))
    shared: set[str] = set()
    for told in moments.values():
        for (at_ms, node), (other_ms, other) in combinations(sorted(told), 2):
            if node != other and other_ms - at_ms <= WITHIN_MS:
                shared |= {node, other}
    return frozenset(nodes - shared)


def _zone_ms(zone: str | None) -> float:
    if not zone or zone in ("Z", "UTC"):
        return 0.0
    sign = -1 if zone[0] == "-" else 1
    hours, _, minutes = zone.lstrip("+-").partition(":")
    return sign * (int(hours) * 60 + int(minutes or 0)) * 60_000.0


def transitions_compared(found: Compared, rows: list[dict[str, Any]], truth: Truth, shift_ms: float) -> None:
    origin_ms = next(row["value"]["origin_wall_ms"] for row in rows if row["event"] == "run_begin")
    logged = {source.node for source in truth.sources if source.file not in truth.distorted.missing}
    begin_ms, end_ms = truth.distorted.cut_ms
    true = [one for one in transitions(truth.of.rows) if one.name_server in logged and begin_ms <= one.at_ms <= end_ms]
    had = [_named(one, origin_ms - truth.of.origin_wall_ms - shift_ms, truth.names) for one in transitions(rows)]
    by_key: dict[tuple[str, str, str, str], list[Transition]] = defaultdict(list)
    for one in had:
        by_key[one[1:]].append(one)
    for one in true:
        found.transitions += 1
        near = [other for other in by_key[one[1:]] if abs(other.at_ms - one.at_ms) <= WITHIN_MS]
        if near:
            found.within += 1
            by_key[one[1:]].remove(near[0])
        else:
            others = [f"{(other.at_ms - one.at_ms) / 1000:+.1f} s" for other in by_key[one[1:]]]
            found.missed.append(
                f"{one.at_ms / 1000:.1f} s {one.name_server} {one.broker} {one.what}: {others or 'never'}"
            )
    first_ms = begin_ms + SETTLED_MS if begin_ms > float("-inf") else begin_ms
    extra = [one for left in by_key.values() for one in left if one.at_ms > first_ms]
    found.extra += len(extra)
    found.missed += [
        f"{one.at_ms / 1000:.1f} s {one.name_server} {one.broker} {one.what}: did not happen" for one in extra
    ]


def _named(one: Transition, ahead_ms: float, names: dict[str, str]) -> Transition:
    return one._replace(
        at_ms=one.at_ms + ahead_ms,
        name_server=names.get(one.name_server, one.name_server),
        broker=names.get(one.broker, one.broker),
    )


def faults_compared(found: Compared, episodes: list[dict[str, Any]], incident: Incident, truth: Truth) -> None:
    nodes = [*truth.of.kinds]
    true = truly_done(incident.scenario, nodes)
    told = []
    for episode in episodes:
        for hypothesis in episode["hypotheses"]:
            said = done(hypothesis["timeline"], nodes, truth.names)
            right = is_true(said, true) or not said
            if hypothesis is episode["hypotheses"][0]:
                told.append(f"{hypothesis['sentence']} ({hypothesis['certainty']})")
                found.named_first |= is_true(said, true)
                found.others += not is_true(said, true)
            if hypothesis["certainty"] == "certain" and not right:
                found.wrongly_certain.append(hypothesis["sentence"])
    found.said = " / ".join(told) or "nothing"


def table(all_of: list[Compared], kinds: Iterable[str] = tuple(KINDS)) -> Iterator[str]:
    """A row a kind, and one of all."""
    titles = (
        "transitions within 1 s",
        "offsets found",
        "unsure",
        "of these undecided",
        "true fault first",
        "other episodes",
        "certain and wrong",
    )
    yield f"| kind | incidents | {' | '.join(titles)} |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for kind in (*kinds, "all"):
        own = [one for one in all_of if kind in ("all", one.kind)]
        if own:
            cells = (
                len(own),
                _share(sum(one.within for one in own), sum(one.transitions for one in own)),
                _share(sum(one.offsets_found for one in own), sum(one.offsets for one in own)),
                sum(one.offsets_unsure for one in own),
                sum(one.offsets_undecided for one in own),
                _share(sum(one.named_first for one in own), len(own)),
                sum(one.others for one in own),
                sum(bool(one.wrongly_certain) for one in own),
            )
            yield f"| {kind} | {' | '.join(map(str, cells))} |"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.1f} %)" if whole else "–"


def measured(seeds: Iterable[int], folder: Path, level: str, *, keep: bool) -> Iterator[Compared]:
    """Each incident; the folders of those that are whole are removed."""
    for seed in seeds:
        incident, own = drawn(seed), folder / str(seed)
        shutil.rmtree(own, ignore_errors=True)
        try:
            one = compared(incident, own, level)
        except Exception as exc:
            traceback.print_exc()
            one = Compared(seed, incident.kind, said=f"{type(exc).__name__}: {exc}", missed=["it was not imported"])
        if one.is_whole and not keep:
            shutil.rmtree(own)
        yield one


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--incidents", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--level", choices=distortion.LEVELS, default="all")
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "nemesrv-proof")
    parser.add_argument("--keep", action="store_true", help="also the folders of incidents of which all was found")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.incidents)
    found = []
    for one in measured(seeds, options.out, options.level, keep=options.keep):
        found.append(one)
        if not one.is_whole or one.doubts:
            print(one.told(), flush=True)
    print("\n".join(table(found)))
    print(f"import and inference: {median(one.took_s for one in found):.2f} s of CPU each, in the middle")
    return 0 if all(one.is_whole for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())

"""What becomes of logs between the hosts that wrote them and the folder that somebody is sent.

    drawn(seed, of, sources) ─► Distortion.written(folder): clocks that differ, ends cut off, files that are missing,
                  prefixes, CRLF, shortened lines, halves of lines, blocks twice, files in one

Nothing within `MARGIN_S` of the fault is cut, and no log of a server that it was done to is missing.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .entries import Cluster
from .writing import HostClock, Source, lines_of, rolled

MARGIN_S = 65.0
LEVELS = ("none", "clocks", "all")


@dataclass(slots=True)
class Distortion:
    """One folder's: `said` tells a person what was done."""

    clocks: dict[str, HostClock]
    cut_ms: tuple[float, float]
    """What is in the files, on the history's axis."""
    missing: set[str] = field(default_factory=set)
    """Files."""
    edits: list[str] = field(default_factory=list)
    """Of shortened, spaces, crlf, halves, twice, rolled, one-file."""
    seed: int = 0

    def said(self) -> str:
        clocks = ", ".join(
            f"{node} {clock.offset_ms / 1000:+.1f} s" for node, clock in self.clocks.items() if clock.offset_ms
        )
        missing = ", ".join(sorted(self.missing)) or "none"
        return f"clocks: {clocks or 'right'}; missing: {missing}; {', '.join(self.edits)}"

    def written(self, folder: Path, of: Cluster, sources: Sequence[Source]) -> None:
        """Writes the files as they are sent."""
        rng = random.Random(f"{self.seed} edits")
        together: list[str] = []
        for source in sources:
            if source.file in self.missing:
                continue
            kept = [entry for entry in source.entries if self.cut_ms[0] <= entry.at_ms <= self.cut_ms[1]]
            shown = Source(source.node, source.file, source.writer, kept)
            lines = list(lines_of(shown, of.origin_wall_ms, self.clocks[source.node]))
            for edit in self.edits:
                lines = _edited(edit, lines, rng)
            if "one-file" in self.edits and source.file.endswith("namesrv.log"):
                together += [f"{source.node} | {line}" for line in lines]
                continue
            path = folder / source.file
            path.parent.mkdir(parents=True, exist_ok=True)
            end = "\r\n" if "crlf" in self.edits else "\n"
            path.write_bytes("".join(line + end for line in lines).encode())
            if "rolled" in self.edits and len(lines) > 40 and source.writer == "server":
                rolled(path, 3)
        if together:
            (folder / "name-servers.log").write_text("".join(f"{line}\n" for line in together))


def _edited(edit: str, lines: list[str], rng: random.Random) -> list[str]:
    if edit == "shortened":
        return [line if len(line) < 400 else line[:360] + "…" for line in lines]
    if edit == "spaces":
        return [("  " if rng.random() < 0.3 else "") + line + ("   " if rng.random() < 0.3 else "") for line in lines]
    if edit == "halves" and len(lines) > 30:
        halved = list(lines)
        for _ in range(2):
            at = rng.randrange(len(halved))
            if not _matters(halved[at]):
                halved[at] = halved[at][: len(halved[at]) // 2]
        return halved
    if edit == "twice" and len(lines) > 30:
        at = rng.randrange(len(lines) - 20)
        return [*lines[: at + 10], *lines[at:]]
    return lines


def _matters(line: str) -> bool:
    """Whether the truth that is asked for is in this line alone: half of it would be another truth."""
    return any(
        word in line for word in ("registered", "destroyed", "remove", "perm", "route info", "changed", "chosen")
    )


def drawn(seed: int, of: Cluster, sources: Sequence[Source], level: str = "all") -> Distortion:
    """The distortion of this seed."""
    rng = random.Random(f"{seed} distortion")
    nodes = sorted({source.node for source in sources})
    ends = (float("-inf"), float("inf"))
    if level == "none":
        return Distortion({node: HostClock() for node in nodes}, ends, seed=seed)
    zone_h = rng.choice((0.0, 8.0, 1.0, -5.0, 9.0))
    clocks = {
        node: HostClock(_offset_ms(rng), zone_h if rng.random() < 0.7 else rng.choice((0.0, 8.0))) for node in nodes
    }
    found = Distortion(clocks, ends, seed=seed)
    if level == "clocks":
        return found
    edits = ("shortened", "spaces", "crlf", "halves", "twice", "rolled", "one-file")
    found.edits = [edit for edit in edits if rng.random() < 0.25]
    if rng.random() < 0.5:
        first_ms, last_ms = of.acted_ms()
        begin_ms = first_ms - 1000 * rng.uniform(MARGIN_S, 3 * MARGIN_S)
        found.cut_ms = (begin_ms, last_ms + 1000 * rng.uniform(MARGIN_S, 3 * MARGIN_S))
    touched = {row[key] for row in of.rows if row["event"] in ("fault", "admin") for key in ("source", "target")}
    clients = [source.file for source in sources if of.kinds[source.node] in ("producer", "consumer")]
    spare = [source.file for source in sources if source.file.endswith("namesrv.log") and source.node not in touched]
    if rng.random() < 0.2:
        found.missing |= set(clients)
    elif rng.random() < 0.2 and len(spare) > 1:
        found.missing.add(rng.choice(spare))
    return found


def _offset_ms(rng: random.Random) -> float:
    kind = rng.random()
    if kind < 0.4:
        return rng.uniform(-200, 200)
    if kind < 0.7:
        return rng.choice((-1, 1)) * rng.uniform(500, 30_000)
    if kind < 0.95:
        return rng.choice((-1, 1)) * rng.uniform(30_000, 7_200_000)
    return -rng.uniform(20, 23) * 31_557_600_000 / 10

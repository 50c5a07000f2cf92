"""Runs each shipped incident twice on the virtual clock, as reported and with its fix, and judges both runs.

    scenarios/incidents/NAME.yaml ─┬─ as it stands ────────────► recorded, judged plainly ─► red by `found_by`?
                                   └─ with `incident.fixed` ───► recorded, judged plainly ─► green?

Several processes share the runs. The museum needs no Spark.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..checks.plain.verdicts import verdicts
from ..errors import ScenarioError, nearest
from ..experiment.run_folder import refuse_used
from ..machine import in_processes
from ..reports.sentences import wrong_sentence
from ..reports.terminal import print_rows, standard_output
from ..runner import record_virtual
from ..scenarios.incident import IncidentModel
from ..scenarios.loading import fixed, load, shipped
from ..verdict import Validity, Verdict

SEED = 1
"""With this seed phases and first choices are as reported."""
WIDTH = 180
"""Width of a pipe if COLUMNS does not say it."""


Said = Mapping[Validity, Mapping[str, Verdict]]
"""Check to its verdict in one run, for checks with this verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownIncident:
    name: str
    description: str
    incident: IncidentModel
    buggy: Said
    fixed: Said

    @property
    def is_red(self) -> bool:
        """Whether every check that must find the incident says INVALID."""
        return {*self.incident.found_by} <= self.buggy[Validity.INVALID].keys()

    @property
    def is_green(self) -> bool:
        """Whether, in the run with the fix, the checks that must find the incident say VALID, and no check says
        INVALID."""
        return not self.fixed[Validity.INVALID] and {*self.incident.found_by} <= self.fixed[Validity.VALID].keys()

    @property
    def as_meant(self) -> bool:
        return self.is_red and self.is_green

    @property
    def also(self) -> tuple[str, ...]:
        """The checks that say INVALID of the run without the fix, besides the checks in the incident's `found_by`."""
        return tuple(name for name in self.buggy[Validity.INVALID] if name not in self.incident.found_by)

    @property
    def finding(self) -> str:
        """In a sentence, what the first INVALID check of `found_by` found in the run without the fix; "" if none
        did."""
        found = self.buggy[Validity.INVALID]
        first = next((found[name] for name in self.incident.found_by if name in found), None)
        return "" if first is None else wrong_sentence(first) or first.why


def chosen(names: Sequence[str]) -> list[Path]:
    """Return the scenario files of the incidents with these names or numbers (i03); without `names`, of all incidents.
    ScenarioError for an unknown incident."""
    known, found = shipped("incidents"), set[Path]()
    for name in names:
        file = known.get(name) or next((path for each, path in known.items() if each.partition("-")[0] == name), None)
        if file is None:
            raise ScenarioError("museum", "NAME", repr(name), f"one of {', '.join(known)}{nearest(name, known)}")
        found.add(file)
    return [path for path in known.values() if path in found or not names]


def show(files: Sequence[Path], processes: int, out: Path | None = None) -> Iterator[ShownIncident]:
    """Yield each incident as soon as both of its runs are judged, in the order of `files`. ScenarioError if the folder
    `out` is not empty. Run folders are NAME/buggy and NAME/fixed in `out`; without `out` they are deleted."""
    refuse_used(out)
    with TemporaryDirectory(prefix="nemesrv-museum-") as place:
        folders = [(file, (out or Path(place)) / file.stem) for file in files]
        jobs = [(file, name, folder / name) for file, folder in folders for name in ("buggy", "fixed")]
        variants = in_processes(_ran, jobs, processes)
        for file, buggy, after in zip(files, variants, variants, strict=True):
            scenario = load(file)
            assert scenario.incident is not None
            yield ShownIncident(
                name=scenario.name,
                description=scenario.description,
                incident=scenario.incident,
                buggy=buggy,
                fixed=after,
            )


def _ran(job: tuple[Path, str, Path]) -> Said:
    file, name, folder = job
    scenario = fixed(file) if name == "fixed" else load(file)
    return by_validity(verdicts(record_virtual(scenario, SEED, folder).path))


def by_validity(found: Sequence[Verdict]) -> Said:
    return {validity: {one.name: one for one in found if one.verdict is validity} for validity in Validity}


def print_museum(shown: Sequence[ShownIncident]) -> None:
    """Print the table of incidents as wide as the terminal; in a pipe as wide as COLUMNS says, else 180 columns."""
    columns = ("incident", "upstream", "what was reported", "as it was", "with its fix")
    rows = (
        (one.name, "\n".join(one.incident.upstream), one.incident.reported, _buggy(one), _fixed(one)) for one in shown
    )
    console = standard_output(WIDTH, highlight=False)
    print_rows(console, columns, rows, title="museum", caption=caption(shown), show_lines=True)


def caption(shown: Sequence[ShownIncident]) -> str:
    """Return how many incidents are as intended (red as reported, green with the fix), and the names of the others."""
    wrong = [one.name for one in shown if not one.as_meant]
    told = f"{len(shown) - len(wrong)} of {len(shown)} are INVALID as reported and VALID with their fix"
    return told + (f"; not so: {', '.join(wrong)}" if wrong else "")


def _buggy(one: ShownIncident) -> str:
    names = ", ".join(one.incident.found_by)
    if not one.is_red:
        silent = sorted({*one.incident.found_by} - one.buggy[Validity.INVALID].keys())
        return f"[bold red]not found[/] by {', '.join(silent)}"
    also = f" (and {', '.join(one.also)})" if one.also else ""
    return f"[bold red]INVALID[/] by {names}{also}: {one.finding}"


def _fixed(one: ShownIncident) -> str:
    wrong = one.fixed[Validity.INVALID]
    unsure = [name for name in one.incident.found_by if name in one.fixed[Validity.UNKNOWN]]
    if wrong:
        return f"[bold red]INVALID[/] by {', '.join(wrong)}. {one.incident.fixed.by}"
    said = f"[yellow]UNKNOWN[/] by {', '.join(unsure)}" if unsure else "[green]VALID[/]"
    return f"{said}. {one.incident.fixed.by}"


def document(one: ShownIncident) -> dict[str, Any]:
    buggy, fixed = ({str(validity): list(found) for validity, found in said.items()} for said in (one.buggy, one.fixed))
    return {
        "name": one.name,
        "description": one.description,
        **one.incident.model_dump(mode="json", exclude={"fixed"}),
        "finding": one.finding,
        "also": list(one.also),
        "buggy": buggy,
        "fixed": {**fixed, "by": one.incident.fixed.by, "sets": dict(one.incident.fixed.sets)},
        "as_meant": one.as_meant,
    }

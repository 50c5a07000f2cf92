"""Groups a run's checks, for the terminal, the Markdown summary and report.html. A group is shown as one line if all
its checks are VALID. The check `exercised` has a line above the groups, because `exercised` does not judge the
servers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..checks import CHECKS
from ..checks.cause import followed
from ..checks.check import Group
from ..verdict import Validity, Verdict, worst
from .sentences import measured_sentences
from .text import all_of

WORST_FIRST = (Validity.INVALID, Validity.UNKNOWN, Validity.VALID)


class CheckGroup(NamedTuple):
    """Checks that answer one question about the servers."""

    label: str
    verdicts: tuple[Verdict, ...]
    """Those that are not VALID first."""
    again: tuple[Verdict, ...] = ()
    """Verdicts that show once more what another check shows about the guilty node."""
    is_judged: bool = True
    """False if all checks were requested, and no check examined anything."""

    @property
    def verdict(self) -> Validity:
        return worst(v.verdict for v in self.verdicts)

    @property
    def wrong(self) -> tuple[Verdict, ...]:
        return tuple(v for v in self.verdicts if v.verdict is not Validity.VALID)

    @property
    def told(self) -> tuple[Verdict, ...]:
        """The group's verdicts that get a table row: not VALID, and not a repetition of another check's finding. None
        if no check of the run examined anything."""
        return tuple(v for v in self.wrong if v not in self.again and self.is_judged)

    @property
    def again_line(self) -> str:
        """Return `the same is seen by routes_converge (11 violations)` for checks that repeat another check's finding;
        else "". These checks may count from another moment, with another limit."""
        seen = [f"{v.name} ({v.violations:,} violation{'s' * (v.violations != 1)})" for v in self.again]
        return f"the same is seen by {all_of(seen)}, each with a limit of its own" if seen else ""

    @property
    def counted(self) -> str:
        """Return the number of the group's checks with each verdict: `1 INVALID, 2 VALID`."""
        return of_each(v.verdict for v in self.verdicts)


def of_each(verdicts: Iterable[Validity]) -> str:
    """Return the number of times that each verdict occurs, the worst verdict first: `1 INVALID, 20 VALID`."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[each]} {each}" for each in WORST_FIRST if counts[each])


def groups(verdicts: Sequence[Verdict]) -> list[CheckGroup]:
    """Return the groups that have at least one check in this run. A VALID `exercised` is in no group."""
    found: dict[str, list[Verdict]] = {_label(group): [] for group in Group}
    same = followed(verdicts)
    for v in sorted(verdicts, key=lambda v: WORST_FIRST.index(v.verdict)):
        if not (v.name == _EXERCISED and v.verdict is Validity.VALID):
            found.setdefault(_label(CHECKS[v.name].group) if v.name in CHECKS else "others", []).append(v)
    judged = len(verdicts) < len(CHECKS) or any(v.examined for v in verdicts)
    given = [(label, of) for label, of in found.items() if of]
    return [CheckGroup(label, tuple(of), tuple(v for v in of if v in same), judged) for label, of in given]


_EXERCISED = "exercised"


def exercised_line(verdicts: Sequence[Verdict]) -> str:
    """Return `Exercised: 1 fault with 9 effects, 4 clients.`; "" if the check `exercised` did not run or is not
    VALID."""
    said = [measured_sentences(v) for v in verdicts if v.name == _EXERCISED and v.verdict is Validity.VALID]
    return f"Exercised: {'; '.join(said[0])}." if said and said[0] else ""


def _label(group: Group) -> str:
    return "choice of NameServers" if group is Group.NAME_SERVERS else group.replace("_", " ")

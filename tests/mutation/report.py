"""What became of each mutant, beside the list of those that no test can kill because they change nothing.

A mutant has a number that moves with every edit of its function, so equivalent.yaml names a mutant by its function
and by the lines that it takes away and puts in. An entry that matches no survivor any more is stale, and said so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

EQUIVALENT_FILE = Path(__file__).with_name("equivalent.yaml")
KILLED_MIN = 0.95
"""Of the mutants that change anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A mutant that no test killed: `taken` and `put` are its changed lines without their indentation."""

    function: str
    taken: tuple[str, ...]
    put: tuple[str, ...]

    @property
    def module(self) -> str:
        return self.function.partition(":")[0]

    @classmethod
    def of_diff(cls, name: str, diff: str) -> Mutant:
        """From mutmut's name and unified diff."""
        lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]

        def changed(mark: str) -> tuple[str, ...]:
            return tuple(line[1:].strip() for line in lines if line.startswith(mark))

        return cls(function=function_of(name), taken=changed("-"), put=changed("+"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalent:
    """An entry of equivalent.yaml. `why` says why nothing that a caller can see is different."""

    mutant: Mutant
    why: str


def function_of(name: str) -> str:
    """`nemesrv.clients.x.xǁClassǁmethod__mutmut_3` as `clients/x.py:Class.method`."""
    dotted = re.sub(r"__mutmut_\d+$", "", name)
    module, _, mangled = dotted.rpartition(".")
    function = mangled.removeprefix("xǁ").replace("ǁ", ".") if "ǁ" in mangled else mangled.removeprefix("x_")
    return f"{module.removeprefix('nemesrv.').replace('.', '/')}.py:{function}"


def read_equivalents(path: Path = EQUIVALENT_FILE) -> list[Equivalent]:
    """The entries of the file. KeyError for one that lacks a key."""

    def lines(text: str) -> tuple[str, ...]:
        return tuple(line.strip() for line in text.splitlines() if line.strip())

    return [
        Equivalent(
            mutant=Mutant(function=entry["function"], taken=lines(entry["takes"]), put=lines(entry["puts"])),
            why=entry["why"],
        )
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """How many mutants of one file there were, and what became of them."""

    killed: int
    equivalent: int
    survived: int

    @property
    def mutants(self) -> int:
        return self.killed + self.equivalent + self.survived

    @property
    def score(self) -> float:
        """Killed, of those that change anything; 1 when there are none."""
        return self.killed / (self.killed + self.survived) if self.killed + self.survived else 1.0


def sums(killed: Mapping[str, int], survivors: Iterable[Mutant], equivalents: Sequence[Equivalent]) -> dict[str, Sums]:
    """Module to its sums, and all of them under "all". `killed`: how many of each module's mutants were."""
    known = {entry.mutant for entry in equivalents}
    alive = list(survivors)
    modules = sorted({*killed, *(mutant.module for mutant in alive)})
    table = {}
    for module in modules:
        mine = [mutant for mutant in alive if mutant.module == module]
        equivalent = sum(mutant in known for mutant in mine)
        table[module] = Sums(killed=killed.get(module, 0), equivalent=equivalent, survived=len(mine) - equivalent)
    table["all"] = Sums(
        killed=sum(each.killed for each in table.values()),
        equivalent=sum(each.equivalent for each in table.values()),
        survived=sum(each.survived for each in table.values()),
    )
    return table


def unexplained(survivors: Iterable[Mutant], equivalents: Sequence[Equivalent]) -> list[Mutant]:
    """The survivors that equivalent.yaml does not name."""
    known = {entry.mutant for entry in equivalents}
    return [mutant for mutant in survivors if mutant not in known]


def stale(survivors: Iterable[Mutant], equivalents: Sequence[Equivalent]) -> list[Equivalent]:
    """Entries that no survivor matches: the code they are about has changed, or a test kills them after all."""
    alive = set(survivors)
    return [entry for entry in equivalents if entry.mutant not in alive]

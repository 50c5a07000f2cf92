"""Logs as people posted them (wild/index.toml), each with what was true; half of them are set aside by a coin."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

WILD = Path(__file__).parent / "wild"


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    source: str
    """Where it was found."""
    true: str
    """The cause that the thread, or its author, came to."""
    says: str
    shown: bool = True
    """Whether its lines can show that at all."""
    accept: Sequence[str] = ()
    """Answers that say no more than is so."""
    collection: int = 0
    """Which of those it is of that were collected to be answered unseen; 0 of none."""
    first: tuple[str, str, float] = ("", "", 0.0)
    """What was then said of it, how surely, and with what score; nothing where it was not answered."""

    @property
    def folder(self) -> Path:
        return WILD / self.name

    @property
    def is_set_aside(self) -> bool:
        """Tails: nobody looked at it while code was written for the others."""
        return int(sha256(self.name.encode()).hexdigest(), 16) % 2 == 1

    def is_right(self, name: str) -> bool:
        return name == self.true or name in self.accept


def cases(*, set_aside: bool | None = None) -> list[Case]:
    """Those of the open half, of the half set aside, or all."""
    told = tomllib.loads((WILD / "index.toml").read_text(encoding="utf-8"))["case"]
    found = [Case(**one) for one in told]
    return [one for one in found if set_aside is None or one.is_set_aside == set_aside]

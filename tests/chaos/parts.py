"""A history cut into parts at random, and counted part by part, as workers do."""

import pickle
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nemesrv.chaos.checks.plain.part import Facts_, Part, Reading, Span, Whole, began_ms, codes, floats, is_one_of
from nemesrv.chaos.checks.plain.verdicts import in_memory, verdicts_of
from nemesrv.chaos.checks.record.control import Control
from nemesrv.chaos.history.rows import table_in
from nemesrv.chaos.history.stored import merged_files
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.verdict import Verdict


@dataclass(slots=True, eq=False)
class InParts:
    """The history of `whole`, each time counted in some parts whose rows are in no order."""

    whole: Whole
    rng: random.Random

    @property
    def control(self) -> Control:
        return self.whole.control

    def counted(self, reading: Reading[Facts_], world: World) -> Facts_:
        """The facts of all parts, added up as they come, each by way of bytes."""
        facts = [pickle.loads(pickle.dumps(reading.of(part, world))) for part in self.parts(reading, world)]
        self.rng.shuffle(facts)
        found: Facts_ = reduce(lambda one, other: one.plus(other), facts)
        return found

    def parts(self, reading: Reading[Any], world: World) -> list[Part]:
        """Only the rows and columns that the reading asks for; in each part all rows of what belongs together. Of the
        parts without rows there is one: all of them count the same."""
        asked = self.whole.part.of(*reading.events)
        if reading.types:
            asked = asked.filter(pc.or_(pc.is_null(asked["type"]), is_one_of(asked["type"], reading.types)))
        if reading.spans is not None:
            asked = asked.filter(_in_one_of(asked, reading.spans(self, world)))
        asked = asked.select(sorted(reading.all_columns))
        many, chance = self.rng.choice((2, 3, 20)), np.random.default_rng(self.rng.randrange(1 << 30))
        rows = codes(asked, *reading.together.keys) if reading.together.keys else np.arange(len(asked))
        part_of = chance.integers(many, size=len(asked) + 1)[rows]
        mixed = chance.permutation(len(asked))
        control = pickle.loads(pickle.dumps(self.control))
        rows_of = sorted((mixed[part_of[mixed] == part] for part in range(many)), key=len)
        return [Part(asked.take(pa.array(of)), control) for n, of in enumerate(rows_of) if len(of) or n == 0]


def _in_one_of(rows: pa.Table, spans: Sequence[Span]) -> pa.Array:
    began, ended, found = began_ms(rows), floats(rows["time_ms"]), np.zeros(len(rows), bool)
    for span in spans:
        of_node = pc.equal(rows["node"], span.node).to_numpy()
        found |= of_node & (ended >= span.from_ms) & (began <= span.to_ms)
    return pa.array(found)


def verdicts_in_parts(folder: Path) -> list[Verdict]:
    """Those of the recorded run, of every check."""
    history, world = in_memory(table_in(merged_files(folder)), is_whole=True)
    return verdicts_of(InParts(history, random.Random(1)), world)

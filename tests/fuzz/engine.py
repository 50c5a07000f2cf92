"""Runs a target over mutated inputs: deterministic by seed, bounded in time for each input, memory watched.

A batch of inputs has its own random.Random("seed target batch"), so a finding is repeated from what it prints.
"""

import faulthandler
import gc
import resource
import signal
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from .mutation import mutated
from .targets import TARGETS, Target

BATCH = 2_000
INPUT_S = 1.0
"""Most CPU time of one input (of at most 64 KiB, or a bomb of 17 MiB)."""
STUCK_S = 120
"""A batch that takes longer is stuck where Python cannot look, and the process ends with a traceback."""
INPUT_BYTES = 64 * 1024 * 1024
"""Most memory of one input, by tracemalloc, on sampled batches."""
RSS_BYTES = 320 * 1024 * 1024
"""Most memory of the process, whatever it has read."""


class Finding(AssertionError):
    """An input on which the code under test did what it must not."""

    def __init__(self, target: Target, seed: int, batch: int, data: bytes, why: str) -> None:
        self.data = data
        shown = data[:400].hex() + ("..." if len(data) > 400 else "")
        super().__init__(f"{target.name}, seed {seed}, batch {batch}, {len(data)} B: {why}\n  input: {shown}")


class TooSlow(Exception):
    """One input used up its time."""


@dataclass(slots=True)
class Figures:
    inputs: int = 0
    seconds: float = 0.0
    peak_rss: int = 0
    peak_input: int = 0
    """Most memory that tracemalloc saw one batch's inputs use at a time."""


class _Progress:
    def __init__(self) -> None:
        self.input = 0
        self._last = -1

    def tick(self, *_: object) -> None:
        if self.input == self._last:
            raise TooSlow(f"it took longer than {INPUT_S} s of CPU time")
        self._last = self.input


@contextmanager
def _watched() -> Iterator[_Progress]:
    """Raises TooSlow inside an input that is the same for a whole period; a tick costs nothing in between."""
    progress = _Progress()
    before = signal.signal(signal.SIGPROF, progress.tick)
    signal.setitimer(signal.ITIMER_PROF, INPUT_S, INPUT_S)
    try:
        yield progress
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _peak_rss() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def fuzz(target: Target, *, inputs: int, seed: int, sample_every: int = 50, first_batch: int = 0) -> Figures:
    """Run `inputs` inputs. Raises Finding at the first that is one. The originals come first, unchanged."""
    originals = target.seeds()
    figures = Figures()
    began = time.perf_counter()
    grown_before = _peak_rss()  # of whatever ran in this process earlier, e.g. the rest of a test suite
    with _watched() as progress:
        for original in originals:
            data = original if target.wrap is None else target.wrap(original, Random(1))
            _one(target, target.make(), data, seed, -1)
        batch = first_batch
        while figures.inputs < inputs:
            count = min(BATCH, inputs - figures.inputs)
            sampled = (batch - first_batch) % sample_every == sample_every - 1
            if sampled:
                gc.collect()
                tracemalloc.start()
                base = tracemalloc.get_traced_memory()[0]
            faulthandler.dump_traceback_later(STUCK_S, exit=True)
            try:
                last = _batch(target, originals, count, seed, batch, progress)
            finally:  # a finding, too, ends the watch: left armed, it would end the process that goes on
                faulthandler.cancel_dump_traceback_later()
            if sampled:
                used = tracemalloc.get_traced_memory()[1] - base
                tracemalloc.stop()
                figures.peak_input = max(figures.peak_input, used)
                if used > INPUT_BYTES:
                    raise Finding(target, seed, batch, last, f"a batch used {used} B at a time")
            figures.inputs += count
            figures.peak_rss = _peak_rss()
            if figures.peak_rss - grown_before > RSS_BYTES:
                raise Finding(target, seed, batch, last, f"the process has grown to {figures.peak_rss} B")
            batch += 1
    figures.seconds = time.perf_counter() - began
    return figures


def _batch(target: Target, originals: list[bytes], count: int, seed: int, batch: int, progress: _Progress) -> bytes:
    rng = Random(f"{seed} {target.name} {batch}")
    random, tokens, wrap, check = rng.random, target.tokens, target.wrap, target.make()
    data = b""
    for _ in range(count):
        data = mutated(originals[int(random() * len(originals))], rng, tokens, originals)
        if wrap is not None:
            data = wrap(data, rng)
        progress.input += 1
        _one(target, check, data, seed, batch)
    return data


def _one(target: Target, check: Callable[[bytes], None], data: bytes, seed: int, batch: int) -> None:
    try:
        check(data)
    except Exception as exc:
        raise Finding(target, seed, batch, data, f"{type(exc).__name__}: {exc}"[:600]) from exc


def task(name: str, inputs: int, seed: int, first_batch: int) -> Figures | str:
    """One process's share: the figures, or the finding as text."""
    target = next(target for target in TARGETS if target.name == name)
    try:
        return fuzz(target, inputs=inputs, seed=seed, first_batch=first_batch, sample_every=20)
    except Finding as finding:
        return str(finding)

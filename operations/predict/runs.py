"""The same fault in runs on the virtual clock, each with phases of its own, in processes beside each other."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from ...chaos.runner import record_virtual
from ...chaos.scenarios.model import Scenario
from .measured import measured, rows_of
from .quantities import Sample
from .subject import Subject


def virtual_runs(
    scenario: Scenario,
    subjects: Sequence[Subject],
    runs: int,
    seed: int = 1,
    done: Callable[[int], None] = lambda _number: None,
) -> list[list[Sample]]:
    """By subject, the sample of each run. Run k has the seed `seed` + k, by which its phases are drawn."""
    lean = leaner(scenario)
    jobs = [(lean, tuple(subjects), seed + number) for number in range(runs)]
    found: list[list[Sample]] = []
    for number, samples in enumerate(_each(jobs), 1):
        found.append(samples)
        done(number)
    return [[run[place] for run in found] for place in range(len(subjects))]


_Job = tuple[Scenario, tuple[Subject, ...], int]


def _each(jobs: Sequence[_Job]) -> Iterator[list[Sample]]:
    workers = min(len(jobs), len(os.sched_getaffinity(0)))
    if workers <= 1 or len(jobs) < 4:  # a process more costs as much as a run
        yield from map(_one, jobs)
        return
    context = multiprocessing.get_context("spawn")  # a fork would take this process's threads' locks along
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        futures = [pool.submit(_one, job) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _one(job: _Job) -> list[Sample]:
    scenario, subjects, seed = job
    with tempfile.TemporaryDirectory(prefix="nemesrv-predict-") as folder:
        rows = rows_of(record_virtual(scenario, seed, Path(folder) / "run").path)
    topics = {client: scenario.topic_of(client) for client in scenario.topology().kinds}
    return [measured(rows, subject, topics) for subject in subjects]


def leaner(scenario: Scenario) -> Scenario:
    """The same without what recovery does not depend on: the prober's starts."""
    workload = scenario.workload.model_copy(update={"client_starts": 0, "start_bias": None})
    return scenario.model_copy(update={"workload": workload, "seed": None})

"""Random operations on both servers: no answer and no state differs but for the exceptions of compatibility.md."""

import os
import random
import time

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from .conftest import OPERATIONS
from .machine import machine_for
from .pair import Pair

pytestmark = [pytest.mark.java, pytest.mark.timeout(3600)]

SEED = int(os.environ.get("NEMESRV_DIFFERENTIAL_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
SHRINK = os.environ.get("NEMESRV_DIFFERENTIAL_SHRINK", "1") == "1"
STEPS = 40
EXAMPLES_MAX = 250
"""Examples of one seed; after them the next one follows, so that hypothesis keeps nothing for long."""


def test_random_operations_have_the_same_answers_and_state(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    machine = machine_for(pair)
    began, number = time.monotonic(), SEED
    while machine.operations_done < OPERATIONS:
        examples = min(EXAMPLES_MAX, -(-(OPERATIONS - machine.operations_done) // STEPS))
        shape = settings(
            max_examples=examples,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink) if SHRINK else (Phase.generate,),
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        )
        try:
            run_state_machine_as_test(seed(number)(machine), settings=shape)
        except BaseException:
            print(f"NEMESRV_DIFFERENTIAL_SEED={number}, after {machine.operations_done} operations")
            raise
        number += 1
    with capsys.disabled():
        took = time.monotonic() - began
        print(
            f"\n{pair.peers}: {machine.operations_done} operations, {pair.answers} answers compared, 0 differences, "
            f"{took:.0f} s, seed {SEED}; excused: {dict(sorted(pair.exceptions.items()))}"
        )

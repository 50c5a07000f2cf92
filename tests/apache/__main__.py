"""`make apache-tests`: all of Apache's integration tests that can be run here, and a table of what passed.

python -m tests.apache [CLASS...]        CLASS without `org.apache.rocketmq.test.`; exit status 1 when a test failed
python -m tests.apache --chaos [SEED] [CLASS...]       a few of them, or those, while links fail (chaos.py)
"""

import argparse
import sys
import tempfile
from pathlib import Path

from . import chaos
from .suite import Outcome, classes, run, servers, table

JVMS = 3
"""Most tests wait: three at once are little work for two cores."""


def told(outcome: Outcome) -> None:
    failed = "".join(f"\n    {test}: {why}" for test, why in outcome.failed)
    print(f"{outcome.took_s:6.1f} s  {outcome.tests:3d} tests  {outcome.name}{failed}", file=sys.stderr, flush=True)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.apache")
    parser.add_argument("--chaos", type=int, nargs="?", const=1, metavar="SEED", help="while links fail")
    parser.add_argument("classes", nargs="*", metavar="CLASS")
    chosen = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if chosen.chaos is None:
            with servers(folder) as name_server:
                outcomes = run(chosen.classes or classes(), name_server, folder / "java", jvms=JVMS, told=told)
        else:
            with chaos.servers(folder, chosen.chaos) as (name_server, injected):
                outcomes = run(chosen.classes or chaos.CLASSES, name_server, folder / "java", told=told)
            print(f"{len(injected.said)} faults, {injected.asked} requests: {'; '.join(injected.said)}\n")
    tests, failed = sum(one.tests for one in outcomes), sum(len(one.failed) for one in outcomes)
    print(table(outcomes))
    print(f"\n{len(outcomes)} classes, {tests} tests, {failed} failed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

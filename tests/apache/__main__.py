"""`make apache-tests`: all of Apache's integration tests that can be run here, and a table of what passed.

python -m tests.apache [CLASS...]        CLASS without `org.apache.rocketmq.test.`; exit status 1 when a test failed
"""

import argparse
import sys
import tempfile
from pathlib import Path

from .suite import Outcome, classes, run, servers, table

JVMS = 3
"""Most tests wait: three at once are little work for two cores."""


def told(outcome: Outcome) -> None:
    failed = "".join(f"\n    {test}: {why}" for test, why in outcome.failed)
    print(f"{outcome.took_s:6.1f} s  {outcome.tests:3d} tests  {outcome.name}{failed}", file=sys.stderr, flush=True)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.apache")
    parser.add_argument("classes", nargs="*", metavar="CLASS")
    chosen = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with servers(folder) as name_server:
            outcomes = run(chosen.classes or classes(), name_server, folder / "java", jvms=JVMS, told=told)
    tests, failed = sum(one.tests for one in outcomes), sum(len(one.failed) for one in outcomes)
    print(table(outcomes))
    print(f"\n{len(outcomes)} classes, {tests} tests, {failed} failed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

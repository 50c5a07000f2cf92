"""python -m tests.hosts.record SCENARIO OUT [HEAD]: a run, recorded and not judged: no JVM starts for Spark.

On the Ray cluster with that head, or on one of its own. Exit status as `nemesrv run`: 4 with one sentence when the
harness failed.
"""

import sys
from pathlib import Path

from nemesrv.chaos.errors import HarnessError, ScenarioError
from nemesrv.chaos.experiment.harness import Harness
from nemesrv.chaos.experiment.hosts_stage import real_stage
from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.runner import Options, as_run_with, processes_of, record
from nemesrv.chaos.scenarios.loading import find


def main(scenario: str, out: str, head: str | None = None) -> int:
    as_run = as_run_with(find(scenario), Options(seed=1, ray=head))
    folder = RunFolder.create(as_run.name, Path(out))
    try:
        with Harness(workers=processes_of(as_run), ray=head) as harness:
            record(as_run, folder, real_stage(harness), None, lambda text: print(text, file=sys.stderr, flush=True))
    except HarnessError as exc:
        print(f"nemesrv: {exc}", file=sys.stderr)
        return 2 if isinstance(exc, ScenarioError) else 4
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Shell scripts whose `nemesrv` and `pytest` judge with plain Python, as where PySpark is not installed.

Each command would start a JVM of its own otherwise, which costs more than all that it judges. That Spark comes to the
same verdicts is proven in tests/chaos/test_engines.py.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

VERDICTS_ALONE = "trap 'said=$?; case $said in 1 | 3) ;; *) exit $said ;; esac' ERR\n"
"""No command fails but by a verdict: INVALID or UNKNOWN."""


def run(commands: str, cwd: Path, *, spark: bool = False, timeout_s: float = 280) -> str:
    """What bash prints for these commands, on stdout and stderr. AssertionError if one fails, but by a verdict."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text("import sys\nsys.modules['pyspark'] = None\n")
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        first = [] if spark else [folder]
        modules = os.pathsep.join([*first, *filter(None, [os.environ.get("PYTHONPATH")])])
        done = subprocess.run(
            ["bash", "-c", VERDICTS_ALONE + commands],
            cwd=cwd,
            env={**os.environ, "PATH": path, "PYTHONPATH": modules},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout_s,
        )
    assert done.returncode in (0, 1, 3), done.stdout
    return done.stdout

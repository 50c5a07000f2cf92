"""Spark's classes as the JVM holds them in memory, in a file: the JDK's class-data sharing.

    python -m tests.spark_classes [--if-missing]      makes it for this environment (set-up does)

A session of a small history starts with it, and judges with less than half of the CPU. The JVM trusts it only where
Java and every jar are those that it was made with, and else starts as without.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.spark.judge import check_run
from nemesrv.chaos.checks.spark.session import session, stop
from nemesrv.chaos.checks.spark.settings import CLASSES
from nemesrv.chaos.errors import HarnessError

DUMP_LIMIT_S = 180
"""The JVM writes it when it ends: about 10 s on an idle core."""
_RECORD = ("run", "broker-crash", "--clock", "virtual", "--engine", "plain", "--seed", "1", "-q", "--out")


def make() -> None:
    """It is there, with every class that a session needed to judge a virtual run by all checks. HarnessError."""
    try:
        CLASSES.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CLASSES.parent, prefix="making-") as folder:
            run, made = Path(folder) / "run", Path(folder) / CLASSES.name
            subprocess.run(
                [sys.executable, "-m", "nemesrv.chaos", *_RECORD, str(run)], check=True, stdout=subprocess.DEVNULL
            )
            spark = session(options=[f"-XX:ArchiveClassesAtExit={made}"])
            check_run(run, CHECKS, spark)
            stop(spark, limit_s=DUMP_LIMIT_S)
            made.replace(CLASSES)
    except (OSError, subprocess.CalledProcessError) as exc:
        raise HarnessError(f"{CLASSES} cannot be made: {exc}") from exc


if __name__ == "__main__" and not (sys.argv[1:] == ["--if-missing"] and CLASSES.is_file()):
    try:
        make()
    except HarnessError as error:
        print(f"nemesrv: Spark starts without an archive of its classes: {error}", file=sys.stderr)

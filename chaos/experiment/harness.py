"""The parts that several runs share: Ray, the Spark session, reserved ports. Ray, Spark and the ports are started once
and always ended.

Spark's JVM starts while the cluster runs, at the lowest priority, because on a small machine a starting JVM delays
every timer. `spark()` waits for the JVM.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...actors.joined_ray import JoinedRay
from ...actors.processes import family, signals_deferred
from ...actors.ray_host import RayHost
from ..errors import HarnessError
from ..faults.ports import PortHolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_NICENESS = 19
SPARK_LIMIT_S = 180
HURRY_EACH_S = 0.5


class Harness:
    """Ray, Spark and reserved ports, which several runs share, as a context manager. `ports` are reserved until the
    harness ends. `after_ctrl_c_s` is passed to RayHost.

    `gentle`: Spark starts at the lowest priority, so that it does not delay nodes on the machine's clock. This is not
    needed on the virtual clock. `large`: Spark is started for a large history. `workers`: how many processes for nodes
    are started in advance. `ray`: the address of an existing Ray cluster to join. `outside`: this machine's address to
    which outside programs connect.
    """

    def __init__(
        self,
        *,
        spark_master: str | None = None,
        gentle: bool = True,
        large: bool = False,
        workers: int = 14,
        ray: str | None = None,
        after_ctrl_c_s: float | None = None,
        outside: str | None = None,
    ) -> None:
        self._gentle, self._large = gentle, large
        self.ports = PortHolder(outside=outside)
        self.ray: RayHost | JoinedRay = (
            RayHost(workers=workers, after_ctrl_c_s=after_ctrl_c_s) if ray is None else JoinedRay(ray)
        )
        self._spark_master = spark_master
        self._spark: Future[SparkSession] = Future()
        self._spark_thread: threading.Thread | None = None
        self._ray_ends: threading.Thread | None = None
        self._hurried = False

    def start_spark(self) -> None:
        """Start Spark's session without waiting; a second call does nothing. Raises HarnessError at once if Java is
        missing."""
        if self._spark_thread is None:
            from ..machine import require_java

            require_java()
            self._spark_thread = threading.Thread(target=self._start_spark, name="spark-start", daemon=True)
            self._spark_thread.start()

    def _start_spark(self) -> None:
        try:
            from ..checks.spark.session import session

            if self._gentle and sys.platform == "linux":  # a niceness is the thread's own there; the JVM inherits it
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), SPARK_NICENESS)
            spark = session(self._spark_master, large=self._large)
        except BaseException as exc:
            self._spark.set_exception(exc)
        else:
            self._spark.set_result(spark)

    def spark(self) -> SparkSession:
        self.start_spark()
        try:
            spark = self._awaited()
        except TimeoutError as exc:
            raise HarnessError(
                f"Spark did not start within {SPARK_LIMIT_S} s: see whether the machine is overloaded"
            ) from exc
        except HarnessError:
            raise
        except Exception as exc:
            from ..checks.spark.session import jvm_death

            lines = str(exc).strip().splitlines() or [type(exc).__name__]
            raise HarnessError(jvm_death(1.0) or f"Spark failed while it started: {lines[0]}") from exc
        self._hurry()
        return spark

    def _awaited(self) -> SparkSession:
        """Return the session; TimeoutError after the limit. Spark's JVM gets normal priority as soon as the JVM exists;
        at the lowest priority the JVM might never run."""
        until_s = time.monotonic() + SPARK_LIMIT_S
        while True:
            self._hurry()
            try:
                return self._spark.result(timeout=min(HURRY_EACH_S, max(0.0, until_s - time.monotonic())))
            except TimeoutError:
                if time.monotonic() >= until_s:
                    raise

    def _hurry(self) -> None:
        if sys.platform != "linux" or self._hurried or not self._gentle or self._spark_thread is None:
            return
        from ..checks.spark.session import jvm_pid

        niceness, pid, thread = os.getpriority(os.PRIO_PROCESS, 0), jvm_pid(), self._spark_thread
        threads = [] if pid is None else [*Path(f"/proc/{pid}/task").glob("[0-9]*")]
        self._hurried = bool(threads)
        if not threads and thread.is_alive():  # the JVM is not heard from yet, or not even begun: it inherits then
            here = Path(f"/proc/self/task/{thread.native_id}")
            with suppress(OSError):
                for child in (here / "children").read_text().split():
                    threads += Path(f"/proc/{child}/task").glob("[0-9]*")
            threads.append(here)
        for one in threads:
            with suppress(OSError):  # a thread that has ended, or a user who may not raise a priority
                os.setpriority(os.PRIO_PROCESS, int(one.name), niceness)

    def end_ray(self) -> None:
        """Shut Ray down in a thread. Call `end_ray` only if no further experiment follows."""
        if self._ray_ends is None:
            self._ray_ends = threading.Thread(target=self.ray.stop, name="ray-end", daemon=True)
            self._ray_ends.start()

    def close(self) -> None:
        try:
            if self._ray_ends is not None:
                self._ray_ends.join()
            self.ray.stop()
        finally:
            self.ports.close()
            if self._spark_thread is not None:
                self._end_spark(self._spark_thread)

    def _end_spark(self, starting: threading.Thread) -> None:
        from ..checks.spark.session import stop

        if self._spark.done():
            if self._spark.exception() is None:
                stop(self._spark.result())
            return
        while starting.is_alive():  # nobody waits for it any more, and at its priority it could take long
            for process in family(os.getpid(), _is_spark):
                process.send(signal.SIGKILL)
                process.close()
            starting.join(timeout=0.2)

    def __enter__(self) -> Harness:
        return self

    def __exit__(self, *_: object) -> None:
        with signals_deferred(patient=True):
            self.close()


def _is_spark(command: str) -> bool:
    return "org.apache.spark" in command or "spark-submit" in command

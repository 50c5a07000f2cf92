"""A local Ray for this process, on which clusters can run one after the other. When Ray has ended, no process, port or
file of Ray remains."""

from __future__ import annotations

import functools
import inspect
import logging
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from .processes import FOLDER_PREFIX, Process, Reaper, command, family, signals_deferred, sweep
from .watch import ClusterError

log = logging.getLogger("nemesrv.cluster")

KILL_LIMIT_S = 5.0
_OBJECT_STORE_BYTES = 100_000_000


@functools.cache
def _token() -> str:
    """A token for this process. Ray reads it once; without a token Ray would write a token into the user's home."""
    return secrets.token_hex(16)


def _environment(workers: int) -> dict[str, str]:
    return {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": _token(),
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray's only way to bind to the loopback address
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DISABLE_IMPORT_WARNING": "1",
        "RAY_enable_metrics_collection": "false",
        "RAY_event_stats": "false",
        "RAY_memory_monitor_refresh_ms": "0",  # else Ray kills our small nodes when another's process fills the machine
        "RAY_worker_niceness": "0",  # Ray's 15 would make every timer of a node late as soon as anything else runs
        "RAY_worker_maximum_startup_concurrency": str(workers),  # else only so many are started ahead
        "RAY_worker_register_timeout_seconds": "600",  # else one that a busy machine starts slowly is given up
    }


class RayHost:
    """A Ray that only this process uses, on this machine. Context manager; `stop` can be called at any moment, also
    twice. Call `start` in a thread that outlives Ray, best the main thread, because Ray's processes end with the thread
    that started them. `workers`: the number of Python processes started in advance, so that nodes and restarts need not
    wait for a new interpreter. `after_ctrl_c_s`: Ray's processes are killed at the latest this long after a Ctrl-C;
    None: never because of a Ctrl-C.
    """

    def __init__(self, *, workers: int = 12, after_ctrl_c_s: float | None = None) -> None:
        self._workers, self._after_ctrl_c_s = workers, after_ctrl_c_s
        self._folder: Path | None = None
        self._reaper: Reaper | None = None
        self._left = ExitStack()

    def start(self) -> RayHost:
        """Start Ray. Raises ClusterError if Ray does not start, or if other code in this process runs Ray already."""
        if self._folder is not None:
            return self
        sweep()
        # Unix socket paths inside must stay below 108 bytes, so a long TMPDIR cannot be used.
        base = tempfile.gettempdir() if len(tempfile.gettempdir()) <= 20 else "/tmp"
        self._folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-", dir=base))
        self._left.enter_context(environment(_environment(self._workers)))
        try:
            self._reaper = Reaper(self._folder, self._after_ctrl_c_s)
            # Ray swallows an interrupt that meets it in the wrong place, and puts its own handler on SIGTERM.
            with signals_deferred():
                self._init(self._folder)
        except BaseException as exc:
            self.stop()
            if isinstance(exc, Exception):
                raise ClusterError(f"Ray did not start: {exc}") from exc
            raise
        return self

    def _init(self, folder: Path) -> None:
        import ray

        if ray.is_initialized():
            raise ClusterError("this process already runs a Ray; call ray.shutdown() first")
        quieten()
        with _without_monitors():
            ray.init(
                address="local",
                num_cpus=self._workers,
                object_store_memory=_OBJECT_STORE_BYTES,
                include_dashboard=False,
                namespace=folder.name,
                log_to_driver=False,
                logging_level=logging.ERROR,
                _temp_dir=str(folder),
            )

    def stop(self) -> None:
        """Stop Ray. Afterwards no process, port or file of this Ray exists."""
        folder, self._folder = self._folder, None
        if folder is None:
            return
        processes = self._processes(folder)
        try:
            ray = sys.modules.get("ray")
            if ray is not None and ray.is_initialized():
                ray.shutdown()
        except Exception as exc:  # half imported or half started: what follows ends its processes all the same
            log.warning("Ray could not be shut down in order: %s", exc)
        finally:
            self._clean_up(folder, processes + self._processes(folder))

    def _clean_up(self, folder: Path, processes: list[Process]) -> None:
        # A worker that is stopped by SIGSTOP, or that started in the last moment, outlives Ray's own shutdown.
        for process in processes:
            process.send(signal.SIGKILL)
        for process in processes:
            process.gone(KILL_LIMIT_S)
            process.close()
        shutil.rmtree(folder, ignore_errors=True)
        reaper, self._reaper = self._reaper, None
        if reaper is not None:
            reaper.close()
        self._left.close()

    def servers(self) -> dict[str, int]:
        """Return the Ray processes that all actors need, each with Ray's name and its pid."""
        found: dict[str, int] = {}
        for process in [] if self._folder is None else self._processes(self._folder):
            program = command(process.pid).split(" ", 1)[0].rpartition("/")[2]
            if program in ("gcs_server", "raylet"):
                found[program] = process.pid
            process.close()
        return found

    @staticmethod
    def _processes(folder: Path) -> list[Process]:
        return family(os.getpid(), lambda command: str(folder) in command)

    def __enter__(self) -> RayHost:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextmanager
def environment(values: Mapping[str, str | None]) -> Iterator[None]:
    """Set these environment variables within the block (None: unset), and restore their old values afterwards."""
    before = {name: os.environ.get(name) for name in values}
    _set(values)
    try:
        yield
    finally:
        _set(before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def quieten() -> None:
    """Keep Ray from printing a paragraph on stdout for each process that the harness kills on purpose."""
    import ray._private.worker as worker

    def to_our_log(data: Mapping[str, Any], **_: object) -> None:
        for line in data.get("lines", ()):
            log.debug("Ray: %s", line)

    worker.print_to_stdstream = to_our_log


@contextmanager
def _without_monitors() -> Iterator[None]:
    """Within the block Ray is started without its autoscaler and without the process that sends logs to the driver.

    Neither monitor is needed; each takes half a second of CPU to start, and almost 1 % of a CPU while it runs. `ray
    start --no-monitor` is the first; neither is an argument of `ray.init`.
    """
    import ray._private.parameter as parameter

    params = parameter.RayParams
    unwanted = {"no_monitor": True, "include_log_monitor": False}
    known = inspect.signature(params).parameters
    parameter.RayParams = functools.partial(params, **{name: unwanted[name] for name in unwanted if name in known})
    try:
        yield
    finally:
        parameter.RayParams = params

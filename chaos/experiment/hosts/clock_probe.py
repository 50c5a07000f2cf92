"""Reads every host's clock throughout a run and records `host_clock` rows, by which history/ corrects the times of
other rows.

Every EVERY_S seconds, one thread per host asks the host for its clock, TIMES times. The quickest answer is recorded,
because it is the most exact. A host with the harness's own clock is not asked.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic_ns

from ....remoting.node.recording import Recorder
from ...errors import HarnessError
from ...history.host_clocks import ClockReading

EVERY_S = 1.0
TIMES = 6
FIRST_TIMES = 12

Milliseconds = Callable[[], float]


def clock_identity() -> str:
    """Return a value that is equal in two processes if they share CLOCK_MONOTONIC (same boot, same time namespace)."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = file.read().strip()
    namespace = "none"
    with suppress(OSError):  # a kernel without time namespaces
        namespace = os.readlink("/proc/self/ns/time")
    return f"{boot} {namespace}"


def soonest(ask: Milliseconds, now_ms: Milliseconds, times: int) -> ClockReading:
    """Call `ask` several times to read a host's clock, and return the most exact reading."""
    found = []
    for _ in range(times):
        sent_ms = now_ms()
        shows_ms = ask()
        found.append(ClockReading.of(sent_ms, shows_ms, now_ms()))
    return min(found, key=lambda reading: reading.bound_ms)


def offset_ns(ask_ns: Callable[[], int]) -> int:
    """Return by how many nanoseconds the answering host's CLOCK_MONOTONIC is ahead of the harness's clock."""
    return round(soonest(lambda: ask_ns() / 1e6, lambda: monotonic_ns() / 1e6, FIRST_TIMES).offset_ms * 1e6)


class HostClocks:
    """Context manager that reads each host's clock at the block's begin, regularly within it, and at its end. `asks`
    has, for each host, the function that returns the host's clock in milliseconds of RocketMQ time; None for a host
    with the harness's own clock. A lost host (HarnessError) is not asked again.
    """

    def __init__(
        self, asks: Mapping[str, Milliseconds | None], now_ms: Milliseconds, record: Recorder, every_s: float = EVERY_S
    ) -> None:
        self._asks, self._now_ms, self._record, self._every_s = dict(asks), now_ms, record, every_s
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(host,), name=f"clock-{host}", daemon=True) for host in self._asks
        ]

    def _run(self, host: str) -> None:
        with suppress(HarnessError):
            while not self._ended.wait(self._every_s):
                self._read(host, TIMES)
            self._read(host, TIMES)

    def _read(self, host: str, times: int) -> None:
        ask = self._asks[host]
        reading = ClockReading(self._now_ms(), 0.0, 0.0) if ask is None else soonest(ask, self._now_ms, times)
        value = {"host_ms": reading.host_ms, "offset_ms": reading.offset_ms, "bound_ms": reading.bound_ms}
        self._record("host_clock", source=host, value=value)

    def __enter__(self) -> HostClocks:
        for host in self._asks:
            self._read(host, FIRST_TIMES)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(timeout=5.0)

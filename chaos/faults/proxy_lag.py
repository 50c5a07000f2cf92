"""Measures how late Toxiproxy passes bytes on. On the real clock every byte between two nodes passes
through Toxiproxy.

    harness ── one byte ──► proxy `lag` ──► echo in the harness ──► back     one round trip after the other

A slow round trip means that the proxies, or the harness itself, were not running. If the harness begins a round trip
late, nobody saw what the proxies did meanwhile, so the delay counts, too. The lateness is recorded as
`timer_lag` of the node TOXIPROXY, in RocketMQ milliseconds. Checks add this lateness to their tolerance
(checks/record/lateness.py), because a send that timed out in the proxies says nothing about RocketMQ.
"""

import logging
import socket
import threading
from contextlib import suppress
from typing import Self

from ...remoting.node.clock import RealClock
from ...remoting.node.recording import Recorder
from .ports import PortHolder
from .toxiproxy import Toxiproxy

log = logging.getLogger("nemesrv.toxiproxy")

TOXIPROXY = "toxiproxy"
"""The node name in these rows."""

STEP_S = 0.020
ROW_S = 0.100
"""Machine time between two round trips; the least that one row covers."""


class ProxyLagProbe:
    """Measures how late Toxiproxy is, as a context manager. `record` is called from a thread of its own. A stall in the
    pause between two round trips (`step_s`) can go unseen. So if the pause is longer than STEP_S, each recorded lag is
    increased by the difference."""

    def __init__(
        self, api: Toxiproxy, ports: PortHolder, clock: RealClock, record: Recorder, *, step_s: float = STEP_S
    ) -> None:
        self._clock, self._record, self._step_s = clock, record, step_s
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        proxy = ports.take()
        host, port = self._listener.getsockname()[:2]
        api.create({"lag": (proxy, type(proxy)(host, port))})
        self._near = socket.create_connection((proxy.host, proxy.port), timeout=5)
        self._far, _ = self._listener.accept()
        for end in (self._near, self._far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.settimeout(None)
        self._threads = [
            threading.Thread(target=self._echo, name="proxy-lag-echo", daemon=True),
            threading.Thread(target=self._measure, name="proxy-lag", daemon=True),
        ]

    def _echo(self) -> None:
        with suppress(OSError):
            while data := self._far.recv(64):
                self._far.sendall(data)

    def _measure(self) -> None:
        clock = self._clock
        since_s, worst_s = clock.monotonic_s(), 0.0
        due_s = since_s + self._step_s * clock.scale
        try:
            while not self._ended.wait(self._step_s):
                asked_s = clock.monotonic_s()
                self._near.sendall(b".")
                if not self._near.recv(1):
                    break
                now_s = clock.monotonic_s()
                worst_s = max(worst_s, now_s - min(asked_s, due_s))
                due_s = now_s + self._step_s * clock.scale
                if now_s - since_s >= ROW_S * clock.scale:
                    self._note(since_s, now_s, worst_s)
                    since_s, worst_s = now_s, 0.0
        except OSError as exc:
            if not self._ended.is_set():
                log.warning("how late Toxiproxy is can no longer be measured: %s", exc)
        else:
            self._note(since_s, clock.monotonic_s(), worst_s)

    def _note(self, since_s: float, now_s: float, worst_s: float) -> None:
        unseen_s = (self._step_s - STEP_S) * self._clock.scale
        self._record("timer_lag", lag_ms=(worst_s + unseen_s) * 1000, duration_ms=(now_s - since_s) * 1000)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for end in (self._near, self._far, self._listener):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=5)
        for end in (self._near, self._far, self._listener):
            end.close()

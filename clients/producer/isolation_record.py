"""Which brokers a producer avoids since when, and when it sends to one again: event `broker_isolated`.

Only with sendLatencyFaultEnable. Upstream says so in its log from 5.1.4 on ("will be isolated for").
"""

from __future__ import annotations

from ...remoting.node.recording import Recorder


class IsolationRecord:
    """The history of one producer's fault strategy."""

    def __init__(self, record: Recorder) -> None:
        self._record = record
        self._isolation_ms: dict[str, int] = {}
        self._avoided: set[str] = set()

    def noted(self, broker_name: str, latency_ms: int, isolation_ms: int, *, failed: bool) -> None:
        """An attempt that took so long, or failed, isolates the broker so long; 0: no longer, in 4.9."""
        before_ms, self._isolation_ms[broker_name] = self._isolation_ms.get(broker_name, 0), isolation_ms
        if isolation_ms or before_ms:
            self._avoided.add(broker_name)
            value = {"isolation_ms": isolation_ms, "failed": failed}
            self._record("broker_isolated", f="isolated", broker_name=broker_name, duration_ms=latency_ms, value=value)

    def selected(self, broker_name: str) -> None:
        """The next attempt goes there."""
        if broker_name in self._avoided:
            self._avoided.discard(broker_name)
            self._record("broker_isolated", f="selected", broker_name=broker_name)

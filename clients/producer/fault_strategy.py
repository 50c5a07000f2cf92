"""Decides which queue a producer sends to, and which brokers the producer avoids after slow or failed sends.

By default the fault strategy is off: the producer uses queues in turn, and a retry avoids the broker that has just
failed. With `send_latency_fault_enable`, each attempt isolates its broker for a time that depends on the attempt's
latency. The table's highest latency that is not above the attempt's latency gives the isolation time.

| profile | latency ms: isolation ms                                                                  | failure is |
|---------|-------------------------------------------------------------------------------------------|------------|
| 4.9     | 50: 0, 100: 0, 550: 30000, 1000: 60000, 2000: 120000, 3000: 180000, 15000: 600000         | 30000 ms   |
| 5.x     | 50: 0, 100: 0, 550: 2000, 1800: 5000, 3000: 6000, 5000: 10000, 15000: 30000                | 10000 ms   |

4.9 takes the next broker that is not isolated, even the broker that just failed. If all brokers are isolated, 4.9 takes
one of the half with the lower latencies. Profile 5.x takes the next other broker that is not isolated, else the next
other broker that is reachable, else the next broker. In 5.x each retry starts at a random queue. A broker becomes
unreachable when it answers with an error code, or when the transport fails and the detector runs. Any other attempt and
any successful probe make the broker reachable again. Upstream: `MQFaultStrategy`, `LatencyFaultToleranceImpl` (4.9.8,
5.3.3).
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from ...remoting.message import MessageQueue
from ...remoting.node.profile import Profile
from ...remoting.node.recording import Recorder, ignore
from .publish_table import QueueRing


class IsolationRecord:
    """Writes history rows `broker_isolated`: when a producer begins to avoid a broker, and when the producer sends to
    the broker again. Without sendLatencyFaultEnable no rows `broker_isolated` are written. Java's client logs
    isolations from 5.1.4 on ("will be isolated for")."""

    def __init__(self, record: Recorder) -> None:
        self._record = record
        self._isolation_ms: dict[str, int] = {}
        self._avoided: set[str] = set()

    def noted(self, broker_name: str, latency_ms: int, isolation_ms: int, *, failed: bool) -> None:
        """Record that an attempt isolates the broker for `isolation_ms`, which is 0 after a quick attempt. In 4.9, an
        `isolation_ms` of 0 ends the broker's isolation."""
        before_ms, self._isolation_ms[broker_name] = self._isolation_ms.get(broker_name, 0), isolation_ms
        if isolation_ms or before_ms:
            self._avoided.add(broker_name)
            value = {"isolation_ms": isolation_ms, "failed": failed}
            self._record("broker_isolated", f="isolated", broker_name=broker_name, duration_ms=latency_ms, value=value)

    def selected(self, broker_name: str) -> None:
        if broker_name in self._avoided:
            self._avoided.discard(broker_name)
            self._record("broker_isolated", f="selected", broker_name=broker_name)


LatencyTable = tuple[tuple[int, int], ...]
"""Latency and isolation in milliseconds, ascending."""
LATENCY_TABLE_4_9: LatencyTable = (
    (50, 0),
    (100, 0),
    (550, 30_000),
    (1_000, 60_000),
    (2_000, 120_000),
    (3_000, 180_000),
    (15_000, 600_000),
)
LATENCY_TABLE_5_X = ((50, 0), (100, 0), (550, 2_000), (1_800, 5_000), (3_000, 6_000), (5_000, 10_000), (15_000, 30_000))
DETECT_INTERVAL_MS = 2_000
"""A broker is probed no oftener than this (`ClientConfig.detectInterval`)."""
DETECT_TIMEOUT_MS = 200


@dataclass(slots=True)
class _FaultItem:
    latency_ms: int = 0
    available_from_ms: int = 0
    reachable: bool = True
    probe_from_ms: int = 0


class MQFaultStrategy:
    """Chooses the queue of each attempt, and keeps each broker's latency and isolation. `rng` decides only at which
    isolated broker 4.9 starts."""

    def __init__(
        self,
        profile: Profile,
        rng: random.Random,
        *,
        enabled: bool = False,
        detector_enabled: bool = False,
        table: LatencyTable = (),
        record: Recorder = ignore,
    ) -> None:
        """`table` has the user's latencies and isolations (`latencyMax`, `notAvailableDuration`); empty: as above."""
        self._record = IsolationRecord(record)
        self._profile = profile
        self._table = table or (LATENCY_TABLE_4_9 if profile is Profile.V4_9 else LATENCY_TABLE_5_X)
        self._enabled = enabled
        self._detector_enabled = detector_enabled and profile is Profile.V5_X
        self._items: dict[str, _FaultItem] = {}
        self._which_item_worst = rng.randrange(1 << 31)

    def isolation_ms(self, latency_ms: int, *, failed: bool = False) -> int:
        """Return for how many milliseconds a broker is avoided after an attempt that took `latency_ms` or failed."""
        failure_ms = 30_000 if self._profile is Profile.V4_9 else 10_000
        counted_ms = failure_ms if failed else latency_ms
        return next((isolation for bucket, isolation in reversed(self._table) if counted_ms >= bucket), 0)

    def attempt_succeeded(self, broker_name: str, latency_ms: int, *, now_ms: int) -> None:
        """Note that the broker acknowledged an attempt after `latency_ms`."""
        self._update(broker_name, latency_ms, False, True, now_ms)

    def transport_failed(self, broker_name: str, latency_ms: int, *, now_ms: int) -> None:
        """Note that an attempt got no connection or no answer (`RemotingException`)."""
        self._update(broker_name, latency_ms, True, not self._detector_enabled, now_ms)

    def client_refused(self, broker_name: str, latency_ms: int, *, now_ms: int) -> None:
        """Note that the client knew no address of the broker (`MQClientException`). 4.9 counts an unknown address as a
        failure; 5.x counts only the attempt's latency."""
        self._update(broker_name, latency_ms, self._profile is Profile.V4_9, True, now_ms)

    def broker_refused(self, broker_name: str, latency_ms: int, *, now_ms: int) -> None:
        """Note that the broker answered with an error code (`MQBrokerException`)."""
        self._update(broker_name, latency_ms, True, False, now_ms)

    def _update(self, broker_name: str, latency_ms: int, failed: bool, reachable: bool, now_ms: int) -> None:
        if not self._enabled:
            return
        isolation_ms = self.isolation_ms(latency_ms, failed=failed)
        self._record.noted(broker_name, latency_ms, isolation_ms, failed=failed)
        item = self._items.setdefault(broker_name, _FaultItem())
        item.latency_ms = latency_ms
        item.reachable = reachable
        if self._profile is Profile.V4_9:
            item.available_from_ms = now_ms + isolation_ms
        elif isolation_ms > 0:
            # 5.x never shortens an isolation: a quick answer does not end one that is under way.
            item.available_from_ms = max(item.available_from_ms, now_ms + isolation_ms)

    def is_available(self, broker_name: str, *, now_ms: int) -> bool:
        item = self._items.get(broker_name)
        return item is None or now_ms >= item.available_from_ms

    def is_reachable(self, broker_name: str) -> bool:
        item = self._items.get(broker_name)
        return item is None or item.reachable

    def select(
        self,
        ring: QueueRing,
        last_broker_name: str | None,
        *,
        now_ms: int,
        write_queue_nums: Mapping[str, int],
        retry: bool = False,
    ) -> MessageQueue:
        """Return the queue of the next attempt. `write_queue_nums` has the number of writable queues in the route for
        each broker name. `last_broker_name` is the broker of the send call's previous attempt; `retry` says whether
        there was a previous attempt."""
        if not self._enabled:
            return ring.next_on_another_broker(last_broker_name)
        queue = self._select(ring, last_broker_name, now_ms, write_queue_nums, retry=retry)
        self._record.selected(queue.broker_name)
        return queue

    def _select(
        self,
        ring: QueueRing,
        last_broker_name: str | None,
        now_ms: int,
        write_queue_nums: Mapping[str, int],
        *,
        retry: bool,
    ) -> MessageQueue:
        if self._profile is Profile.V4_9:
            return self._select_4_9(ring, now_ms, write_queue_nums)
        if retry:
            ring.reset()

        def other(queue: MessageQueue) -> bool:
            return queue.broker_name != last_broker_name

        return (
            ring.next_that(lambda queue: other(queue) and self.is_available(queue.broker_name, now_ms=now_ms))
            or ring.next_that(lambda queue: other(queue) and self.is_reachable(queue.broker_name))
            or ring.next()
        )

    def _select_4_9(self, ring: QueueRing, now_ms: int, write_queue_nums: Mapping[str, int]) -> MessageQueue:
        found = ring.ahead_that(lambda queue: self.is_available(queue.broker_name, now_ms=now_ms))
        if found is not None:
            return found
        broker_name = self._one_of_the_better_half(now_ms)
        queue_nums = write_queue_nums.get(broker_name, 0)
        queue = ring.next()
        if queue_nums > 0:
            return MessageQueue(queue.topic, broker_name, ring.next_number() % queue_nums)
        # The broker has no writable row in this topic; Java forgets its fault item, too.
        self._items.pop(broker_name, None)
        return queue

    def _one_of_the_better_half(self, now_ms: int) -> str:
        """A random broker of the better half of the isolated brokers; called only if no broker is available."""
        best_first = sorted(
            self._items,
            key=lambda name: (
                now_ms < self._items[name].available_from_ms,
                self._items[name].latency_ms,
                self._items[name].available_from_ms,
            ),
        )
        half = len(best_first) // 2
        if half == 0:
            return best_first[0]
        self._which_item_worst += 1
        return best_first[self._which_item_worst % half]

    def due_probes(self, *, now_ms: int) -> tuple[str, ...]:
        """Return the brokers that the detector must probe now: each broker at most once per DETECT_INTERVAL_MS."""
        if not self._detector_enabled:
            return ()
        due = tuple(name for name, item in self._items.items() if now_ms >= item.probe_from_ms)
        for name in due:
            self._items[name].probe_from_ms = now_ms + DETECT_INTERVAL_MS
        return due

    def probe_succeeded(self, broker_name: str) -> None:
        if broker_name in self._items:
            self._items[broker_name].reachable = True

    def forget(self, broker_name: str) -> None:
        """Forget the broker, because it has no address any more."""
        self._items.pop(broker_name, None)

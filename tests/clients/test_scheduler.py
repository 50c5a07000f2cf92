"""Fixed-rate jobs that share one task."""

import asyncio
import logging

from nemesrv.clients.name_server_client import try_lock
from nemesrv.clients.scheduler import FixedRateScheduler
from tests.virtual import VirtualClock, run

LOG = logging.getLogger("tests.clients")


def started_s(*, poll_takes_s: float, until_s: float) -> dict[str, list[float]]:
    """When a poll (10 ms, 30 s) and a heartbeat (1 s, 30 s) began, the poll taking that long."""
    clock, times = VirtualClock(), {"poll": list[float](), "heartbeat": list[float]()}

    async def main() -> None:
        scheduler = FixedRateScheduler(clock, LOG)

        async def poll() -> None:
            times["poll"].append(round(clock.monotonic_s(), 3))
            await clock.sleep(poll_takes_s)

        async def heartbeat() -> None:
            times["heartbeat"].append(round(clock.monotonic_s(), 3))

        scheduler.add("poll", poll, initial_s=0.010, period_s=30)
        scheduler.add("heartbeat", heartbeat, initial_s=1, period_s=30)
        scheduler.start()
        await clock.sleep(until_s)
        await scheduler.stop()

    run(main)
    return times


def test_quick_jobs_run_at_their_rate() -> None:
    assert started_s(poll_takes_s=0, until_s=70) == {"poll": [0.01, 30.01, 60.01], "heartbeat": [1, 31, 61]}


def test_a_slow_job_delays_the_others() -> None:
    assert started_s(poll_takes_s=9, until_s=70) == {"poll": [0.01, 30.01, 60.01], "heartbeat": [9.01, 39.01, 69.01]}


def test_a_job_slower_than_its_period_catches_up_without_a_pause() -> None:
    times = started_s(poll_takes_s=40, until_s=130)
    assert times["poll"] == [0.01, 40.01, 80.01, 120.01]
    assert times["heartbeat"] == [40.01, 80.01, 120.01]


def test_a_job_that_fails_runs_again() -> None:
    clock, runs = VirtualClock(), list[float]()

    async def main() -> None:
        scheduler = FixedRateScheduler(clock, LOG)

        async def failing() -> None:
            runs.append(clock.monotonic_s())
            raise OSError("on purpose")

        scheduler.add("failing", failing, initial_s=1, period_s=1)
        scheduler.start()
        await clock.sleep(3.5)
        await scheduler.stop()
        await clock.sleep(10)

    run(main)
    assert runs == [1, 2, 3]


async def test_each_run_is_recorded_with_its_begin_and_one_reading_of_the_clock() -> None:
    clock, rows = VirtualClock(), list[tuple[object, ...]]()
    scheduler = FixedRateScheduler(clock, LOG, lambda began_s, event, **fields: rows.append((began_s, event, fields)))
    scheduler.add("poll", lambda: clock.sleep(2), initial_s=1, period_s=30)
    scheduler.start()
    await clock.sleep(5)
    await scheduler.stop()
    assert rows == [(1, "scheduled_task", {"f": "poll"})]


async def test_a_lock_is_waited_for_only_so_long() -> None:
    clock, lock = VirtualClock(), asyncio.Lock()
    assert await try_lock(lock, clock)
    assert not await try_lock(lock, clock)
    assert clock.monotonic_s() == 3.0
    clock.call_later(1, lock.release)
    assert await try_lock(lock, clock)
    assert clock.monotonic_s() == 4.0

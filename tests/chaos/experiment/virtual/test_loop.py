"""Virtual time: order, jumps, and what happens to a process that is paused or killed."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from nemesrv.chaos.experiment.virtual.loop import ProcessLoop, Scheduler, VirtualClock


class World:
    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.clock = VirtualClock(self.scheduler)
        self.seen: list[tuple[float, str]] = []

    def process(self, name: str = "node") -> ProcessLoop:
        return self.scheduler.process(name)

    def note(self, what: str) -> None:
        self.seen.append((self.clock.monotonic_s(), what))

    def finish(self, process: ProcessLoop, work: Coroutine[Any, Any, Any], limit_s: float = 1e6) -> Any:
        task = process.create_task(work)
        self.scheduler.run_until_done(task, limit_s)
        return task.result()


@pytest.fixture
def world() -> World:
    return World()


def test_hours_pass_at_once_and_the_clock_shows_them(world: World) -> None:
    async def work() -> tuple[float, int]:
        await world.clock.sleep(7200)
        return world.clock.monotonic_s(), world.clock.now_ms()

    assert world.finish(world.process(), work()) == (7200.0, 1_700_007_200_000)


def test_timers_of_all_processes_run_by_their_time_and_equal_ones_in_the_order_they_were_set(world: World) -> None:
    first, second = world.process(), world.process()
    second.call_later(2, world.note, "b")
    first.call_later(2, world.note, "c")
    first.call_later(1, world.note, "a")
    world.scheduler.run(10)
    assert world.seen == [(1, "a"), (2, "b"), (2, "c")]
    assert world.clock.monotonic_s() == 10


def test_nothing_after_the_end_of_a_run_is_run_before_the_next(world: World) -> None:
    world.process().call_later(5, world.note, "late")
    world.scheduler.run(4.9)
    assert world.seen == []
    world.scheduler.run(5)
    assert world.seen == [(5, "late")]


def test_a_cancelled_timer_never_fires(world: World) -> None:
    timer = world.process().call_later(1, world.note, "never")
    timer.cancel()
    world.scheduler.run(2)
    assert world.seen == []
    assert timer.cancelled()


def test_each_process_sees_its_own_running_loop(world: World) -> None:
    loops = [world.process(), world.process()]

    async def which() -> asyncio.AbstractEventLoop:
        await asyncio.sleep(1)
        return asyncio.get_running_loop()

    tasks = [loop.create_task(which()) for loop in loops]
    world.scheduler.run(2)
    assert [task.result() for task in tasks] == loops


def test_a_timeout_is_of_virtual_time(world: World) -> None:
    async def work() -> None:
        async with world.clock.timeout(3):
            await world.clock.sleep(60)

    with pytest.raises(TimeoutError):
        world.finish(world.process(), work())
    assert world.clock.monotonic_s() == 3


def test_what_never_ends_is_given_up_after_its_limit(world: World) -> None:
    process = world.process()
    with pytest.raises(TimeoutError, match="within 50 s"):
        world.scheduler.run_until_done(process.create_future(), 50)


def test_a_paused_process_does_nothing_and_on_resume_first_reads_and_then_runs_its_overdue_timers(world: World) -> None:
    process, other = world.process(), world.process()
    process.call_later(1, world.note, "timer 1")
    process.call_later(3, world.note, "timer 3")
    process.came_in(2.0, world.note, "bytes")
    process.call_later(20, world.note, "timer 20")
    other.call_later(4, world.note, "other")
    process.pause()
    world.scheduler.run(10)
    assert world.seen == [(4, "other")]
    process.resume()
    world.scheduler.run(30)
    assert world.seen[1:] == [(10, "bytes"), (10, "timer 1"), (10, "timer 3"), (20, "timer 20")]


def test_a_timer_that_is_cancelled_by_what_came_in_during_a_pause_does_not_fire(world: World) -> None:
    process = world.process()
    timer = process.call_later(1, world.note, "timed out")
    process.came_in(0.5, timer.cancel)
    process.pause()
    world.scheduler.run(10)
    process.resume()
    world.scheduler.run(11)
    assert world.seen == []


def test_a_killed_process_runs_nothing_any_more_and_its_finally_blocks_wait_for_the_burial(world: World) -> None:
    process = world.process()

    async def work() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            world.note("finally")
            asyncio.get_running_loop().call_soon(world.note, "scheduled by the dead")

    process.create_task(work())
    process.call_later(5, world.note, "timer")
    world.scheduler.run(1)
    process.kill()
    world.scheduler.run(200)
    assert world.seen == []
    process.bury()
    world.scheduler.run(300)
    assert world.seen == [(200, "finally")]


def test_an_error_in_a_callback_goes_to_its_own_process_and_ends_nothing(world: World) -> None:
    process = world.process()
    told: list[Any] = []
    process.set_exception_handler(lambda loop, context: told.append((loop, context["exception"])))

    def fail() -> None:
        raise ValueError("broken")

    process.call_soon(fail)
    process.call_soon(world.note, "goes on")
    world.scheduler.run(1)
    assert [(loop, str(exc)) for loop, exc in told] == [(process, "broken")]
    assert world.seen == [(0, "goes on")]


def test_ctrl_c_leaves_the_run(world: World) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    world.process().call_soon(interrupted)
    with pytest.raises(KeyboardInterrupt):
        world.scheduler.run(1)

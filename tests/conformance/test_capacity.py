"""How much at once, how long it takes, and how late the loop was."""

import asyncio

import pytest

from nemesrv.conformance.capacity import LOOK_S, LoopLateness, Places, at_once, end_s, planned, planned_s
from nemesrv.conformance.situations import SITUATIONS, Situation


def job(for_s: float) -> Situation:
    return Situation(name="job", says="", for_s=for_s)


@pytest.mark.parametrize(
    ("lengths", "places", "lanes", "takes_s"),
    [
        ([10.0], 1, 1, 11.2),
        ([10.0, 10.0], 1, 1, 22.4),
        ([10.0, 10.0], 2, 1, 12.2),  # the second begins when the first has begun
        ([10.0, 10.0], 2, 2, 11.2),
        ([], 2, 2, 0.0),
    ],
)
def test_how_long_jobs_take(lengths: list[float], places: int, lanes: int, takes_s: float) -> None:
    assert planned_s([job(length) for length in lengths], 1.0, places, lanes) == pytest.approx(takes_s)


@pytest.mark.parametrize("start_s", [0.5, 2.0])
def test_a_full_profile_of_a_client_takes_four_minutes_or_less_on_two_cores(start_s: float) -> None:
    _jobs, takes_s = planned(tuple(SITUATIONS.values()), 60, start_s, 48, 2)
    assert takes_s <= 240.0


def test_what_is_fine_begins_when_all_others_have_started_where_that_takes_no_longer() -> None:
    names = [situation.name for situation, _ in planned(tuple(SITUATIONS.values()), 60, 1.0, 48, 2)[0]]
    assert names[:8] == [*["all_gone"] * 5, "list_changes", "black_hole", "silent"]
    assert names[-3:] == ["starts", "quiet", "slow"]
    assert names.count("starts") == 59
    slow_to_start = [situation.name for situation, _ in planned(tuple(SITUATIONS.values()), 60, 5.0, 48, 2)[0]]
    assert slow_to_start[-1] == "starts", "a quiet end would make the whole longer"
    alone = planned([SITUATIONS["quiet"]], 60, 1.0, 48, 2)
    assert alone == ([(SITUATIONS["quiet"], 0)], pytest.approx(101.2))
    twice, _ = planned([SITUATIONS["quiet"]], 60, 1.0, 48, 2, repeats=2)
    assert twice == [(SITUATIONS["quiet"], 0), (SITUATIONS["quiet"], 1)]


def test_sixty_starts_take_a_minute_or_less_for_a_client_that_starts_in_half_a_second() -> None:
    assert planned_s([SITUATIONS["starts"]] * 60, 0.5, 48, 2) <= 60.0


def test_a_process_as_large_as_all_memory_runs_beside_one_other_and_small_ones_are_not_without_end() -> None:
    assert at_once(1 << 50) == 2
    assert at_once(0) == at_once(1) == 48


def test_who_comes_first_is_let_in_first_with_all_of_its_processes() -> None:
    order: list[str] = []

    async def main() -> None:
        places = Places(2)
        leave = asyncio.Event()

        async def work(name: str, wanted: int) -> None:
            async with places.taken(wanted):
                order.append(name)
                await leave.wait()

        works = [asyncio.create_task(work(*each)) for each in (("one", 1), ("two", 2), ("another", 1))]
        for _ in range(10):
            await asyncio.sleep(0)
        assert order == ["one"]
        leave.set()
        await asyncio.gather(*works)
        assert places.free == 2

    asyncio.run(main())
    assert order == ["one", "two", "another"]


def test_the_worst_lateness_is_that_of_the_stretch() -> None:
    lateness = LoopLateness(lambda: 0.0)
    for at_ms, late_ms in ((100.0, 30.0), (200.0, 4.0), (300.0, 80.0)):
        lateness.saw(at_ms, late_ms)
    assert lateness.worst_ms(0.0, 250.0) == 80.0  # it began within it
    assert lateness.worst_ms(0.0, 150.0) == 30.0
    assert lateness.worst_ms(301.0, 400.0) == lateness.worst_ms(150.0, 210.0) == 0.0


def test_a_loop_that_is_held_up_is_seen_to_be_late() -> None:
    now_ms = 0.0

    async def main() -> LoopLateness:
        nonlocal now_ms
        lateness = LoopLateness(lambda: now_ms)
        looking = asyncio.create_task(lateness.look())
        await asyncio.sleep(0)
        now_ms = 500.0  # the work of others
        await asyncio.sleep(LOOK_S * 2)
        looking.cancel()
        return lateness

    assert asyncio.run(main()).worst_ms(0.0, 1000.0) == pytest.approx(480.0)


def test_starts_that_are_slower_than_planned_put_the_end_off() -> None:
    assert end_s(30.0, [], 100) == end_s(30.0, [5.0], 100) == end_s(30.0, [5.0, 5.1, 5.2], 100) == 30.0
    assert end_s(30.0, [5.0, 6.0, 7.0], 100) == 104.0

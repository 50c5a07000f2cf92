"""What passed is looked at behind the passing, in the order in which it came."""

from __future__ import annotations

import asyncio

from nemesrv.chaos.fronts.front import LookQueue, look_queue_of_loop


def looked_at(steps: list[str]) -> list[str]:
    """What a queue of its own did while these came in one turn of the loop: `+x` waits, `!` is told at once."""
    done: list[str] = []

    async def work() -> None:
        queue = LookQueue(asyncio.get_running_loop())
        for at_ms, step in enumerate(steps):
            if step == "!":
                queue.look()
                done.append("told")
            else:
                done.append(f"passed {step}")
                queue.add(lambda data, at: done.append(f"looked at {data.decode()} of {at:g}"), step.encode(), at_ms)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(work())
    return done


def test_all_is_passed_on_before_any_of_it_is_looked_at() -> None:
    assert looked_at(["a", "b"]) == ["passed a", "passed b", "looked at a of 0", "looked at b of 1"]


def test_what_is_told_at_once_comes_behind_what_came_before() -> None:
    assert looked_at(["a", "!", "b"]) == ["passed a", "looked at a of 0", "told", "passed b", "looked at b of 2"]


def test_what_is_found_while_it_is_looked_at_does_not_overtake() -> None:
    done: list[str] = []

    async def work() -> None:
        queue = LookQueue(asyncio.get_running_loop())

        def first(_data: bytes, _at_ms: float) -> None:
            queue.look()  # it has something to tell, and tells it now
            done.append("first")

        queue.add(first, b"", 0.0)
        queue.add(lambda _data, _at_ms: done.append("second"), b"", 0.0)
        queue.look()

    asyncio.run(work())
    assert done == ["first", "second"]


def test_fronts_of_one_loop_have_one_queue_and_those_of_another_their_own() -> None:
    async def queues() -> tuple[LookQueue, LookQueue]:
        return look_queue_of_loop(), look_queue_of_loop()

    one, same = asyncio.run(queues())
    other, _ = asyncio.run(queues())
    assert one is same
    assert one is not other

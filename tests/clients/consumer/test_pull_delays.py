"""What was put off is one row a second at most, whatever each wait is, and each reason has its own."""

from nemesrv.clients.consumer.pull_service import PullDelays
from nemesrv.remoting.message import MessageQueue
from tests.clients.fakes import World
from tests.virtual import run

QUEUE = MessageQueue("orders", "broker-a", 3)


def recorded(*waits: tuple[str, float]) -> list[tuple[str, float, int, float]]:
    """Why, the longest, how many and the shortest of each row."""
    world = World()

    async def body() -> None:
        delays = PullDelays(world.context(), QUEUE)
        for why, delay_s in waits:
            await delays.put_off(why, lambda delay_s=delay_s: world.clock.sleep(delay_s))
        delays.over()

    run(body)
    assert all((row["topic"], row["broker_name"], row["queue_id"]) == QUEUE for row in world.history)
    return [
        (row["f"], round(row["duration_ms"]), row["value"]["times"], round(row["value"]["shortest_ms"]))
        for row in world.history
    ]


def test_a_wait_of_a_second_is_a_row() -> None:
    assert recorded(("exception", 1), ("exception", 1)) == [("exception", 1000, 1, 1000)] * 2


def test_short_waits_are_put_together_until_a_second_is_full() -> None:
    waits = [("flow_control", 0.06)] * 25 + [("flow_control", 0.09)]
    assert recorded(*waits) == [("flow_control", 60, 17, 60), ("flow_control", 90, 9, 60)]


def test_another_reason_is_another_row() -> None:
    found = recorded(("flow_control", 0.05), ("broker_flow_control", 0.02), ("exception", 1))
    assert found == [("flow_control", 50, 1, 50), ("broker_flow_control", 20, 1, 20), ("exception", 1000, 1, 1000)]

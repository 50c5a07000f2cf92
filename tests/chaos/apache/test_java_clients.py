"""Apache's own clients at our servers, judged by the checks that judge ours: right servers pass, wrong ones do not."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.apache.client import JavaClient
from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.fronts.behaviour import PASSES, Behaviour, Connected
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.apache.in_one_process import InOneProcess, missing, recorded
from tests.chaos.judged import verdicts_of_rows

pytestmark = [pytest.mark.java, pytest.mark.timeout(280)]

PROFILES = {"apache-4.9.8": "4.9", "apache-5.3.3": "5.x"}
JUDGED = frozenset(
    {
        *("client_routes_are_true", "name_server_selection", "no_acknowledged_loss", "messages_delivered"),
        *("commits_follow_work", "order_kept", "duplicates", "availability", "prompt_answers", "answers_asked_for"),
        "living_are_used",
    }
)
"""By rows of clients: all of these have something to look at."""
TIMED = frozenset({"prompt_answers", "client_routes_are_true"})
"""Of how soon something was done whole runs say more: here servers, fronts and the test share one process, and the JVMs
its processor."""
TIMED_TOO = frozenset({"messages_delivered", "name_server_selection", "availability", "timers_kept"})
"""Where the machine was late: a front sees neither when a JVM's call began nor whether an answer was in time for it."""


def scenario(implementation: str, **workload: Any) -> dict[str, Any]:
    if why := missing(implementation):
        pytest.skip(why)
    return {
        "cluster": {"name_servers": 2, "brokers": 2, "profile": PROFILES[implementation]},
        "timers": {"time_scale": 1},
        "workload": {
            **{"producers": 1, "consumers": 1, "sends_per_s": 20, "client_starts": 0},
            **{"implementation": implementation, **workload},
        },
        "checks": [*CHECKS],
    }


Happens = Callable[[InOneProcess], Awaitable[None]]


async def sixty_messages(run: InOneProcess) -> None:
    await run.until("60 messages", lambda: len(run.rows("receive")) >= 60)


LATE_MS = 500.0
"""Of timers; beyond it a run by the machine's clock, in a part of the suite that gives way, proves little."""


def recorded_in_time(document: dict[str, Any], folder: Path, happens: Happens = sixty_messages) -> list[dict[str, Any]]:
    """Recorded anew, once, where another part of the suite had the processor."""
    for turn in range(2):
        rows = recorded(document, folder / str(turn), happens)
        if not was_late(rows):
            break
    return rows


def was_late(rows: list[dict[str, Any]]) -> bool:
    return any(row["lag_ms"] >= LATE_MS for row in rows if row["event"] == "timer_lag")


def judged(rows: list[dict[str, Any]]) -> dict[str, Verdict]:
    return {verdict.name: verdict for verdict in verdicts_of_rows(rows)}


def wrong(found: dict[str, Verdict], rows: list[dict[str, Any]]) -> dict[str, Verdict]:
    left_out = TIMED | TIMED_TOO if was_late(rows) else TIMED
    return {name: one for name, one in found.items() if one.verdict is Validity.INVALID and name not in left_out}


@pytest.mark.nightly_but("apache-5.3.3")
@pytest.mark.parametrize("implementation", PROFILES)
def test_javas_clients_at_right_servers_are_judged_and_nothing_is_wrong(implementation: str, tmp_path: Path) -> None:
    rows = recorded_in_time(scenario(implementation), tmp_path)
    found = judged(rows)
    assert wrong(found, rows) == {}
    judged_here = JUDGED - TIMED if was_late(rows) else JUDGED  # late machines have no quiet time
    assert {name for name in judged_here & found.keys() if not found[name].examined} == set()
    taken = [row for row in rows if row["event"] == "queue_taken" and row["topic"] == "orders"]
    assert len(taken) == 8
    assert all(row["op_id"] for row in rows if row["event"] == "receive")
    about = {row["source"]: row["value"] for row in rows if row["event"] == "node"}
    assert about["producer-0"] == {"kind": "producer", "implementation": implementation}


@pytest.mark.nightly("test_javas_clients_at_right_servers_are_judged_and_nothing_is_wrong")
@pytest.mark.parametrize(
    ("defect", "found_by"),
    [
        ("broker-changes-bodies", "messages_delivered"),
        ("broker-loses-tags", "messages_delivered"),
        ("broker-answers-oneway", "answers_asked_for"),
    ],
)
def test_a_wrong_broker_is_convicted_with_javas_clients(defect: str, found_by: str, tmp_path: Path) -> None:
    async def a_while(run: InOneProcess) -> None:
        await run.until("60 sends", lambda: len(run.rows("send", "producer-0")) >= 120)

    rows = recorded(scenario("apache-5.3.3"), tmp_path, a_while, defect)
    found = judged(rows)
    assert found[found_by].verdict is Validity.INVALID


@pytest.mark.nightly(
    "chaos/apache/test_workload_rows.py::test_what_a_broadcasting_consumer_keeps_is_a_commit_of_its_own"
)
def test_javas_clients_that_broadcast_are_each_given_every_message(tmp_path: Path) -> None:
    async def both(run: InOneProcess) -> None:
        await run.until(
            "60 messages each", lambda: all(len(run.rows("receive", f"consumer-{n}")) >= 60 for n in (0, 1))
        )
        await asyncio.sleep(6)  # each keeps its offsets every 5 s

    rows = recorded_in_time(scenario("apache-5.3.3", consumers=2, broadcasting=True), tmp_path, both)
    found = judged(rows)
    assert wrong(found, rows) == {}
    assert {row["node"] for row in rows if row["event"] == "commit"} == {"consumer-0", "consumer-1"}
    assert found["commits_follow_work"].examined > 0


@pytest.mark.nightly(
    "chaos/apache/test_workload_rows.py::test_a_message_received_has_the_digest_of_what_came_and_its_holding"
)
def test_an_ordered_workload_of_javas_clients_is_judged_at_the_receipts_too(tmp_path: Path) -> None:
    rows = recorded(scenario("apache-5.3.3", ordered=True, ordered_keys=4), tmp_path, sixty_messages)
    [order] = [verdict for verdict in verdicts_of_rows(rows) if verdict.name == "order_kept"]
    assert order.verdict is Validity.VALID
    assert order.measured["receipts"] >= 60


@pytest.mark.nightly("test_javas_clients_at_right_servers_are_judged_and_nothing_is_wrong")
@pytest.mark.parametrize(("implementation", "waits"), [("apache-4.9.8", True), ("apache-5.3.3", False)])
def test_a_call_waits_out_a_closing_server_in_4_9_only(implementation: str, waits: bool, tmp_path: Path) -> None:
    """What recovery_time allows such a client (oracle/recovery.py: waits_out_a_close)."""

    async def a_close(run: InOneProcess) -> None:
        await run.until("10 sends", lambda: len(run.rows("send", "producer-0")) >= 20)
        client = run.actors["producer-0"].node
        assert isinstance(client, JavaClient)
        for how in (Behaviour(swallows=True), Behaviour(connected=Connected.CLOSED), PASSES):
            await client._dialler._fronts["broker-a"].behave(how)
            await asyncio.sleep(0.5)
        await run.until("its end", lambda: any(row["duration_ms"] >= 400 for row in ended(run.rows("send_attempt"))))

    document = scenario(implementation)
    document["cluster"]["brokers"] = 1
    rows = recorded(document, tmp_path, a_close)
    longest_ms = max(row["duration_ms"] for row in ended(rows))
    assert 400 < longest_ms < 1_500 if not waits else 2_900 < longest_ms < 4_500


def ended(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["event"] == "send_attempt" and row["type"] != "invoke"]

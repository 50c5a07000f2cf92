"""A small run to report on: broker-a is killed at 20 s, ns-0 keeps its route until 60 s, ns-1 drops it at once.

Seconds count from where the timeline starts, STEADY_S after the history's origin.
"""

from pathlib import Path

from nemesrv.chaos.history.rows import write_parquet
from nemesrv.chaos.reports.html import Run
from nemesrv.chaos.verdict import Verdict
from tests.chaos.builder import BOTH, HistoryBuilder, address_of, cluster, example, invalid, valid

STEADY_S, KILL_S, STALE_UNTIL_S, END_S = 3.0, 20.0, 60.0, 90.0
TOLD = {"name": "broker-crash", "description": "<b>told</b>", "again": "nemesrv run scenario.yaml"}
RUN = Run(seed=7, profile="4.9", time_scale=10.0, **TOLD)

STALE = {"from_s": STEADY_S + KILL_S, "to_s": STEADY_S + STALE_UNTIL_S, "took_s": 40, "allowed_s": 0}
HELD = example("ns-0", "broker-a", topic="<k>&", **STALE, kind="must not hold")
VERDICTS = (
    invalid(
        "routes_are_true",
        examined=8,
        measured={"max_ms": 40_000.0},
        allowed={"bound_ms": 0.0, "formula": "RTT + event thread", "tolerance_ms": 50.0, "row": "process crash"},
        examples=(HELD,),
        why="1 of 8 times a NameServer's route did not equal what was alive and reachable",
    ),
    valid(
        "no_acknowledged_loss",
        examined=40,
        measured={"lost": 0},
        allowed={"formula": "0 lost", "listed": [address_of("ns-1")]},
    ),
    Verdict.nothing_examined("no NameServer was lost", name="dead_name_servers_left"),
)


def builder() -> HistoryBuilder:
    """The history, with a producer that fails once at the dead broker and a consumer that changes its NameServer."""
    told = cluster(name_servers=2, brokers=BOTH, clients=("producer-0", "consumer-0"))
    for client in ("producer-0", "consumer-0"):
        value = {"old": None, "index": 0, "reason": "first"}
        told.at(2).event(client, "name_server_chosen", name_server=address_of("ns-0"), value=value)
    told.at(STEADY_S).event("harness", "phase", phase="steady")
    told.at(STEADY_S + KILL_S).event("harness", "phase", phase="fault").fault("kill-1", "kill", "sigkill", "broker-a")
    told.at(STEADY_S + KILL_S + 0.01).route("ns-1", "orders", "broker-b")
    told.at(STEADY_S + STALE_UNTIL_S).route("ns-0", "orders", "broker-b")
    told.event("ns-0", "broker_dropped", broker_name="broker-a", broker_id=0, value={"reason": "expired"})
    for number in range(80):
        at_s = 4 + number
        broker = "broker-b" if at_s > 25 or number % 2 else "broker-a"
        outcome = "info" if broker == "broker-a" and at_s > KILL_S else "ok"
        _send(told, number, STEADY_S + at_s, broker, outcome)
    for phase in ("heal", "settle", "final_reads"):
        told.at(STEADY_S + (END_S if phase == "final_reads" else 80)).event("harness", "phase", phase=phase)
    value = {"old": address_of("ns-0"), "index": 1, "reason": "not_active"}
    told.at(STEADY_S + 50).event("consumer-0", "name_server_chosen", name_server=address_of("ns-1"), value=value)
    return told.end(STEADY_S + END_S)


def _send(told: HistoryBuilder, number: int, at_s: float, broker: str, outcome: str) -> None:
    where = {"broker_name": broker, "queue_id": number % 4}
    ids = {"op_id": f"op-{number}"}
    told.at(at_s).event("producer-0", "send", type="invoke", topic="orders", msg_key=f"k-{number}", **ids)
    told.event("producer-0", "send_attempt", type="invoke", attempt=0, **where, **ids)
    took_ms = 3000.0 if outcome == "info" else 5.0 + number % 7
    told.at(at_s + took_ms / 1000)
    told.event("producer-0", "send_attempt", type=outcome, attempt=0, duration_ms=took_ms, **where, **ids)
    ended = {"type": outcome, "topic": "orders", "msg_key": f"k-{number}", "duration_ms": took_ms}
    told.event("producer-0", "send", **ended, **ids, **(where if outcome == "ok" else {}))
    if outcome == "ok":
        told.event("consumer-0", "pull", type="invoke", topic="orders", offset=number, **where)
        told.event("consumer-0", "pull", type="ok", topic="orders", offset=number, code=0, **where)


def recorded(folder: Path) -> Path:
    """The run folder with this history."""
    write_parquet(builder().rows, folder)
    return folder

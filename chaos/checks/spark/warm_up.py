"""A made-up run of a few rows, judged once before the real one: Spark loads and compiles what the checks need.

It is done at the lowest priority while a cluster comes up, and saves the first judging most of its time. The
verdicts are thrown away; they are VALID or UNKNOWN as the rows have it, and nothing depends on them.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ....actors.processes import FOLDER_PREFIX
from ...history.rows import write_parquet
from ...history.schema import Row
from ...oracle.windows import Timers
from ...topology import CONSUMER_GROUP
from .judge import check_run

log = logging.getLogger("nemesrv.rehearsal")

_NAME_SERVERS = {"ns-0": "127.0.0.1:1", "ns-1": "127.0.0.1:2", "ns-2": "127.0.0.1:3"}
_BROKERS = {"broker-a": "127.0.0.1:4", "broker-b": "127.0.0.1:5"}
_CLIENTS = ("producer-0", "consumer-0")
_TOPIC = "orders"
_CRASH_MS, _RESTART_MS, _END_MS = 20_000.0, 110_000.0, 180_000.0


def rehearse(spark: SparkSession) -> None:
    """Judge the made-up run with every check. Raises nothing: a rehearsal that fails only costs time later."""
    from .. import CHECKS

    with tempfile.TemporaryDirectory(prefix=f"{FOLDER_PREFIX}{os.getpid()}-rehearsal-") as folder:
        try:
            write_parquet(list(_rows()), Path(folder))
            verdicts = check_run(Path(folder), CHECKS, spark)
        except Exception:
            log.warning("the rehearsal of the checks failed", exc_info=True)
        else:
            log.info("rehearsed: %s", ", ".join(f"{v.name} {v.verdict}" for v in verdicts))


def _role(node: str) -> str:
    return "name_server" if node.startswith("ns-") else node.partition("-")[0]


def _rows() -> Iterator[Row]:
    """A crash of broker-b and its restart, seen by three NameServers, a producer and a consumer."""
    numbers = count()

    def row(time_ms: float, node: str, event: str, **fields: Any) -> Row:
        stamped = {"time_ms": time_ms, "seq": next(numbers), "node": node, "role": _role(node), "incarnation": 0}
        return {**stamped, "event": event, **fields}

    def route(*brokers: str) -> dict[str, Any]:
        return {
            "brokers": {name: {"0": _BROKERS[name]} for name in brokers},
            "queues": {name: [4, 4, 6, 0] for name in brokers},
        }

    timers = Timers.for_profile("4.9")
    yield row(0, "harness", "run_begin", value={"profile": "4.9", "time_scale": 10, "timers": timers.to_json()})
    for node in (*_NAME_SERVERS, *_BROKERS, *_CLIENTS):
        address = (_NAME_SERVERS | _BROKERS).get(node)
        yield row(0, "harness", "node", source=node, address=address, value={"kind": _role(node)})
        yield row(1, node, "started", address=address)
        for at_s in range(1, int(_END_MS / 1000), 20):
            yield row(at_s * 1000.0, node, "timer_lag", lag_ms=1.0, duration_ms=1_000.0)
    for broker in _BROKERS:
        yield row(2, broker, "topic", topic=_TOPIC, value={"read": 4, "write": 4, "perm": 6})
    for node in _NAME_SERVERS:
        yield row(10, node, "route", topic=_TOPIC, value=route(*_BROKERS))
        dropped = {"broker_name": "broker-b", "address": _BROKERS["broker-b"], "value": {"reason": "closed"}}
        yield row(_CRASH_MS + 5, node, "broker_dropped", **dropped)
        yield row(_CRASH_MS + 5, node, "route", topic=_TOPIC, value=route("broker-a"))
        yield row(_RESTART_MS + 5, node, "route", topic=_TOPIC, value=route(*_BROKERS))
    for at_ms, phase in ((_CRASH_MS, "start"), (_RESTART_MS, "end")):
        fault = {"fault_id": "kill-1", "fault": "kill", "injection": "sigkill", "source": "broker-b"}
        yield row(at_ms, "harness", "fault", phase=phase, **fault)
    for client in _CLIENTS:
        listed = list(_NAME_SERVERS.values())
        yield row(5, client, "name_server_list", value=listed)
        chosen = {"old": None, "index": 0, "reason": "first"}
        yield row(6, client, "name_server_chosen", name_server=listed[0], value=chosen)
        for at_ms in (7.0, 30_007.0, 120_007.0):
            yield row(at_ms, client, "name_server_call", f="route", type="ok", name_server=listed[0], topic=_TOPIC)
    for number, (broker, address) in enumerate(_BROKERS.items()):
        queue = {"topic": _TOPIC, "broker_name": broker, "queue_id": 0}
        key = {"op_id": f"op-{number}", "msg_key": f"key-{number}"}
        at_ms = 1_000.0 + number
        yield row(at_ms, "producer-0", "send", type="invoke", topic=_TOPIC, **key)
        yield row(at_ms, "producer-0", "send_attempt", type="invoke", op_id=key["op_id"], address=address, **queue)
        yield row(at_ms + 1, "producer-0", "send", type="ok", offset=0, **queue, **key)
        yield row(at_ms, "consumer-0", "pull", type="invoke", address=address, offset=0, **queue)
        held = {"op_id": f"take-{number}", "offset": 0, **queue}
        yield row(8, "consumer-0", "queue_taken", **held)
        yield row(at_ms + 2, "consumer-0", "receive", msg_key=key["msg_key"], **held)
        committed = {"group": CONSUMER_GROUP, "before": -1, "client": "127.0.0.1@consumer-0#1"}
        yield row(at_ms + 3, broker, "commit", f="update", offset=1, value=committed, **queue)
        yield row(_END_MS - 10, "prober", "read", msg_key=key["msg_key"], offset=0, **queue)
        yield row(_END_MS - 9, "prober", "read_done", offset=1, **queue)
    queues = {broker: [[broker, queue_id] for queue_id in range(4)] for broker in _BROKERS}
    for at_ms, brokers in ((9.0, tuple(_BROKERS)), (60_000.0, ("broker-a",)), (140_000.0, tuple(_BROKERS))):
        value = [queue for broker in brokers for queue in queues[broker]]
        yield row(at_ms, "consumer-0", "assigned", topic=_TOPIC, value=value)
    # What broker-b was sent just before the crash, and the consumer took again after it; then both work on.
    queue = {"topic": _TOPIC, "broker_name": "broker-b", "queue_id": 0}
    again = {"msg_key": "key-again", "offset": 1}
    sent_ms = _CRASH_MS - 1_000
    yield row(sent_ms, "producer-0", "send", type="ok", op_id="op-again", attempt=1, duration_ms=1, **queue, **again)
    yield row(sent_ms + 1, "consumer-0", "receive", op_id="take-1", **queue, **again)
    yield row(140_000, "consumer-0", "queue_taken", op_id="take-2", offset=1, **queue)
    yield row(140_001, "consumer-0", "receive", op_id="take-2", **queue, **again)
    for number, at_ms in enumerate((_CRASH_MS + 1_000, _RESTART_MS + 1_000)):
        queue = {"topic": _TOPIC, "broker_name": "broker-a", "queue_id": 1, "offset": number}
        key = {"op_id": f"op-later-{number}", "msg_key": f"key-later-{number}"}
        yield row(at_ms, "producer-0", "send", type="ok", duration_ms=2, **queue, **key)
        yield row(at_ms, "consumer-0", "pull", type="ok", address=_BROKERS["broker-a"], code=0, duration_ms=5, **queue)
        yield row(at_ms, "prober", "read", msg_key=key["msg_key"], **queue)
    yield row(_END_MS, "harness", "phase", phase="end")

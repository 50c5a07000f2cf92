"""How long clients were without a broker, and whose fault has to explain that."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from nemesrv.chaos.history.rows import to_table
from nemesrv.chaos.history.schema import parquet_path
from nemesrv.chaos.reports.cost import Cost, cost_of
from tests.chaos.builder import KILL, HistoryBuilder, cluster


def cost(builder: HistoryBuilder, folder: Path) -> Cost | None:
    path = parquet_path(folder)
    path.parent.mkdir(parents=True)
    pq.write_table(to_table(builder.in_order()), path)
    return cost_of(folder)


def test_a_client_that_loses_a_broker_while_its_name_server_lacks_it_was_without_the_broker(tmp_path: Path) -> None:
    builder = cluster(clients=("consumer-0",))
    builder.at(100).drops("ns-0", "broker-a").at(120).registration("ns-0", "broker-a")
    for second in (*range(1, 110), *range(145, 200)):
        where = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}
        builder.at(second).event("consumer-0", "pull", type="ok", code=0, duration_ms=1, **where)
    found = cost(builder.end(200), tmp_path)
    assert found is not None
    assert [(one.client, one.broker, one.took_ms, one.because) for one in found.without_broker] == [
        ("consumer-0", "broker-a", 36_000.0, "")
    ]


@pytest.mark.parametrize(("back_s", "because"), [(80, "broker-a was killed"), (200, "")])
def test_a_kill_explains_a_missing_broker_until_the_recovery(tmp_path: Path, back_s: int, because: str) -> None:
    builder = cluster(clients=("producer-0",)).at(20).fault(*KILL).at(60).fault(*KILL, end=True)
    where = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}
    for second in (*range(1, 20), *range(back_s, 300)):
        builder.at(second).event("producer-0", "send_attempt", type="ok", attempt=0, duration_ms=1, **where)
        builder.event("producer-0", "send", type="ok", duration_ms=1, **where)
    builder.at(30).event("producer-0", "send", type="fail", duration_ms=1, **where)
    found = cost(builder.end(300), tmp_path)
    assert found is not None
    assert [(one.client, one.took_ms, one.because) for one in found.without_broker] == [
        ("producer-0", (back_s - 20) * 1000.0, because)
    ]
    assert found.failed_of == {"producer-0": 1}
    assert found.told({"producer-0"}).startswith("1 of ")

"""Control rows as Spark hands them over: columns in several chunks, most of them empty."""

import pyarrow as pa

from nemesrv.chaos.checks.record.control import Control, Row, order
from nemesrv.chaos.history.rows import to_table
from tests.chaos.builder import HistoryBuilder, cluster


def columns(builder: HistoryBuilder) -> pa.Table:
    return to_table(builder.rows).select([*Row._fields])


def test_rows_are_the_same_from_however_many_chunks() -> None:
    first, then = cluster(clients=("producer-0",)), cluster(name_servers=3).at(2).lag(7.0, "ns-2", until_s=3)
    whole = pa.concat_tables([columns(first), columns(then)])
    assert whole["node"].num_chunks == 2
    control = Control.of_table(whole)
    expected: dict[str, list[Row]] = {}
    for row in whole.to_pylist():
        told = {name: value for name, value in row.items() if value is not None}
        expected.setdefault(row["event"], []).append(Row(**told))
    del expected["timer_lag"]
    expected = {event: sorted(rows, key=order) for event, rows in expected.items()}
    assert control.by_event == expected
    assert control.lateness.of_node["ns-2"].latest(2000, 3000) == 7.0


def test_no_rows_at_all_are_no_rows() -> None:
    control = Control.of_table(columns(cluster()).slice(0, 0))
    assert (dict(control.lateness.of_node), control.by_event) == ({}, {})

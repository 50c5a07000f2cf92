"""Lines become rows, each line is counted once, and what goes on with a record is joined to it."""

import pytest

from nemesrv.chaos.logs.stream import RELATIVE_MS, LogRow, Reader

AT = "2026-11-20 20:17:34"


def read(*lines: str) -> tuple[list[LogRow], Reader]:
    reader = Reader("a.log")
    rows = [*reader.rows(lines), *reader.finished()]
    counts = reader.counts
    assert counts.lines == len(lines) == counts.understood + counts.not_understood + counts.continued
    return sorted(rows, key=lambda row: row.line), reader


def brief(rows: list[LogRow]) -> list[tuple[int, str]]:
    return [(row.line, row.event) for row in rows]


def test_settings_of_the_main_thread_are_events() -> None:
    rows, _ = read(f"{AT} INFO main - listenPort=9876", f"{AT} INFO Other_1 - listenPort=9876")
    assert [(row.line, row.event, dict(row.fields)) for row in rows] == [
        (1, "setting", {"key": "listenPort", "value": "9876"})
    ]


def test_a_stack_trace_is_joined_to_its_record_with_what_it_says() -> None:
    rows, reader = read(
        "2026-11-20 12:18:51,122 WARN RocketmqClient - updateTopicRouteInfoFromNameServer Exception",
        "org.apache.rocketmq.client.exception.MQClientException: CODE: 17  DESC: No topic route info in name "
        "server for the topic: orders",
        "See http://rocketmq.apache.org/docs/faq/ for further details.",
        "For more information, please visit the url, http://rocketmq.apache.org/docs/faq/",
        "\tat org.apache.rocketmq.client.impl.MQClientAPIImpl.x(MQClientAPIImpl.java:1)",
        "",
        "2026-11-20 12:18:52,122 INFO RocketmqClient - the client factory [1@2] start OK",
    )
    assert brief(rows) == [(1, "route_error"), (7, "client_started")]
    fields = rows[0].fields
    assert (fields["code"], fields["topic"], fields["exception"]) == ("17", "orders", "MQClientException")
    assert fields["remark"] == "No topic route info in name server for the topic: orders"
    assert fields["more"].splitlines()[1] == "See http://rocketmq.apache.org/docs/faq/ for further details."
    assert reader.counts.continued == 5


def test_the_exception_of_rocketmq_is_told_where_it_is_a_cause() -> None:
    rows, _ = read(
        "2026-11-20 12:18:51.122 [http-1] ERROR shop.OrderService - order 4711 was not sent",
        "shop.NotSentException: sorry",
        "\tat shop.OrderService.send(OrderService.java:1)",
        "Caused by: org.apache.rocketmq.client.exception.MQClientException: No route info of this topic: orders",
        "\t... 12 more",
    )
    assert brief(rows) == [(1, "client_exception")]
    assert rows[0].fields["topic"] == "orders"
    assert rows[0].fields["said"] == "No route info of this topic: orders"


def test_somebody_elses_stack_trace_is_not_ours() -> None:
    rows, reader = read(
        "2026-11-20 12:18:51.122 [a] ERROR shop.B - oh", "java.lang.NullPointerException: x", "\tat shop.B"
    )
    assert rows == []
    assert (reader.counts.not_understood, reader.counts.continued) == (1, 2)


def test_a_code_with_a_broker_is_taken_apart() -> None:
    rows, _ = read(
        f"{AT} WARN PullThread - execute the pull request exception",
        "org.apache.rocketmq.client.exception.MQBrokerException: CODE: 1  DESC: no consumer for this group, g BROKER: "
        "10.0.2.1:10911",
    )
    fields = rows[0].fields
    assert (fields["code"], fields["remark"]) == ("1", "no consumer for this group, g")
    assert fields["broker_address"] == "10.0.2.1:10911"


def test_lines_alike_that_bear_nothing_are_one_row_a_minute() -> None:
    lines = [f"2026-11-20 20:{17 + n // 12}:{n % 12 * 5:02} INFO NSScan - start scanNotActiveBroker" for n in range(24)]
    rows, reader = read(*lines)
    assert brief(rows) == [(1, "scanned"), (14, "scanned")]
    assert reader.counts.understood == 24


def test_topics_that_had_no_row_are_one_and_one_that_had_is_told() -> None:
    row = "QueueData [brokerName=broker-a, readQueueNums=4, writeQueueNums=4, perm=6, topicSysFlag=0]"
    line = f"{AT} INFO NettyEventExecutor - remove topic[{{}}], from topicQueueTable, because channel destroyed"
    rows, _ = read(*(line.format(said) for said in ("A null", "B null", f"C {row}", "D null")))
    assert [(one.line, one.fields["topic"]) for one in rows] == [(1, "A"), (3, "C")]


@pytest.mark.parametrize(
    ("before", "prefix", "outer"),
    [
        ("ns1: ", "ns1", None),
        ("ns-0    | ", "ns-0", None),
        ("[pod/ns-0/main] ", "[pod/ns-0/main]", None),
        ("namesrv.log:12:", "namesrv.log", None),
        ("2026-11-20T12:17:34.500000000Z ", None, 500),
        ("2026-11-20T12:17:34.500000000Z stdout F ", None, 500),
        ("2026-11-20T20:17:34.5+08:00 ", None, 500),
        ("ns1 | 2026-11-20T12:17:34.500000000Z ", "ns1", 500),
        ("Nov 20 12:17:34 host-1 rocketmq[4711]: ", "host-1/rocketmq", None),
    ],
)
def test_a_prefix_that_a_tool_put_is_taken_off_and_kept(before: str, prefix: str | None, outer: int | None) -> None:
    rows, _ = read(f"{before}{AT} INFO Thread_1 - new broker registered, 10.0.0.1:10911 HAServer: 10.0.0.1:10912")
    assert brief(rows) == [(1, "broker_registered")]
    assert rows[0].zone == "+08:00"
    assert rows[0].prefix == prefix
    assert rows[0].stamp_ms is not None
    assert rows[0].outer_ms == (None if outer is None else rows[0].stamp_ms - 8 * 3_600_000 + outer)


def test_a_line_that_was_pasted_without_its_head_is_an_event_of_a_relative_time() -> None:
    rows, reader = read("new name server is chosen. OLD: null , NEW: 10.0.0.9:9876. namesrvIndex = 1", "and so on")
    assert [(row.event, row.stamp_ms, row.writer) for row in rows] == [
        ("name_server_chosen", RELATIVE_MS + 1000, "unknown")
    ]
    assert reader.counts.continued == 1


def test_what_is_not_understood_is_counted_by_its_shape_with_digits_blanked() -> None:
    _, reader = read(*(f"{AT} INFO t - frobnicated {n} of 0a1b2c3d4e" for n in range(3)), f"{AT} INFO t - other")
    assert reader.counts.not_understood == 4
    assert reader.counts.shapes == {"frobnicated # of #": 3, "other": 1}


def test_a_stamp_that_is_no_time_and_one_that_goes_back_are_counted() -> None:
    rows, reader = read(
        "2026-13-40 20:17:34 INFO t - start scanNotActiveBroker",
        f"{AT} INFO t - the client factory [1@2] start OK",
        "2026-11-20 20:00:00 INFO t - the client factory [1@2] start OK",
    )
    assert rows[0].stamp_ms is None
    assert (reader.counts.undated, reader.counts.backwards) == (1, 1)


@pytest.mark.parametrize("before", ["", "  ", "\t", "ns-0 | ", "ns-0 |   "])
def test_an_indented_line_that_has_a_stamp_is_a_record_of_its_own(before: str) -> None:
    text = f"{AT} INFO main - listenPort="
    rows, reader = read(f"{before.lstrip()}{text}1", f"{before}{text}2", f"{before.lstrip()}{text}3")
    assert [row.fields["value"] for row in rows] == ["1", "2", "3"]
    assert reader.counts.continued == 0


def test_an_indented_line_without_a_stamp_goes_on_with_the_record() -> None:
    rows, reader = read(
        f"{AT} WARN main - registerBroker Exception, 10.0.0.1:9876",
        "  2 of 3 NameServers answered",
        "\tat org.apache.rocketmq.x(y)",
    )
    assert len(rows) == 1
    assert reader.counts.continued == 2

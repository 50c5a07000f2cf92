"""A log in a collector's wrapping gives the events of the bare log, whatever the collector is called."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nemesrv.chaos.logs.reading import read_plain
from nemesrv.chaos.logs.stream import LogRow, Reader

WRAPPED = Path(__file__).parent / "wrapped"
BARE = WRAPPED / "bare.log"
TRACE = [
    "2024-05-20 14:20:00 INFO main - The Name Server boot success. serializeType=JSON, address 0.0.0.0:9876",
    "2024-05-20 14:31:00 WARN BrokerControllerScheduledThread1 - registerBroker Exception, 10.0.0.9:9876",
    "org.apache.rocketmq.remoting.exception.RemotingConnectException: connect to 10.0.0.9:9876 failed",
    "\tat org.apache.rocketmq.remoting.netty.NettyRemotingClient.invokeSync(NettyRemotingClient.java:384)",
    '2024-05-20 14:31:01 INFO RemotingExecutorThread_2 - putKVConfig create new config item, Namespace: a Key: "k" '
    "Value: 1",
]

Event = tuple[int | None, str | None, str | None, str, dict[str, str]]


def events(rows: list[LogRow]) -> list[Event]:
    return [(row.stamp_ms, row.zone, row.thread, row.event, dict(row.fields)) for row in rows]


def read(lines: list[str]) -> tuple[list[LogRow], Reader]:
    reader = Reader("a.log")
    rows = [*reader.block("\n".join([*lines, ""]).encode()), *reader.finished()]
    counts = reader.counts
    assert counts.lines == len(lines) == counts.understood + counts.not_understood + counts.continued
    return sorted(rows, key=lambda row: row.line), reader


@pytest.mark.parametrize("wrapped", sorted(WRAPPED.glob("*.log")), ids=lambda path: path.stem)
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("bom", [False, True], ids=["", "bom"])
def test_a_wrapped_log_gives_the_events_of_the_bare_one(wrapped: Path, ends: str, bom: bool, tmp_path: Path) -> None:
    text = wrapped.read_text(encoding="utf-8").replace("\n", ends)
    (tmp_path / "a.log").write_bytes((b"\xef\xbb\xbf" if bom else b"") + text.encode())
    logs = read_plain([tmp_path / "a.log"])
    assert events(logs.rows) == events(read_plain([BARE]).rows)
    assert (logs.files[0].understood, logs.files[0].not_understood) == (12, 0)


def _table(line: str) -> str:
    doubled = line.replace('"', '""')
    return f'"May 20, 2024 @ 06:20:00.384","{doubled}","ns-0"'


WAYS: dict[str, Callable[[str], str]] = {
    "syslog-5424": lambda line: f"<14>1 2024-05-20T06:20:00.384Z mq-1 java 4711 - - {line}",
    "labels": lambda line: f'2024-05-20T06:20:00.384+0000 {{app="ns", pod="ns-0"}} {line}',
    "table": _table,
    "key-and-text": lambda line: f"ts=2024-05-20T06:20:00.384Z pod=ns-0 said={json.dumps(line)}",
    "tag-and-json": lambda line: "2024-05-20T06:20:00+00:00\tkube.ns\t" + json.dumps({"log": f"{line}\n", "n": 1}),
    "two-words": lambda line: f"ns-0 main {line}",
    "list-of-json": lambda line: "[" + json.dumps({"a": [{"b": {"line": line, "c": None}}]}) + ",",
    "json-in-json": lambda line: json.dumps({"log": json.dumps({"body": line}) + "\n", "stream": "stdout"}),
    "coloured-words": lambda line: "\x1b[0K\x1b[32;1m" + line.replace(" INFO ", " \x1b[34mINFO\x1b[0m ") + "\x1b[0m",
    "head-and-colours": lambda line: f"\x1b[36mns-0 |\x1b[0m 2024-05-20T06:20:00.384Z {line}",
    "json-of-runtime-lines": lambda line: json.dumps({"message": f"2024-05-20T06:20:00.384714749Z stdout F {line}"}),
    "builder": lambda line: f"#12 3.471 {line}",
}


@pytest.mark.parametrize("wrap", WAYS.values(), ids=WAYS)
def test_what_goes_on_with_a_record_stays_with_it_in_every_wrapping(wrap: Callable[[str], str]) -> None:
    rows, reader = read([wrap(line) for line in TRACE])
    bare, _ = read(TRACE)
    assert events(rows) == events(bare)
    assert (reader.counts.understood, reader.counts.continued) == (3, 2)


def test_a_record_with_its_stack_trace_in_one_text_is_one_record() -> None:
    records = [TRACE[0], "\n".join(TRACE[1:4]), TRACE[4]]
    rows, reader = read([json.dumps({"fields": {"text": record}}) for record in records])
    bare, _ = read(TRACE)
    assert events(rows) == events(bare)
    assert reader.counts.continued == 0


def test_pods_in_one_export_have_their_own_stack_traces() -> None:
    lines = [
        ("ns-0", f"{TRACE[1]}"),
        ("ns-1", f"{TRACE[1]}"),
        ("ns-0", TRACE[2]),
        ("ns-1", "org.apache.rocketmq.remoting.exception.RemotingTimeoutException: wait response on the channel"),
    ]
    rows, _ = read([json.dumps({"kubernetes": {"pod": {"name": pod}}, "message": line}) for pod, line in lines])
    assert [(row.prefix, row.fields["exception"]) for row in rows] == [
        ("ns-0", "RemotingConnectException"),
        ("ns-1", "RemotingTimeoutException"),
    ]


def test_pieces_of_two_outputs_are_joined_each_with_its_own() -> None:
    at = "2024-05-20T06:20:00.384714749Z"
    first, second = TRACE[0], TRACE[4]
    rows, _ = read(
        [
            f"{at} stdout P {first[:20]}",
            f"{at} stderr P {second[:70]}",
            f"{at} stdout P {first[20:41]}",
            f"{at} stdout F {first[41:]}",
            f"{at} stderr F {second[70:]}",
        ]
    )
    assert events(rows) == events(read([first, second])[0])


def test_a_record_that_somebody_quotes_is_no_record_of_the_log() -> None:
    rows, reader = read([f"2024-05-20 14:20:00.123 INFO [main] shop.Watch - it said: {TRACE[1]}"])
    assert rows == []
    assert reader.counts.not_understood == 1

"""A log in a collector's wrapping gives the events of the bare log, whatever the collector is called."""

import base64
import json
import quopri
import re
import textwrap
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from pprint import pformat
from urllib.parse import quote, quote_plus

import pytest

from nemesrv.chaos.logs.reading import read_plain
from nemesrv.chaos.logs.stream import RELATIVE_MS, LogRow, Reader

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


def _csv(head: str, row: str) -> Callable[[list[str]], list[str]]:
    return lambda lines: [head, *(row.format('"' + line.replace('"', '""') + '"') for line in lines)]


def _json(record: Callable[[str], object]) -> Callable[[list[str]], list[str]]:
    return lambda lines: [json.dumps(record(line)) for line in lines]


def _document(around: Callable[[list[str]], object], indent: int | None) -> Callable[[list[str]], list[str]]:
    return lambda lines: json.dumps(around(lines), indent=indent).splitlines()


def _loki(lines: list[str]) -> object:
    return {
        "data": {"result": [{"stream": {"pod": "ns-0"}, "values": [["1716186000384714749", one] for one in lines]}]}
    }


EXPORTS: dict[str, Callable[[list[str]], list[str]]] = {
    "loki": _document(_loki, None),
    "loki-printed": _document(_loki, 2),
    "logcli": _json(lambda line: {"labels": {"pod": "ns-0"}, "line": line, "timestamp": "2024-05-20T06:20:00.384Z"}),
    "fluent-bit": lambda lines: [
        f'[{at}] kube.ns-0: [[1716186000.38, {{}}], {{"log"=>"{one}"}}]' for at, one in enumerate(lines)
    ],
    "cloudwatch": _document(
        lambda lines: {"events": [{"timestamp": 1716186000384, "message": one} for one in lines]}, 4
    ),
    "cloudwatch-tail": lambda lines: [f"2024-05-20T06:20:00.384000+00:00 mq/ns-0/4711 {one}" for one in lines],
    "datadog": _csv("Date,Host,Service,Message", "2024-05-20T06:20:00.384Z,mq-1,namesrv,{}"),
    "datadog-api": _document(lambda lines: {"data": [{"attributes": {"message": one}} for one in lines]}, None),
    "gelf": _json(lambda line: {"version": "1.1", "host": "mq-1", "short_message": line, "timestamp": 1716186000.384}),
    "splunk": _csv('"_serial","_time","host","_raw"', '"0","2024-05-20T06:20:00.384+0000","mq-1",{}'),
    "splunk-json": _json(lambda line: {"preview": False, "result": {"_raw": line, "host": "mq-1"}}),
    "azure": _csv("TimeGenerated,PodName,LogMessage", '"5/20/2024, 6:20:00.384 AM",ns-0,{}'),
    "azure-api": _document(
        lambda lines: {"tables": [{"rows": [["2024-05-20T06:20:00Z", one] for one in lines]}]}, None
    ),
    "google": _document(lambda lines: [{"textPayload": f"{one}\n", "severity": "INFO"} for one in lines], 2),
    "opentelemetry": _json(
        lambda line: {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": line}}]}]}]}
    ),
    "journald-of-colours": _json(lambda line: {"_COMM": "java", "MESSAGE": [*f"\x1b[32m{line}\x1b[0m".encode()]}),
    "stern": lambda lines: [f"mq ns-0 namesrv {one}" for one in lines],
    "logstash": lambda lines: [text for one in lines for text in ("{", f'    "message" => {json.dumps(one)},', "}")],
    "psql": lambda lines: [f" {at:2} | {one}" for at, one in enumerate(lines)],
    "sql": lambda lines: [f"INSERT INTO logs VALUES (7, '{one.replace(chr(39), chr(39) * 2)}');" for one in lines],
    "python": lambda lines: pformat([f"{one}\n" for one in lines], width=1_000).splitlines(),
    "python-on-one-line": lambda lines: [str([f"{one}\n" for one in lines])],
    "page": lambda lines: [f"<tr><td>{at}</td><td>{one}</td></tr>" for at, one in enumerate(lines)],
    "page-on-one-line": lambda lines: [f"<pre>{'<br/>'.join(lines)}</pre>"],
    "list-on-one-line": lambda lines: [f"<ul>{''.join(f'<li>{one}</li>' for one in lines)}</ul>"],
    "frame": lambda lines: [f"│ {one:<300} │" for one in lines],
    "ansible": lambda lines: ["mq-1 | CHANGED | rc=0 | (stdout) " + r"\n".join(lines)],
    "k9s": lambda lines: [f"ns-0 namesrv 2024-05-20T06:20:00.384714749Z {one}" for one in lines],
}


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_an_export_gives_the_events_of_the_bare_log(export: Callable[[list[str]], list[str]], tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("\n".join([*export(BARE.read_text(encoding="utf-8").splitlines()), ""]))
    logs = read_plain([tmp_path / "a.log"])
    assert events(logs.rows) == events(read_plain([BARE]).rows)
    assert logs.files[0].understood == 12


IN_YAML: dict[str, Callable[[str], str]] = {
    "quoted": lambda line: "  textPayload: '" + line.replace("'", "''") + "'",
    "bare": lambda line: f"- message: {line}",
    "as-in-json": lambda line: f"  line: {json.dumps(line)}",
}


@pytest.mark.parametrize("member", IN_YAML.values(), ids=IN_YAML)
def test_a_record_in_a_member_of_yaml_is_read(member: Callable[[str], str]) -> None:
    lines = BARE.read_text(encoding="utf-8").splitlines()
    rows, reader = read([text for one in lines for text in ("- pod: ns-0", member(one))])
    assert reader.counts.understood == 12
    assert [row.event for row in rows] == [row.event for row in read_plain([BARE]).rows]


@pytest.mark.parametrize("wrap", WAYS.values(), ids=WAYS)
def test_what_goes_on_with_a_record_stays_with_it_in_every_wrapping(wrap: Callable[[str], str]) -> None:
    rows, reader = read([wrap(line) for line in TRACE])
    bare, _ = read(TRACE)
    assert events(rows) == events(bare)
    assert (reader.counts.understood, reader.counts.continued) == (3, 2)


@pytest.mark.parametrize(("end", "tab"), [("#012", "#011"), ("\\n", "\\t")], ids=["rsyslog", "as-text"])
def test_a_stack_trace_in_the_line_of_its_record_goes_on_with_it(end: str, tab: str) -> None:
    one = end.join(TRACE[1:4]).replace("\t", tab)
    rows, _ = read([f"May 20 06:20:00 mq-1 java[4711]: {line}" for line in (TRACE[0], one, TRACE[4])])
    bare, _ = read(TRACE)
    assert [row.fields.get("exception") for row in rows] == [row.fields.get("exception") for row in bare]
    assert {row.prefix for row in rows} == {"mq-1/java"}


def test_a_record_with_its_stack_trace_in_one_text_is_one_record() -> None:
    records = [TRACE[0], "\n".join(TRACE[1:4]), TRACE[4]]
    rows, reader = read([json.dumps({"fields": {"text": record}}) for record in records])
    bare, _ = read(TRACE)
    assert events(rows) == events(bare)
    assert reader.counts.continued == 0


@pytest.mark.parametrize(
    "wrap",
    [lambda pod, line: json.dumps({"kubernetes": {"pod": {"name": pod}}, "message": line}), "{}: {}".format],
    ids=["json", "prefix"],
)
def test_streams_in_one_file_have_their_own_stack_traces(wrap: Callable[[str, str], str]) -> None:
    lines = [
        ("ns-0", TRACE[1]),
        ("ns-1", TRACE[1]),
        ("ns-0", TRACE[2]),
        ("ns-1", "org.apache.rocketmq.remoting.exception.RemotingTimeoutException: wait response on the channel"),
    ]
    rows, _ = read([wrap(pod, line) for pod, line in lines])
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


def _stamped(fmt: str) -> Callable[[str], str]:
    return lambda line: f"{datetime.strptime(line[:19], '%Y-%m-%d %H:%M:%S'):{fmt}}{line[19:]}"


def _epoch(line: str) -> str:
    at = datetime.strptime(f"{line[:19]} +0800", "%Y-%m-%d %H:%M:%S %z")
    return f"{at.timestamp() * 1000:.0f}{line[19:]}"


STAMPS: dict[str, Callable[[str], str]] = {
    "strokes": _stamped("%Y/%m/%d %H:%M:%S"),
    "iso": _stamped("%Y-%m-%dT%H:%M:%S.000+08:00"),
    "day-first": _stamped("%d.%m.%Y %H:%M:%S"),
    "month-first": _stamped("%m/%d/%Y %H:%M:%S"),
    "twelve-hours": _stamped("%b %d, %Y %I:%M:%S %p"),
    "log4j-date": _stamped("%d %b %Y %H:%M:%S,000"),
    "access-log": _stamped("[%d/%b/%Y:%H:%M:%S]"),
    "two-digits": _stamped("%y-%m-%d %H:%M:%S"),
    "epoch": _epoch,
    "tabs": lambda line: line.replace(" INFO ", "\tINFO\t", 1),
    "hard-spaces": lambda line: line.replace(" ", "\xa0"),
    "numbered": lambda line: f"   7  {line}",
    "quoted": lambda line: f"> {line}",
    "cells": lambda line: f"| {line} |",
    "xml": lambda line: f'<event thread="main"><message><![CDATA[{line}]]></message></event>',
}


@pytest.mark.parametrize("written", STAMPS.values(), ids=STAMPS)
def test_a_stamp_of_any_format_and_what_a_page_does_to_lines_are_read(written: Callable[[str], str]) -> None:
    """At the same moment, by the zone that the line says or RocketMQ's own."""
    bare = BARE.read_text().splitlines()
    rows, reader = read([written(line) for line in bare])
    hours = {"+08:00": 8, None: 8, "+00:00": 0}
    assert [(row.event, dict(row.fields)) for row in rows] == [(e[3], e[4]) for e in events(read(bare)[0])]
    assert [(row.stamp_ms or 0) - hours[row.zone] * 3_600_000 for row in rows] == [
        (stamp or 0) - 8 * 3_600_000 for stamp, *_ in events(read(bare)[0])
    ]
    assert reader.counts.understood == 12


def _coded(text: str, code: str) -> str:
    return re.sub(r"[^\w\n]", lambda found: code.format(ord(found[0])), text)


DAMAGES: dict[str, Callable[[list[str]], bytes]] = {
    "wrapped": lambda lines: "\n".join(line[at : at + 80] for line in lines for at in range(0, len(line), 80)).encode(),
    "wrapped-at-words": lambda lines: "\n".join(
        textwrap.fill(line, 80, break_on_hyphens=False) for line in lines
    ).encode(),
    "octets-counted": lambda lines: b"".join(
        b"%d %s" % (len(one), one)
        for one in (f"<14>1 2024-05-20T06:20:00Z mq ns-0 - - - {line}".encode() for line in lines)
    ),
    "indented-behind": lambda lines: "\n".join(
        textwrap.fill(line, 90, subsequent_indent="    ") for line in lines
    ).encode(),
    "old-macs-ends": lambda lines: "\r".join(lines).encode() + b"\r",
    "a-hole-before": lambda lines: b"\0" * 5_000 + "\n".join(lines).encode(),
    "a-hole-behind": lambda lines: "\n".join(lines).encode() + b"\n" + b"\0" * 5_000,
    "wide-without-mark": lambda lines: "\r\n".join(lines).encode("utf-16-le"),
    "printed-json": lambda lines: json.dumps(
        {"hits": [{"_source": {"message": line}} for line in lines]}, indent=2
    ).encode(),
    "json-of-all": lambda lines: json.dumps([{"message": line, "n": 1} for line in lines]).encode(),
    "a-page": lambda lines: "\n".join(["Here it is:", "```log", *lines, "```"]).encode(),
    "a-mail": lambda lines: quopri.encodestring("\n".join([*lines, ""]).encode()),
    "percents": lambda lines: "\n".join(map(quote, lines)).encode(),
    "percents-twice": lambda lines: quote("\n".join(map(quote, lines)), safe="\n").encode(),
    "a-form": lambda lines: "\n".join(map(quote_plus, lines)).encode(),
    "hex": lambda lines: _coded("\n".join(lines), "\\x{:02x}").encode(),
    "octal": lambda lines: _coded("\n".join(lines), "\\{:03o}").encode(),
    "names-in-xml": lambda lines: _coded("\n".join(lines), "_x{:04X}_").encode(),
    "references": lambda lines: _coded("\n".join(lines), "&#{:d};").encode(),
    "shown-by-cat": lambda lines: "\n".join(f"{line}^M$" for line in [*lines, ""]).encode(),
    "marks": lambda lines: re.sub(r"([\[\]{}_ -])", r"\\\1", "\n".join(lines)).encode(),
    "ends-alike": lambda lines: "\n".join(f"LogEvent(line={line}, host=mq-1)" for line in lines).encode(),
    "base64": lambda lines: "\n".join(
        json.dumps({"data": base64.b64encode(line.encode()).decode()}) for line in lines
    ).encode(),
    "bytes-of-a-table": lambda lines: "\n".join(
        f"{at} | \\x{line.encode().hex()}" for at, line in enumerate(lines)
    ).encode(),
    "bold": lambda lines: re.sub(r"(\w)", "\\1\b\\1", "\n".join(lines)).encode(),
    "dashes-of-a-letter": lambda lines: "\n".join(lines).replace(" - ", " – ").encode(),
    "rows-of-an-insert": lambda lines: (
        "INSERT INTO logs VALUES " + ",".join(f"(7, '{line.replace(chr(39), chr(39) * 2)}')" for line in lines) + ";"
    ).encode(),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_wrapped_or_cut_off_log_is_read_whole(damage: Callable[[list[str]], bytes], tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(damage(BARE.read_text().splitlines()))
    logs = read_plain([tmp_path / "a.log"])
    assert [row.event for row in logs.rows] == [row.event for row in read_plain([BARE]).rows]
    assert [row.stamp_ms for row in logs.rows] == [row.stamp_ms for row in read_plain([BARE]).rows]
    (file,) = logs.files
    assert file.lines == file.understood + file.not_understood + file.continued


def test_docker_s_pieces_of_a_long_line_are_joined() -> None:
    line = BARE.read_text().splitlines()[2].replace("orders", "o" * 20_000)
    pieces = [line[:16_384], line[16_384:] + "\n"]
    rows, _ = read([json.dumps({"log": piece, "stream": "stdout", "time": "2024-05-20T06:20:00Z"}) for piece in pieces])
    assert [(row.event, len(row.fields["topic"])) for row in rows] == [("topic_registered", 20_000)]


def test_a_name_in_gbk_is_its_name(tmp_path: Path) -> None:
    text = "2024-05-20 14:20:00 WARN main - updateTopicRouteInfoFromNameServer Exception\n"
    said = "org.apache.rocketmq.client.exception.MQClientException: CODE: 17  DESC: 没有 topic: 订单\n"
    (tmp_path / "a.log").write_bytes((text + said).encode("gbk"))
    (row,) = read_plain([tmp_path]).rows
    assert "订单" in row.fields["more"]


@pytest.mark.parametrize(("taken", "first_s"), [(11, 14 * 3600 + 20 * 60), (20, 1)], ids=["no date", "no time"])
def test_lines_without_a_date_have_relative_times(taken: int, first_s: int, tmp_path: Path) -> None:
    """By the time of day where one stands there; a second apart where none does."""
    lines = [line[taken:] for line in BARE.read_text().splitlines()]
    (tmp_path / "a.log").write_text("\n".join(lines))
    logs = read_plain([tmp_path])
    assert [row.event for row in logs.rows] == [row.event for row in read_plain([BARE]).rows]
    assert (logs.rows[0].stamp_ms or 0) - RELATIVE_MS == first_s * 1000
    assert all((row.stamp_ms or 0) >= RELATIVE_MS and row.zone == "+00:00" for row in logs.rows)
    assert logs.notes[0].startswith("a.log: 12 records have no date: their times are relative")


def test_the_day_after_midnight_is_the_next_one() -> None:
    text = "[main] INFO RocketmqClient - the topic[T] route info changed, old[null] ,new[TopicRouteData []]"
    rows, _ = read([f"23:59:59.100 {text}", f"00:00:01.100 {text}"])
    assert (rows[1].stamp_ms or 0) - (rows[0].stamp_ms or 0) == 2_000


def test_a_page_of_markdown_is_one_log_whatever_stands_before_its_lines() -> None:
    said = "2022-05-11 10:12:12 INFO main - register broker[0]to name server 10.0.0.1:9876 OK"
    page = f"# A page\n> {said}\n- `{said}`\n1. {said}\n2. {said}\n| 7 | {said} |\n<pre><code>{said}</code></pre>\n"
    reader = Reader("notes.md")
    rows = [*reader.rows(page.splitlines()), *reader.finished()]
    assert [row.event for row in rows] == ["registered"] * 6
    assert {row.prefix for row in rows} == {None}

"""Each writer's head of a line: when, in which zone, how loud, who, and what is left as text."""

from datetime import UTC, datetime

import pytest

from nemesrv.chaos.logs.layouts import Head, as_json, head_of, second_of

TEXT = "closeChannel: begin close the channel[10.0.0.9:9876] Found: true - or not"
SERVER = {"writer": "java-server", "zone": "+08:00", "resolution_ms": 1000}
HOST = {"writer": "java-host", "zone": None, "resolution_ms": 1, "level": "INFO"}
MAIN = {**HOST, "thread": "main", "logger": "RocketmqRemoting"}

LINES = [
    ("2026-11-20 20:17:34 INFO NettyEventExecutor - ", "20:17:34.000", {**SERVER, "thread": "NettyEventExecutor"}),
    ("2026-11-20 20:17:34 WARN Thread with a name - ", "20:17:34.000", {**SERVER, "level": "WARN"}),
    ("2026-11-20 20:17:34  INFO  main  -  ", "20:17:34.000", {**SERVER, "thread": "main"}),
    ("2026-11-20 20:17:34 - ", "20:17:34.000", {**SERVER, "thread": None, "level": ""}),
    ("2026-11-20 20:17:34 INFO - ", "20:17:34.000", {**SERVER, "thread": None, "level": "INFO"}),
    (
        "2026-11-20 12:18:51,122 INFO RocketmqRemoting - ",
        "12:18:51.122",
        {"writer": "java-client-4.9", "zone": None, "resolution_ms": 1, "logger": "RocketmqRemoting", "thread": None},
    ),
    (
        "2026-11-20 20:18:51.122 INFO  [4711] [main] [o.a.r.r.n.N#update:540] - ",
        "20:18:51.122",
        {"writer": "java-client-5", "zone": "+08:00", "thread": "main", "logger": "o.a.r.r.n.N#update:540"},
    ),
    (
        "[2026-11-20T12:18:51,122][INFO ][RocketmqRemoting         ] ",
        "12:18:51.122",
        {**HOST, "logger": "RocketmqRemoting"},
    ),
    (
        "[2026-11-20 12:18:51.122] [INFO] [main] [RocketmqClient] - ",
        "12:18:51.122",
        {**HOST, "thread": "main", "logger": "RocketmqClient"},
    ),
    ("2026-11-20 12:18:51.122 [main] INFO  RocketmqRemoting - ", "12:18:51.122", MAIN),
    (
        "2026-11-20 12:18:51.122 [main] INFO  o.a.r.c.i.factory.MQClientInstance - ",
        "12:18:51.122",
        {**HOST, "thread": "main", "logger": "o.a.r.c.i.factory.MQClientInstance"},
    ),
    (
        "2026-11-20 12:18:51.122  INFO 4711 --- [           main] RocketmqRemoting                         : ",
        "12:18:51.122",
        MAIN,
    ),
    (
        "2026-11-20T12:18:51.122+08:00  INFO 4711 --- [shop] [           main] RocketmqClient   : ",
        "12:18:51.122",
        {**HOST, "zone": "+08:00", "logger": "RocketmqClient"},
    ),
    ("2026-11-20 12:18:51,122 INFO [main] RocketmqRemoting - ", "12:18:51.122", MAIN),
    ("2026-11-20 12:18:51,122 INFO RocketmqRemoting [main] - ", "12:18:51.122", MAIN),
    ("INFO  2026-11-20 12:18:51,122 [main] RocketmqRemoting - ", "12:18:51.122", MAIN),
    ("2026-11-20 12:18:51,122|INFO|main|RocketmqRemoting|", "12:18:51.122", MAIN),
    ("2026-11-20 12:18:51.122 INFO RocketmqRemoting: ", "12:18:51.122", {**HOST, "logger": "RocketmqRemoting"}),
    ("2026/11/20 12:18:51.122 [main] INFO RocketmqRemoting - ", "12:18:51.122", {**HOST, "thread": "main"}),
    ("2026-11-20 12:18:51 INFO RocketmqRemoting - ", "12:18:51.000", {**HOST, "resolution_ms": 1000}),
    (
        "[2026-Nov-20 01:26:38.851088](warning):",
        "01:26:38.851",
        {"writer": "cpp-1", "level": "warning", "zone": None, "resolution_ms": 1},
    ),
    ("[2026-11-20 11:45:07.462803](debug):", "11:45:07.462", {"writer": "cpp-2", "level": "debug", "zone": None}),
    ('time="2026-11-20T01:26:38Z" level=error ', "01:26:38.000", {"writer": "go", "level": "error", "zone": "+00:00"}),
    ('time="2026-11-20T01:26:38+08:00" level=info ', "01:26:38.000", {"writer": "go", "zone": "+08:00"}),
    ("WARN[2026-11-20T01:26:38Z] ", "01:26:38.000", {"writer": "go", "level": "WARN"}),
    ("ERRO[0066] ", None, {"writer": "go", "level": "ERRO", "stamp": "0066"}),
    ("\x1b[31mERRO\x1b[0m[0066] ", None, {"writer": "go", "level": "ERRO"}),
    ("12:18:51.122 [main] INFO RocketmqRemoting - ", None, {**HOST, "stamp": "12:18:51.122", "thread": "main"}),
]


def text_of(before: str) -> str:
    return f'msg="{TEXT}" topic=T' if before.startswith("time=") else TEXT


@pytest.mark.parametrize(
    ("behind", "text"),
    [
        ("[WARN] [main] [CommitLog.recover(CommitLog.java:431)] - [load [a] and b, 2]", "load [a] and b, 2"),
        ("WARN [main] RocketmqClient - [a] and [b]", "[a] and [b]"),
        ("[main] RocketmqClient - [a]", "[a]"),
    ],
)
def test_a_text_in_brackets_is_taken_out_of_them(behind: str, text: str) -> None:
    head = head_of(f"[2026-11-20 12:18:51.122] {behind}")
    assert head is not None
    assert head.text == text


@pytest.mark.parametrize(("before", "clock", "said"), LINES)
def test_each_layout_says_when_who_and_what(before: str, clock: str | None, said: dict[str, object]) -> None:
    head = head_of(before + text_of(before))
    assert head is not None
    assert head.text == text_of(before)
    expected = None if clock is None else datetime.fromisoformat(f"2026-11-20T{clock}").replace(tzinfo=UTC)
    assert head.stamp_ms == (None if expected is None else round(expected.timestamp() * 1000))
    assert said.items() <= head._asdict().items()


def test_cpp_names_its_line_behind_the_text() -> None:
    head = head_of("[2026-Nov-22 01:26:38.851088](warning):can not connect to:10.0.0.9:9876[invokeSync:206]")
    assert head is not None
    assert head.text == "can not connect to:10.0.0.9:9876"


def test_node_has_its_own_words_with_a_stamp_or_without() -> None:
    text = "[mq:client_api] get Topic [T] RouteInfoFromNameServer is not exist value"
    heads = [head_of(text), head_of(f"2026-11-22 01:26:38,851 WARN 4711 {text}")]
    assert [head and (head.writer, head.text) for head in heads] == [("node", text)] * 2


@pytest.mark.parametrize(
    "line",
    [
        "",
        "\tat org.apache.rocketmq.X.y(X.java:1)",
        "org.apache.rocketmq.client.exception.MQClientException: CODE: 17  DESC: No topic route",
        "See http://rocketmq.apache.org/docs/faq/ for further details.",
        "{",
    ],
)
def test_what_goes_on_with_a_record_begins_none(line: str) -> None:
    assert head_of(line) is None


def test_a_line_of_json_is_taken_for_what_is_in_it() -> None:
    docker = as_json({"log": "2026-11-20 20:17:34 INFO main - x\n", "time": "2026-11-20T12:17:34.5Z"})
    assert docker == ("2026-11-20 20:17:34 INFO main - x", "2026-11-20T12:17:34.5Z")
    logstash = as_json(
        {
            "@timestamp": "2026-11-20T12:18:51.122Z",
            "message": "x y",
            "level": "WARN",
            "logger_name": "RocketmqClient",
            "thread_name": "main",
        }
    )
    assert logstash is not None
    assert isinstance(logstash[0], Head)
    head = logstash[0]
    assert (head.text, head.level, head.thread) == ("x y", "WARN", "main")
    assert (head.logger, head.zone) == ("RocketmqClient", "+00:00")


@pytest.mark.parametrize("stamp", ["2026-13-01 00:00:00", "2026-02-29 00:00:00", "2026-01-01 24:00:00"])
def test_digits_that_are_no_time_have_none(stamp: str) -> None:
    assert second_of(stamp) is None
    head = head_of(f"{stamp} INFO main - x")
    assert head is not None
    assert (head.stamp, head.stamp_ms) == (stamp, None)

"""Lines whose spelling no rule has are read by what they speak of and what they say of it."""

import re

import pytest

from nemesrv.operations.inferring import said
from nemesrv.operations.inferring.said import CAUSES, of_line
from nemesrv.operations.inferring.words import RANK, in_words

SPOKEN = {
    "2024-01-01 00:00:01 ERROR NettyServer - TLS set-up of the broker failed": "tls-mismatch",
    "WARN pull of [topic=t, brokerName=a] ran into its timeout": "broker-gives-no-answer",
    "org.apache.rocketmq.x.MQClientException: The topic[orders] was not found anywhere": "topic-is-nowhere",
    "MQBrokerException: CODE: 206  DESC: nobody there": "consumer-not-online",
    "ERROR rocketmq: MessageBodyTooLarge: 5 MiB": "message-too-large",
    "MQBrokerException: CODE: 2007  DESC: ask another": "no-leader",
    "ERRO broker response code: 24, remarks: later": "subscription-not-there",
    "MQBrokerException: CODE: 1  DESC: transaction state lost, not found": "transaction-not-decided",
    "[x] ERROR consumer: 事务回查失败": "transaction-not-decided",
    "WARN broker - HAConnection closed, error -1": "slave-connection-lost",
    'time="2024-01-01" level=warning msg="look-up" topic="t" underlayError="the broker is busy"': "broker-overloaded",
    '{"level":"error","logger":"mq","msg":"rocketmq: certificate is refused"}': "tls-mismatch",
    '{"level":"warn","msg":"no broker of this queue","q":"topic=t"}': "broker-is-not-registered",
    "2024-01-01 00:00:01 ERROR 1 --- [main] o.a.rocketmq.channel.Connector : unknown topic": "topic-is-nowhere",
    "2024-01-01 00:00:01 WARN ReputMessageService - it is behind, and waits": "store-damaged",
    "2024-01-01 00:00:01 ERROR main - this broker was not to be": "start-failed",
    "WARN broker - there is no master, so the send fails": "no-master",
    "ERROR the consumer's binding to topic t failed: no such topic": "topic-is-nowhere",
    "kernel: java: errno=12, mmap failed": "out-of-memory",
    "WARN broker - the controller failed": "no-leader",
    "WARN rocketmq - ShopController failed to start": "start-failed",
    "RuntimeException: value is not in set: x\n of a topic": "setting-not-allowed",
    "RuntimeException: 'group must be configured for topic t'": "setting-not-allowed",
    "ERROR rocketmq: a command came, but there is no handler": "request-not-known",
    "ERROR RocketmqAppender: DynamicClassLoadingException: Failed to instantiate type X": "libraries-do-not-fit",
    "ERROR rocketmq.Producer - java.lang.ArithmeticException: / by zero": "program-error",
    "MQServerException: instance:x should start first": "client-not-started",
    "ERROR rocketmq - create connection SQLException, url: jdbc:mysql://shop:3307": "-not-reached",
}


@pytest.mark.parametrize(("line", "cause"), SPOKEN.items(), ids=lambda text: text[:24])
def test_what_a_line_speaks_of_and_says_of_it_is_its_cause(line: str, cause: str) -> None:
    assert in_words(line, "", "") == cause


def test_the_last_reason_decides_within_a_line_and_in_a_trace() -> None:
    reason = "Caused by: java.lang.IllegalStateException: certificate of the broker is not accepted"
    line = "2024-01-01 00:00:01 ERROR main - send message to topic failed"
    assert in_words(line, "", reason) is None
    assert in_words(reason, line, "\tat a.B.c(B.java:1)") == "tls-mismatch"
    assert in_words(f"{line}; nested exception is X: no permission", "", "") == "no-permission"


def test_without_words_the_package_in_the_trace_decides() -> None:
    trace = "\tat java.nio.Buffer.limit(Buffer.java:275)\n\tat org.apache.rocketmq.store.timer.TimerMessageStore.e(T:1)"
    assert in_words("java.lang.IllegalArgumentException: null", "", trace) == "timer-store-fails"
    silent = 'java.lang.NullPointerException: Cannot invoke "a.Topic.b()" because "topic" is null'
    assert in_words(silent, "", trace) == "timer-store-fails"


@pytest.mark.parametrize(
    "line",
    [
        "2024-01-01 00:00:01 INFO main - the broker's topic does not exist, error ignored",
        "2024-01-01 00:00:01 ERROR main - duplicate key in table users",
        'level=info msg="the broker\'s topic does not exist, error ignored"',
        "2024-01-01 00:00:01 WARN main - No resource file with name [org.apache.rocketmq.acl.X] found.",
        "MQClientException: Send [3] times, still failed, cost [5]ms, Topic: t, BrokersSent: [a, a, a]",
        "2024-01-01 00:00:01 WARN HAClient - master pushed offset not equal the max phy offset",
        "WARN rocketmq - Send TPS: 142 Max RT: 335 Send Failed: 0",
        "\tat org.apache.rocketmq.client.Exception.not_found(A.java:1)",
    ],
)
def test_lines_of_no_trouble_of_other_programs_and_frames_say_nothing(line: str) -> None:
    assert in_words(line, "", "") is None


def test_each_cause_that_words_tell_has_a_sentence() -> None:
    assert [cause for cause in RANK if cause and not cause.startswith("-") and not CAUSES[cause].sentence] == []


@pytest.mark.parametrize(
    ("asked", "cause"),
    [("index: 2", "nothing"), ("index: -3", "offset-beyond-the-queue"), ("index: 9", "offset-beyond-the-queue")],
)
def test_an_offset_at_the_end_of_its_files_is_harmless_and_one_beside_them_is_not(asked: str, cause: str) -> None:
    line = f"WARN PullMessageThread_1 - Request offset: 7, {asked}, mappedFileSize: 9, mappedFiles count: 2"
    assert [one.cause for one in of_line(line, "", "store.log", 1)] == [cause]


def test_the_search_for_all_words_is_in_parts_that_fit_the_table_of_states() -> None:
    parts = [part.split("|") for part in said._ANY]
    assert max(map(len, parts)) <= 200
    assert {word for part in parts for word in part} >= {
        re.escape(one.has) for cause in CAUSES.values() for one in cause.says if "|" not in one.has
    }

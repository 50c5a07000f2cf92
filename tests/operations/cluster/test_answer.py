"""`nemesrv doctor LOGS…` answers the operator's question first: the most probable cause, its lines, what to do."""

from functools import cache
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from nemesrv.chaos.commands.doctor import doctor
from nemesrv.chaos.errors import HarnessError
from nemesrv.operations.cluster.doctor import Diagnosis, diagnosed
from nemesrv.operations.inferring.conditions import Condition
from tests.chaos.logs.corpus import Case, cases
from tests.operations.made_logs import NS_0, NS_1, boot, broker, client, dropped, heard, logs_of, no_route, row

from .test_log_doctor import seen


def of_files(folder: Path, **files: str) -> Diagnosis:
    for name, text in files.items():
        (folder / f"{name}.log").write_text(text)
    return diagnosed([folder])


FULL = (
    "2024-05-01 03:{minute:02d}:{second:02d} WARN StoreScheduledThread1 - putMessage failed: No space left on device\n"
)
TIMED_OUT = (
    "2024-05-01 04:00:0{second} WARN brokerOutApi_thread_1 - registerBroker Exception, 10.0.1.{second}:9876\n"
    "org.apache.rocketmq.remoting.exception.RemotingTimeoutException: wait response on the channel "
    "<10.0.1.{second}:9876> timeout, 6000(ms)\n"
    "\tat org.apache.rocketmq.broker.out.BrokerOuterAPI.registerBroker(BrokerOuterAPI.java:1)\n"
)


UNANSWERED = (
    "2024-05-01 04:00:0{second},345 WARNING mine: updateTopicRouteInfoFromNameServer failed: RequestTimeout: wait "
    "response on the channel <10.0.1.2:9876> timeout, 3000(ms)\n"
)


def test_a_name_server_without_answer_is_not_to_be_started_and_quoted_failures_are_not_denied(tmp_path: Path) -> None:
    one = of_files(tmp_path, producer="".join(UNANSWERED.format(second=n) for n in range(5)))
    assert "it hangs, or the link to it is cut" in one.answer.sentence
    assert "start" not in one.answer.then.lower()
    assert {"jstack", "firewall"} <= set(one.answer.then.replace("(", " ").replace(",", " ").split())
    said = "\n".join(one.lines)
    assert "producer.log:1" in said
    assert "none of its" not in said
    assert "tells of a failed call" not in said


def test_a_full_disk_said_399_times_wins_over_five_name_servers_without_answer(tmp_path: Path) -> None:
    disk = "".join(FULL.format(minute=n // 60 % 60, second=n % 60) for n in range(399))
    one = of_files(tmp_path, broker=disk + "".join(TIMED_OUT.format(second=n) for n in range(1, 6)))
    assert (one.answer.name, one.answer.certainty, one.status) == ("disk-full", "certain", 1)
    assert "399 lines say so" in one.answer.sentence
    assert "name-server-gives-no-answer" in {other.name for other in one.answer.others}


def test_the_first_line_is_the_answer_then_its_lines_with_file_and_number_then_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "broker.log"
    path.write_text("".join(FULL.format(minute=1, second=n) for n in range(5)))
    said = CliRunner().invoke(doctor, [str(path)]).output.splitlines()
    assert said[0].startswith("certain (0.99): A broker's disk is full")
    assert said[1].split()[0] == "broker.log:1"
    assert "No space left on device" in said[1]
    assert next(line for line in said if "->" in line).strip().startswith("-> Free space")


def test_a_line_that_a_pattern_and_an_inferred_fault_show_is_told_once(tmp_path: Path) -> None:
    stop = (900.0, "shutdown hook was invoked, 1 times.")
    one = seen(tmp_path, {"namesrv.log": [*boot(0, NS_0), *heard(10, 600), stop]})
    assert one.answer.name == "stopped-in-order"
    assert len({where for where, _ in one.answer.lines}) == len(one.answer.lines)


def test_that_no_broker_ever_registered_with_a_name_server_is_such_an_answer(tmp_path: Path) -> None:
    idle = [(600.0 * n, "NETTY SERVER PIPELINE: channelActive, the channel[10.0.9.9:4711]") for n in range(1, 20)]
    one = seen(tmp_path, {"namesrv.log": [*boot(0, NS_0), *idle]})
    assert one.answer.name == "no-broker-registered"
    assert "No broker ever registered with this NameServer" in one.answer.sentence
    assert one.answer.lines[0][0] == "namesrv.log:2"


def test_a_name_server_that_was_just_started_is_not_said_to_lack_brokers(tmp_path: Path) -> None:
    one = seen(tmp_path, {"namesrv.log": [*boot(0, NS_0), (60.0, "configTable SIZE: 0")]})
    assert one.answer.name != "no-broker-registered"


@pytest.mark.parametrize("topic", ["RMQ_SYS_TRACE_TOPIC", "TBW102"])
def test_code_17_of_a_topic_of_rocketmqs_own_is_read_where_it_is_asked_for(tmp_path: Path, topic: str) -> None:
    logs = logs_of(producer=client(300, 330, topic=topic))
    assert [(each.topic, each.times) for each in seen(tmp_path / "asked", logs, topic).failures] == [(topic, 2)]
    assert seen(tmp_path / "else", logs).failures == []


def test_where_every_name_server_had_lost_the_broker_it_does_not_matter_which_was_asked(tmp_path: Path) -> None:
    gone = [dropped(210.0), dropped(210.0)]
    lost = [[*boot(0, at), (10.0, "new topic registered, orders " + row()), *heard(10, 200), *drop]
            for at, drop in zip((NS_0, NS_1), gone, strict=True)]  # fmt: skip
    asks = [(50.0, "Created new MQClientInstance for clientId:[10.0.3.1@4711]"), (300.0, no_route("orders"))]
    logs = logs_of(ns_0=lost[0], ns_1=lost[1], broker_a=broker(until_s=200), producer=asks)
    one = seen(tmp_path, logs)
    assert {cause.name for cause in one.causes} == {"broker-is-not-registered"}
    assert list(one.unknown) == []
    well = logs_of(ns_0=lost[0], broker_a=broker(until_s=200), producer=asks)
    assert "its log does not say which NameServer it asked" in seen(tmp_path / "one", well).unknown[0]


@cache
def answer_of(folder: Path) -> tuple[str, str]:
    """The answer's name and certainty of a case of the corpus; `not-rocketmq` where no line is RocketMQ's."""
    try:
        answer = diagnosed(sorted(folder.iterdir())).answer
    except HarnessError:
        return "not-rocketmq", ""
    return answer.name, answer.certainty


STILL_MISSED = {
    "send-times-out-mqcloud",
    "removal-interrupted-ttl",
    "trace-id-missing-skywalking",
    "reset-at-a-name-server-docker",
}
"""What no rule answers yet."""


@pytest.mark.parametrize("case", cases(set_aside=False), ids=lambda one: one.name)
def test_what_was_true_is_the_answer(case: Case) -> None:
    name, certainty = answer_of(case.folder)
    if case.shown and case.name not in STILL_MISSED:
        assert case.is_right(name), name
    else:
        assert case.is_right(name) or certainty != "certain"


@pytest.mark.parametrize("case", cases(set_aside=True), ids=lambda one: one.name)
def test_of_the_half_that_was_set_aside_nothing_wrong_is_certain(case: Case) -> None:
    name, certainty = answer_of(case.folder)
    assert certainty != "certain" or case.is_right(name)


def test_of_the_half_that_was_set_aside_most_causes_are_the_answer() -> None:
    told = [case for case in cases(set_aside=True) if case.shown and case.true != "unknown"]
    assert sum(case.is_right(answer_of(case.folder)[0]) for case in told) >= 0.75 * len(told)


def test_what_caused_an_exception_is_the_cause_and_not_what_it_led_to(tmp_path: Path) -> None:
    trace = "2026-01-01 00:00:01 ERROR main - load file /a/0 error\n\tat a.B.c(B.java:1)\nCaused by: java.lang.{}\n"
    one = of_files(tmp_path, store=trace.format("OutOfMemoryError: Map failed"))
    assert one.answer.name == "out-of-memory"


def test_trouble_of_any_program_is_told_reach_only_without_rocketmqs_lines(tmp_path: Path) -> None:
    others = "2026-01-01 00:00:01 ERROR pool-1 - jdbc: connection to 10.0.0.9:3306 failed\n"
    assert of_files(tmp_path, app=others).answer.name == "peer-not-reached"
    ours = "2026-01-01 00:00:02 ERROR pool-1 - rocketmq: the signature of this key is wrong\n"
    assert of_files(tmp_path, app=others + ours).answer.name == "access-refused"
    assert of_files(tmp_path, app=f"{ours}kernel: oom: java killed, error -12\n").answer.name == "out-of-memory"


@pytest.mark.parametrize(
    "before", ["", "> ", "broker  | ", "Mar 05 10:11:12 host mqbroker[1]: ", '{"log":"', "broker.log:5:"]
)
def test_a_trace_is_read_behind_any_prefix_of_its_lines(before: str, tmp_path: Path) -> None:
    lines = [
        "2026-01-01 00:00:01 ERROR TimerDequeueService - it goes wrong",
        "java.lang.NullPointerException: null",
        "\\tat org.apache.rocketmq.store.timer.TimerMessageStore.doPut(T.java:1)",
    ]
    assert of_files(tmp_path, x="".join(f"{before}{line}\n" for line in lines)).answer.name == "timer-store-fails"


@pytest.mark.parametrize("between", ["\n", "\n\n"])
@pytest.mark.parametrize("before", ["", "2026-01-01T00:00:01.5Z "])
def test_a_trace_is_read_through_blank_lines_by_its_frames(before: str, between: str, tmp_path: Path) -> None:
    lines = [
        "2026-01-01 00:00:01 [,] [pool-7] ERROR o.a.rocketmq.streams.Store - remove state error",
        "java.lang.NullPointerException: null",
        "\tat java.util.AbstractCollection.addAll(A.java:343)",
        "\tat org.apache.rocketmq.streams.Store.all(S.java:53)",
    ]
    assert of_files(tmp_path, x="".join(f"{before}{line}{between}" for line in lines)).answer.name == "program-error"


@pytest.mark.parametrize("rest", [" <10.0.0.1:9876> failed", "<10.0.0.1:9876> failed"])
def test_a_line_that_a_terminal_wrapped_within_a_phrase_is_read_with_the_next_line(rest: str, tmp_path: Path) -> None:
    one = of_files(tmp_path, client=f"org.apache.rocketmq.a.RemotingConnectException: connect to\n{rest}\n")
    assert one.answer.name == "name-server-not-reached"
    assert "10.0.0.1:9876" in one.answer.sentence


def test_a_line_that_ends_within_a_phrase_is_read_alone_if_the_next_line_has_a_time(tmp_path: Path) -> None:
    one = of_files(tmp_path, broker=f"2024-05-01 03:00:00 WARN a - it failed to\n{FULL.format(minute=0, second=1)}")
    assert [where for where, _ in one.answer.lines] == ["broker.log:2"]


@pytest.mark.parametrize(("times", "name"), [(1, "nothing"), (8, "process-stood-still")])
def test_a_broker_that_goes_on_in_its_rhythm_has_a_log_with_gaps(times: int, name: str, tmp_path: Path) -> None:
    says = "INFO brokerOutApi_thread_1 - register broker to name server localhost:9876 OK"
    seconds = [*range(0, 240, 30), *[480] * times, *range(510, 720, 30)]
    log = "".join(f"2024-01-01 00:{at // 60:02}:{at % 60:02} {says}\n" for at in seconds)
    assert of_files(tmp_path, broker=log).answer.name == name


def test_first_bytes_that_are_no_known_protocols_are_less_sure_to_be_another_protocol(tmp_path: Path) -> None:
    line = "2026-08-10 01:54:30 ERROR X_1 - Adjusted frame length exceeds 16777216: {} - discarded\n"
    known, other = (of_files(tmp_path, log=line.format(length)).answer for length in (1195725860, 3886452713))
    assert {known.name, other.name} == {"not-rocketmq"}
    assert known.score > other.score


def test_what_an_unknown_answer_leans_to_is_no_surer_than_its_share_of_the_likelihood(tmp_path: Path) -> None:
    two = "java.io.IOException: Read-only file system\njava.io.IOException: No space left on device\n"
    answer = of_files(tmp_path, store=f"2026-01-01 00:00:01 ERROR FlushThread - x\n{two}").answer
    assert (answer.name, answer.others[0].score < 0.55) == ("unknown", True)


def test_of_a_list_that_gave_no_address_it_is_said_that_it_may_be_empty(tmp_path: Path) -> None:
    null, named = (f"RemotingConnectException: connect to {at} failed\n" for at in ("null", "10.0.0.7:9876"))
    assert "of its list, which may be empty, is not" in of_files(tmp_path, app=null).answer.sentence
    assert "NameServer 10.0.0.7:9876 is not" in of_files(tmp_path, app=named).answer.sentence


NO_LIST = [
    (5.0, "namesrvAddr="),
    (5.0, "The broker[broker-a, 10.0.2.1:10911] boot success. serializeType=JSON"),
    *((60.0 * minute, "dispatch behind commit log 0 bytes") for minute in range(1, 16)),
]
"""A broker that runs for 15 minutes with an empty namesrvAddr."""


def test_a_broker_without_a_name_server_is_the_cause_that_none_registered(tmp_path: Path) -> None:
    name_server_ = [*boot(0, NS_0), (900.0, "NETTY SERVER PIPELINE: channelActive, the channel[10.0.9.9:4711]")]
    for logs in ({"broker.log": NO_LIST}, {"broker.log": NO_LIST, "namesrv.log": name_server_}):
        answer = seen(tmp_path / str(len(logs)), logs).answer
        assert (answer.name, answer.certainty) == ("no-name-server-given", "likely")


def test_an_admin_client_that_started_and_stopped_is_nothing_wrong(tmp_path: Path) -> None:
    visit = [
        *client()[:3],
        (51.5, "closeChannel: close the connection to remote address[10.0.1.1:9876] result: true"),
        (51.6, "the client factory [10.0.3.1@4711] shutdown OK"),
    ]
    one = seen(tmp_path, logs_of(producer=visit))
    assert (one.answer.name, one.status) == ("nothing", 0)


_SAID = yaml.safe_load(Path(__file__).with_name("one_line.yaml").read_text(encoding="utf-8"))
ONE_LINE = [(line, name) for name, lines in _SAID.items() for line in lines]


@pytest.mark.parametrize(("line", "name"), ONE_LINE, ids=lambda text: text[:24])
def test_of_one_line_what_it_says_is_the_answer_and_its_numbers_count(line: str, name: str, tmp_path: Path) -> None:
    assert of_files(tmp_path, app=f"{line}\n").answer.name == name


AT = "2024-05-01 03:00:0{} "
POSTED = {
    "sent": ("SendResult [sendStatus=SEND_OK, msgId=7F00]\n", "nothing", 0),
    "loads its topics": (
        "".join(f"{AT.format(n)}INFO main - load exist local topic, TopicConfig [topicName=t{n}]\n" for n in range(4)),
        "nothing",
        0,
    ),
    "creates the topic that it misses": (
        f"{AT.format(1)}INFO main - The broker[b, 10.0.0.1:10911] boot success. serializeType=JSON and name server is "
        f"10.0.0.2:9876\n{AT.format(2)}INFO brokerOutApi_thread_1 - register broker to name server 10.0.0.2:9876 OK\n"
        f"{AT.format(3)}WARN SendMessageThread_1 - the topic orders not exist, producer: /10.0.0.3:4711\n"
        f"{AT.format(3)}INFO SendMessageThread_1 - Create new topic by default topic:[TBW102] config:[TopicConfig "
        "[topicName=orders, readQueueNums=4]] producer:[10.0.0.3:4711]\n",
        "nothing",
        0,
    ),
    "receives": ("Consumer Started.\n" + "ConsumeMessageThread_2 Receive New Messages: [MessageExt []]\n" * 3,
                 "nothing", 0),
    "WARN of nobody knows what": (f"{AT.format(1)}WARN main - not ok for rocketmq\n" * 3, "unknown", 3),
    "client of Rust": (
        '{"msg":"receive command: Settings { max_attempts: 17, invisible: exceeds, error: None }","level":"DEBG"}\n' * 3
        + '{"msg":"send heartbeat to server success, peer=rocketmq:8081","level":"DEBG","component":"client"}\n',
        "nothing",
        0,
    ),
    "heap larger than itself": (
        "Initial heap size set to a larger value than the maximum heap size",
        "setting-not-allowed",
        3,
    ),
    "frames only": ("   at Org.Apache.Rocketmq.Client.FetchTopicRoute0(String topic)\n" * 6, "unknown", 3),
    "nobody of the group is connected": (
        'level=warning underlayError="unknown Response Code: 24, remark: the consumer\'s group info not '
        'exist"\n',
        "consumer-not-online",
        3,
    ),
    "cannot sign": (
        "AclException: [10015:signature-failed] unable to calculate a request signature. error=Algorithm HmacSHA1 not "
        "available\n",
        "libraries-do-not-fit",
        3,
    ),
    "no buffer is left": (
        f"{AT.format(1)}WARN AllocateMappedFileService - Use default implementation.\n"
        f"{AT.format(1)}WARN AllocateMappedFileService - TransientStorePool only remain 0 sheets.\n",
        "broker-overloaded",
        3,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "name", "status"), POSTED.values(), ids=POSTED)
def test_the_exit_status_follows_the_answer(tmp_path: Path, text: str, name: str, status: int) -> None:
    one = of_files(tmp_path, posted=text)
    assert (one.answer.name, one.status) == (name, status)
    assert status or not one.unknown


def test_a_name_server_that_no_line_shows_alive_is_not_said_to_have_crashed(tmp_path: Path) -> None:
    refused = [(10.0 * n, "createChannel: connect remote host[10.0.1.1:9876] failed, Promise(failure: Connection "
                          "refused: /10.0.1.1:9876)") for n in range(4)]  # fmt: skip
    begin = (0.0, "name server address updated. NEW : [10.0.1.1:9876] , OLD: null")
    never = seen(tmp_path / "never", {"rocketmq_client.log": [begin, *refused]})
    assert never.answer.name == "name-server-not-reached"
    assert "crashed" not in "\n".join(never.lines)


def test_a_request_that_failed_is_not_said_to_be_a_connection(tmp_path: Path) -> None:
    one = of_files(tmp_path, app="RemotingSendRequestException: send request to <10.0.0.7:9876> failed\n")
    assert one.answer.sentence == "NameServer 10.0.0.7:9876 is not reached: requests to it fail."


def test_files_are_to_be_moved_only_if_a_line_says_that_they_are_damaged(tmp_path: Path) -> None:
    hint = of_files(tmp_path, store=f"{AT.format(1)}WARN ReputMessageService - no words that anybody knows failed\n")
    assert (hint.answer.name, "away" in hint.answer.then) == ("store-damaged", False)
    said = of_files(tmp_path, store=f"{AT.format(1)}ERROR main - found a illegal magic code 0x1\n")
    assert (said.answer.name, "away" in said.answer.then) == ("store-damaged", True)


def test_a_broker_that_was_dropped_and_came_back_is_told_as_over(tmp_path: Path) -> None:
    back = heard(800, 1500)
    one = seen(tmp_path, {"namesrv.log": [*boot(0, NS_0), *heard(10, 600), *dropped(730.0), *back]})
    assert one.answer.is_over
    assert one.status == 0


def test_the_cause_that_an_unknown_leans_to_is_not_told_again_among_the_others() -> None:
    first, second = (Condition(name, 3.0, 1, f"It is {name}.", "", score=0.4) for name in ("one", "two"))
    told = Condition("unknown", 0.0, score=0.6, sentence="Unknown. It is one.", others=[first, second]).told
    assert told[-1] == "   or: two (0.40)"


def test_a_client_that_leaves_a_name_server_is_no_trouble_of_its(tmp_path: Path) -> None:
    left = "".join(
        f"{AT.format(n)}WARN NettyServerCodecThread_{n} - NETTY SERVER PIPELINE: exceptionCaught exception.\n"
        "java.io.IOException: Connection reset by peer\n\tat sun.nio.ch.FileDispatcherImpl.read0(Native Method)\n"
        for n in range(1, 5)
    )
    begins = f"{AT.format(0)}INFO main - The Name Server boot success. serializeType=JSON\n"
    one = of_files(tmp_path, namesrv=begins + left)
    assert (one.answer.name, one.status) == ("nothing", 0)

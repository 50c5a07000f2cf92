"""`nemesrv doctor LOGS…`: logs with one thing wrong in them name that cause, in its sentence, with its lines."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nemesrv.chaos.commands.doctor import doctor
from nemesrv.chaos.commands.import_ import import_logs
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.logs.files import LogError
from nemesrv.operations.cluster.causes import CAUSES
from nemesrv.operations.cluster.doctor import LIKELY, Diagnosis, diagnosed
from tests.operations.made_logs import (
    BROKER_A,
    BROKER_B,
    NS_0,
    NS_1,
    Logs,
    Said,
    boot,
    broker,
    client,
    dropped,
    heard,
    logs_of,
    name_server,
    row,
    written,
)  # fmt: skip
from tests.refusals import is_told


def seen(folder: Path, logs: Logs, topic: str | None = None) -> Diagnosis:
    return diagnosed([written(folder, logs)], topic)


def only(one: Diagnosis) -> tuple[str, bool, str]:
    """The one cause: name, whether it is certain, and what it says."""
    assert {cause.name for cause in one.causes} <= set(CAUSES)
    (cause,) = one.causes
    assert cause.lines, "each cause names lines"
    return cause.name, cause.certain, cause.sentence


def test_logs_in_which_nothing_failed_are_well(tmp_path: Path) -> None:
    one = seen(tmp_path, logs_of(producer=client()))
    assert (one.status, list(one.causes), list(one.unknown)) == (0, [], [])
    assert one.answer.name == "nothing"
    assert "no client's log here tells of a failed call, or of a route without a broker" in one.lines


def test_a_topic_that_no_log_knows_is_nowhere_and_not_created(tmp_path: Path) -> None:
    one = seen(tmp_path, logs_of(producer=client(300, topic="ordres")))
    assert [(cause.name, cause.certain) for cause in one.causes] == [
        ("topic-is-nowhere", True),
        ("topics-are-not-created", True),
    ]
    assert one.causes[0].sentence == (
        "There is no topic ordres: no broker registered it at ns-0 and ns-1, and producer-0 asked for it at 16:05:00."
    )
    assert one.status == 1


def test_a_name_server_that_was_restarted_is_empty_until_brokers_come(tmp_path: Path) -> None:
    restarted = [*name_server(NS_0, until_s=280), *boot(295, NS_0), *heard(310, 600)]
    assert only(seen(tmp_path, logs_of(ns_0=restarted, producer=client(300)))) == (
        "name-server-is-empty",
        True,
        "NameServer 10.0.1.1:9876 (ns-0) holds no broker at all: it was restarted at 16:04:55, with an empty table, "
        "and its first broker, broker-a, came at 16:05:10; producer-0 asked it for orders at 16:05:00.",
    )


def test_a_broker_that_expired_is_told_with_when_it_came_back(tmp_path: Path) -> None:
    expired: list[Said] = [(250, f"The broker channel expired, {BROKER_A} 120000ms"), *dropped(250)]
    logs = logs_of(ns_0=[*name_server(NS_0, until_s=130), *expired, *heard(400, 600)])
    assert only(seen(tmp_path, logs)) == (
        "broker-is-not-registered",
        True,
        "orders is at broker-a, which is not registered at NameServer 10.0.1.1:9876 (ns-0): it was dropped at "
        "16:04:10, for it expired, as no registration came in time; it came back at 16:06:40; producer-0 asked for it "
        "from 16:05:00 to 16:05:30.",
    )


@pytest.mark.parametrize(
    ("lines", "how"),
    [
        (dropped(250), "its connection was closed"),
        (
            [
                (250.0, f"unregisterBroker, remove from brokerLiveTable OK, {BROKER_A}"),
                (250.0, f"unregisterBroker, remove addr from brokerAddrTable OK, {BROKER_A}"),
                (250.0, "unregisterBroker, remove name from brokerAddrTable OK, broker-a"),
                (250.0, f"removeTopicByBrokerName, remove one broker's topic orders {row()}"),
            ],
            "it unregistered itself",
        ),
    ],
)
def test_how_a_broker_went_is_told(tmp_path: Path, lines: list[Said], how: str) -> None:
    name, certain, sentence = only(seen(tmp_path, logs_of(ns_0=[*name_server(NS_0, until_s=240), *lines])))
    assert (name, certain) == ("broker-is-not-registered", True)
    assert f"dropped at 16:04:10, for {how}; it did not come back in this log" in sentence


def test_a_broker_that_never_registered_there_is_told(tmp_path: Path) -> None:
    without = [*boot(0, NS_0), *heard(12, 600, "broker-b", BROKER_B)]
    failing = [(10.0 + 30 * number, f"registerBroker Exception, {NS_0}") for number in range(20)]
    more = [said for said in broker() if NS_0 not in said[1] or "OK" not in said[1]]
    name, certain, sentence = only(seen(tmp_path, logs_of(ns_0=without, broker_a=[*more, *failing])))
    assert (name, certain) == ("broker-is-not-registered", True)
    assert "(ns-0): its registrations failed; producer-0 asked for it" in sentence


def test_a_topic_that_was_deleted_at_one_name_server_is_told(tmp_path: Path) -> None:
    deleted: Said = (200, f"deleteTopic, remove one broker's topic broker-a orders {row()}")
    assert only(seen(tmp_path, logs_of(ns_0=name_server(NS_0, deleted)))) == (
        "topic-is-not-at-this-name-server",
        True,
        "orders is at broker-a, which NameServer 10.0.1.1:9876 (ns-0) has without this topic: it was deleted there at "
        "16:03:20; producer-0 asked for it from 16:05:00 to 16:05:30.",
    )


def test_a_topic_that_one_name_server_alone_has_is_told(tmp_path: Path) -> None:
    name, certain, sentence = only(seen(tmp_path, logs_of(ns_0=name_server(NS_0, topics=()))))
    assert (name, certain) == ("topic-is-not-at-this-name-server", True)
    assert "which NameServer 10.0.1.1:9876 (ns-0) has without this topic" in sentence


def test_a_client_on_a_name_server_that_was_taken_off_the_brokers_lists_is_told(tmp_path: Path) -> None:
    removed = "10.0.1.9:9876"
    changed: Said = (200, f"name server address updated. NEW : [{NS_0}, {NS_1}] , OLD: [{NS_0}, {NS_1}, {removed}]")
    before: Said = (5, f"Set user specified name server address: {NS_0};{NS_1};{removed}")
    asking = client(300, at=removed, names=f"{NS_0}, {NS_1}, {removed}")
    one = seen(tmp_path, logs_of(broker_a=[*broker(), before, changed], producer=asking))
    assert only(one) == (
        "client-is-at-other-name-servers",
        True,
        "producer-0 is at foreign or removed NameServers, or has other names for them: 10.0.1.9:9876 (ns-2), asked for "
        "orders at 16:05:00, is on no list of broker-a; it was taken off at 16:03:20.",
    )


def test_a_name_server_that_no_broker_lists_is_told(tmp_path: Path) -> None:
    alone = boot(0, NS_0)
    name, certain, sentence = only(seen(tmp_path, logs_of(ns_0=alone, broker_a=broker("broker-a", BROKER_A, NS_1))))
    assert (name, certain) == ("no-broker-lists-this-name-server", True)
    assert sentence.startswith(
        "No broker lists NameServer 10.0.1.1:9876 (ns-0): it is on no list of broker-a, and producer-0"
    )


def test_a_broker_that_does_not_list_it_where_another_does_is_told(tmp_path: Path) -> None:
    other = [*boot(0, NS_0), *heard(12, 600, "broker-b", BROKER_B)]
    logs = logs_of(ns_0=other, broker_a=broker("broker-a", BROKER_A, NS_1))
    logs["broker-b/broker.log"] = broker("broker-b", BROKER_B)
    name, certain, sentence = only(seen(tmp_path, logs))
    assert (name, certain) == ("broker-does-not-list-this-name-server", True)
    assert "broker-a, which is not registered at NameServer 10.0.1.1:9876 (ns-0) and does not list it" in sentence


WIPED: Said = (200, "wipe write perm of broker[broker-a], client: 10.0.9.9:4711, 7")


def test_a_write_permission_that_was_given_back_is_no_matter(tmp_path: Path) -> None:
    back: Said = (230, "add write perm of broker[broker-a], client: 10.0.9.9:4711, 7")
    assert seen(tmp_path, logs_of(ns_0=name_server(NS_0, WIPED, back), producer=client())).status == 0


CONFLICT = (
    "Registering Broker conflicts with the existed one, just ignore.: Cluster:C, BrokerName:broker-a, "
    f"BrokerId:0, Old BrokerAddr:{BROKER_A}, Old Version:2, New BrokerAddr:10.0.2.9:10911, New Version:1."
)
TURNS = [(BROKER_A, "10.0.2.9:10911"), ("10.0.2.9:10911", BROKER_A)] * 2


@pytest.mark.parametrize(
    ("lines", "name", "sentence"),
    [
        ([WIPED], "no-permission-to-write", "The write permission of broker-a was wiped at ns-0 at 200.5 s"),
        ([(200.0, CONFLICT)], "another-broker-has-the-name", "Two brokers claim one name and id"),
        (
            [
                (200.0 + n, f"cluster [C] brokerName [broker-a] master address change from {a} to {b}")
                for n, (a, b) in enumerate(TURNS)
            ],
            "another-broker-has-the-name",
            "10.0.2.9:10911 registered as broker-a too, at ns-0 from 200.5 s on",
        ),
        (
            [(20, "name server not ready. request code 105 ")],
            "name-server-not-ready",
            "A NameServer answers 'name server not ready'",
        ),
    ],
    ids=["wiped", "claimed-5.x", "claimed-4.9", "not-ready"],
)
def test_a_name_servers_own_log_is_the_answer(tmp_path: Path, lines: list[Said], name: str, sentence: str) -> None:
    found = seen(tmp_path, logs_of(ns_0=name_server(NS_0, *lines), producer=client()))
    assert (found.answer.name, found.status) == (name, LIKELY)
    assert found.answer.sentence.startswith(sentence)


def test_a_name_server_that_gave_no_answer_is_told(tmp_path: Path) -> None:
    failed = (
        "updateTopicRouteInfoFromNameServer Exception\n"
        f"org.apache.rocketmq.remoting.exception.RemotingConnectException: connect to {NS_0} failed"
    )
    answer = seen(tmp_path, logs_of(producer=[*client(), (300, failed), (330, failed)])).answer
    said = "NameServer 10.0.1.1:9876 is not reached: connections to it fail. 2 lines say so."
    assert (answer.name, answer.sentence) == ("name-server-not-reached", said)


def test_a_topic_that_a_first_send_created_later_is_told(tmp_path: Path) -> None:
    creates: Said = (
        320,
        "Create new topic by default topic:[TBW102] config:[TopicConfig [topicName=news, perm=RW-]] "
        "producer:[10.0.3.2:4]",
    )
    one = seen(tmp_path, logs_of(broker_a=[*broker(), creates], producer=client(300, topic="news")))
    assert only(one) == (
        "nobody-has-sent-yet",
        True,
        "Nobody had sent to news yet: a first send created it at 16:05:20; producer-0 asked for it at 16:05:00.",
    )


def test_without_the_name_servers_log_what_brokers_say_is_likely_only(tmp_path: Path) -> None:
    failing = [(250.0 + 30 * number, f"registerBroker Exception, {NS_0}") for number in range(3)]
    logs = logs_of(broker_a=[*broker(until_s=240), *failing])
    del logs["ns-0/namesrv.log"]
    one = seen(tmp_path, logs)
    name, certain, sentence = only(one)
    assert (name, certain, one.status) == ("broker-is-not-registered", False, 3)
    assert "failed from 16:04:10 to 16:05:10" in sentence
    assert "that NameServer's log, which is not here, would say" in sentence


def test_what_these_logs_do_not_show_is_said(tmp_path: Path) -> None:
    logs = logs_of()
    del logs["ns-0/namesrv.log"]
    one = seen(tmp_path, logs)
    assert (list(one.causes), one.status) == ([], 3)
    assert list(one.unknown) == [
        "why producer-0 found no route of orders from 16:05:00 to 16:05:30: the log of NameServer 10.0.1.1:9876 (ns-0) "
        "is not here"
    ]


def test_a_programs_own_log_tells_of_it_by_the_exception_that_it_caught(tmp_path: Path) -> None:
    logs = logs_of(ns_0=[*boot(0, NS_0)])
    del logs["producer-0/rocketmq_client.log"]
    (tmp_path / "shop.log").write_text(
        "2026-06-27 08:00:51.000 [main] INFO RocketmqRemoting - new name server is chosen. OLD: null , NEW: "
        f"{NS_0}. namesrvIndex = 3\n"
        "2026-06-27 08:05:00.000 [http-1] ERROR shop.Orders - order 4711 was not sent\n"
        "org.apache.rocketmq.client.exception.MQClientException: No route info of this topic: orders\n"
        "\tat shop.Orders.send(Orders.java:1)\n"
    )
    (failure,) = seen(tmp_path, logs, "orders").logs.failures
    assert (failure.topic, failure.name_server, failure.first.line) == ("orders", NS_0, 2)


def test_only_the_topic_that_was_asked_for_is_told(tmp_path: Path) -> None:
    one = seen(tmp_path, logs_of(producer=client(300, topic="ordres")), topic="orders")
    assert "no client's log here tells of a look-up of orders that failed" in one.lines
    assert one.status == 0


def test_json_has_failures_causes_and_what_is_not_shown(tmp_path: Path) -> None:
    document = json.loads(seen(tmp_path, logs_of(ns_0=[*name_server(NS_0, until_s=240), *dropped(250)])).json)
    assert [failure["times"] for failure in document["failures"]] == [2]
    assert document["causes"][0]["name"] == "broker-is-not-registered"
    assert document["causes"][0]["lines"][0].startswith("ns-0/namesrv.log:")
    assert document["not_shown"] == []


@pytest.mark.parametrize(("peer", "answer"), [("", "peer-not-reached"), ("10.0.0.1:10911", "nothing")])
def test_a_connection_that_never_came_about_is_not_called_harmless(tmp_path: Path, peer: str, answer: str) -> None:
    says = f"INFO RocketmqRemoting - closeChannel: close the connection to remote address[{peer}] result: true"
    (tmp_path / "client.log").write_text("".join(f"2024-01-01 00:{at:02}:26 {says}\n" for at in range(12)))
    assert diagnosed([tmp_path]).answer.name == answer


def test_logs_without_a_line_of_rocketmq_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("nothing\n")
    with pytest.raises(LogError, match=r"nothing to go by in .*a\.log: none of its lines was understood"):
        diagnosed([tmp_path])


def test_a_zone_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="--zone: 'moon' is not allowed"):
        CliRunner().invoke(doctor, [str(tmp_path), "--zone", "moon"], catch_exceptions=False)


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        (
            "--zone",
            "nope=+08:00",
            "'nope' → a file or a folder of these logs, or one of broker-a, ns-0, ns-1, producer-0",
        ),
        ("--offset", "ns-9=+1s", "'ns-9' → a file or a folder of …, producer-0; did you mean ns-1?"),
        ("--topic", "order", "'order' → a topic that these logs name, such as orders; did you mean orders?"),
    ],
)
def test_an_option_about_what_no_log_names_is_refused(tmp_path: Path, option: str, value: str, sentence: str) -> None:
    seen(tmp_path, logs_of(ns_0=[*name_server(NS_0, until_s=240), *dropped(250)]))
    error = CliRunner().invoke(doctor, [str(tmp_path), option, value]).exception
    assert is_told(f"{option}: {sentence}", str(error)), error


def test_the_command_reads_logs_and_ends_with_their_status(tmp_path: Path) -> None:
    seen(tmp_path, logs_of(ns_0=[*name_server(NS_0, until_s=240), *dropped(250)]))
    result = CliRunner().invoke(doctor, [str(tmp_path), "--topic", "orders"])
    assert result.exit_code == 1
    assert "producer-0: orders looked up 2 times at 10.0.1.1:9876 (ns-0), code 17, 2026-06-27 from" in result.output
    assert "[broker-is-not-registered]" in result.output


def test_what_is_pasted_into_standard_input_is_read(tmp_path: Path) -> None:
    seen(tmp_path, logs_of(ns_0=[*name_server(NS_0, until_s=240), *dropped(250)]))
    logs = sorted(tmp_path.rglob("*.log"))
    pasted = b"".join(path.read_bytes() for path in logs)
    (tmp_path / "pasted.log").write_bytes(pasted)
    by_name = CliRunner().invoke(doctor, [str(tmp_path / "pasted.log")])
    by_dash = CliRunner().invoke(doctor, ["-"], input=pasted)
    assert by_dash.exit_code == by_name.exit_code
    assert by_dash.output == by_name.output.replace("pasted", "stdin")


@pytest.mark.parametrize("command", [[doctor, "-"], [import_logs, "-", "--out", "run"]], ids=["doctor", "import"])
def test_an_empty_standard_input_is_said_in_a_sentence(command: list[Any]) -> None:
    error = CliRunner().invoke(command[0], command[1:], input=" \n", standalone_mode=False).exception
    assert "standard input (-) is empty" in str(error)


def test_a_name_server_at_which_another_clusters_brokers_register_is_named(tmp_path: Path) -> None:
    there = [(at, text.replace("[C]", "[D]")) for at, text in heard(10, 600, "broker-x", "10.7.2.1:10911")]
    ours = [*broker(names=NS_0), (5, "brokerClusterName=C")]
    logs = logs_of(ns_1=[*boot(0, NS_1), *there], broker_a=ours, producer=client(300, at=NS_1))
    name, certain, sentence = only(seen(tmp_path, logs))
    assert (name, certain) == ("name-server-of-another-cluster", True)
    assert "another cluster's: it holds D, while orders is looked for in C" in sentence


APACHES = Path(__file__).parents[3] / "docs" / "incident-logs" / "broker-partition"


def test_a_fault_that_is_over_and_hit_a_client_is_told_with_what_the_client_suffered() -> None:
    one = diagnosed([APACHES])
    assert (one.answer.name, one.status) == ("link-failed", 3)
    (consumer,) = (line for line in one.lines if line.startswith("  consumer-0: "))
    assert 'a call ended with "The broker[broker-a] not exist" 14 times from 07:46:34 to 07:46:38' in consumer
    assert "  producer-0: no failure in its log, whose last line is 07:43:36, before the fault" in one.lines
    assert any(line.startswith("   or (0.23 of the likelihood; the first has 0.77): ") for line in one.lines)
    assert not any("look-up" in line for line in one.lines), "no topic was asked for"
    asked = diagnosed([APACHES], "orders").lines
    assert "no client's log here tells of a look-up of orders that failed" in asked


def test_a_quoted_line_of_another_zone_has_its_zone() -> None:
    one = diagnosed([APACHES])
    answer = replace(
        one.answer, lines=[(f"{file}:9", "said") for file in ("consumer-0/rocketmq_client.log.gz", "b.log")]
    )
    assert answer.told[1:3] == ["   consumer-0/rocketmq_client.log.gz:9 (UTC+00:00)  said", "   b.log:9  said"]


def test_the_same_fault_is_nothing_wrong_where_no_client_s_log_tells_of_trouble() -> None:
    one = diagnosed([place for place in APACHES.iterdir() if place.is_dir() and place.name != "consumer-0"])
    assert (one.answer.name, one.status, list(one.suffering)) == ("link-failed", 0, [])
    assert "   It was over when the logs ended. No client's log that reaches it tells of trouble by it." in one.lines


OWN = "2023-11-14 22:17:{second:02d},000 WARNING nemesrv.{node}: pulling failed: The broker[broker-b] not exist\n"


def test_an_answer_from_one_of_many_files_says_first_that_the_others_were_not_understood(tmp_path: Path) -> None:
    (tmp_path / "consumer-0.log").write_text("".join(OWN.format(second=n, node="consumer-0") for n in range(40)))
    assert not diagnosed([tmp_path]).partly, "there is no other file"
    for node in ("broker-b", "ns-1", "prober"):
        (tmp_path / f"{node}.log").write_text(f"2023-11-14 22:13:47,535 INFO nemesrv.{node}: well\n")
    one = diagnosed([tmp_path])
    assert one.lines[0] == (
        "3 of 4 files were not understood: this answer is from consumer-0.log alone, and may name an effect of what "
        "the other files would show. 4 are logs of a run of nemesrv: `nemesrv check RUN_DIR` judges the run."
    )
    assert json.loads(one.json)["partly"] == one.lines[0]
    assert one.lines[1].startswith("likely (0.9")
    assert one.status == 3


def test_what_a_client_suffered_is_not_known_where_its_log_was_not_understood(tmp_path: Path) -> None:
    for node in ("consumer-0", "producer-0"):
        (tmp_path / node).mkdir()
        (tmp_path / node / "rocketmq_client.log").write_text("2026-11-23 07:46:01,000 INFO Mine - all is well\n")
    servers = [place for place in APACHES.iterdir() if place.name[:2] in ("ns", "br")]
    one = diagnosed([*servers, tmp_path])
    assert (one.answer.name, one.status) == ("link-failed", 3)
    said = "what clients suffered is not known: 2 client logs were not understood (consumer-0/rocketmq_client.log, "
    assert any(line.startswith(said) for line in one.lines)
    assert not any("tells of" in line for line in one.lines)

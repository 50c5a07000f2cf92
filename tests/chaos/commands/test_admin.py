"""`nemesrv admin` over real loopback sockets: two NameServers and two brokers of ours."""

import json
import sys
from pathlib import Path
from typing import Any

from tenacity import retry, stop_after_delay, wait_fixed

from nemesrv.clients.admin import AdminClient
from nemesrv.clients.config import ProducerConfig
from nemesrv.clients.producer.send_request import single
from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.headers.broker import UpdateConsumerOffsetRequestHeader
from nemesrv.remoting.message import Message, MessageQueue
from nemesrv.remoting.node.network import Address
from tests.ran import ran

from .servers import Admin, Done, Servers, failed, routes


def test_cluster_list_has_a_row_for_every_broker(servers: Servers, admin: Admin) -> None:
    done = admin("clusterList", "-n", servers.n)
    assert (done.status, done.err, len(done.lines)) == (0, "", 3)
    assert done.lines[0].split()[:6] == ["#Cluster", "Name", "#Broker", "Name", "#BID", "#Addr"]
    for line, (name, address) in zip(done.lines[1:], servers.brokers.items(), strict=True):
        words = line.split()
        assert words[:5] == ["chaos", name, "0", str(address), "V4_9_8"]
        assert words[5].endswith("(0,0ms)")
        assert words[7] == "0"
        assert 0 <= float(words[9]) <= 1
        assert len(words) == 10


def test_a_topic_is_created_listed_routed_and_deleted(servers: Servers, admin: Admin) -> None:
    def listed(*flags: str) -> Done:
        return admin("topicList", "-n", servers.n, *flags)

    a, b = servers.brokers.values()
    done = admin("updateTopic", "-n", servers.n, "-b", a, "-t", "orders", "-r", "3", "-w", "2", "-p", "4")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"{a}  ")
    routes(servers, "orders", brokers=1)
    done = admin("updateTopic", "-n", servers.n, "-c", "chaos", "-t", " orders ", "--writeQueueNums", "5")
    assert [line.split()[0] for line in done.lines] == [str(a), str(b)]
    routes(servers, "orders", brokers=2)
    assert "orders" in listed().lines
    assert ["chaos", "orders", "-"] in [line.split() for line in listed("-c").lines]

    @retry(stop=stop_after_delay(5), wait=wait_fixed(0.02), reraise=True)
    def changed() -> None:
        route = json.loads(admin("topicRoute", "-n", servers.n, "-t", "orders").out)
        rows = route["queueDatas"]
        queues = {row["brokerName"]: (row["readQueueNums"], row["writeQueueNums"], row["perm"]) for row in rows}
        assert queues == dict.fromkeys(servers.brokers, (8, 5, 6))
        assert {row["brokerName"]: row["brokerAddrs"] for row in route["brokerDatas"]} == {
            name: {"0": str(address)} for name, address in servers.brokers.items()
        }

    changed()
    done = admin("deleteTopic", "-n", servers.n, "-c", "chaos", "-t", "orders")
    addresses = [*servers.brokers.values(), *servers.name_servers.values()]
    assert [line.split()[0] for line in done.lines] == list(map(str, addresses))
    assert "orders" not in listed().lines
    failed(admin("topicRoute", "-n", servers.n, "-t", "orders"), 2, "TOPIC_NOT_EXIST", "orders")


def test_write_permission_is_taken_and_given_back_everywhere(servers: Servers, admin: Admin, topic: str) -> None:
    def perms() -> list[set[tuple[str, int]]]:
        found = routes(servers, topic, brokers=2)
        return [{(row.broker_name, row.perm) for row in route.queue_datas} for route in found]

    done = admin("wipeWritePerm", "-n", servers.n, "-b", "broker-a")
    assert [line.split()[:2] for line in done.lines] == [[str(ns), "broker-a:"] for ns in servers.name_servers.values()]
    assert perms() == [{("broker-a", 4), ("broker-b", 6)}] * 2
    done = admin("addWritePerm", "-n", servers.n, "-b", "broker-a")
    assert (done.status, len(done.lines)) == (0, 2)
    assert perms() == [{("broker-a", 6), ("broker-b", 6)}] * 2


def test_kv_entries_are_set_and_deleted_at_every_name_server(servers: Servers, admin: Admin) -> None:
    async def values() -> list[dict[str, str]]:
        context = servers.context("asking")
        async with AdminClient(context, ()) as client:
            return [await client.kv_list("NS", name_server=ns) for ns in servers.name_servers.values()]

    assert admin("updateKvConfig", "-n", servers.n, "-s", "NS", "-k", "kept", "-v", "1").status == 0
    assert admin("updateKvConfig", "-n", servers.n, "-s", "NS", "-k", "gone", "-v", "2").status == 0
    assert servers.do(values) == [{"kept": "1", "gone": "2"}] * 2
    assert admin("deleteKvConfig", "-n", servers.n, "-s", "NS", "-k", "gone").status == 0
    assert servers.do(values) == [{"kept": "1"}] * 2


def test_the_name_servers_settings_are_shown_and_changed(servers: Servers, admin: Admin) -> None:
    def shown() -> list[list[str]]:
        done = admin("getNamesrvConfig", "-n", servers.n)
        assert [line.strip("=") for line in done.lines if line.startswith("==")] == servers.n.split(";")
        return [line.split() for line in done.lines if line.startswith("orderMessageEnable ")]

    assert shown() == [["orderMessageEnable", "=", "false"]] * 2
    done = admin("updateNamesrvConfig", "-n", servers.n, "-k", "orderMessageEnable", "-v", "true")
    assert (done.status, len(done.lines)) == (0, 2)
    assert shown() == [["orderMessageEnable", "=", "true"]] * 2
    assert admin("updateNamesrvConfig", "-n", servers.n, "-k", "orderMessageEnable", "-v", "false").status == 0


def test_broker_status_shows_runtime_figures_of_one_broker_or_of_a_cluster(servers: Servers, admin: Admin) -> None:
    one = admin("brokerStatus", "-n", servers.n, "-b", servers.brokers["broker-a"])
    assert one.row("brokerVersionDesc") == ["brokerVersionDesc", ":", "V4_9_8"]
    assert one.lines == sorted(one.lines)
    every = admin("brokerStatus", "-n", servers.n, "-c", "chaos")
    for address in servers.brokers.values():
        assert every.row(address, "brokerVersionDesc")[-1] == "V4_9_8"
    assert len(every.lines) == 2 * len(one.lines)


def test_offsets_of_a_topic_and_of_a_group_are_shown_queue_by_queue(servers: Servers, admin: Admin, topic: str) -> None:
    async def send_three_and_consume_one() -> None:
        config, queue = ProducerConfig(), MessageQueue(topic, "broker-a", 1)
        async with AdminClient(servers.context("client"), tuple(servers.name_servers.values())) as client:
            for _ in range(3):
                send = single(Message(topic=topic, body=b"x"), config, lambda: "an-id")
                await client.remoting.invoke(servers.brokers["broker-a"], send.command(queue, config, now_ms=0))
            header = UpdateConsumerOffsetRequestHeader(consumer_group="shop", topic=topic, queue_id=1, commit_offset=1)
            request = RemotingCommand.request(RequestCode.UPDATE_CONSUMER_OFFSET, header)
            await client.remoting.invoke(servers.brokers["broker-a"], request)

    retry_topic = "%RETRY%shop"
    assert admin("updateTopic", "-n", servers.n, "-c", "chaos", "-t", retry_topic, "-r", "1", "-w", "1").status == 0
    routes(servers, retry_topic, brokers=2)
    servers.do(send_three_and_consume_one)
    done = admin("topicStatus", "-n", servers.n, "-t", topic)
    assert [line.split()[:4] for line in done.lines[1:]] == [
        ["broker-a", "0", "0", "0"],
        ["broker-a", "1", "0", "3"],
        ["broker-b", "0", "0", "0"],
        ["broker-b", "1", "0", "0"],
    ]
    assert done.lines[1].endswith("  -")
    assert "T" in done.lines[2].split()[4]
    done = admin("consumerProgress", "-n", servers.n, "-g", "shop")
    assert [line.split()[:6] for line in done.lines[1:3]] == [
        [topic, "broker-a", "0", "0", "0", "0"],
        [topic, "broker-a", "1", "3", "1", "2"],
    ]
    assert done.lines[-2:] == ["Consume TPS: 0.00", "Diff Total: 2"]
    assert ["chaos", topic, "shop"] in [line.split() for line in admin("topicList", "-n", servers.n, "-c").lines]
    assert retry_topic not in admin("topicList", "-n", servers.n, "-c").out
    assert float(admin("clusterList", "-n", servers.n).row("chaos", "broker-a")[8]) < 1


def test_a_gone_name_server_is_named_and_the_others_are_done(servers: Servers, admin: Admin, nobody: Address) -> None:
    first, last = servers.name_servers.values()
    n = f"{first};{nobody};{last}"
    for args in (
        ("wipeWritePerm", "-n", n, "-b", "broker-a"),
        ("addWritePerm", "-n", n, "-b", "broker-a"),
        ("updateKvConfig", "-n", n, "-s", "NS", "-k", "k", "-v", "v"),
        ("deleteKvConfig", "-n", n, "-s", "NS", "-k", "k"),
        ("updateNamesrvConfig", "-n", n, "-k", "orderMessageEnable", "-v", "false"),
    ):
        done = admin(*args)
        failed(done, 4, nobody)
        assert str(first) not in done.err
        assert [line.split()[0] for line in done.lines] == [str(first), str(last)]
    done = admin("getNamesrvConfig", "-n", n)
    failed(done, 4, nobody)
    assert done.out.count("============\n") == 2


def test_reading_goes_on_to_the_first_that_can_be_reached(servers: Servers, admin: Admin, nobody: Address) -> None:
    done = admin("clusterList", "-n", f"{nobody};{servers.n}")
    assert (done.status, done.err, len(done.lines)) == (0, "", 3)


def test_a_broker_that_is_gone_keeps_its_row_and_is_named(tmp_path: Path, admin: Admin) -> None:
    servers = Servers(tmp_path)
    try:
        broker: Any = servers.nodes.pop("broker-b")
        broker._registration_targets = lambda: ()  # it says no goodbye

        async def vanish() -> None:
            name_servers: list[Any] = [servers.nodes[name] for name in servers.name_servers]
            for server in name_servers:
                server._channel_lost = lambda *_: None  # as after a cable is pulled
            await broker.stop()

        servers.do(vanish)
        done = admin("clusterList", "-n", servers.n)
        failed(done, 4, servers.brokers["broker-b"], "refused")
        assert [line.split()[1] for line in done.lines[1:]] == ["broker-a", "broker-b"]
        assert done.lines[2].split()[4:] == ["-"] * 6
        done = admin("updateTopic", "-n", servers.n, "-c", "chaos", "-t", "orders")
        failed(done, 4, servers.brokers["broker-b"])
        assert [line.split()[0] for line in done.lines] == [str(servers.brokers["broker-a"])]
        done = admin("deleteTopic", "-n", servers.n, "-c", "chaos", "-t", "orders")
        failed(done, 4, servers.brokers["broker-b"], "name servers were not asked")
    finally:
        servers.close()


def test_when_no_name_server_can_be_reached_the_exit_status_is_4(admin: Admin, nobody: Address) -> None:
    done = admin("topicList", "-n", nobody)
    failed(done, 4, nobody, "refused")
    assert done.out == ""
    failed(admin("wipeWritePerm", "-n", nobody, "-b", "broker-a"), 4, nobody, "refused")


def test_what_servers_refuse_is_one_line_with_their_reason_and_exit_status_2(servers: Servers, admin: Admin) -> None:
    n, a = servers.n, servers.brokers["broker-a"]
    failed(admin("topicStatus", "-n", n, "-t", "absent"), 2, "TOPIC_NOT_EXIST", "absent")
    failed(admin("consumerProgress", "-n", n, "-g", "absent"), 2, "%RETRY%absent")
    failed(admin("updateTopic", "-n", n, "-c", "elsewhere", "-t", "orders"), 2, "elsewhere", "known: chaos")
    failed(admin("deleteTopic", "-n", n, "-c", "elsewhere", "-t", "orders"), 2, "elsewhere")
    failed(admin("updateTopic", "-n", n, "-b", a, "-t", "no such name"), 2, str(a), "no such name")
    failed(admin("updateNamesrvConfig", "-n", n, "-k", "listenPort", "-v", "many"), 2, "listenPort")


def test_a_value_that_is_no_text_is_one_line_and_exit_status_2(admin: Admin) -> None:
    done = admin("topicRoute", "-n", "127.0.0.1:1", "-t", "\udcff")
    failed(done, 2, "UTF-8")
    assert done.out == ""


def test_the_admin_commands_are_imported_only_when_one_is_asked_for() -> None:
    def loaded(*args: str) -> tuple[str, bool]:
        code = (
            "import sys, nemesrv.chaos.__main__ as m\n"
            f"sys.argv = ['nemesrv', *{args!r}]\n"
            "try:\n    m.main()\nfinally:\n    print('nemesrv.clients.admin' in sys.modules)"
        )
        done = ran([sys.executable, "-c", code], check=True, timeout=60)
        *text, last = done.stdout.splitlines()
        return "\n".join(text), last == "True"

    text, imported = loaded("--help")
    assert "  admin  " in text
    assert not imported
    text, imported = loaded("admin", "--help")
    assert "clusterList" in text
    assert imported

"""`nemesrv doctor` and `nemesrv watch` over real loopback sockets: two NameServers and two brokers of ours."""

import json
import subprocess
import sys

import pytest

from nemesrv.clients.admin import AdminClient
from nemesrv.remoting.node.network import Address

from .servers import LIMIT_S, Admin, Servers, failed


def test_the_doctor_says_which_name_server_lacks_a_topic(servers: Servers, nemesrv: Admin, topic: str) -> None:
    without = servers.name_servers["ns-1"]

    async def forget() -> None:
        async with AdminClient(servers.context("doctor"), (without,)) as client:
            await client.delete_topic_in_name_server(topic, name_server=without)

    servers.do(forget)
    done = nemesrv("doctor", topic, "-n", servers.n, "--json")
    assert done.status == 1, done
    found = json.loads(done.out)
    assert found["topic"] == topic
    assert {(cause["name"], *cause["about"]) for cause in found["causes"]} == {
        ("topic-is-not-at-this-name-server", str(without), name) for name in servers.brokers
    }


def test_the_doctor_needs_one_name_server_that_answers(nemesrv: Admin, nobody: Address) -> None:
    failed(nemesrv("doctor", "orders", "-n", nobody), 4, "no NameServer gives an answer", nobody)


@pytest.mark.parametrize("wrong", ["", "nowhere", "a:9876,b:9876", "a:99999"])
def test_the_doctor_says_what_a_list_of_name_servers_is(nemesrv: Admin, wrong: str) -> None:
    failed(nemesrv("doctor", "orders", "-n", wrong), 2, "-n", "host:port, several with ; between them")


def test_one_look_at_a_right_cluster_finds_nothing(servers: Servers, nemesrv: Admin, topic: str) -> None:
    done = nemesrv("watch", "-n", servers.n, "--once", "--interval", "0.2")
    assert (done.status, done.err) == (0, ""), done
    assert done.lines[-1].startswith("2 of 2 NameServers answer, 2 brokers, ")
    assert int(done.lines[-1].split()[-2]) >= 1


def test_one_look_ends_with_1_when_a_broker_does_not_list_a_name_server(servers: Servers, nemesrv: Admin) -> None:
    first, _ = servers.name_servers.values()
    done = nemesrv("watch", "-n", first, "--once", "--json", "--interval", "0.2")
    assert done.status == 1, done
    found = [json.loads(line) for line in done.lines]
    assert {line["kind"] for line in found} == {"name-server-unlisted"}
    assert all(line["phase"] == "found" for line in found)


def test_a_watch_needs_a_name_server_and_a_port_of_its_own(servers: Servers, nemesrv: Admin, nobody: Address) -> None:
    failed(nemesrv("watch", "-n", nobody, "--once"), 4, "no NameServer gives an answer", nobody)
    done = nemesrv("watch", "-n", servers.n, "--once", "--metrics", nobody.port)
    failed(done, 4, f"--metrics: port {nobody.port} cannot be had")


def test_a_watch_ends_at_the_first_sigterm(servers: Servers) -> None:
    command = [sys.executable, "-m", "nemesrv.chaos", "watch", "-n", servers.n, "--interval", "0.2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith("2 of 2 NameServers answer")
        watching.terminate()
        _, err = watching.communicate(timeout=LIMIT_S)
    assert (watching.returncode, err) == (0, "")

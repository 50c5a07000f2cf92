"""What a team that uses RocketMQ may want to know of its NameServers before a release."""

import subprocess
import sys

import pytest


@pytest.mark.nemesrv(clock="virtual")
def test_the_routes_survive_a_partition(nemesrv_cluster):
    nemesrv_cluster.black_hole("broker-a <-> ns-0", for_s=155)
    nemesrv_cluster.must_be_valid("routes_converge", "routes_are_true")


@pytest.mark.nemesrv(name_servers=2, brokers=1, producers=1, consumers=1, time_scale=20, settle_s=64)
def test_our_own_client_finds_the_broker_again_after_a_crash(nemesrv_cluster):
    assert "broker-a" in our_client(nemesrv_cluster.name_server_list)
    nemesrv_cluster.kill("broker-a")
    nemesrv_cluster.wait(5)
    assert "broker-a" not in our_client(nemesrv_cluster.name_server_list)
    nemesrv_cluster.restart("broker-a")
    nemesrv_cluster.wait(35)
    assert "broker-a" in our_client(nemesrv_cluster.name_server_list)


def our_client(name_servers):
    """What a client outside the experiment is told: here nemesrv's own mqadmin, in your project your client."""
    command = [sys.executable, "-m", "nemesrv.chaos", "admin", "topicRoute", "-n", name_servers, "-t", "orders"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout

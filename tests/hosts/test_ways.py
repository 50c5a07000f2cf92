"""Other ways to a Ray cluster of three hosts: over TLS, as a Ray job, and with Apache's programs as nodes; and a Spark
cluster of these hosts judges what was recorded there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from nemesrv.chaos.apache import libfaketime
from nemesrv.chaos.history.rows import read_rows
from tests.hosts.bench import Bench, missing
from tests.hosts.test_hosts import assert_nothing_is_left, written
from tests.interop.conftest import need
from tests.interop.jars import Jars
from tests.interop.waiting import eventually

pytestmark = [
    pytest.mark.ray,
    pytest.mark.toxiproxy,
    pytest.mark.spark,
    pytest.mark.java,
    pytest.mark.skipif(bool(missing()), reason=missing() or "it can be had"),
]
SPARK_PORT, JOBS_PORT = 7077, 8265
UP_S = 120
SHORT = """
description: A broker is cut from a NameServer on another host.
cluster: {name_servers: 2, brokers: 2}
timers: {time_scale: 10}
placement: {ns-0: {host: b}, ns-1: {host: c}, brokers: {host: a}, producers: {host: c}}
workload: {producers: 1, consumers: 1, client_starts: 0}
timeline:
  - {at_s: 5, do: black_hole, links: [broker-a <-> ns-0]}
  - {at_s: 50, do: heal}
settle_s: 40
checks: [routes_converge, no_false_eviction]
"""
APACHES = """
description: A broker of Apache's is killed on one host of three; a NameServer is ours, and a producer Apache's.
cluster: {name_servers: 3, brokers: 2, implementation: apache-4.9.7}
workload: {producers: 2, consumers: 1, client_starts: 0}
placement: {hosts: [a, b, c]}
nodes:
  ns-1: {implementation: ours}
  producer-1: {implementation: apache-4.9.8}
timeline:
  - {at_s: 15, do: kill, nodes: [broker-a]}
  - {at_s: 60, do: restart, nodes: [broker-a]}
settle_s: 80
checks: [routes_converge, routes_are_true, registrations_are_kept, no_false_eviction, no_resurrection,
         dead_brokers_avoided, client_routes_are_true, no_acknowledged_loss, messages_delivered, order_kept, exercised]
"""


class Tls(Bench):
    """Ray's own connections are TLS, with a token besides."""

    def __enter__(self) -> Tls:
        names = ",".join(["IP:127.0.0.1", "DNS:localhost", *(f"IP:{self.address(host)}" for host in self.hosts)])
        (self.folder / "names").write_text(f"subjectAltName={names}\n", encoding="utf-8")
        self._openssl("req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=ca -keyout ca.key -out ca.crt")
        self._openssl("req -newkey rsa:2048 -nodes -subj /CN=ray -keyout ray.key -out ray.csr")
        self._openssl(
            "x509 -req -in ray.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 1 -extfile names -out ray.crt"
        )
        super().__enter__()
        return self

    def _openssl(self, arguments: str) -> None:
        subprocess.run(["openssl", *arguments.split()], cwd=self.folder, check=True, capture_output=True, timeout=60)

    @property
    def environment(self) -> Mapping[str, str]:
        keys = {"SERVER_CERT": "ray.crt", "SERVER_KEY": "ray.key", "CA_CERT": "ca.crt"}
        tls = {f"RAY_TLS_{name}": str(self.folder / file) for name, file in keys.items()}
        return {**super().environment, "RAY_USE_TLS": "1", **tls}


class Jobs(Bench):
    """The head takes Ray jobs, as KubeRay submits them."""

    @property
    def environment(self) -> Mapping[str, str]:
        """With what we have ray[default] from."""
        usual = super().environment
        return {**usual, "PYTHONPATH": os.pathsep.join([usual["PYTHONPATH"], os.environ.get("PYTHONPATH", "")])}

    def start(self, host: str, command: list[str], log: str) -> subprocess.Popen[bytes]:
        at = [each for each, word in enumerate(command) if word == "--include-dashboard"]
        if at:
            told = ["--include-dashboard", "true", "--dashboard-host", self.address(host)]
            command = [*command[: at[0]], *told, *command[at[0] + 2 :]]
        return super().start(host, command, log)


def verdicts(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert done.returncode in (0, 1, 3), done.stderr[-3000:]
    return {check["name"]: check["verdict"] for check in json.loads(done.stdout.splitlines()[-1])["checks"]}


@pytest.mark.nightly("hosts/test_hosts.py::test_a_partition_between_hosts_is_judged_as_one_within_one")
def test_rays_own_tls_and_token_are_enough(tmp_path: Path) -> None:
    with Tls() as bench:
        out = tmp_path / "run"
        said = verdicts(
            bench.nemesrv("run", str(written(tmp_path, SHORT)), "--ray", bench.head, "--out", str(out), "--json")
        )
        assert "INVALID" not in said.values()
        assert_nothing_is_left(bench)


@pytest.mark.nightly("hosts/test_hosts.py::test_a_partition_between_hosts_is_judged_as_one_within_one")
def test_a_ray_job_runs_a_scenario_and_is_as_good_as_its_verdict(tmp_path: Path) -> None:
    if find_spec("aiohttp") is None or find_spec("opencensus") is None:
        pytest.skip("ray[default] is not installed, which takes jobs")
    with Jobs(ahead_ms=0) as bench:
        scenario, out = written(tmp_path, SHORT), tmp_path / "run"
        entrypoint = [sys.executable, "-m", "nemesrv.chaos", "run", str(scenario), "--ray", "auto", "--out", str(out)]
        submit = [str(Path(sys.executable).with_name("ray")), "job", "submit"]
        submit += ["--address", f"http://{bench.address('a')}:{JOBS_PORT}", "--", *entrypoint, "--quiet"]
        done = bench.run(submit, limit_s=280)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert json.loads((out / "verdicts.json").read_text(encoding="utf-8"))["verdict"] == "VALID"
        assert_nothing_is_left(bench)


@pytest.mark.nightly("hosts/test_hosts.py::test_a_partition_between_hosts_is_judged_as_one_within_one")
def test_a_history_is_judged_on_a_spark_cluster_of_the_hosts(tmp_path: Path) -> None:
    with Bench(ahead_ms=0) as bench:
        out, master = tmp_path / "run", f"spark://{bench.address('a')}:{SPARK_PORT}"
        ran = bench.nemesrv("run", str(written(tmp_path, SHORT)), "--ray", bench.head, "--out", str(out), "--json")
        first = verdicts(ran)
        at = f"PATH={Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # as deploy/systemd/nemesrv-ray.env
        spark = ["env", at, "spark-class"]
        own = ["--host", bench.address("a"), "--port", str(SPARK_PORT), "--webui-port", "8090"]
        bench.start("a", [*spark, "org.apache.spark.deploy.master.Master", *own], "spark-a.log")
        for host in ("b", "c"):
            own = ["--host", bench.address(host), "--cores", "1", "--memory", "1g", "--webui-port", "8091", master]
            bench.start(host, [*spark, "org.apache.spark.deploy.worker.Worker", *own], f"spark-{host}.log")

        def two_workers() -> None:
            told = (bench.folder / "spark-a.log").read_text(encoding="utf-8")
            assert told.count("Registering worker") == 2, told[-2000:]

        eventually(two_workers, within_s=UP_S)
        again = verdicts(bench.nemesrv("check", str(out), "--spark-master", master, "--json"))
        assert again == first
        assert "Launching executor" in (bench.folder / "spark-a.log").read_text(encoding="utf-8")


@pytest.mark.nightly("hosts/test_hosts.py::test_a_partition_between_hosts_is_judged_as_one_within_one")
def test_apaches_programs_are_nodes_on_the_hosts_too(tmp_path: Path) -> None:
    need(Jars.SERVERS_4_9, Jars.CLIENTS_4_9)
    if libfaketime.found() is None:
        pytest.skip("libfaketime is not installed (apt-get install faketime)")
    with Bench() as bench:
        out = tmp_path / "run"
        said = verdicts(
            bench.nemesrv("run", str(written(tmp_path, APACHES)), "--ray", bench.head, "--out", str(out), "--json")
        )
        assert "INVALID" not in said.values()
        made_by = {row["source"]: row["value"] for row in read_rows(out) if row["event"] == "node"}
        assert {made_by[name]["host"] for name in ("ns-0", "broker-a", "broker-b")} > {"a"}
        assert made_by["ns-0"]["implementation"] == "apache-4.9.7"
        assert [*(out / "logs").glob("broker-a/logs/rocketmqlogs/broker.log")]
        assert_nothing_is_left(bench)

"""What is wrong with a Ray cluster, or with a host of it, is one sentence and exit status 4; nothing is left behind."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.hosts.bench import Bench, missing

pytestmark = [pytest.mark.ray, pytest.mark.skipif(bool(missing()), reason=missing() or "it can be had")]

IT_IS_DEAD = """
import logging, sys, time, ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
while any(n["Alive"] and n["NodeManagerAddress"] == sys.argv[2] for n in ray.nodes()):
    time.sleep(0.2)
"""
OTHER = """
import sys
import ray
{change}
sys.argv = ["nemesrv", "run", "smoke", "--quiet", "--ray", {head!r}]
from nemesrv.chaos.__main__ import main
main()
"""


class OddHosts(Bench):
    """Hosts of which b's Ray has no nemesrv, and c has no Toxiproxy."""

    _starting = ""
    of_driver: Mapping[str, str] = {}

    def start_ray(self, host: str) -> None:
        self._starting = host
        try:
            super().start_ray(host)
        finally:
            self._starting = ""

    @property
    def environment(self) -> Mapping[str, str]:
        usual = super().environment
        if self._starting == "b":
            without = self.folder / "without"
            without.mkdir(exist_ok=True)
            (without / "nemesrv.py").write_text("raise ModuleNotFoundError(\"No module named 'nemesrv'\")\n")
            return {**usual, "PYTHONPATH": f"{without}:{usual['PYTHONPATH']}"}
        if self._starting == "c":
            return {**usual, "NEMESRV_TOXIPROXY": "/nowhere/toxiproxy-server"}
        return usual if self._starting else {**usual, **self.of_driver}

    def told(self, *arguments: str, **env: str) -> str:
        """The one line that `nemesrv run smoke` then ends with; its exit status is 4, and nothing is left."""
        self.of_driver = env
        try:
            return self.line(self.nemesrv("run", "smoke", "--quiet", *arguments, limit_s=150))
        finally:
            self.of_driver = {}

    def line(self, done: subprocess.CompletedProcess[str]) -> str:
        assert (done.returncode, done.stdout) == (4, ""), done.stdout + done.stderr
        (said,) = done.stderr.splitlines()
        assert [self.ours(host) for host in self.hosts] == [[], [], []]
        return said


@pytest.fixture(scope="module")
def odd() -> Iterator[OddHosts]:
    with OddHosts(ahead_ms=0) as hosts:
        yield hosts


@pytest.mark.nightly
def test_an_experiment_on_odd_hosts_ends_with_one_sentence_before_a_node_starts(odd: OddHosts, tmp_path: Path) -> None:
    nobody = odd.address("a").rpartition(".")[0] + ".99:6379"
    assert f"no Ray head answers at {nobody}" in odd.told("--ray", nobody)
    assert f"no Ray head answers at {odd.address('a')}:6380 (Connection refused)" in odd.told(
        "--ray", f"{odd.address('a')}:6380"
    )
    assert "refused our token" in odd.told("--ray", odd.head, RAY_AUTH_TOKEN="f" * 32)
    assert "refused our token" in odd.told("--ray", odd.head, RAY_AUTH_MODE="disabled", RAY_AUTH_TOKEN="")
    no_keys = {f"RAY_TLS_{each}": "/nowhere" for each in ("SERVER_CERT", "SERVER_KEY", "CA_CERT")}
    assert "RAY_USE_TLS" in odd.told("--ray", odd.head, RAY_USE_TLS="1", **no_keys)
    for change, theirs in (
        ("ray.__version__ = '2.40.0'", "and this host has Ray 2.40.0 on Python"),
        ("ray._private.utils.compute_version_info = lambda: (ray.__version__, '3.12.4')", "runs Ray"),
    ):
        script = OTHER.format(change=change, head=odd.head)
        said = odd.line(odd.run([sys.executable, "-c", script], limit_s=150))
        assert theirs in said
        assert "both must be the same" in said
    assert f"the Python of Ray on the host b ({odd.address('b')}) has no nemesrv: install nemesrv there" in odd.told(
        "--ray", odd.head
    )
    odd.kill_all("b")
    odd.run([sys.executable, "-c", IT_IS_DEAD, odd.head, odd.address("b")])
    said = odd.told("--ray", odd.head, "--out", str(tmp_path / "run"))
    assert (
        f"on the host c ({odd.address('c')}): NEMESRV_TOXIPROXY=/nowhere/toxiproxy-server is no program that can be run"
        in said
    )

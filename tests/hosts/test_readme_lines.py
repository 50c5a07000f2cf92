"""The five lines of docs/hosts.md for more than one machine do what they say, on hosts where no Ray runs yet."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts.bench import HOSTS, Bench, missing
from tests.ran import ran

pytestmark = [pytest.mark.ray, pytest.mark.skipif(bool(missing()), reason=missing() or "it can be had")]
PAGE = (Path(__file__).parents[2] / "docs" / "hosts.md").read_text(encoding="utf-8")


class Bare(Bench):
    """Hosts on which nothing was started."""

    def start_ray(self, host: str) -> None:
        pass

    def await_ray(self, hosts: tuple[str, ...]) -> None:
        pass

    def shell(self, host: str, *lines: str) -> subprocess.CompletedProcess[str]:
        """Run as a person there would, one line after the other."""
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        env = {**kept, "PATH": path, "SECRET": self.token, "ADDRESS": self.address("a"), "RAY_TMPDIR": str(self.folder)}
        command = ["ip", "netns", "exec", self.space(host), "bash", "-euc", "\n".join(lines)]
        return ran(command, env=env, cwd=self.folder, timeout=280)


@pytest.mark.nightly("hosts/test_hosts.py::test_a_partition_between_hosts_is_judged_as_one_within_one")
def test_the_five_lines_give_a_verdict_on_three_hosts() -> None:
    (section,) = re.findall(r"^## In five lines$(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE)
    (block,) = re.findall(r"```sh hosts\n(.*?)```", section, re.DOTALL)
    secret, head, worker, run, check = block.splitlines()
    with Bare(ahead_ms=0, late=HOSTS) as hosts:
        for host, line in (("a", head), ("b", worker), ("c", worker)):
            begun = hosts.shell(host, secret, line)
            assert begun.returncode == 0, begun.stdout + begun.stderr
        done = hosts.shell("a", secret, run)
        assert done.returncode in (0, 3), done.stdout + done.stderr
        again = hosts.shell("a", secret, check)
        assert again.returncode == done.returncode, again.stdout + again.stderr
        assert [hosts.ours(host) for host in hosts.hosts] == [[], [], []]
        assert (hosts.folder / "runs" / "latest" / "report.html").exists()

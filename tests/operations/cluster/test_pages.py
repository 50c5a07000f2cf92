"""docs/doctor.md and docs/watch.md: the `cluster` blocks, with addresses of servers here in place of the reader's."""

import json
import re
import shlex
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.chaos.programs import nemesrv, running
from tests.interop.programs import broker, name_server
from tests.test_tutorial import ROOT, assert_shows, blocks


def on_page(page: str, servers: Sequence[str]) -> tuple[list[str], str]:
    """The words behind `nemesrv` of its one such command, and what it prints, for these NameServers."""
    of_page = blocks(ROOT / "docs" / page)
    (at,) = (number for number, block in enumerate(of_page) if block.about == "cluster")
    command, shown = of_page[at].text, of_page[at + 1].text
    for theirs, ours in zip(re.findall(r"[\d.]+:\d+", command), servers, strict=True):
        command, shown = command.replace(theirs, ours), shown.replace(theirs, ours)
    return shlex.split(command)[1:], shown


def test_doctor_names_a_name_server_that_no_broker_lists(tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = []
        for name in ("ns-0", "ns-1"):
            program, address = name_server(name, tmp_path / name)
            stack.enter_context(program)
            servers.append(address)
        program, address = broker("broker-a", tmp_path / "broker-a", servers[:1], "broker-a")
        stack.enter_context(program)
        topic = ("-b", address, "-t", "orders", "-r", "4", "-w", "4")
        made = nemesrv("admin", "updateTopic", "-n", servers[0], *topic, cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        words, shown = on_page("doctor.md", servers)
        done = nemesrv(*words, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert_shows(done.stdout, shown)


@pytest.mark.nightly(
    "operations/cluster/test_watch.py::test_a_cut_between_a_broker_and_a_name_server_is_named_within_expiry_scan_and_5_seconds"
)
@pytest.mark.ray
@pytest.mark.toxiproxy
def test_watch_finds_a_broker_that_a_name_server_lacks_and_its_return(tmp_path: Path) -> None:
    with running("up", "--json", cwd=tmp_path) as cluster:
        words, shown = on_page("watch.md", json.loads(next(cluster.stdout))["name_servers"])
        lines: list[str] = []
        with running(*words, cwd=tmp_path) as watch:
            for line in watch.stdout:
                lines.append(line)
                if "3 of 3 NameServers" in line:
                    cut = nemesrv("fault", "cut", "broker-a <-> ns-2", "--for", "20", cwd=tmp_path)
                    assert cut.returncode == 0, cut.stderr
                if "over after" in line:
                    break
            watch.end(signal.SIGINT)
        assert_shows("".join(lines), shown)
        cluster.end(signal.SIGINT)
    assert cluster.left() == []

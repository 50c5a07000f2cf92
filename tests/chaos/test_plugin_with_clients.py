"""The test of docs/clients-under-test.md as it stands there, with Go's client; and one whose client is /bin/false."""

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.chaos.test_pytest_plugin import project
from tests.clients_matrix.catalogue import CLIENTS
from tests.clients_matrix.install import ClientMissing, command

PAGE = Path(__file__).parents[2] / "docs" / "clients-under-test.md"
IMPORTS = "import os\nimport subprocess\n\nimport pytest\n\n\n"
BIN_FALSE = """

@pytest.mark.nemesrv(clients={"false": "java-4.9"}, brokers=1, checks=["name_server_selection"])
def test_bin_false(nemesrv_cluster):
    client = nemesrv_cluster.client("false")
    subprocess.run(["/bin/false"], env={**os.environ, "NAMESRV_ADDR": client.name_server_list})
    nemesrv_cluster.wait(5)
    nemesrv_cluster.must_be_valid("name_server_selection")
"""
pytestmark = [
    pytest.mark.nightly(
        "chaos/fronts/test_rows.py::test_a_client_that_keeps_its_profile_is_valid_as_seen_from_outside"
    ),
    pytest.mark.e2e,
    pytest.mark.ray,
    pytest.mark.spark,
    pytest.mark.toxiproxy,
]


@pytest.mark.timeout(900)
def test_a_client_under_test_is_judged_and_one_that_is_bin_false_cannot_pass(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    try:
        words = command(CLIENTS["go-2.1.2"])
    except ClientMissing as exc:
        pytest.skip(str(exc))
    ours = tmp_path / "ours"
    told = "NEMESRV_TOPIC=orders NEMESRV_GROUP=mine NEMESRV_ROLE=producer"
    os.mkfifo(tmp_path / "never-ends")  # the driver ends with its input, which pytest takes away
    ours.write_text(f"#!/bin/sh\nexec env {told} {shlex.join(words)} 0<>never-ends\n")
    ours.chmod(0o755)
    done = project(tmp_path, IMPORTS + example + BIN_FALSE, within_s=840)
    assert "1 failed, 1 passed" in done.stdout, done.stdout[-8000:]
    assert re.search(r"name_server_selection.*UNKNOWN", done.stdout), done.stdout[-8000:]

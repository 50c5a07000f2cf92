"""What `nemesrv conform` finds unaided of clients as their registries have them, and who they are."""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nemesrv.conformance.rules.rule import LATE_S
from nemesrv.remoting.codes import V4_9_8
from tests.ran import ran

from .catalogue import CLIENTS
from .install import ClientMissing, command

LIMIT_S = 60.0
"""What #7056 may take to be found, the start of everything included, if this machine is not late meanwhile."""


def found(
    name: str, folder: Path, rule: str, *options: str, env: tuple[str, ...] = ()
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Its conform.json and of that the rule, held against the client's profile."""
    client = CLIENTS[name]
    try:
        words = ("env", *env, *command(client))
    except ClientMissing as exc:
        pytest.skip(str(exc))
    against = ("--profile", client.profile, "--profile-rocketmq", client.servers)
    run = ("--rules", rule, *options, "--out", str(folder / name), "--", *words)
    done = ran([sys.executable, "-m", "nemesrv.chaos", "conform", *against, *run])
    told = folder / name / "conform.json"
    assert told.exists(), done.stderr
    document: dict[str, Any] = json.loads(told.read_text(encoding="utf-8"))
    (one,) = document["rules"]
    return document, one


@pytest.mark.nightly("conformance/rules/test_trying.py::test_the_lock_of_7056_never_recovers")
@pytest.mark.java
@pytest.mark.parametrize(
    ("name", "measured", "verdict"), [("java-4.9.8", "never", "INVALID"), ("java-5.3.3", "recovers", "VALID")]
)
def test_7056_is_red_on_4_9_8_and_green_on_5_3_3(name: str, measured: str, verdict: str, tmp_path: Path) -> None:
    began_s = time.monotonic()
    document, rule = found(name, tmp_path, "failover")
    took_s = time.monotonic() - began_s
    assert (rule["measured"], rule["verdict"]) == (measured, verdict), rule
    assert took_s <= LIMIT_S or document["late_ms"] >= 1000 * LATE_S, f"{took_s:.0f} s; {document['late_ms']} ms late"


@pytest.mark.java
@pytest.mark.nightly(
    "conformance/test_printing.py::test_each_of_several_clients_is_named_whole_and_what_the_program_does_is_no_clients"
)
@pytest.mark.timeout(600)
def test_a_spring_boot_application_with_four_instances_has_four_columns(tmp_path: Path) -> None:
    _document, rule = found("spring-2.3.1", tmp_path, "sticky", "--starts", "12", env=("NEMESRV_INSTANCES=1",))
    assert len(rule["clients"]) == 4, rule["clients"]
    assert {"nemesrv-conform", "RMQ_SYS_TRACE_TOPIC"} < set(rule["clients"])
    assert {one["measured"] for one in rule["clients"].values()} <= {"kept", None}, rule["clients"]


@pytest.mark.nightly("conformance/rules/test_trying.py::test_who_meets_the_dead_one_of_two_at_every_look_up_is_locked")
def test_the_phase_lock_of_ali_ons_is_one_look_up_in_n_minus_one(tmp_path: Path) -> None:
    _document, rule = found("node-3.12.0", tmp_path, "phase_lock")
    assert (rule["measured"], rule["verdict"]) == ("1/(N-1)", "VALID"), rule
    assert rule["count"] >= 3, "polls each 30 s"
    assert f"{rule['count']} of {rule['count']} look-ups with 2 NameServers met the dead one first" in rule["why"]


@pytest.mark.nightly("conformance/rules/test_choosing.py::test_starts_that_are_all_at_one_place_are_not_random")
@pytest.mark.java  # which runs at the priority of what goes by the machine's clock
def test_ali_ons_begins_at_the_second_name_server(tmp_path: Path) -> None:
    document, rule = found("node-3.12.0", tmp_path, "start", "--starts", "12")
    assert document["hindered"] == ""
    assert (rule["measured"], rule["verdict"]) == ("1", "VALID"), rule


@pytest.mark.java
def test_javas_client_says_its_language_and_version_and_each_start_is_seen(tmp_path: Path) -> None:
    document, rule = found("java-4.9.8", tmp_path, "start", "--starts", "3")
    assert document["hindered"] == ""
    assert (document["versions"]["client_language"], document["versions"]["client_version"]) == ("JAVA", V4_9_8)
    assert (rule["count"], rule["verdict"]) == (3, "UNKNOWN"), "three starts say nothing about chance"

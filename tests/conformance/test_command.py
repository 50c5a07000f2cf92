"""`nemesrv conform` as a person types it: what is wrong input, what a run leaves, and how it ends."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import tenacity
from click.testing import CliRunner

from nemesrv.actors.processes import family
from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.commands.conform import conform
from nemesrv.chaos.oracle.choosing.start_choice import STARTS_NEEDED
from tests.clients_matrix.catalogue import DRIVERS
from tests.ran import ran

TINY = str(Path(__file__).with_name("tiny.py"))
PYTHON = (sys.executable, "-I", "-S")
CLIENT = (*PYTHON, TINY, "{namesrv}", "{topic}")
CONFORM = (sys.executable, "-m", "nemesrv.chaos", "conform")
LIMIT_S = 120.0


def typed(*words: str, columns: int = 160) -> subprocess.CompletedProcess[str]:
    """The command as from a shell, after which nothing of it is left."""
    environment = {**os.environ, "COLUMNS": str(columns)}
    done = ran([*CONFORM, *words], timeout=LIMIT_S, env=environment)
    assert not family(os.getpid(), lambda command: TINY in command)
    return done


def _too_late(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == 3 and "late meanwhile" in done.stdout + done.stderr


def typed_until_in_time(*words: str, out: Path) -> subprocess.CompletedProcess[str]:
    """The same into the folder `out`, again where the machine was too late for a verdict: other tests run beside it."""
    for attempt in tenacity.Retrying(stop=tenacity.stop_after_attempt(5), retry=tenacity.retry_if_result(_too_late)):
        with attempt:
            shutil.rmtree(out, ignore_errors=True)
            done = typed("--out", str(out), *words)
        attempt.retry_state.set_result(done)
    return done


def test_as_many_starts_may_be_asked_for_as_the_check_of_first_choices_needs() -> None:
    [starts] = (one for one in conform.params if one.name == "starts")
    for needed in STARTS_NEEDED.values():
        assert starts.type.convert(str(needed), starts, None) == needed


def test_its_help_has_examples_and_the_exit_statuses() -> None:
    said = CliRunner().invoke(cli, ["conform", "--help"]).output
    assert "nemesrv conform -- ./my-client" in said
    assert "Exit status: 0" in said


def test_a_run_leaves_every_rule_and_each_processs_output(tmp_path: Path) -> None:
    profile = tmp_path / "mine.yaml"
    profile.write_text("client: tiny\nrules: {start: 0}\n")
    out, written = tmp_path / "run", tmp_path / "found.yaml"
    options = ("--rules", "start", "--starts", "10", "--profile", str(profile))
    done = typed_until_in_time(*options, "--write-profile", str(written), "--seed", "7", "--", *CLIENT, out=out)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"│start +│ 0 .*│ +10 │ 0 +│ VALID +│", done.stdout), done.stdout
    assert done.stdout.splitlines()[-1] == f"kept in {out}"
    assert sorted(path.name for path in out.iterdir()) == ["conform.json", "junit.xml", "logs", "verdicts.json"]
    told = json.loads((out / "conform.json").read_text())
    assert (told["verdict"], told["profile"], told["seed"], told["starts"]) == ("VALID", "mine", 7, 10)
    assert told["command"] == list(CLIENT)
    (start,) = told["rules"]
    assert {key: start[key] for key in ("rule", "measured", "count", "expected", "verdict")} == {
        **{"rule": "start", "measured": "0", "count": 10, "expected": "0", "verdict": "VALID"}
    }
    verdicts = json.loads((out / "verdicts.json").read_text())
    assert (verdicts["scenario"], verdicts["seed"], verdicts["verdict"]) == ("conform", 7, "VALID")
    assert [(check["name"], check["verdict"]) for check in verdicts["checks"]] == [("start", "VALID")]
    suite = ET.parse(out / "junit.xml").getroot()[0]
    assert {key: suite.get(key) for key in ("tests", "failures", "errors")} == {
        **{"tests": "1", "failures": "0", "errors": "0"}
    }
    assert "answered with code 0" in (out / "logs" / "starts-007.log").read_text()
    seen = [json.loads(line) for line in (out / "logs" / "starts-007.seen.jsonl").read_text().splitlines()]
    of_client = [line for line in seen[1:] if line["seen"] != "Reported"]
    assert [line["seen"] for line in of_client[:4]] == ["Dialled", "Opened", "Asked", "Answered"]
    assert of_client[2]["front"] == "ns-0"
    assert "start: '0'" in written.read_text()


def test_a_deviation_is_invalid_and_one_line_of_json_holds_it(tmp_path: Path) -> None:
    options = ("--json", "--rules", "start", "--starts", "14", "--profile", "java-5.3")
    done = typed_until_in_time(*options, "--", *CLIENT, out=tmp_path / "run")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert (told["verdict"], told["rules"][0]["expected"], told["run_dir"]) == (
        *("INVALID", "random"),
        str(tmp_path / "run"),
    )
    failed = ET.parse(tmp_path / "run" / "junit.xml").getroot()[0]
    assert failed.get("failures") == "1"
    (failure,) = failed.iter("failure")
    message = failure.get("message", "")
    assert message.startswith("all 14 processes asked ns-0 first")
    assert message.endswith(" (14 examined)")


def test_a_program_that_fails_is_one_sentence_and_every_rule_is_unknown(tmp_path: Path) -> None:
    program = (*PYTHON, "-c", "import sys; sys.exit('cannot read my.conf')")
    done = typed("--profile", "java-5.3", "--out", str(tmp_path / "run"), "--", *program)
    assert done.returncode == 3
    assert "ended (exit 1)" in done.stderr
    assert "its last output: cannot read my.conf" in done.stderr
    told = json.loads((tmp_path / "run" / "conform.json").read_text())
    assert {rule["verdict"] for rule in told["rules"]} == {"UNKNOWN"}
    assert told["rules"][0]["why"] == told["hindered"] != ""


@pytest.mark.nightly_but("SIGTERM")
@pytest.mark.parametrize(
    ("number", "status"),
    [pytest.param(signal.SIGINT, 130, id="SIGINT"), pytest.param(signal.SIGTERM, 143, id="SIGTERM")],
)
def test_a_signal_ends_it_at_once_with_nothing_left(tmp_path: Path, number: signal.Signals, status: int) -> None:
    out = tmp_path / "run"
    words = [*CONFORM, "--rules", "poll_kind", "--out", str(out), "--", *CLIENT]
    running = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        assert running.stderr is not None
        for line in running.stderr:  # until all situations run
            if "2 situations" in line:
                break
        begun_s = time.monotonic()
        running.send_signal(number)
        assert running.wait(LIMIT_S) == status
        assert time.monotonic() - begun_s < 15.0
    finally:
        running.kill()
        running.communicate()
    assert not family(os.getpid(), lambda command: TINY in command)
    assert sorted(path.name for path in out.iterdir()) == ["logs"]


@pytest.mark.nightly("test_a_run_leaves_every_rule_and_each_processs_output")
@pytest.mark.timeout(900)
def test_our_own_client_does_all_that_its_profile_says(tmp_path: Path) -> None:
    """Every situation in real time, which is why it runs nightly."""
    client = (sys.executable, str(DRIVERS / "ours.py"), "5.x")
    options = ("--profile", "java-5.3", "--profile-rocketmq", "5.x", "--starts", "60", "--out", str(tmp_path / "run"))
    done = ran([*CONFORM, *options, "--", *client], timeout=800)
    told = json.loads((tmp_path / "run" / "conform.json").read_text())
    wrong = [rule for rule in told["rules"] if rule["verdict"] == "INVALID"]
    assert not wrong, done.stdout
    assert len([rule for rule in told["rules"] if rule["verdict"] == "VALID"]) > 25, done.stdout

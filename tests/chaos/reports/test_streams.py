"""Output never fails a command: not a reader that has left, not an encoding that lacks a character."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nemesrv.chaos.reports.streams import use_lasting_streams
from tests.ran import ran

from ..programs import NEMESRV, nemesrv

TABLE = """
import sys
from nemesrv.chaos.reports.streams import use_lasting_streams
use_lasting_streams()
from nemesrv.chaos.reports.terminal import print_answers
from nemesrv.chaos.verdict import Validity, Verdict
for _ in range(150):  # more than a pipe holds
    print_answers([Verdict(name="order_kept", verdict=Validity.INVALID, examined=1, violations=1)], ["a ≥ b"])
print("told", file=sys.stderr)
sys.exit(3)
"""


def test_a_reader_that_leaves_does_not_change_the_exit_status() -> None:
    with subprocess.Popen([sys.executable, "-c", TABLE], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (3, b"told\n")


def test_a_command_into_a_closed_pipe_ends_as_it_would(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*NEMESRV, "scenarios"], stdout=write, stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("closed", [False, True])
def test_a_stream_in_memory_and_a_closed_one_stay_as_they_are(closed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    held = io.TextIOWrapper(io.BytesIO())
    if closed:
        held.close()
    monkeypatch.setattr(sys, "stdout", held)
    monkeypatch.setattr(sys, "stderr", None)
    use_lasting_streams()
    assert sys.stdout is held
    assert sys.stderr is None


def test_a_character_that_the_encoding_lacks_becomes_a_question_mark(tmp_path: Path) -> None:
    done = nemesrv("run", "≥-no-such-scenario", cwd=tmp_path, env={"PYTHONIOENCODING": "latin-1:strict"})
    assert done.returncode == 2
    assert "?-no-such-scenario" in done.stderr


def test_a_table_in_ascii() -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = ran([sys.executable, "-c", TABLE.replace("150", "1")], env=env)
    assert (done.returncode, done.stderr) == (3, "told\n")
    assert "a ? b" in done.stdout
    assert "| order_kept | INVALID |" in done.stdout

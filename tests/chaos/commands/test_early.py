"""A signal before the command has imported its own parts is a word and the signal's exit status, not a stack."""

import signal
import subprocess
import sys

import pytest

from tests.ran import ran

HIT_WHILE_IT_IMPORTS_CLICK = """
import os, signal, sys

class Hits:
    def find_spec(self, name, *_):
        if name == "click":
            os.kill(os.getpid(), signal.Signals[sys.argv[1]])

sys.meta_path.insert(0, Hits())
signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run in a shell's background
sys.argv[0] = sys.argv[2]
import nemesrv.chaos.__main__
print("imported")
"""


def hit(signum: signal.Signals, program: str) -> subprocess.CompletedProcess[str]:
    args = [sys.executable, "-c", HIT_WHILE_IT_IMPORTS_CLICK, signum.name, program]
    return ran(args)


@pytest.mark.parametrize("program", ["/usr/bin/nemesrv", "/src/nemesrv/chaos/__main__.py"])
@pytest.mark.parametrize(
    ("signum", "word"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")], ids=["SIGINT", "SIGTERM"]
)
def test_the_command_says_one_word_and_is_gone(signum: signal.Signals, word: str, program: str) -> None:
    done = hit(signum, program)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signum, "", f"nemesrv: {word}\n")


def test_whoever_imports_nemesrv_keeps_their_handlers() -> None:
    assert hit(signal.SIGTERM, "/usr/bin/pytest").returncode == -signal.SIGTERM

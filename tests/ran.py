"""A command, run to its end."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def ran(command: Sequence[str | Path], *, check: bool = False, **how: Any) -> subprocess.CompletedProcess[str]:
    """With its output as text. With `check`, CalledProcessError where the exit status is not 0."""
    done: subprocess.CompletedProcess[str] = subprocess.run(command, capture_output=True, text=True, check=check, **how)
    return done

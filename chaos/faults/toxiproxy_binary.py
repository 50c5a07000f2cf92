"""Finds the toxiproxy-server to run."""

import os
import shutil
import sys
from pathlib import Path

from ..errors import ToxiproxyError
from ..installation import how_to_get_toxiproxy


def find_server() -> Path:
    """Return the path of toxiproxy-server: the program that NEMESRV_TOXIPROXY names; if unset, the one on PATH, else
    the one beside this Python. Raises ToxiproxyError if that program is missing."""
    named = os.environ.get("NEMESRV_TOXIPROXY")
    if named:
        found = shutil.which(named)
        if found is None:
            raise ToxiproxyError(f"NEMESRV_TOXIPROXY={named} is no program that can be run: {how_to_get_toxiproxy()}")
        return Path(found)
    beside = Path(sys.executable).parent
    found = shutil.which("toxiproxy-server") or shutil.which("toxiproxy-server", path=str(beside))
    if found is None:
        raise ToxiproxyError(f"toxiproxy-server is missing: {how_to_get_toxiproxy()}")
    return Path(found)

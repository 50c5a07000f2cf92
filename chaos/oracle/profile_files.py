"""Profiles of clients as files: what each is known to do, one home for `conform` and for `name_server_selection`.

    client: Go v2.1.2                  for people
    inside: {lock_wait_s: 3.0}         what cannot be seen from outside; may be missing
    rules: {start: 0, …}               a rule of conformance/rules: what it is expected to measure

Which rules there are, and what each may expect, conformance/profile.py knows; here a file is only read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from ..errors import ScenarioError

DIR = Path(__file__).parent / "profiles"
KEYS = ("client", "inside", "rules")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(path: Path) -> Mapping[str, Any]:
    """The document, each of KEYS of the right kind. ScenarioError when it cannot be read or is something else."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)  # the safe one
    except OSError as exc:
        raise ScenarioError(str(path), "", "", f"a profile that can be read ({exc.strerror})") from exc
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        raise ScenarioError(str(path), "", "", f"YAML ({' '.join(str(exc).split())})") from exc
    if not isinstance(document, dict):
        raise ScenarioError(str(path), "", "", f"a mapping with the keys {', '.join(KEYS)}")
    for key, value in document.items():
        if key not in KEYS:
            raise ScenarioError(str(path), str(key), repr(value), f"the keys are {', '.join(KEYS)}")
        if not isinstance(value, str if key == "client" else dict):
            kind = "a text" if key == "client" else "a mapping"
            raise ScenarioError(str(path), key, repr(value), f"it must be {kind}")
    if "rules" not in document:
        raise ScenarioError(str(path), "rules", "", "a mapping of rules to what is expected")
    return document


@lru_cache(maxsize=1)
def built_in() -> Mapping[str, Mapping[str, Any]]:
    """The profiles that ship, by name, in the order of their names."""
    return {path.stem: read(path) for path in sorted(DIR.glob("*.yaml"))}

"""The tree that mutmut works on: a copy, because it mutates files under the names they are imported by.

Here src/nemesrv/* are links to the folders beside it, which mutmut would follow out of its own copy; there they are
folders. Only fast tests are copied into its configuration: whatever starts processes, opens thousands of sockets or
takes seconds would be run for hundreds of mutants.
"""

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

MUTATED = (
    "actors/namesrv/route_table.py",
    "actors/namesrv/unregister.py",
    "actors/namesrv/tables.py",
    "clients/name_servers.py",
    "clients/name_server_client.py",
    "clients/producer/fault_strategy.py",
    "clients/producer/publish_table.py",
    "clients/consumer/rebalance.py",
)
"""The NameServer's tables, and every rule by which a client chooses a NameServer, a broker or a queue."""

TESTS = ("tests/actors/namesrv", "tests/clients")
LEFT_OUT = (
    "tests/actors/namesrv/test_hard_peers.py",
    "tests/actors/namesrv/test_standalone.py",
)
RANDOM = "tests/actors/namesrv/test_standing.py::test_both_ways_lead_to_the_same_tables"
"""Left out, too: what random inputs kill, the next run may not, and where the machine is slow it fails by itself."""

_IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc")


def make(into: Path) -> None:
    """Copy what mutmut needs to `into`, which is empty, with its configuration."""
    shutil.copytree(ROOT / "src" / "nemesrv", into / "src" / "nemesrv", ignore=_IGNORED)
    shutil.copytree(ROOT / "tests", into / "tests", ignore=_IGNORED)
    shutil.copy(ROOT / "conftest.py", into)
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8") + configuration()
    (into / "pyproject.toml").write_text(settings, encoding="utf-8")


def selected_tests() -> list[str]:
    """The test files that judge the mutants, by their paths in the tree."""
    found = [path.relative_to(ROOT).as_posix() for folder in TESTS for path in (ROOT / folder).glob("test_*.py")]
    return sorted(set(found) - set(LEFT_OUT))


def configuration() -> str:
    """The table that mutmut reads from pyproject.toml."""
    return f"""
[tool.mutmut]
source_paths = ["src"]
only_mutate = {_toml([f"src/nemesrv/{path}" for path in MUTATED])}
also_copy = ["conftest.py", "src"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-x", "-q", "--deselect", "{RANDOM}"]
pytest_add_cli_args_test_selection = {_toml(selected_tests())}
track_dependencies = false
use_git_change_detection = false
"""


def _toml(texts: list[str]) -> str:
    return "[" + ", ".join(f'"{text}"' for text in texts) + "]"

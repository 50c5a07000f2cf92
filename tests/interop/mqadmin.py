"""mqadmin in one JVM for many commands (Admin.java), and how to read what it prints."""

import re
from pathlib import Path

from nemesrv.chaos.apache.properties import write

from .jars import Jars
from .programs import Program, java_source

SOURCE = Path(__file__).with_name("Admin.java")
COMMAND_TIMEOUT_S = 30.0


class MQAdmin:
    """`mqadmin("clusterList", "-n", address)` is what the command printed, stack traces included."""

    def __init__(self, name: str, folder: Path, jars: Jars) -> None:
        write(folder / "conf" / "tools.yml", {})  # 4.4.0's refuses to start without it
        self.program: Program = java_source(name, folder, jars, SOURCE)
        self.program.wait_for("READY")

    def __call__(self, *arguments: str) -> str:
        start = len(self.program.lines)
        self.program.say("\t".join(arguments))
        end = self.program.wait_for("-- END --", after=start, within_s=COMMAND_TIMEOUT_S)
        return "\n".join(self.program.lines[start:end]).strip()

    def ok(self, *arguments: str) -> str:
        """As a call; AssertionError when the command failed."""
        printed = self(*arguments)
        assert "Exception" not in printed, printed
        return printed


def rows(printed: str) -> list[list[str]]:
    """The cells of a printed table, line by line, without its heading, sorted: Java's order is that of its hashes."""
    return sorted(line.split() for line in printed.splitlines() if line.strip() and not line.startswith("#"))


def settings(printed: str) -> dict[str, str]:
    """`key : value` and `key = value` lines."""
    pairs = (re.match(r"(\S+)\s+[:=] (.*)", line) for line in printed.splitlines())
    return {pair[1]: pair[2].strip() for pair in pairs if pair}

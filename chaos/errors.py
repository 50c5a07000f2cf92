"""Errors of nemesrv or its input, as opposed to errors of the system under test. Errors of nemesrv never give a
verdict."""

from collections.abc import Iterable
from difflib import get_close_matches

from ..actors.errors import HarnessError as HarnessError


def nearest(value: str, choices: Iterable[str]) -> str:
    """Return `; did you mean orders?` for a value similar to the choice `orders`; "" if no choice is similar."""
    found = get_close_matches(value.strip("'\""), list(choices), n=1, cutoff=0.7)
    return f"; did you mean {found[0]}?" if found else ""


def one_of(choices: Iterable[str], value: str) -> str:
    """Return `one of orders, payments; did you mean orders?`, the end of a message about a value that is none of the
    choices."""
    known = list(choices)
    return f"one of {', '.join(known)}{nearest(value, known)}"


class ToxiproxyError(HarnessError):
    """Toxiproxy is missing, did not start, or refused a request."""


class ScenarioError(HarnessError):
    """The scenario, configuration or command is wrong (exit status 2). The error has file, key, value and what is
    allowed, or only a message ("no such file")."""

    def __init__(self, file: str, key: str, value: str, allowed: str) -> None:
        self.file, self.key, self.value, self.allowed = file, key, value, allowed
        where = f"{file}: {key}" if key else file
        wrong = f"{value} is not allowed; expected {allowed}" if value and allowed else value or f"expected {allowed}"
        super().__init__(f"{where}: {wrong}")


class NotAllowed(Exception):
    """Raised for a value that a scenario must not have: key, value and what is allowed. The code that reads scenarios
    turns NotAllowed into a ScenarioError."""

    def __init__(self, key: str, value: str, allowed: str) -> None:
        self.key, self.value, self.allowed = key, value, allowed
        super().__init__(f"{key}: {value} is not allowed; expected {allowed}")

    def in_file(self, file: str) -> ScenarioError:
        return ScenarioError(file, self.key, self.value, self.allowed)

"""Options that several commands share, and the completion of their values in a shell."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from ...remoting.node.network import Address
from ..errors import ScenarioError

# -- types of the command's options whose errors say in a person's words what is allowed.
#
# Invalid value for '--for': 'nan' is not allowed; expected a number above 0


class Number(click.FloatRange):
    """An option's value that is a number between bounds; infinity and NaN are refused."""

    _is_of: Callable[[Any], float] = float
    _noun = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = type(self)._is_of(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or not self._has(number):
            self.fail(f"{value!r} is not allowed; expected a {self._noun}{self._bounds}", param, ctx)
        return number

    def _has(self, number: float) -> bool:
        above = self.min is None or (number > self.min if self.min_open else number >= self.min)
        return above and (self.max is None or (number < self.max if self.max_open else number <= self.max))

    @property
    def _bounds(self) -> str:
        said = [] if self.min is None else [f"{'above' if self.min_open else 'of at least'} {self.min}"]
        said += [] if self.max is None else [f"{'below' if self.max_open else 'at most'} {self.max}"]
        return f" {' and '.join(said)}" if said else ""


class WholeNumber(Number):
    name = "integer range"
    _is_of = int
    _noun = "whole number"


SEED = WholeNumber(0, 2**62)


class Matching(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.3, and we take 8.1
    """An option's value that is text in a given format, which is converted to an object. `expected` describes the
    format in an error message."""

    def __init__(
        self, name: str, pattern: str, expected: str, made: Callable[[re.Match[str]], Any] = lambda found: found[0]
    ) -> None:
        self.name, self._pattern, self._expected, self._made = name, pattern, expected, made

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):  # it has been converted
            return value
        found = re.fullmatch(self._pattern, str(value))
        made = None if found is None else self._made(found)
        if made in (None, ()):
            self.fail(f"{value!r} is not allowed; expected {self._expected}", param, ctx)
        return made


EPISODE_PLACE = Matching(
    "episode=place",
    r"\s*([1-9]\d{0,5})=([1-9]\d{0,5})\s*",
    "EPISODE=PLACE, both from 1, such as 1=2",
    lambda found: (int(found[1]), int(found[2])),
)


def _seeds(found: re.Match[str]) -> tuple[int, ...]:
    seeds = range(int(found[1]), int(found[2] or found[1]) + 1)
    return tuple(seeds) if len(seeds) <= 10_000 else ()


SEEDS = Matching(
    "n[..m]",
    r"(\d{1,18})(?:\.\.(\d{1,18}))?",
    "a seed such as 7, or from one to a later one such as 1..12, up to 10,000 of them",
    _seeds,
)
"""All from the one to the other."""
SPARK_MASTER = Matching(
    "url",
    r"local(\[(\d+|\*)(,\s*\d+)?\])?|yarn|(spark|k8s)://\S+",
    "spark://HOST:PORT, yarn, k8s://URL, or local[N] for N threads",
)
"""What Spark takes as a master; it would say of another only that its JVM ended."""


class AppendedFile(click.Path):
    """An option's value that names a file that the command writes, or appends to, at its end. The file's folder must
    exist before the command starts anything."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        assert isinstance(path, Path)
        if not path.parent.is_dir():
            self.fail(f"{str(value)!r} is not allowed; expected a file in a folder that is there", param, ctx)
        was_there = path.exists()
        try:
            path.open("a").close()
        except OSError as exc:
            self.fail(
                f"{str(value)!r} is not allowed; expected a file that can be written ({exc.strerror})", param, ctx
            )
        if not was_there:
            path.unlink()
        return path


class RayAddress(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.3, and we take 8.1
    """The address of an existing Ray cluster. The value `local` (as in Ray) means that no existing cluster is used."""

    name = "auto|host:port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "local":
            return None
        found = re.fullmatch(r"\[?[^\s/]+?\]?:(\d{1,5})", str(value))
        if value != "auto" and (found is None or not 0 < int(found[1]) < 65536):
            where = "the command itself has to be on one of its hosts"
            expected = f"auto for the cluster that this host is in, or HOST:PORT of its head; {where}"
            self.fail(f"{value!r} is not allowed; expected {expected}", param, ctx)
        return value


class AddressList(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.3, and we take 8.1
    """Addresses separated by `;`, as in RocketMQ's NAMESRV_ADDR, converted to a tuple with each address once."""

    name = "host:port[;host:port…]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        try:
            found = tuple(dict.fromkeys(Address.parse(part) for part in str(value).split(";") if part.strip()))
            for address in found:
                address.host.encode("idna")
        except ValueError as exc:
            self.fail(f"{value!r} is not allowed; expected host:port, several with ; between them ({exc})", param, ctx)
        if not found and (param is None or param.required):
            self.fail(f"{value!r} is not allowed; expected host:port, several with ; between them", param, ctx)
        return found


def scenario_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from ..scenarios.loading import all_shipped

    names = [CompletionItem(name) for name in (*all_shipped(), "all") if name.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


def check_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from ..checks import CHECKS

    before, comma, begun = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{name}") for name in (*CHECKS, "all") if name.startswith(begun)]


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout instead of text.")


quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print no progress on stderr.")

short_option = click.option(
    "-q",
    "--quiet",
    is_flag=True,
    help="Print no progress, and of the result only the verdict, the verdict's first sentence, the broken rule, the "
    "sentence about clients, the command that repeats an INVALID run, and the report's path.",
)

full_option = click.option(
    "--full", is_flag=True, help="Print a table row for every check that ran, also for VALID checks."
)

set_option = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a key of the scenario, for example settle_s=90, timeline.0.at_s=30 (the first entry) or "
    "brokers.forceRegister=false. May be repeated.",
)

implementation_option = click.option(
    "--implementation",
    metavar="ours|apache-VERSION|apache:FOLDER",
    help="Program of the NameServers and brokers, such as apache-5.3.3 or apache:$ROCKETMQ_HOME (docs/apache.md).",
)

engine_option = click.option(
    "--engine",
    type=click.Choice(["plain", "spark"]),
    help="Judge the history with Spark, or with plain Python (which refuses more than 300,000 rows). Default: Spark if "
    "PySpark is installed, else plain Python; but plain Python for `nemesrv run` on the virtual clock, if the history "
    "has at most 300,000 rows.",
)


def engine_asked(engine: str | None, spark_master: str | None) -> str | None:
    """Return the engine that the options request for judging; Spark if a Spark cluster is named. Raises ScenarioError
    if plain Python and a Spark cluster are both requested."""
    if spark_master is not None and engine == "plain":
        raise ScenarioError("--spark-master", "", spark_master, "nothing with --engine plain, which is without Spark")
    return engine if spark_master is None else "spark"


summary_option = click.option(
    "--summary",
    type=AppendedFile(),
    envvar="GITHUB_STEP_SUMMARY",
    help="Append the verdicts as Markdown to this file (default: the file that $GITHUB_STEP_SUMMARY names, if set).",
)

zone_option = click.option(
    "--zone",
    "zones",
    multiple=True,
    metavar="[SOURCE=]+08:00",
    help="Time zone of the times in the logs of SOURCE (a node, file or folder), or of all logs (default: inferred).",
)

offset_option = click.option(
    "--offset",
    "offsets",
    multiple=True,
    metavar="SOURCE=+1.5s",
    help="How far the clock of SOURCE (a node, file or folder) was ahead of the other nodes' clocks, in ms, s, m, h "
    "or d (default: inferred).",
)

processes_option = click.option(
    "--processes",
    "at_once",
    type=WholeNumber(1, 256),
    help="How many runs on the virtual clock happen in parallel (default: one per processor).",
)

ray_option = click.option(
    "--ray",
    type=RayAddress(),
    envvar="RAY_ADDRESS",
    help="Run the nodes on the Ray cluster whose head is at HOST:PORT, or on the Ray cluster of this machine (auto). "
    "The default is $RAY_ADDRESS. Without --ray and $RAY_ADDRESS all nodes run on this machine (docs/hosts.md).",
)

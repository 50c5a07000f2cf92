"""Types of the command's options whose errors say in a person's words what is allowed.

Invalid value for '--for': 'nan' is not allowed: a number above 0
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import click

from ...remoting.node.network import Address

_MASTERS = re.compile(r"local(\[(\d+|\*)(,\s*\d+)?\])?|yarn|(spark|k8s)://\S+")


class Number(click.FloatRange):
    """A number between bounds; neither infinity nor what is no number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or not _within(self, number):
            self.fail(f"{value!r} is not allowed: a number{_bounds(self)}", param, ctx)
        return number


class WholeNumber(click.IntRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = int(value)
        except ValueError:
            number = None
        if number is None or not _within(self, number):
            self.fail(f"{value!r} is not allowed: a whole number{_bounds(self)}", param, ctx)
        return number


def _within(range_: click.IntRange | click.FloatRange, number: float) -> bool:
    low, high = range_.min, range_.max
    above = low is None or (number > low if range_.min_open else number >= low)
    return above and (high is None or (number < high if range_.max_open else number <= high))


def _bounds(range_: click.IntRange | click.FloatRange) -> str:
    low, high = range_.min, range_.max
    said = [] if low is None else [f"{'above' if range_.min_open else 'of at least'} {low:g}"]
    said += [] if high is None else [f"{'below' if range_.max_open else 'at most'} {high:g}"]
    return f" {' and '.join(said)}" if said else ""


class EpisodeRank(click.ParamType):  # type: ignore[type-arg]  # as Seeds below
    """EPISODE=RANK, both from 1: always a pair."""

    name = "episode=rank"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"\s*([1-9]\d{0,5})=([1-9]\d{0,5})\s*", str(value))
        if found is None:
            self.fail(f"{value!r} is not allowed: EPISODE=RANK, both from 1, such as 1=2", param, ctx)
        return int(found[1]), int(found[2])


class Seeds(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.3, and we take 8.1
    """A seed of at least 0, or two with `..` between them for all from the one to the other: always a tuple."""

    name = "n[..m]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", str(value))
        seeds = tuple(range(int(found[1]), int(found[2] or found[1]) + 1)) if found else ()
        if not seeds:
            self.fail(
                f"{value!r} is not allowed: a seed such as 7, or from one to a later one such as 1..12", param, ctx
            )
        return seeds


class SparkMaster(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.3, and we take 8.1
    """What Spark takes as a master; it would say of another only that its JVM ended."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not _MASTERS.fullmatch(value):
            self.fail(
                f"{value!r} is not allowed: spark://HOST:PORT, yarn, k8s://URL, or local[N] for N threads", param, ctx
            )
        return value


class AppendedFile(click.Path):
    """A file that is appended to when all is done, so its folder is looked for before anything is started."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        assert isinstance(path, Path)
        if not path.parent.is_dir():
            self.fail(f"{str(value)!r} is not allowed: a file in a folder that is there", param, ctx)
        return path


class RayAddress(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.3, and we take 8.1
    """Where an existing Ray cluster is; `local`, as Ray itself takes it, is none."""

    name = "auto|host:port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "local":
            return None
        found = re.fullmatch(r"\[?[^\s/]+?\]?:(\d{1,5})", str(value))
        if value != "auto" and (found is None or not 0 < int(found[1]) < 65536):
            self.fail(
                f"{value!r} is not allowed: auto for the cluster that this host is in, or HOST:PORT of its head; the "
                "command itself has to be on one of its hosts",
                param,
                ctx,
            )
        return value


class AddressList(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.3, and we take 8.1
    """Addresses with `;` between them, as RocketMQ's own NAMESRV_ADDR: always a tuple, each once."""

    name = "host:port[;host:port…]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        try:
            found = tuple(dict.fromkeys(Address.parse(part) for part in str(value).split(";") if part.strip()))
            for address in found:
                address.host.encode("idna")
        except ValueError as exc:
            self.fail(f"{value!r} is not allowed: host:port, several with ; between them ({exc})", param, ctx)
        if not found and (param is None or param.required):
            self.fail(f"{value!r} is not allowed: host:port, several with ; between them", param, ctx)
        return found

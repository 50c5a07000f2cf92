"""What was measured of whom, the best of each: one table, then each aim and whether it is met."""

from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from nemesrv.chaos.reports.terminal import print_fitting

OURS = "NameServer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """`what` of ours, as a share of another server's (`of`, a prefix: the best one counts) or as it is (`of` None)."""

    what: str
    of: str | None
    at_least: float | None = None
    at_most: float | None = None


@dataclass(slots=True)
class Figures:
    """A row for each thing measured, a column for each server."""

    rows: dict[str, dict[str, float]] = field(default_factory=dict)
    less_is_better: set[str] = field(default_factory=set)
    aims: list[Aim] = field(default_factory=list)

    def add(self, what: str, server: str, value: float, *, less_is_better: bool = False) -> None:
        """Of several values the best one counts: what else the machine does can only make one worse."""
        row = self.rows.setdefault(what, {})
        if less_is_better:
            self.less_is_better.add(what)
        better = min if less_is_better else max
        row[server] = better(row.get(server, value), value)

    def servers(self) -> list[str]:
        return list(dict.fromkeys(server for row in self.rows.values() for server in row))

    def ratio(self, aim: Aim) -> float | None:
        """Ours as the aim has it; None where one of the two was not measured."""
        row = self.rows.get(aim.what, {})
        if OURS not in row:
            return None
        if aim.of is None:
            return row[OURS]
        others = [value for server, value in row.items() if server.startswith(aim.of)]
        best = (min if aim.what in self.less_is_better else max)(others, default=0.0)
        return row[OURS] / best if best else None

    def print(self, console: Console) -> None:
        servers = self.servers()
        table = Table(title="side by side, in one run")
        table.add_column("what")
        for server in servers:
            table.add_column(server, justify="right")
        for what, row in self.rows.items():
            table.add_row(what, *(_shown(row[server]) if server in row else "" for server in servers))
        print_fitting(console, table)
        if not self.aims:
            return
        aims = Table(title="aims")
        for column in ("what", "of", "aim", "measured", "met"):
            aims.add_column(column)
        for aim in self.aims:
            measured = self.ratio(aim)
            wanted = f"≥ {aim.at_least:g}" if aim.at_least is not None else f"≤ {aim.at_most:g}"
            met = measured is not None and (aim.at_least or 0) <= measured <= (aim.at_most or float("inf"))
            shown = "not measured" if measured is None else f"{measured:.2f}"
            aims.add_row(aim.what, aim.of or "", wanted, shown, "" if measured is None else "yes" if met else "NO")
        print_fitting(console, aims)


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

"""RocketMQ's timers, and the windows that follow from them: how soon and how late a loss or a return may show.

    t = 0 is the moment the fault (or the heal) took effect; all values are milliseconds of RocketMQ time.
    φ = age of the broker's last accepted registration at that moment, 0 ≤ φ < R.

The rows, symbols and formulas are those of the project's failure-detection table, read from Apache RocketMQ 4.9.8 and
5.3.3 (`RouteInfoManager`, `BrokerController`, `MQClientInstance`) and partly measured on the Java programs. Which row
applies is decided by how the fault was injected: a disabled proxy is a crash, not a partition.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ...remoting.node.profile import Profile
from ..faults.fault import Loss
from .timers import ACTING_H_MS, UNREGISTER_MS
from .timers import Timers as Timers

NEVER = math.inf


class Window(NamedTuple):
    """From the moment of the change: not before `earliest_ms`, and by `latest_ms` (NEVER: no bound at all)."""

    earliest_ms: float
    latest_ms: float
    formula: str
    row: str
    timers: int = 1
    """How many timers (or hand-overs) stand one behind the other in the formula: each may fire late."""

    def plus(self, ms: float, why: str, timers: int = 0) -> Window:
        """The same, so much later, for what `why` adds to the formula, and for so many timers more; itself for 0 ms."""
        if not ms:
            return self
        more = self.timers + timers
        return self._replace(latest_ms=self.latest_ms + ms, formula=f"{self.formula} + {why}", timers=more)

    def behind(self, timers: Timers, hung_brokers: int) -> Window:
        """The same, later by J, by which hung brokers hold up a client's only scheduler thread."""
        return self.plus(poll_delay_ms(timers, hung_brokers), f"J (A·{hung_brokers} hung brokers)")


def drop_window(timers: Timers, loss: Loss, *, dead_name_servers: int = 0) -> Window:
    """When a NameServer drops the route of a broker lost in this way; NEVER where the table promises nothing."""
    t, row = timers, str(loss)
    beat = "R" if t.h_ms is None else "h"
    match loss:
        case Loss.CRASH | Loss.CLOSED:
            return Window(0, 0, "RTT + event thread", row)
        case Loss.GRACEFUL:
            return Window(0, UNREGISTER_MS * dead_name_servers, f"3 s·{dead_name_servers} dead NameServers", row)
        case Loss.SILENT:
            # The idle close (I - φ') lies inside these bounds: the channel's last byte is never older than φ.
            return Window(t.silence_ms - t.beat_ms, t.E_ms + t.S_ms, f"E - {beat} .. E + S", row, 2)
        case Loss.BACKWARD_PACKETS:
            formula = f"E .. {beat} + E + S"
            return Window(t.silence_ms, t.beat_ms + t.E_ms + t.S_ms, formula, row, 3)
        case Loss.DROPPED:
            latest_ms = min(t.R_ms + t.B_ms, t.E_ms + t.S_ms)
            return Window(0, latest_ms, "min(R + B, E + S)", row, 2)
        case Loss.RESET:
            # The channel is reset at its next bytes, which are the next registration's.
            return Window(0, t.R_ms, "R", row)
        case Loss.BACKWARD_PROXY if not t.Z:
            return Window(NEVER, NEVER, "registrations keep landing", row)
        case Loss.STALE if t.h_ms is None and t.Z and stale_gap_ms(t) < t.silence_ms:
            return Window(NEVER, NEVER, "registrations go on over new connections", row)
        case Loss.STALE:
            return Window(min(t.silence_ms - t.beat_ms, t.silence_ms), NEVER, f"E - {beat} ..", row)
        case Loss.UNDIALLED:
            return Window(NEVER, NEVER, "registrations go on over their connections", row)
        case Loss.HARMLESS:
            return Window(NEVER, NEVER, "no change", row)
        case _:
            return Window(0, NEVER, "not bounded", row)


def stale_gap_ms(timers: Timers) -> float:
    """The longest time between two accepted registrations if a broker's channel dies unseen: the first registration on
    the dead channel is given up after B, which closes the channel, and the next tick uses a new channel."""
    return timers.R_ms * (2 + math.floor(timers.B_ms / timers.R_ms)) + timers.C_ms


def return_window(timers: Timers, *, round_ms: float | None = None) -> Window:
    """When a broker is back in a NameServer's table after a heal, or after either of them was started again.

    `round_ms`: from one of its rounds to the next, R; by default, where nobody knows of a NameServer that hangs, or B,
    if that is more: all are registered with at once, and the next round waits for the last.
    """
    row = "after the end of a fault, or a restart, a broker registers at its next timer"
    each_ms = max(timers.R_ms, timers.B_ms) if round_ms is None else round_ms
    each = "R" if each_ms == timers.R_ms else "B"
    if timers.F_ms is not None:  # it asks every NameServer first, and one that hangs is waited for
        return Window(0, each_ms + timers.F_ms + timers.C_ms, f"{each} + B + C", row, 3)
    return Window(0, each_ms + timers.C_ms, f"{each} + C", row, 2)


def serves_window(timers: Timers) -> Window:
    """When a NameServer that was started has every route to give: its brokers are back, and it waits no more (W)."""
    window = return_window(timers)
    if timers.serves_ms <= window.latest_ms:
        return window
    return Window(0, timers.serves_ms, "W", "needWaitForService: look-ups are answered with code 1 until then", 1)


def topic_window(timers: Timers) -> Window:
    """When a new or changed topic is at every NameServer: at once, or, when that call failed, at the next tick."""
    return Window(0, timers.R_ms + timers.B_ms, "R + B", "a topic registers at once, or at the next tick", 2)


def poll_delay_ms(timers: Timers, hung_brokers: int) -> float:
    """J: how long hung brokers hold up a client's only scheduler thread, one heartbeat time-out each."""
    return timers.A_ms * hung_brokers


PERSIST_MS = 5_000.0
"""`ClientConfig.persistConsumerOffsetInterval`."""
PULL_MAX_IDLE_MS = 120_000.0
"""`ProcessQueue.PULL_MAX_IDLE_TIME`: a queue that was not pulled for so long is dropped, and committed no more."""


def commit_delay_ms(timers: Timers, queues: int, within_ms: float) -> float:
    """J of offset commits: how long they hold up what the same thread had to do within `within_ms`.

    A commit dials for each of these queues in vain, C each, and is due again every 5 s. Where it takes longer, the
    thread falls behind by the rest each time, until the queues have not been pulled for 120 s and the next rebalance
    drops them.
    """
    each_ms = queues * timers.C_ms
    if each_ms <= PERSIST_MS:
        return each_ms
    until_dropped_ms = PULL_MAX_IDLE_MS + timers.Qr_ms + each_ms
    return min(within_ms * (each_ms / PERSIST_MS - 1), until_dropped_ms) + each_ms


def client_leave_window(
    timers: Timers,
    removal: Window,
    *,
    consumer: bool = False,
    hung_brokers: int = 0,
    failed_calls: float = 0,
) -> Window:
    """When a client no longer uses a broker that its NameServer drops within `removal`.

    t_rm + P + J; a consumer releases the queues at its next rebalance, Qr later; a client whose NameServer failed too
    waits k·P + A more. (The last broker of a topic is never left: the NameServer answers code 17, and the client keeps
    the route it has.)
    """
    who = "consumer releases dead queues" if consumer else "producer stops targeting the broker"
    window = removal._replace(earliest_ms=0, formula=f"({removal.formula})", row=f"{who} after: {removal.row}")
    window = window.plus(timers.P_ms, "P", 1)
    if consumer:
        window = window.plus(timers.Qr_ms, "Qr", 1)
    window = window.behind(timers, hung_brokers)
    if failed_calls:
        stale = staleness_window(timers, failed_calls)
        window = window.plus(stale.latest_ms, stale.formula, stale.timers)
    return window


def staleness_window(timers: Timers, failed_calls: float) -> Window:
    """How long a client's routes are stale after its NameServer failed: k·P + A for k failed calls."""
    row, k = "client leaves a bad NameServer", f"{failed_calls:g}"
    if failed_calls == NEVER:
        return Window(0, NEVER, "not bounded", row)
    return Window(0, failed_calls * timers.P_ms + timers.A_ms, f"{k}·P + A", row, int(failed_calls) + 1)


def calls_to_leave(profile: Profile, loss: Loss) -> int:
    """k: calls that fail before a client with other NameServers left has moved on from one lost in this way.

    4.9 tries the whole list within one call, so a refused dial costs none; 5.3 tries one address a call. Where the
    call's own bytes reset the channel, it is that call that fails.
    """
    if loss in (Loss.CRASH, Loss.GRACEFUL, Loss.CLOSED):
        return 0 if profile is Profile.V4_9 else 1
    return 0 if loss is Loss.HARMLESS else 1


SYMBOLS: Mapping[str, str] = {
    "R": "a broker registers every registerNameServerPeriod, 30 s",
    "B": "a broker gives a registration up after registerBrokerTimeoutMills, 6 s (5.x: 24 s)",
    "E": "a NameServer drops a broker that was silent for brokerChannelExpiredTime, 120 s",
    "S": "a NameServer looks for silent brokers every 10 s (5.x: scanNotActiveBrokerInterval, 5 s)",
    "I": "a NameServer closes a channel that was idle for serverChannelMaxIdleTimeSeconds, 120 s",
    "i": "a broker closes a channel to a NameServer that was idle for clientChannelMaxIdleTimeSeconds, 120 s",
    "W": "with needWaitForService a NameServer answers look-ups with code 1 for waitSecondsForService, 45 s",
    "h": "a broker that acts for its master sends a heartbeat every 1 s",
    "N": "a node without a list asks the address server every 120 s (a broker of 5.x: every 10 s), and waits 3 s",
    "P": "a client asks for its routes every pollNameServerInterval, 30 s",
    "A": "a client gives a call up after mqClientApiTimeout, 3 s",
    "C": "connecting may take connectTimeoutMillis, 3 s",
    "H": "a client sends heartbeats every heartbeatBrokerInterval, 30 s",
    "T": "a send may take sendMsgTimeout with all its tries, 3 s",
    "Qr": "a consumer divides the queues anew every waitInterval, 20 s",
    "J": "the delay of a client's only timer thread by hung brokers and NameServers, and by commits to dead brokers",
    "t_rm": "the time at which the last NameServer that the client may ask drops the broker",
    "k": "the number of NameServers of the list that fail the client one after the other",
    "q": "the number of queues at unreachable brokers",
    "n": "the number of NameServers on the list",
}
"""Symbol → what it is, and its default."""

_WORD = re.compile(r"t_rm|[A-Za-z]+")
_DEFAULT = re.compile(r"\d+ s( \(.*\))?$")


def set_values(timers: Timers, of_nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Symbol → `20 s`, of each timer that is not at its default; `10 to 20 s` where nodes differ."""
    found, default = {}, Timers.for_profile(timers.profile, W_ms=45_000, h_ms=ACTING_H_MS)
    for symbol in SYMBOLS:
        name = f"{symbol}_ms"
        said = (getattr(timers, name, None), *(of.get(name) for of in of_nodes.values()))
        values = {value for value in said if value is not None}
        if values and values != {getattr(default, name)}:
            ends = sorted({min(values), max(values)})
            found[symbol] = f"{' to '.join(f'{ms / 1000:g}' for ms in ends)} s"
    return found


def legend(formulas: Iterable[str], values: Mapping[str, str] | None = None) -> dict[str, str]:
    """Those of SYMBOLS that the formulas use, in the order of SYMBOLS; with their `values` in the run, where set."""
    used = {word for formula in formulas for word in _WORD.findall(formula)}
    return {symbol: _with(meaning, (values or {}).get(symbol)) for symbol, meaning in SYMBOLS.items() if symbol in used}


def _with(meaning: str, value: str | None) -> str:
    """Return `…, 20 s (default 6 s; 5.x: 24 s)` for `…, 6 s (5.x: 24 s)`."""
    if value is None:
        return meaning
    default = _DEFAULT.search(meaning)
    assert default is not None, meaning
    return f"{meaning[: default.start()]}{value} (default {default[0].replace(' (', '; ').removesuffix(')')})"

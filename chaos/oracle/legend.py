"""What the symbols in windows stand for: RocketMQ's timers, by the names of their fields in Java."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

SYMBOLS: Mapping[str, str] = {
    "R": "a broker registers every registerNameServerPeriod, 30 s",
    "B": "it gives a registration up after registerBrokerTimeoutMills, 6 s (5.x: 24 s)",
    "E": "a NameServer lets a silent broker expire after brokerChannelExpiredTime, 120 s",
    "S": "and looks every 10 s (5.x: scanNotActiveBrokerInterval, 5 s)",
    "I": "it closes a channel that was idle for serverChannelMaxIdleTimeSeconds, 120 s",
    "i": "and so does a broker with its channel to a NameServer, after clientChannelMaxIdleTimeSeconds, 120 s",
    "W": "with needWaitForService it answers look-ups with code 1 for waitSecondsForService, 45 s",
    "h": "a broker that acts for its master sends a heartbeat every 1 s",
    "N": "who has no list asks the address server each 120 s (a broker of 5.x: each 10 s), and waits 3 s",
    "P": "a client asks for its routes every pollNameServerInterval, 30 s",
    "A": "and gives a call up after mqClientApiTimeout, 3 s",
    "C": "connecting may take connectTimeoutMillis, 3 s",
    "H": "a client sends heartbeats every heartbeatBrokerInterval, 30 s",
    "T": "a send may take sendMsgTimeout with all its tries, 3 s",
    "Qr": "a consumer shares queues anew every waitInterval, 20 s",
    "J": "what hung brokers and NameServers, and commits to lost queues, make a client's one timer thread late",
    "t_rm": "when the last NameServer that the client may ask has dropped the broker",
    "k": "how many NameServers of the list fail the client one after the other",
    "q": "how many queues are lost",
    "n": "how many NameServers the list has",
}
"""Symbol → what it is, and its default."""

_WORD = re.compile(r"t_rm|[A-Za-z]+")


def legend(formulas: Iterable[str]) -> dict[str, str]:
    """Those of SYMBOLS that the formulas use, in the order of SYMBOLS."""
    used = {word for formula in formulas for word in _WORD.findall(formula)}
    return {symbol: meaning for symbol, meaning in SYMBOLS.items() if symbol in used}

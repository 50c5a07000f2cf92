"""What the authors of a client may want to know, with what was measured of it; nothing is said that no file shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .catalogue import CLIENTS


@dataclass(frozen=True, slots=True)
class Concern:
    """A value of a rule that costs the client's users something."""

    rule: str
    values: tuple[str, ...]
    says: str
    beside: tuple[str, ...] = ()
    """Rules whose figures show what it costs."""


CONCERNS = (
    Concern(
        "failover",
        ("never",),
        "where one of two NameServers drops SYNs and the connection to the other is lost, the next look-ups are "
        "not answered, though the other accepts again after a second: waiting for the first takes the whole call "
        "(Java's is apache/rocketmq#7056)",
    ),
    Concern(
        "send_retries",
        ("the same broker",),
        "a send that a broker refused with SERVICE_NOT_AVAILABLE 14 is tried again on the same broker",
        ("sends_lost",),
    ),
    Concern(
        "send_retries",
        ("none",),
        "a send that a broker refused with SERVICE_NOT_AVAILABLE 14 is not tried again at all",
    ),
)


def concerns(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """One sentence a client and concern, with its evidence; and what its driver met."""
    for name, client in CLIENTS.items():
        rules = {rule["rule"]: rule for rule in found.get(name, {}).get("rules", ())}
        for concern in CONCERNS:
            rule = rules.get(concern.rule)
            if rule is None or rule["measured"] not in concern.values:
                continue
            shown = (rules[each] for each in (concern.rule, *concern.beside) if each in rules)
            evidence = "; ".join(f"`{each['rule']}`: {each['why'].partition(', as the program')[0]}" for each in shown)
            yield f"{client.says}: {concern.says} ({evidence})."
        yield from (f"{client.says}: {each}" for each in client.findings)
